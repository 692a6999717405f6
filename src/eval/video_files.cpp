#include "eval/video_files.h"

#include <cctype>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"

namespace cohort::eval {
namespace fs = std::filesystem;

std::string video_name(const std::string& policy, std::uint64_t seed, bool success) {
  std::string name = policy;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '-';
  return format("{}_seed-{}_{}.mp4", name, seed, success ? "success" : "failure");
}

std::vector<fs::path> videos_of_table(const fs::path& table) {
  std::vector<fs::path> files;
  std::error_code error;
  if (!fs::is_regular_file(table, error)) return files;
  try {
    const nlohmann::json json = parse_json<nlohmann::json>(read_file(table));
    if (!json.is_object() || !json.contains("videos")) return files;
    for (const nlohmann::json& video : json.at("videos")) {
      const fs::path place = fs::path(video.at("file").get<std::string>()).lexically_normal();
      const std::string name = video_name(video.at("policy").get<std::string>(), video.at("seed").get<std::uint64_t>(),
                                          video.at("success").get<bool>());
      if (place.is_absolute() || place.empty() || *place.begin() == ".." || place.filename() != name) continue;
      const fs::path file = table.parent_path() / place;
      if (fs::is_regular_file(fs::symlink_status(file, error))) files.push_back(file);
    }
  } catch (const std::exception&) {
    files.clear();  // another program's file: nothing of it is known
  }
  return files;
}

}  // namespace cohort::eval
