/// Reads a task file's content section by section into a plan; the sections are plan_*.cpp.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/json_section.h"
#include "sim/scene.h"
#include "tasks/file/file_plan.h"
#include "tasks/file/term_table.h"

namespace cohort::tasks {

class PlanReader {
  using Json = config::Json;
  using JsonSection = config::JsonSection;
  using Expr = terms::Expr;
  using Graph = terms::Graph;

 public:
  PlanReader(std::string file, config::Json content, std::int64_t horizon,
             const std::vector<std::string>& reward_scales);
  FilePlan read();

 private:
  void wrong(const std::string& path, const std::string& why) { wrong_.push_back(path + " " + why); }
  void stop_if_wrong();
  /// Keeps what body() complains about, for the end.
  void attempt(const std::string& path, const std::function<void()>& body);
  /// Calls body(name, value) for every entry that is not null; keeps what it complains about.
  void each(JsonSection& section, const std::function<void(const std::string&, const Json&)>& body);
  std::filesystem::path path_of(const std::string& text) const {
    const std::filesystem::path path(text);
    return path.is_absolute() ? path : folder_ / path;
  }
  /// [low, high], or a number for both.
  static Range range_of(const Json& value, const std::string& what);
  static Range take_range(JsonSection& s, const std::string& key, Range standard = {});
  void read_simulation(JsonSection& s);

  // ---- the scene
  static sim::Pose pose_of(JsonSection& s);
  sim::ShapeOptions shape_of(JsonSection& s);
  static std::array<double, 3> friction_of(JsonSection& s);
  static std::vector<double> sizes_of(JsonSection& s, const std::string& kind, std::size_t n, const char* means);
  sim::Morph morph_of(JsonSection& s, const std::string& kind);
  /// A plane where all of it is level.
  sim::Morph terrain_of(JsonSection& s);
  void read_scene(JsonSection& scene);
  void read_cameras(const Json& all);
  /// Compiles the model once, for its names and where episodes begin.
  void compile_model();

  // ---- actions
  std::vector<std::string> texts_of(JsonSection& s, const std::string& key, std::vector<std::string> standard);
  void read_actions(JsonSection& actions, Quantities& names);
  /// The control of the joint's actuator, which has to be of a kind that goes with the action.
  int control_of(int joint, const std::string& type) const;
  /// `delay: n` or [least, most] control steps, drawn for each episode.
  Expr delayed_by(Quantities& names, const Expr& value, const Range& delay, const std::string& place);

  // ---- terms
  /// What formulas see by the name of a term's parameter.
  std::map<std::string, TermParameter> parameters_of(JsonSection& s, const TermEntry& entry, Quantities& names,
                                                     const std::string& place);
  /// A term's value: by its formula, or by the name of a known term: `term`, or the entry's own name.
  Expr term_of(const std::string& name, const Json& value, JsonSection& s, char kind, Quantities& names,
               const std::string& place, const TermEntry** used = nullptr);
  static Expr condition(const Expr& e);
  /// Formulas by name, each of which may name those above it. Read twice: rewards are about the step that is over, and
  /// what is observed is about the next one, whose commands may be others.
  void read_definitions(JsonSection& definitions, Quantities& names);
  /// The file's settings that are numbers, by their names.
  static void give_settings(const Json& settings, Quantities& names);
  /// `expert`: what who can do the task does, as a formula.
  void read_expert(JsonSection& root);
  void read_terminations(JsonSection& terminations, Quantities& names);
  void read_success(JsonSection& root, Quantities& names);
  void read_rewards(JsonSection& rewards, Quantities& names);
  void read_observations(JsonSection& observations, Quantities& names);
  void read_observation(const std::string& field, const std::string& name, const Json& value, const std::string& place,
                        bool privileged, Quantities& names);

  // ---- commands
  Expr drawn(Graph& g, const std::string& stream, const Range& range);
  /// True where the time until it is up; the time is drawn anew then, and at the reset.
  /// first: s until it is up for the first time; 0: as later.
  Expr timer(Quantities& names, const std::string& place, const Range& seconds, const Range& first = {});
  /// `levels` of a command: the share of its ranges that the present one is drawn from, which grows where commands are
  /// followed and shrinks where they are not.
  Expr command_share(const std::string& name, const std::string& place, JsonSection& s, const Expr& anew,
                     Quantities& names);
  void read_commands(JsonSection& commands, Quantities& names);
  void velocity_command(const std::string& name, const std::string& place, JsonSection& s, const Expr& anew,
                        Quantities& names);
  void uniform_command(const std::string& name, const std::string& place, JsonSection& s, const Expr& anew,
                       Quantities& names, bool pose);
  static Expr heading_error(Quantities& names, const std::string& place, const Expr& target);
  /// The value from when `anew` holds until it holds again.
  static Expr latch(Graph& g, const Expr& anew, const Expr& value, const std::string& name);
  void finish_command(const std::string& name, const std::string& place, const Expr& next, Quantities& names);

  // ---- events
  static constexpr const char* kSix[] = {"x", "y", "z", "roll", "pitch", "yaw"};
  static std::array<Range, 6> six_of(JsonSection& s, const std::string& key);
  int entity_of(JsonSection& s) const;
  void read_events(JsonSection& events, Quantities& names);
  void read_push(const std::string& name, JsonSection& s, Quantities& names);
  void read_curriculum(JsonSection& curriculum, Quantities& names);

  std::string file_;
  Json content_;
  std::filesystem::path folder_;
  FilePlan plan_;
  std::vector<std::string> wrong_;
  std::string robot_;
  Json joint_pos_, kept_;
  std::vector<double> base_pos_, base_quat_;
  std::set<int> controlled_;
  std::map<std::string, Expr> commands_;  ///< as memories
  std::vector<Expr> pushes_;              ///< true after the step that a push follows
  std::map<std::string, float> reward_scales_;
  std::vector<float> best_of_terms_;  ///< NaN where the file says none
  double timestep_ = 0, control_period_ = 0, episode_ = 20;
  int decimation_ = 0;
  std::int64_t horizon_ = 0;  ///< instead of the file's
};

}  // namespace cohort::tasks
