#include "record/piece_store.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"

namespace cohort::record {
namespace fs = std::filesystem;
using config::Json;
namespace {

constexpr const char* kIdentityFile = "recording.json";

/// The first setting in which two recordings differ: "noise is 0.1 there, not 0".
std::string difference(const Json& there, const Json& here) {
  for (const auto& [name, value] : here.items()) {
    if (!there.contains(name)) return format("it does not say its {}", name);
    if (there.at(name) != value)
      return format("its {} is {}, not {}", name, json_text(there.at(name)), json_text(value));
  }
  return "it has other settings";
}

}  // namespace

PieceStore::PieceStore(fs::path folder, const Json& identity) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  COHORT_THROW_UNLESS(!error, "cannot create {}: {}", folder_.string(), error.message());
  const fs::path file = folder_ / kIdentityFile;
  if (!fs::exists(file)) {
    write_file_atomically(file, json_text(identity, 2) + "\n");
    return;
  }
  const Json there = try_json<Json>(read_file(file));
  COHORT_THROW_UNLESS(there == identity,
                      "{} holds an unfinished recording that is not this one: {}; finish that one with its own "
                      "settings, remove the folder, or write elsewhere",
                      folder_.string(), there.is_object() ? difference(there, identity) : "its settings are damaged");
}

fs::path PieceStore::stem(const PieceRange& range) const {
  return folder_ / format("episodes-{:08}-{:08}", range.begin, range.end - 1);
}

fs::path PieceStore::data_file(const PieceRange& range) const {
  fs::path file = stem(range);
  file += ".tfrecord";
  return file;
}

bool PieceStore::complete(const PieceRange& range) const {
  fs::path file = stem(range);
  file += ".json";
  return fs::exists(file);
}

PieceReport PieceStore::report(const PieceRange& range) const {
  fs::path file = stem(range);
  file += ".json";
  const Json json = try_json<Json>(read_file(file));
  PieceReport report{.range = range};
  try {
    report.kept = json.at("kept").get<std::int64_t>();
    report.steps = json.at("steps").get<std::int64_t>();
    report.successes = json.at("successes").get<std::int64_t>();
    report.faults = json.at("faults").get<std::int64_t>();
    report.bytes = json.at("bytes").get<std::int64_t>();
  } catch (const nlohmann::json::exception& e) {
    throw Error(format("{} is damaged ({}): remove it, and its episodes are made again", file.string(), e.what()));
  }
  return report;
}

void PieceStore::write(const PieceReport& report, const std::string& records) const {
  write_file_atomically(data_file(report.range), records);
  const Json json = {{"kept", report.kept},
                     {"steps", report.steps},
                     {"successes", report.successes},
                     {"faults", report.faults},
                     {"bytes", report.bytes}};
  fs::path file = stem(report.range);
  file += ".json";
  write_file_atomically(file, json_text(json) + "\n");
}

}  // namespace cohort::record
