#include "run/changed_settings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/format.h"
#include "core/log.h"
#include "core/typed_text.h"

namespace cohort::run {
namespace {

using config::Json;

// What is learnt does not depend on these. A dot at the end: a whole section.
constexpr std::array<std::string_view, 14> kBeside{
    "job",      "dist.",          "resume",      "backend",   "devices",      "threads",
    "charts",   "rank_status",    "tensorboard", "init_from", "task_library", "tensorboard_charts",
    "rollout.", "learner_threads"};
constexpr std::array<std::string_view, 2> kOfFolder{"name", "output_dir"};
constexpr std::array<std::string_view, 4> kOfBeginning{"model.initial_weights", "model.backbone_weights",
                                                       "model.pretrained_backbone", "policy.init_noise_std"};

bool is_among(const std::string& path, std::span<const std::string_view> keys) {
  return std::ranges::any_of(
      keys, [&](std::string_view key) { return key.ends_with('.') ? path.starts_with(key) : path == key; });
}

/// The loss scale of a checkpoint in fp16 goes on; another one has none.
bool has_loss_scale(const Json& checkpoint) {
  const Json::json_pointer precision("/train/precision");
  return checkpoint.contains(precision) && checkpoint.at(precision) == "fp16";
}

bool is_of_beginning(const std::string& path, const Json& checkpoint) {
  return is_among(path, kOfBeginning) || (path.starts_with("train.scaler.") && has_loss_scale(checkpoint));
}

void compare(const Json& before, const Json& now, const std::string& section, std::vector<ChangedSetting>& changed) {
  if (!before.is_object() || !now.is_object()) return;
  for (const auto& [key, value] : now.items()) {
    if (!before.contains(key)) continue;
    const std::string path = section + key;
    const Json& old = before.at(key);
    if (value.is_object() && old.is_object())
      compare(old, value, path + ".", changed);
    else if (value != old)
      changed.push_back({path, typed_text(old), typed_text(value), said_text(old)});
  }
}

}  // namespace

std::vector<ChangedSetting> changed_settings(const Json& checkpoint, const Json& now,
                                             std::span<const std::string_view> free) {
  std::vector<ChangedSetting> changed;
  compare(checkpoint, now, "", changed);
  std::erase_if(changed, [&](const ChangedSetting& one) {
    return is_among(one.path, kBeside) || is_among(one.path, kOfFolder) || is_of_beginning(one.path, checkpoint) ||
           is_among(one.path, free);
  });
  return changed;
}

void say_changed_settings(std::span<const ChangedSetting> changed) {
  for (const ChangedSetting& one : changed)
    log::warning("{}={} from here on, and not {} as before", one.path, one.now, one.said_before);
}

void say_what_only_a_beginning_reads(const Json& checkpoint, const Json& now, const std::string& source,
                                     const std::string& run) {
  std::vector<ChangedSetting> changed;
  compare(checkpoint, now, "", changed);
  for (const ChangedSetting& one : changed) {
    const std::string word = one.path + "=" + one.now;
    if (is_among(one.path, kOfFolder) && !run.empty())
      log::warning("{} does nothing here: the run goes on in its folder, {}; leave it out", word, run);
    else if (is_of_beginning(one.path, checkpoint))
      log::warning(
          "{} does nothing here: what it is for comes from the checkpoint, {}; leave it out, or begin a new run", word,
          source);
  }
}

}  // namespace cohort::run
