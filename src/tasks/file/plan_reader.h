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
#include "sim/host/scene.h"
#include "tasks/file/file_plan.h"
#include "tasks/file/library_files.h"
#include "tasks/file/term_table.h"

namespace cohort::tasks {

class PlanReader {
  using Json = config::Json;
  using JsonSection = config::JsonSection;
  using Expr = terms::Expr;
  using Graph = terms::Graph;

 public:
  /// in_play: the sections that the content's `play` has named, whose names are compared with what is read here.
  /// at_ends: curricula are where they lead to. commands_by_hand: as of plan_of_file().
  PlanReader(std::string file, config::Json content, std::vector<std::string> in_play, bool at_ends,
             std::int64_t horizon, const std::vector<std::string>& reward_scales, bool commands_by_hand);
  FilePlan read();

 private:
  void wrong(const std::string& path, const std::string& why) { wrong_.push_back(path + " " + why); }
  void stop_if_wrong();
  /// Refuses what `play` names and nobody has asked `root` for, but to know what file it is (of_file): a word that is spelt
  /// wrong would change nothing, and only in evaluation.
  void check_play(JsonSection& root, const std::vector<std::string>& of_file);
  /// Of those that the run keeps, the one for these settings.
  void choose_kept_model();
  /// Keeps what body() complains about, for the end.
  void attempt(const std::string& path, const std::function<void()>& body);
  /// Calls body(name, value) for every entry that is not null; keeps what it complains about.
  void each(JsonSection& section, const std::function<void(const std::string&, const Json&)>& body);
  std::filesystem::path path_of(const std::string& text) const { return path_from(folder_, text); }
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
  /// Cameras that the model should have, and has not.
  void check_cameras();

  // ---- actions
  std::vector<std::string> texts_of(JsonSection& s, const std::string& key, std::vector<std::string> standard);
  void read_actions(JsonSection& actions, Quantities& names);
  /// Writes targets, a row of as many numbers as joints, to their controls.
  void give_targets(Quantities& names, const std::vector<int>& joints, const std::vector<int>& ctrls,
                    const Expr& targets);
  /// Those that `joints` names, else the robot's that move the frame.
  std::vector<int> joints_moving(const sim::SiteInfo& frame, JsonSection& s, const Quantities& names);
  struct FramePose {
    std::array<double, 3> pos;
    std::array<double, 4> quat;
  };
  /// In the world, where episodes begin before their events.
  FramePose pose_at_start(const sim::SiteInfo& frame) const;
  /// A frame's pose instead of joints' positions (tasks/file/ik_action.h).
  void read_ik_action(const std::string& name, JsonSection& s, Quantities& names);
  /// Controls of actuators, whatever they drive.
  void read_actuator_action(const std::string& name, JsonSection& s, Quantities& names);
  /// The control of the joint's actuator, which has to be of a kind that goes with the action.
  int control_of(int joint, const std::string& type) const;
  /// `delay: n` or [least, most] control steps, drawn for each episode.
  Expr delayed_by(Quantities& names, const Expr& value, const Range& delay, const std::string& place);

  /// Of an event or a curriculum: `type`, else its name.
  static std::string type_of(const std::string& name, const Json& value) {
    return value.is_object() && value.contains("type") && value["type"].is_string() ? value["type"].get<std::string>()
                                                                                    : name;
  }
  /// Whether the file's events have one of this type.
  bool has_event(const std::string& type) const;
  /// By the control steps that the event action_delay draws.
  Expr delayed_by_event(Quantities& names, const Expr& value) const;

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
  /// What is shown beside the reward: formulas, of the step that is over.
  void read_metrics(JsonSection& metrics, Quantities& names);
  /// What encoders make of joints' positions: `joint_pos` and `joint_pos_rel` as a policy sees them.
  Expr measured(Quantities& names, JsonSection& s, const std::string& term, const Expr& e, bool biased);
  void read_observations(JsonSection& observations, Quantities& names);
  void read_observation(const std::string& field, const std::string& name, const Json& value, const std::string& place,
                        bool privileged, Quantities& names);

  // ---- commands
  /// Ends of a command's range, where the curriculum has come to.
  struct Ends {
    Expr low, high, width;
  };
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
  /// Of FilePlan::commands_by_hand: the command, one row of numbers, or what a person holds it at. ranges: of its parts, as
  /// command_ranges_ names them, or else without names.
  Expr or_held(const std::string& name, const std::string& place, const Expr& drawn, const std::vector<Ends>& ranges,
               Quantities& names);
  void finish_command(const std::string& name, const std::string& place, const Expr& next, Quantities& names);

  // ---- events
  static constexpr const char* kSix[] = {"x", "y", "z", "roll", "pitch", "yaw"};
  static std::array<Range, 6> six_of(JsonSection& s, const std::string& key);
  int entity_of(JsonSection& s) const;
  void read_events(JsonSection& events, Quantities& names);
  void read_push(const std::string& name, JsonSection& s, Quantities& names);

  // ---- curricula
  static constexpr const char* kRanges[] = {"lin_vel_x", "lin_vel_y", "ang_vel_z", "heading", "pos_x",
                                            "pos_y",     "pos_z",     "roll",      "pitch",   "yaw"};
  /// Those of commands and of rewards, before these are read.
  void read_stages(JsonSection& curriculum);
  void read_growth(const std::string& name, JsonSection& s);
  Ends ends_of(Quantities& names, const std::string& command, const std::string& key, const Range& first);
  static Expr drawn_between(Graph& g, const std::string& stream, const Ends& ends) {
    return g.add(ends.low, g.multiply(g.uniform(stream, 1), ends.width));
  }
  /// The term's part of the reward in a control step.
  Expr weighted(Quantities& names, const std::string& reward, const Expr& term, double factor, double weight);
  /// That of terrain, and whether the others name what there is.
  void read_curriculum(JsonSection& curriculum, Quantities& names);

  std::string file_;
  Json content_;
  std::vector<std::string> in_play_;
  std::filesystem::path folder_;
  FilePlan plan_;
  std::vector<std::string> wrong_;
  std::string robot_;
  Json joint_pos_, kept_;  ///< kept_: the model that a run keeps for these settings; null: compiled from the files
  bool asks_for_another_ = false;  ///< model than those that the run keeps
  std::vector<double> base_pos_, base_quat_;
  std::set<int> controlled_;
  std::map<std::string, Expr> commands_;                            ///< as memories
  std::map<std::string, std::vector<std::string>> command_ranges_;  ///< which each has
  std::vector<std::string> rewards_;
  std::vector<Expr> pushes_;  ///< true after the step that a push follows
  std::map<std::string, float> reward_scales_;
  std::vector<float> best_of_terms_;  ///< NaN where the file says none
  double timestep_ = 0, control_period_ = 0, episode_ = 20;
  int decimation_ = 0;
  bool moves_frames_ = false;  ///< an action is a frame's
  bool at_ends_ = false;
  std::int64_t horizon_ = 0;  ///< instead of the file's
  /// Of `curriculum`: commands' ranges and rewards' weights by control steps of an environment, and ranges that grow.
  template <class T>
  using Stages = std::vector<std::pair<double, T>>;
  std::map<std::string, std::map<std::string, Stages<Range>>> range_stages_;  ///< command, range
  std::map<std::string, Stages<double>> weight_stages_;                       ///< reward
  struct Growth {
    std::string name, reward;
    double threshold = 0.8, increment = 0.1;
    std::map<std::string, Range> limits;
    Expr share{}, total{};  ///< made with the command, and kept with the reward
  };
  std::map<std::string, Growth> growths_;  ///< command
};

}  // namespace cohort::tasks
