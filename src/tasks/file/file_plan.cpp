#include "tasks/file/file_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/fnv.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/typed_text.h"
#include "tasks/file/plan_reader.h"

namespace cohort::tasks {

namespace fs = std::filesystem;
using config::Json;
using config::JsonSection;
using terms::Expr;
using terms::Graph;
using terms::Op;

namespace {

constexpr int kNewestFormat = 1;

}  // namespace

PlanReader::PlanReader(std::string file, Json content, std::vector<std::string> in_play, bool at_ends,
                       std::int64_t horizon, const std::vector<std::string>& reward_scales, bool commands_by_hand)
    : file_(std::move(file)),
      content_(std::move(content)),
      in_play_(std::move(in_play)),
      at_ends_(at_ends),
      horizon_(horizon) {
  // TERM:FACTOR; the task refuses what is none.
  for (const std::string& scale : reward_scales)
    if (const std::size_t colon = scale.find(':'); colon != std::string::npos)
      reward_scales_[scale.substr(0, colon)] = std::strtof(scale.c_str() + colon + 1, nullptr);
  plan_.commands_by_hand = commands_by_hand;
  plan_.file = file_;
  folder_ = fs::path(file_).parent_path();
}

FilePlan PlanReader::read() {
  {
    JsonSection root(content_, "", wrong_);
    int format_version = kNewestFormat;
    root.take("cohort", format_version);
    if (format_version > kNewestFormat)
      throw Error(format("{}: the file is of version {} of task files, and this Cohort knows {}: a newer one reads it",
                         file_, format_version, kNewestFormat));
    plan_.spec.name = fs::path(file_).stem().string();
    kept_ = root.get("kept");
    const std::vector<std::string> of_file = root.asked();
    plan_.scene_key = format("{:016x}", fnv1a(json_text(root.get("scene")) + json_text(root.get("simulation"))));
    if (kept_.is_object()) choose_kept_model();
    root.take("summary", plan_.spec.summary);
    root.take("instruction", plan_.spec.instruction);
    if (!root.has("scene")) wrong("scene", "is missing: the robot and what is around it");
    root.in("simulation", [&](JsonSection& s) { read_simulation(s); });
    root.in("scene", [&](JsonSection& s) { read_scene(s); });
    stop_if_wrong();
    compile_model();
    Graph control;
    Quantities control_names(plan_.model, control);
    root.in("actions", [&](JsonSection& s) { read_actions(s, control_names); });
    Graph judge;
    Quantities names(plan_.model, judge);
    names.set_action_width(static_cast<int>(plan_.spec.action.names.size()));
    root.in("curriculum", [&](JsonSection& s) { read_stages(s); });
    root.in("commands", [&](JsonSection& s) { read_commands(s, names); });
    names.judges(true);
    give_settings(root.get("settings"), names);
    root.in("define", [&](JsonSection& d) { read_definitions(d, names); });
    root.in("terminations", [&](JsonSection& s) { read_terminations(s, names); });
    read_success(root, names);
    root.in("rewards", [&](JsonSection& s) { read_rewards(s, names); });
    root.in("metrics", [&](JsonSection& s) { read_metrics(s, names); });
    names.judges(false);
    root.in("events", [&](JsonSection& s) { read_events(s, names); });
    Expr pushed = judge.constant(0);
    for (const Expr& push : pushes_) pushed = judge.binary(Op::kOr, pushed, push);
    pushed.truth = true;
    names.define("pushed", terms::previous(judge, names.step(), pushed));
    // Faults of definitions have been told.
    if (wrong_.empty()) root.in("define", [&](JsonSection& d) { read_definitions(d, names); });
    root.in("observations", [&](JsonSection& s) { read_observations(s, names); });
    root.in("curriculum", [&](JsonSection& s) { read_curriculum(s, names); });
    root.in("ppo", [&](JsonSection& s) { s.each([](const std::string&, const Json&) {}); });
    const std::vector<std::string> words = ppo_words(content_);
    plan_.ppo.insert(plan_.ppo.end(), words.begin(), words.end());
    stop_if_wrong();
    // No joint's target is its default and a share of an action then.
    if (moves_frames_) plan_.contract.action_scale.clear();
    plan_.control = control.compile(), plan_.control_memories = control.memories();
    plan_.judge = judge.compile(), plan_.judge_memories = judge.memories();
    plan_.control_arrays = control_names.arrays(), plan_.judge_arrays = names.arrays();
    plan_.leaves = names.leaves();
    for (const sim::Field field : control_names.leaves())
      if (std::ranges::find(plan_.leaves, field) == plan_.leaves.end()) plan_.leaves.push_back(field);
    read_expert(root);
    check_play(root, of_file);
    // What terms read is of the present, as positions and velocities are.
    plan_.simulation.leave_present = !plan_.leaves.empty();
  }
  stop_if_wrong();  // keys that nobody asked for
  return std::move(plan_);
}

void PlanReader::choose_kept_model() {
  const Json kept = kept_;
  for (const Json& model : kept.value("models", Json::array({kept})))
    if (model.value("scene", plan_.scene_key) == plan_.scene_key) {
      kept_ = model;
      return;
    }
  // Settings ask for another model than those that are kept: the files have it, if they are still there.
  folder_ = fs::path(kept.at("file").get<std::string>()).parent_path();
  kept_ = nullptr, asks_for_another_ = true;
}

void PlanReader::stop_if_wrong() {
  if (wrong_.empty()) return;
  std::string text = format("{}: {}", file_, wrong_.size() == 1 ? "" : format("{} faults", wrong_.size()));
  for (const std::string& fault : wrong_) {
    const std::string bare = fault.substr(fault.starts_with('.') ? 1 : 0);
    text += wrong_.size() == 1 ? bare : "\n  " + bare;
  }
  throw Error(text);
}

void PlanReader::attempt(const std::string& path, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    const std::string what = e.what();
    const std::string bare = path.substr(path.starts_with('.') ? 1 : 0);
    wrong_.push_back(what.starts_with(bare) ? what : bare + ": " + what);
  }
}

void PlanReader::each(JsonSection& section, const std::function<void(const std::string&, const Json&)>& body) {
  section.each([&](const std::string& name, const Json& value) {
    attempt(section.path() + "." + name, [&] { body(name, value); });
  });
}

Range PlanReader::range_of(const Json& value, const std::string& what) {
  if (value.is_number()) return {value.get<double>(), value.get<double>()};
  COHORT_THROW_UNLESS(value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number(),
                      "{} is {}: two numbers, [low, high], are needed", what, json_text(value));
  const Range range{value[0].get<double>(), value[1].get<double>()};
  COHORT_THROW_UNLESS(range.low <= range.high, "{} is {}: low is above high", what, json_text(value));
  return range;
}

Range PlanReader::take_range(JsonSection& s, const std::string& key, Range standard) {
  return s.has(key) ? range_of(s.get(key), key) : standard;
}

std::vector<std::string> ppo_words(const Json& content) {
  std::vector<std::string> words;
  const std::function<void(const std::string&, const Json&)> add = [&](const std::string& path, const Json& v) {
    if (v.is_object()) {
      for (const auto& [key, inner] : v.items()) add(path.empty() ? key : path + "." + key, inner);
    } else if (!v.is_null()) {
      words.push_back(path + "=" + typed_text(v));
    }
  };
  if (content.contains("ppo")) add("", content.at("ppo"));
  return words;
}

void PlanReader::check_play(JsonSection& root, const std::vector<std::string>& of_file) {
  std::vector<std::string> known = root.asked();
  std::erase_if(known, [&](const std::string& key) { return std::ranges::find(of_file, key) != of_file.end(); });
  for (const std::string& key : in_play_) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string near = config::nearest(key, known);
    wrong("play." + key, "is unknown" + (near.empty() ? "" : format("; did you mean '{}'?", near)));
    root.ignore(key);  // it is told
  }
}

namespace {

/// Throws Error where `play` takes away what the file does not have.
void check_taken_away(const std::string& file, const std::string& path, const Json& has, const Json& changes) {
  for (const auto& [key, change] : changes.items()) {
    const bool there = has.is_object() && has.contains(key);
    if (change.is_null() && !there) {
      std::vector<std::string> known;
      if (has.is_object())
        for (const auto& [name, unused] : has.items()) known.push_back(name);
      const std::string near = config::nearest(key, known);
      throw Error(format("{}: {}.{} is null, which takes away what the file does not have{}", file, path, key,
                         near.empty() ? "" : format("; did you mean '{}'?", near)));
    }
    if (there && change.is_object()) check_taken_away(file, path + "." + key, has[key], change);
  }
}

}  // namespace

FilePlan plan_of_file(const std::string& file, Json content, bool play, std::int64_t horizon,
                      const std::vector<FileSetting>& settings, bool learning,
                      const std::vector<std::string>& reward_scales, bool commands_by_hand) {
  COHORT_THROW_UNLESS(content.is_object(), "{}: a task's file is an object: scene, actions, observations, rewards",
                      file);
  content = with_settings(std::move(content), settings.empty() ? settings_of_content(file, content) : settings);
  std::vector<std::string> in_play;
  if (content.contains("play")) {
    const Json changes = content["play"];
    content.erase("play");
    if (!changes.is_null()) {  // `play:` with nothing behind it
      COHORT_THROW_UNLESS(changes.is_object(), "{}: play is an object: the sections that are otherwise in evaluation",
                          file);
      check_taken_away(file, "play", content, changes);
      for (const auto& [section, change] : changes.items())
        if (!change.is_null()) in_play.push_back(section);
      if (play) content.merge_patch(changes);
    }
  }
  return PlanReader(file, std::move(content), std::move(in_play), play || !learning, horizon, reward_scales,
                    commands_by_hand)
      .read();
}

void keep_plans(const std::vector<FilePlan>& plans, Json content, const fs::path& folder) {
  fs::create_directories(folder);
  const std::string stem = fs::path(plans.front().file).stem().string();
  Json models = Json::array();
  std::set<std::string> scenes;
  for (const FilePlan& plan : plans) {
    if (!scenes.insert(plan.scene_key).second) continue;
    const std::string model = stem + (models.empty() ? "" : format("-{}", models.size() + 1)) + ".mjb";
    const sim::CompiledScene& scene = *plan.compiled;
    write_file_atomically(folder / model,
                          std::string_view(reinterpret_cast<const char*>(scene.mjb.data()), scene.mjb.size()));
    models.push_back({{"model", model},
                      {"scene", plan.scene_key},
                      {"entity_links", scene.entity_links},
                      {"entity_geoms", scene.entity_geoms}});
  }
  // The first one also where runs had it that kept no other.
  Json kept = models.front();
  kept["file"] = fs::absolute(plans.front().file).string();
  kept["content"] = format("{:016x}", fnv1a(json_text(content)));
  kept["models"] = std::move(models);
  content.erase("kept");
  content["kept"] = std::move(kept);
  write_file_atomically(folder / (stem + ".json"), json_text(content, 2) + "\n");
}

std::array<double, 4> quat_of_rpy(double roll, double pitch, double yaw) {
  const double cr = std::cos(roll / 2), sr = std::sin(roll / 2), cp = std::cos(pitch / 2), sp = std::sin(pitch / 2),
               cy = std::cos(yaw / 2), sy = std::sin(yaw / 2);
  return {cr * cp * cy + sr * sp * sy, sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy,
          cr * cp * sy - sr * sp * cy};
}

}  // namespace cohort::tasks
