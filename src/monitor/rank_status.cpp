#include "monitor/rank_status.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include "core/format.h"
#include "monitor/host_text.h"
#include "monitor/processes.h"

namespace cohort::monitor {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

Json known(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

template <class T>
void take(const Json& json, const char* name, T& to) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return;
  to = found->get<T>();
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

std::string to_json(const RankStatus& s) {
  Json json;
  json["rank"] = s.rank;
  json["world_size"] = s.world_size;
  json["host"] = s.host;
  json["pid"] = s.pid;
  json["started"] = s.started;
  json["job"] = s.job;
  json["device"] = s.device;
  json["state"] = s.state;
  json["step"] = s.step;
  json["total_steps"] = s.total_steps;
  json["batches_per_epoch"] = s.batches_per_epoch;
  json["batch_size"] = s.batch_size;
  json["steps_per_s"] = known(s.steps_per_s);
  json["samples_per_s"] = known(s.samples_per_s);
  json["step_s"] = known(s.step_s);
  json["data_s"] = known(s.data_s);
  json["exchange_s"] = known(s.exchange_s);
  json["seconds_left"] = known(s.seconds_left);
  json["host_bytes"] = s.host_bytes;
  json["device_bytes"] = s.device_bytes;
  json["time"] = s.time;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<RankStatus> parse_rank_status(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("rank") || !json.contains("pid") || !json.contains("state")) return {};
  RankStatus s;
  try {
    take(json, "rank", s.rank);
    take(json, "world_size", s.world_size);
    take(json, "host", s.host);
    take(json, "pid", s.pid);
    take(json, "started", s.started);
    take(json, "job", s.job);
    take(json, "device", s.device);
    take(json, "state", s.state);
    take(json, "step", s.step);
    take(json, "total_steps", s.total_steps);
    take(json, "batches_per_epoch", s.batches_per_epoch);
    take(json, "batch_size", s.batch_size);
    take(json, "steps_per_s", s.steps_per_s);
    take(json, "samples_per_s", s.samples_per_s);
    take(json, "step_s", s.step_s);
    take(json, "data_s", s.data_s);
    take(json, "exchange_s", s.exchange_s);
    take(json, "seconds_left", s.seconds_left);
    take(json, "host_bytes", s.host_bytes);
    take(json, "device_bytes", s.device_bytes);
    take(json, "time", s.time);
  } catch (const Json::exception&) {
    return {};
  }
  return s;
}

std::vector<RankStatus> read_rank_statuses(const fs::path& folder) {
  std::vector<RankStatus> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with("rank_") || !name.ends_with(".json")) continue;
    const auto text = read_text(it->path());
    if (!text) continue;
    if (auto status = parse_rank_status(*text)) found.push_back(std::move(*status));
  }
  std::sort(found.begin(), found.end(), [](const RankStatus& a, const RankStatus& b) { return a.rank < b.rank; });
  return found;
}

RankStatusFile::RankStatusFile(fs::path folder, int rank) : name_(format("rank_{}.json", rank)) {
  std::error_code error;
  fs::create_directory(folder, error);  // not those above: a run that never began leaves nothing behind
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) error_ = format("{}: {}", folder.string(), std::strerror(errno));
}

RankStatusFile::~RankStatusFile() {
  if (folder_ >= 0) ::close(folder_);
}

void RankStatusFile::write(const RankStatus& status) {
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

void identify_process(RankStatus& status) {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) status.host = host;
  status.pid = ::getpid();
  if (const auto process = read_process(status.pid)) status.started = process->started;
}

}  // namespace cohort::monitor
