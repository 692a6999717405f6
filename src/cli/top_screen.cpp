#include "cli/top_screen.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/format.h"
#include "core/json_text.h"
#include "core/progress_line.h"

namespace cohort::cli {
namespace {

using Json = nlohmann::ordered_json;
using monitor::GpuFigures;
using monitor::LocalRank;
using monitor::Snapshot;

constexpr const char* kUnknownText = "-";

std::string bytes_text(std::uint64_t bytes) {
  return bytes == 0 ? kUnknownText : format_bytes(static_cast<double>(bytes));
}

std::string number_text(double value, const char* unit = "", int digits = 1) {
  if (!std::isfinite(value)) return kUnknownText;
  return format("{:.{}f}{}", value, digits, unit);
}

template <class T>
std::string optional_text(const std::optional<T>& value, const char* unit) {
  return value ? format("{:.0f}{}", static_cast<double>(*value), unit) : kUnknownText;
}

/// A share of a step: "3 %", and its length.
std::string share_text(double part_s, double step_s) {
  if (!std::isfinite(part_s)) return kUnknownText;
  const std::string length = part_s < 0.0995 ? format("{:.1f} ms", part_s * 1e3) : format("{:.2f} s", part_s);
  return step_s > 0 ? format("{} {:.0f} %", length, 100 * part_s / step_s) : length;
}

/// Columns as wide as their widest entry; the first is aligned left, numbers right.
std::vector<std::string> table(const std::vector<std::vector<std::string>>& rows, std::size_t left_columns) {
  std::vector<int> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(static_cast<std::size_t>(widths[i] - display_width(row[i])), ' ');
      line += (i == 0 ? "" : "  ") + (i < left_columns ? row[i] + blanks : blanks + row[i]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> host_lines(const Snapshot& now) {
  std::string cores = format("{} cores", now.cores.online);
  if (now.cores.usable != now.cores.online) cores += format(" ({} usable)", now.cores.usable);
  std::vector<std::string> lines{format("host   {}: {}, {} busy, load {} {} {}", now.host, cores,
                                        number_text(now.busy_cores), number_text(now.load.minute1, "", 2),
                                        number_text(now.load.minute5, "", 2), number_text(now.load.minute15, "", 2))};
  const std::uint64_t used = now.memory.total - std::min(now.memory.total, now.memory.available);
  lines.push_back(format("memory {} of {} in use", bytes_text(used), bytes_text(now.memory.total)));
  if (now.memory.cgroup)
    lines.push_back(format("       control group: {} of {} ({})", bytes_text(now.memory.cgroup->used),
                           bytes_text(now.memory.cgroup->limit), now.memory.cgroup->folder.string()));
  if (now.cores.quota) lines.push_back(format("       control group: {:.2f} cores' worth of time", *now.cores.quota));
  return lines;
}

std::string memory_of(const GpuFigures& gpu) {
  if (!gpu.memory_used || !gpu.memory_total) return kUnknownText;
  return format("{} of {}", format_bytes(static_cast<double>(*gpu.memory_used)),
                format_bytes(static_cast<double>(*gpu.memory_total)));
}

std::string power_of(const GpuFigures& gpu) {
  if (!gpu.power) return kUnknownText;
  return gpu.power_limit ? format("{:.0f} of {:.0f} W", *gpu.power, *gpu.power_limit) : format("{:.0f} W", *gpu.power);
}

std::vector<std::string> gpu_lines(const Snapshot& now) {
  if (now.gpus.empty()) return {format("no GPU: {}", now.no_gpu.empty() ? "the driver lists none" : now.no_gpu)};
  std::vector<std::vector<std::string>> rows{
      {"GPU", "name", "busy", "memory", "power", "temp", "SM", "memory clock", "held back by"}};
  for (const GpuFigures& gpu : now.gpus) {
    const bool lost = gpu.name.empty() && !gpu.memory_total && !gpu.temperature;
    rows.push_back({format("{}", gpu.index), lost ? "does not answer" : gpu.name, optional_text(gpu.utilization, " %"),
                    memory_of(gpu), power_of(gpu), optional_text(gpu.temperature, " C"),
                    optional_text(gpu.sm_clock, " MHz"), optional_text(gpu.memory_clock, " MHz"),
                    !gpu.slowed_by           ? kUnknownText
                    : gpu.slowed_by->empty() ? "nothing"
                                             : join(*gpu.slowed_by, ", ")});
  }
  std::vector<std::string> lines = table(rows, 2);
  for (const GpuFigures& gpu : now.gpus) {
    if (!gpu.processes) continue;
    for (const monitor::GpuProcess& process : *gpu.processes) {
      std::string what = monitor::process_command(process.pid);
      for (const LocalRank& rank : now.ranks)
        if (rank.status.pid == process.pid) what = format("rank {} of {}", rank.status.rank, rank.run.string());
      lines.push_back(format("  GPU {}: process {}, {}{}", gpu.index, process.pid,
                             process.memory ? bytes_text(*process.memory) : std::string("memory not told"),
                             what.empty() ? "" : ", " + clip_to_width(what, 80)));
    }
  }
  return lines;
}

std::vector<std::string> rank_lines(const Snapshot& now) {
  if (now.ranks.empty()) return {"no rank of a job runs here"};
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < now.ranks.size();) {
    std::size_t end = begin;
    while (end < now.ranks.size() && now.ranks[end].run == now.ranks[begin].run) ++end;
    const rank::Status& first = now.ranks[begin].status;
    lines.push_back(
        format("{}: {}, {} of {} rank(s)", now.ranks[begin].run.string(), first.job, end - begin, first.world_size));
    std::vector<std::vector<std::string>> rows{{"rank", "device", "state", "step", "it/s", "samples/s", "data",
                                                "others", "memory", "device memory", "cores", "beat", "left"}};
    for (; begin < end; ++begin) {
      const LocalRank& rank = now.ranks[begin];
      const rank::Status& s = rank.status;
      rows.push_back({format("{}", s.rank), s.device, to_string(s.phase), format("{}/{}", s.step, s.total_steps),
                      number_text(s.steps_per_s), number_text(s.samples_per_s, "", 0), share_text(s.data_s, s.step_s),
                      share_text(s.exchange_s, s.step_s), bytes_text(rank.rss > 0 ? rank.rss : s.host_bytes),
                      bytes_text(s.device_bytes), number_text(rank.cores),
                      s.ended() ? kUnknownText : number_text(std::max(0.0, now.time - s.time), " s ago"),
                      format_duration(s.ended() ? rank::Status::kUnknown : s.seconds_left)});
    }
    for (std::string& line : table(rows, 3)) lines.push_back("  " + std::move(line));
  }
  return lines;
}

Json known(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_of(const GpuFigures& gpu) {
  Json json{{"index", gpu.index},
            {"name", gpu.name},
            {"uuid", gpu.uuid},
            {"pci_bus", gpu.pci_bus},
            {"utilization_percent", known(gpu.utilization)},
            {"memory_used", known(gpu.memory_used)},
            {"memory_total", known(gpu.memory_total)},
            {"power_w", known(gpu.power)},
            {"power_limit_w", known(gpu.power_limit)},
            {"temperature_c", known(gpu.temperature)},
            {"sm_clock_mhz", known(gpu.sm_clock)},
            {"memory_clock_mhz", known(gpu.memory_clock)},
            {"slowed_by", known(gpu.slowed_by)},
            {"pcie_width", known(gpu.pcie_width)},
            {"pcie_width_max", known(gpu.pcie_width_max)},
            {"uncorrected_errors", known(gpu.uncorrected_errors)},
            {"processes", nullptr}};
  if (gpu.processes) {
    json["processes"] = Json::array();
    for (const monitor::GpuProcess& process : *gpu.processes)
      json["processes"].push_back({{"pid", process.pid}, {"memory", known(process.memory)}});
  }
  return json;
}

}  // namespace

std::vector<std::string> top_lines(const Snapshot& now) {
  std::vector<std::string> lines = host_lines(now);
  for (const auto& part : {gpu_lines(now), rank_lines(now)}) {
    lines.emplace_back();
    lines.insert(lines.end(), part.begin(), part.end());
  }
  return lines;
}

std::string top_json(const Snapshot& now) {
  Json json;
  json["time"] = now.time;
  json["host"] = {{"name", now.host},
                  {"cores", now.cores.online},
                  {"cores_usable", now.cores.usable},
                  {"cores_quota", known(now.cores.quota)},
                  {"cores_busy", known(now.busy_cores)},
                  {"load", {known(now.load.minute1), known(now.load.minute5), known(now.load.minute15)}},
                  {"memory_total", now.memory.total},
                  {"memory_available", now.memory.available},
                  {"memory_limit", now.memory.cgroup ? Json(now.memory.cgroup->limit) : Json(nullptr)},
                  {"memory_limit_used", now.memory.cgroup ? Json(now.memory.cgroup->used) : Json(nullptr)}};
  json["driver"] = now.driver;
  json["no_gpu"] = now.gpus.empty() ? now.no_gpu : "";
  json["gpus"] = Json::array();
  for (const GpuFigures& gpu : now.gpus) json["gpus"].push_back(json_of(gpu));
  json["ranks"] = Json::array();
  for (const LocalRank& rank : now.ranks) {
    Json entry = parse_json<Json>(rank::to_json(rank.status));
    entry["run"] = rank.run.string();
    entry["resident_now"] = rank.rss;
    entry["cores"] = known(rank.cores);
    entry["since_beat_s"] = now.time - rank.status.time;
    json["ranks"].push_back(std::move(entry));
  }
  return json_text(json, 2, BadUtf8::kReplaced);
}

}  // namespace cohort::cli
