#include "weights/checksums.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "formats/crc32c.h"

namespace cohort::weights {
namespace fs = std::filesystem;
namespace {

constexpr const char* kAlgorithm = "crc32c";

std::string hex(std::uint32_t value) {
  return format("{:08x}", value);
}

std::uint32_t checksum_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  COHORT_THROW_UNLESS(file.is_open(), "{} cannot be read", path.string());
  std::vector<char> buffer(std::size_t{1} << 20);
  std::uint32_t sum = 0;
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    sum = crc32c(buffer.data(), static_cast<std::size_t>(file.gcount()), sum);
  }
  COHORT_THROW_UNLESS(!file.bad(), "{} cannot be read to its end", path.string());
  return sum;
}

}  // namespace

std::string to_text(const Checksums& checksums) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const auto& [name, sum] : checksums) files[name] = hex(sum);
  nlohmann::ordered_json json{{"algorithm", kAlgorithm}, {"files", files}};
  return json_text(json, 2) + "\n";
}

void verify_checksums(const fs::path& checkpoint, const std::vector<std::string>& names) {
  const fs::path path = checkpoint / kChecksumsFile;
  std::error_code missing;
  if (!fs::exists(path, missing)) return;
  const auto json = try_json<nlohmann::json>(read_file(path));
  COHORT_THROW_UNLESS(json.is_object() && json.contains("files") && json.at("files").is_object() &&
                          json.value("algorithm", nlohmann::json()) == kAlgorithm,
                      "{} is damaged: it holds no checksums", path.string());
  for (const std::string& name : names) {
    const auto listed = json.at("files").find(name);
    if (listed == json.at("files").end()) continue;
    const std::string found = hex(checksum_of(checkpoint / name));
    COHORT_THROW_UNLESS(
        listed->is_string() && listed->get<std::string>() == found,
        "{} is not what was written: its checksum is {}, but {} says {}. The file has been changed, or a "
        "disk or a copy has damaged it",
        (checkpoint / name).string(), found, kChecksumsFile, json_text(*listed));
  }
}

}  // namespace cohort::weights
