#include "rank/status.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>

#include <fcntl.h>
#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"

namespace cohort::rank {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

/// Every number and text of a status by its name in the file.
template <class SomeStatus, class Visit>
void visit_fields(SomeStatus& s, const Visit& visit) {
  visit("rank", s.rank);
  visit("world_size", s.world_size);
  visit("host", s.host);
  visit("pid", s.pid);
  visit("started", s.started);
  visit("job", s.job);
  visit("device", s.device);
  visit("state", s.phase);
  visit("step", s.step);
  visit("total_steps", s.total_steps);
  visit("batches_per_epoch", s.batches_per_epoch);
  visit("batch_size", s.batch_size);
  visit("steps_per_s", s.steps_per_s);
  visit("samples_per_s", s.samples_per_s);
  visit("step_s", s.step_s);
  visit("data_s", s.data_s);
  visit("exchange_s", s.exchange_s);
  visit("seconds_left", s.seconds_left);
  visit("host_bytes", s.host_bytes);
  visit("device_bytes", s.device_bytes);
  visit("time", s.time);
}

bool write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::string to_json(const Status& status) {
  Json json;
  visit_fields(status, [&]<class T>(const char* name, const T& value) {
    if constexpr (std::is_same_v<T, Phase>)
      json[name] = to_string(value);
    else if constexpr (std::is_floating_point_v<T>)
      json[name] = std::isfinite(value) ? Json(value) : Json(nullptr);
    else
      json[name] = value;
  });
  return json_text(json, -1, BadUtf8::kReplaced) + "\n";
}

std::optional<Status> parse_status(const std::string& text) {
  const Json json = try_json<Json>(text);
  if (!json.is_object() || !json.contains("rank") || !json.contains("pid") || !json.contains("state")) return {};
  Status status;
  bool known = true;
  try {
    visit_fields(status, [&]<class T>(const char* name, T& to) {
      const auto found = json.find(name);
      if (found == json.end() || found->is_null()) return;
      if constexpr (std::is_same_v<T, Phase>) {
        const auto phase = parse_phase(found->template get_ref<const std::string&>());
        known = known && phase;
        to = phase.value_or(to);
      } else {
        to = found->template get<T>();
      }
    });
  } catch (const Json::exception&) {
    return {};
  }
  return known ? std::optional(status) : std::nullopt;
}

std::vector<Status> read_statuses(const fs::path& folder) {
  std::vector<Status> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with("rank_") || !name.ends_with(".json")) continue;
    if (auto status = parse_status(read_file_if_there(it->path()).value_or(""))) found.push_back(std::move(*status));
  }
  std::sort(found.begin(), found.end(), [](const Status& a, const Status& b) { return a.rank < b.rank; });
  return found;
}

StatusFile::StatusFile(fs::path folder, int rank) : name_(format("rank_{}.json", rank)) {
  std::error_code error;
  fs::create_directory(folder, error);  // not those above: a run that never began leaves nothing behind
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) error_ = format("{}: {}", folder.string(), std::strerror(errno));
}

StatusFile::~StatusFile() {
  if (folder_ >= 0) ::close(folder_);
}

void StatusFile::write(const Status& status) {
  if (folder_ < 0) return;
  const std::string aside = "." + name_ + ".new";
  const int file = ::openat(folder_, aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written = file >= 0 && write_whole(file, to_json(status));
  const bool closed = file >= 0 && ::close(file) == 0;
  if (written && closed && ::renameat(folder_, aside.c_str(), folder_, name_.c_str()) == 0) {
    error_.clear();
    return;
  }
  error_ = format("{}: {}", name_, std::strerror(errno));
  ::unlinkat(folder_, aside.c_str(), 0);
}

}  // namespace cohort::rank
