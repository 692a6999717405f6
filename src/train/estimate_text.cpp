#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "train/estimate.h"

namespace cohort::train {
namespace {

std::vector<std::pair<const char*, double>> named_parts(const MemoryParts& m) {
  return {{"weights", m.weights}, {"gradients", m.gradients},     {"optimizer", m.optimizer},
          {"ema", m.ema},         {"activations", m.activations}, {"checkpoint", m.checkpoint},
          {"loader", m.loader},   {"program", m.program}};
}

/// Of so many steps; or of the samples that they take on one device, for which several need fewer steps.
double hours_of(const OnDevices& on, std::int64_t steps, bool same_samples) {
  return on.step_s * static_cast<double>(steps) / (same_samples ? on.devices : 1) / 3600;
}

std::string time_text(double hours) {
  return hours < 1 ? format("{:.1f} min", hours * 60) : format("{:.1f} h", hours);
}

/// Steps of one kind take alike, unless something else takes the cores.
std::string busy_text(const Estimate& e) {
  constexpr double kAlike = 1.5;
  if (e.busy_elsewhere > 0.5)
    return format(".\nOther programs take {:.1f} of this machine's cores: run it again when they are done",
                  e.busy_elsewhere);
  return e.slowest_step_s > kAlike * e.fastest_step_s ? ".\nThey differ: run it again before you rely on the hours"
                                                      : "";
}

}  // namespace

std::string to_text(const Estimate& e) {
  std::string text = format("{}: batch {} on {}, {}, {}; {} samples an epoch\n\nmemory of one device\n", e.job,
                            e.batch_size, e.device, e.precision, e.optimizer, e.samples);
  for (const auto& [name, bytes] : named_parts(e.memory))
    if (bytes > 0) text += format("  {:<12} {:>12}\n", name, format_bytes(bytes));
  text += format("  {:<12} {:>12}\n", "in all", format_bytes(e.memory.total()));
  text += format("  activations: {} and {} for every sample\n", format_bytes(e.activations_fixed),
                 format_bytes(e.activations_per_sample));
  text += e.largest_batch > 0 ? format("  largest batch in {}: {}{}\n", format_bytes(e.limit), e.largest_batch,
                                       e.largest_batch == e.samples ? " (all samples)" : "")
                              : format("  nothing fits in {}\n", format_bytes(e.limit));
  text += format("\n{:>7} {:>13} {:>11} {:>10} {:>13} {:>10} {:>10} {:>12}\n", "devices", "batch in all", "steps/epoch",
                 "step", "communication", "an epoch", "in all", "memory each");
  for (const OnDevices& on : e.on)
    text += format("{:>7} {:>13} {:>11} {:>7.1f} ms {:>11.0f} % {:>10} {:>10} {:>12}\n", on.devices, on.effective_batch,
                   on.steps_per_epoch, on.step_s * 1e3, 100 * on.communication, time_text(on.hours_per_epoch),
                   time_text(on.hours), format_bytes(on.memory));
  const auto hours_table = [&](const char* label, bool same_samples) {
    text += format("\n{:>7}", label);
    for (const OnDevices& on : e.on)
      text += format(" {:>10}", format("{} device{}", on.devices, on.devices > 1 ? "s" : ""));
    for (const std::int64_t steps : kUsualSteps) {
      text += format("\n{:>7}", steps);
      for (const OnDevices& on : e.on) text += format(" {:>10}", time_text(hours_of(on, steps, same_samples)));
    }
    text += "\n";
  };
  hours_table("steps", false);
  text += "\nas many samples as so many steps on 1 device see; on more devices that is fewer steps\n";
  hours_table("steps", true);
  text += format(
      "\nmeasured: {:.1f} ms a step, the middle of {}, which took {:.1f} to {:.1f} ms{}\n"
      "assumed: every device as fast as this one with {:.1f} ms a step; gradients in a ring at {}/s, none of it\n"
      "behind the backward pass; no wait for data, no validation{}. `cohort scaling train ...` measures it.\n",
      e.measured_step_s * 1e3, e.measured_steps, e.fastest_step_s * 1e3, e.slowest_step_s * 1e3, busy_text(e),
      e.measured_step_s * 1e3, format_bytes(e.bandwidth),
      e.on.back().bucket_bytes > 0 ? format("; several devices: {} more on each, the buckets of gradients",
                                            format_bytes(e.on.back().bucket_bytes))
                                   : std::string());
  return text;
}

std::string to_json(const Estimate& e) {
  nlohmann::ordered_json json;
  json["job"] = e.job;
  json["device"] = e.device;
  json["precision"] = e.precision;
  json["optimizer"] = e.optimizer;
  json["batch_size"] = e.batch_size;
  json["samples"] = e.samples;
  for (const auto& [name, bytes] : named_parts(e.memory)) json["memory"][name] = bytes;
  json["memory"]["total"] = e.memory.total();
  json["activations_fixed"] = e.activations_fixed;
  json["activations_per_sample"] = e.activations_per_sample;
  json["limit"] = e.limit;
  json["largest_batch"] = e.largest_batch;
  json["measured_step_s"] = e.measured_step_s;
  json["fastest_step_s"] = e.fastest_step_s;
  json["slowest_step_s"] = e.slowest_step_s;
  json["cores_busy_elsewhere"] = e.busy_elsewhere;
  json["bandwidth"] = e.bandwidth;
  json["on"] = nlohmann::ordered_json::array();
  for (const OnDevices& on : e.on)
    json["on"].push_back({{"devices", on.devices},
                          {"effective_batch", on.effective_batch},
                          {"steps_per_epoch", on.steps_per_epoch},
                          {"step_s", on.step_s},
                          {"communication", on.communication},
                          {"hours_per_epoch", on.hours_per_epoch},
                          {"hours", on.hours},
                          {"bucket_bytes", on.bucket_bytes},
                          {"memory", on.memory}});
  for (std::size_t i = 0; i < e.on.size(); ++i)
    for (const std::int64_t steps : kUsualSteps) {
      const std::string key = std::to_string(steps);
      json["on"][i]["hours_of_steps"][key] = hours_of(e.on[i], steps, false);
      json["on"][i]["hours_of_samples"][key] = hours_of(e.on[i], steps, true);
    }
  return json_text(json, 2) + "\n";
}

}  // namespace cohort::train
