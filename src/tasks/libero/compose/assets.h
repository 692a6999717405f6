/// The meshes and textures of an export: each content once, under a name that tells where it comes from.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace cohort::tasks::libero::compose {

class AssetStore {
 public:
  /// folder: is made. libero: LIBERO's folder assets, which the sources in the manifest count from.
  AssetStore(std::filesystem::path folder, const std::filesystem::path& libero);

  /// Copies the file, unless its content is there, and returns its name in the folder. colliding: of a mesh that can
  /// touch. Throws Error for a file that is missing or stands in for a large one (and where those come from), and where
  /// the disk is full.
  std::string add(const std::filesystem::path& file, bool colliding);

  /// manifest.json beside the files: for each its source, package, size and SHA-1.
  void write_manifest() const;

 private:
  struct Asset {
    std::string source, package, sha1;
    std::uintmax_t bytes = 0;
    bool colliding = false;
  };
  std::filesystem::path folder_, libero_;
  std::map<std::string, Asset> assets_;              ///< by name in the folder
  std::map<std::string, std::string> name_by_sha1_;  ///< and by content
  std::map<std::filesystem::path, std::string> name_by_path_;
};

}  // namespace cohort::tasks::libero::compose
