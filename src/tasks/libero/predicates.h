/// LIBERO's predicates over a scene's state (libero/libero/envs/predicates, object_states, objects): on, in, open,
/// close, turnon, turnoff, up. Formulas and thresholds are the reference's, its peculiarities included: On asks for a
/// site's matrix untransposed, In for the rotated half size and no rotated box, a site without joints is always closed.
///
///   Predicates predicates(folder, frames, scene.info());
///   const std::size_t goal = predicates.add({"in", "akita_black_bowl_1", "wooden_cabinet_1_top_region"});
///   predicates.judge(goal, poses, qpos)      // kNo, kYes, or kIfTouching: then touching(goal, contacts) decides
#pragma once
#include <string>
#include <vector>

#include "sim/engine.h"
#include "tasks/libero/frames.h"
#include "tasks/libero/scene_folder.h"

namespace cohort::tasks::libero {

class Predicates {
 public:
  /// All of them must outlive this.
  Predicates(const SceneFolder& folder, const Frames& frames, const sim::ModelInfo& model)
      : folder_(folder), frames_(frames), model_(model) {}

  /// Names of predicates are case-insensitive. Returns its index. Throws Error for a predicate, object or site that
  /// there is not, with the nearest name, for arguments that it does not take, and for one that LIBERO cannot judge.
  std::size_t add(const PredicateWords& words);
  std::size_t size() const { return all_.size(); }
  const PredicateWords& words(std::size_t i) const { return all_[i].words; }

  enum class Verdict { kNo, kYes, kIfTouching };
  /// poses: of the moment that LIBERO reads poses of; qpos: of that which it reads joints of.
  Verdict judge(std::size_t i, const Frames::Poses& poses, std::span<const double> qpos) const;
  /// Whether any contact is between the two things that it is about.
  bool touching(std::size_t i, std::span<const sim::Contact> contacts) const;

 private:
  enum class Kind { kOn, kIn, kOpen, kClose, kTurnOn, kTurnOff, kUp };
  struct JointLimit {
    std::size_t qpos = 0;
    double bound = 0;
    bool above = false, or_equal = false;
    bool holds(double q) const { return above ? (or_equal ? q >= bound : q > bound) : q < bound; }
  };
  struct Predicate {
    PredicateWords words;
    Kind kind = Kind::kOn;
    std::size_t body = 0;   // of the first argument
    bool at_site = false;   // the second argument is a site
    std::size_t other = 0;  // body or site
    Vec3 half_size{};       // of that site
    bool asks_touch = false;
    std::vector<bool> first_geoms, second_geoms;  // by geom, of what must touch
    std::vector<JointLimit> joints;
    bool all_joints = false;  // else any
  };

  const Thing& thing(const PredicateWords& words, const std::string& name) const;
  std::vector<bool> geoms_of(const Thing& thing) const;
  std::vector<std::string> names() const;
  void take_region(Predicate& p) const;
  void take_joints(Predicate& p) const;

  const SceneFolder& folder_;
  const Frames& frames_;
  const sim::ModelInfo& model_;
  std::vector<Predicate> all_;
};

}  // namespace cohort::tasks::libero
