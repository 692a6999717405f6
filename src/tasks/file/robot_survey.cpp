#include "tasks/file/robot_survey.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/format.h"
#include "core/philox.h"
#include "sim/engine.h"
#include "sim/host/kinematics.h"
#include "sim/host/model_file.h"
#include "sim/host/scene.h"
#include "tasks/file/patterns.h"

namespace cohort::tasks {

namespace {

using sim::JointInfo;
using sim::JointType;
using sim::Kinematics;

constexpr double kGravity = 9.81;                                // m/s^2
constexpr double kNaturalFrequency = 2 * std::numbers::pi * 10;  // rad/s
constexpr double kDampingRatio = 2;
constexpr double kSagOfLegs = 0.5;      // rad under the robot's weight with the leg stretched out sideways
constexpr double kSagOfArms = 0.05;     // rad
constexpr double kSagOfSlides = 0.005;  // m
constexpr double kFootDepth = 0.02;     // m: what is no higher than this over the lowest point is a foot too

/// v in the frame that the rotation r (row-major) leads to.
std::array<double, 3> turned(const std::array<double, 9>& r, const std::array<double, 3>& v) {
  return {r[0] * v[0] + r[1] * v[1] + r[2] * v[2], r[3] * v[0] + r[4] * v[1] + r[5] * v[2],
          r[6] * v[0] + r[7] * v[1] + r[8] * v[2]};
}

class Surveyor {
 public:
  Surveyor(const std::filesystem::path& file, bool fixed) : file_(file) {
    const std::string trouble = sim::why_unreadable(file);
    COHORT_THROW_UNLESS(trouble.empty(), "{}", trouble);
    out_.urdf = sim::is_urdf(file);
    try {
      open(fixed);
    } catch (const Error& error) {
      const std::string message = error.what();
      const bool massless_base = out_.urdf && !fixed && message.find("meant to stand fixed") != std::string::npos;
      if (!massless_base && message.find("repair_inertia") == std::string::npos) throw;
      open_repaired(fixed || massless_base, massless_base);
    }
  }

  RobotSurvey survey(bool may_be_fixed) {
    find_joints();
    COHORT_THROW_UNLESS(!out_.joints.empty() || !out_.other_actuators.empty(),
                        "{}: the robot has no hinges or slides, and no actuator with a name: nothing can move it",
                        file_.string());
    place();
    if (may_be_fixed && out_.urdf && out_.free_base && feet_.size() < 2) {
      // What does not stand on feet is mounted.
      out_ = {.urdf = true, .repair_inertia = out_.repair_inertia};
      feet_.clear(), foot_points_.clear();
      open(true);
      find_joints();
      place();
    }
    find_feet();
    find_gains();
    find_hand();
    return std::move(out_);
  }

 private:
  /// A file whose masses or inertias MuJoCo refuses. as_it_is: first without repair.
  void open_repaired(bool fixed, bool as_it_is) {
    try {
      out_.repair_inertia = !as_it_is;
      open(fixed);
    } catch (const Error& error) {
      if (!as_it_is || std::string(error.what()).find("repair_inertia") == std::string::npos) throw;
      open_repaired(fixed, false);
    }
  }

  void open(bool fixed) {
    sim::ModelEdits edits;
    edits.repair_inertia = out_.repair_inertia;
    const auto add = [&](sim::Scene& scene, bool ground) {
      if (out_.urdf)
        scene.add_entity(sim::Urdf{.file = file_.string(), .fixed = fixed, .edits = edits}, "robot");
      else
        scene.add_entity(sim::Mjcf{.file = file_.string(), .edits = edits}, "robot");
      if (ground) scene.add_entity(sim::Plane{}, "ground");
      scene.build(1);
    };
    scene_ = std::make_unique<sim::Scene>(sim::SceneOptions{.engine = sim::EngineKind::kMujoco});
    add(*scene_, false);
    const std::vector<std::uint8_t> still = scene_->info().fixed_geoms();
    for (std::size_t g = 0; g < still.size(); ++g)
      out_.own_ground =
          out_.own_ground || (still[g] != 0 && (info().geoms[g].type == "plane" || info().geoms[g].type == "hfield"));
    const sim::Entity robot = scene_->entity("robot");
    for (const int link : robot.links())
      for (const JointInfo& joint : info().joints)
        out_.free_base = out_.free_base || (joint.link == link && joint.type == JointType::kFree && is_base(link));
    if (out_.free_base && !out_.own_ground) {
      scene_ = std::make_unique<sim::Scene>(sim::SceneOptions{.engine = sim::EngineKind::kMujoco});
      add(*scene_, true);
    }
    out_.timestep = info().timestep;
  }
  const sim::ModelInfo& info() const { return scene_->info(); }
  const JointInfo& joint(int j) const { return info().joints[static_cast<std::size_t>(j)]; }
  int parent(int link) const { return info().links[static_cast<std::size_t>(link)].parent; }
  bool hangs_on(int link, int above) const {
    for (; link > above; link = parent(link)) {
    }
    return link == above;
  }
  /// Hinges or slides hang on it: a free body without them is a thing that lies about, not a robot's base.
  bool carries_joints(int link) const {
    return std::ranges::any_of(info().joints, [&](const JointInfo& j) {
      return (j.type == JointType::kHinge || j.type == JointType::kSlide) && hangs_on(j.link, link);
    });
  }
  /// Of a robot without joints, such as a drone, what its actuators push.
  bool is_base(int link) const {
    const bool joints = std::ranges::any_of(
        info().joints, [](const JointInfo& j) { return j.type == JointType::kHinge || j.type == JointType::kSlide; });
    return joints ? carries_joints(link) : !info().actuators.empty();
  }
  /// Moves by joints that are not the base's free one, and nothing that moves hangs on it.
  bool is_leaf(int link) const {
    const auto moves = [&](int l) {
      return std::ranges::any_of(out_.joints, [&](const SurveyedJoint& j) { return joint(j.index).link == l; });
    };
    for (std::size_t l = 0; l < info().links.size(); ++l)
      if (static_cast<int>(l) != link && hangs_on(static_cast<int>(l), link) && moves(static_cast<int>(l)))
        return false;
    for (int l = link; l > 0; l = parent(l))
      if (moves(l)) return true;
    return false;
  }
  double& q(const SurveyedJoint& j) { return qpos_[static_cast<std::size_t>(joint(j.index).qpos)]; }

  void find_joints() {
    const sim::Entity robot = scene_->entity("robot");
    qpos_ = info().qpos0;
    for (std::size_t i = 0; i < info().joints.size(); ++i) {
      const JointInfo& j = info().joints[i];
      if (std::ranges::find(robot.links(), j.link) == robot.links().end()) continue;
      if (j.type == JointType::kFree && is_base(j.link) && (free_qpos_ < 0 || carries_joints(j.link))) {
        free_qpos_ = j.qpos;
        base_ = j.link;
      }
      if (j.type != JointType::kHinge && j.type != JointType::kSlide) continue;
      SurveyedJoint joint{
          .name = bare_name(j.name), .index = static_cast<int>(i), .slide = j.type == JointType::kSlide};
      joint.limited = j.limited, joint.range = j.range;
      for (int l = j.link; l > 0; l = parent(l)) joint.tree = l;
      for (const sim::ActuatorInfo& a : info().actuators)
        joint.driven = joint.driven || a.dof == j.dof || std::ranges::find(a.moves, j.dof) != a.moves.end();
      for (const sim::ActuatorInfo& a : info().actuators) {
        if (a.dof != j.dof || a.ctrl_count != 1 || a.kind == sim::ActuatorInfo::Kind::kOther) continue;
        joint.actuated = true, joint.kind = a.kind;
        if (a.limited) joint.largest_control = std::max(std::abs(a.range[0]), std::abs(a.range[1]));
        out_.own_actuators = true;
        break;
      }
      out_.joints.push_back(std::move(joint));
    }
    std::set<int> own;
    for (const SurveyedJoint& j : out_.joints)
      if (j.actuated) own.insert(joint(j.index).dof);
    for (const sim::ActuatorInfo& a : info().actuators) {
      out_.actuators.push_back(bare_name(a.name));
      const bool moves = a.dof >= 0 || !a.moves.empty() || out_.joints.empty();
      if (a.ctrl_count == 1 && moves && !a.name.empty() && !own.contains(a.dof))
        out_.other_actuators.push_back(out_.actuators.back());
    }
    out_.own_actuators = out_.own_actuators || !out_.other_actuators.empty();
    if (base_ < 0 && !robot.links().empty()) base_ = *robot.links().begin();
    if (base_ >= 0) out_.base = bare_name(info().links[static_cast<std::size_t>(base_)].name);
    // What nothing drives beside a robot that is driven, a door's lever say, is not asked for a name.
    if (out_.own_actuators)
      std::erase_if(out_.joints, [](const SurveyedJoint& j) { return j.name.empty() && !j.driven; });
    COHORT_THROW_UNLESS(std::ranges::none_of(out_.joints, [](const SurveyedJoint& j) { return j.name.empty(); }),
                        "{}: a joint has no name, by which a task could address it", file_.string());
  }

  /// Where it stands.
  void place() {
    const auto& keys = info().keyframes;
    const auto find = [&](const std::string& word) {
      return std::ranges::find_if(keys,
                                  [&](const sim::KeyframeInfo& k) { return k.name.find(word) != std::string::npos; });
    };
    auto key = keys.end();
    for (const char* word : {"home", "stand", "init"})
      if (key == keys.end()) key = find(word);
    if (key == keys.end()) key = std::ranges::find_if(keys, [](const sim::KeyframeInfo& k) { return !k.name.empty(); });
    if (key != keys.end()) {
      out_.keyframe = bare_name(key->name);
      qpos_ = key->qpos;
    } else {
      std::set<int> moved;
      for (const SurveyedJoint& j : out_.joints)
        if (j.limited && (q(j) < j.range[0] || q(j) > j.range[1])) {
          q(j) = std::round(50 * (j.range[0] + j.range[1])) / 100;
          moved.insert(j.index);
        }
      if (out_.free_base && !moved.empty()) {
        put_feet_under_hips(moved);
        find_ground();
        // Once more with where they do touch.
        ends_.clear();
        const Kinematics::Posture posture = scene_->kinematics().at(qpos_);
        for (std::size_t f = 0; f < feet_.size(); ++f) {
          const Kinematics::Pose pose = posture.link_pose(feet_[f]);
          std::array<double, 3> arm = foot_points_[f];
          arm[2] += qpos_[static_cast<std::size_t>(free_qpos_) + 2] - ground_ + kFootDepth;
          for (std::size_t k = 0; k < 3; ++k) arm[k] -= pose.pos[k];
          const auto& r = pose.rot;
          ends_[feet_[f]] = turned({r[0], r[3], r[6], r[1], r[4], r[7], r[2], r[5], r[8]}, arm);
        }
        put_feet_under_hips(moved);
      }
    }
    if (out_.free_base) find_ground();
    if (out_.free_base && out_.joints.empty() && out_.keyframe.empty()) {
      constexpr double kFlight = 1;  // m over the ground
      qpos_[static_cast<std::size_t>(free_qpos_) + 2] += kFlight;
      out_.base_pos[2] = qpos_[static_cast<std::size_t>(free_qpos_) + 2];
    }
    for (SurveyedJoint& j : out_.joints) j.position = q(j);
  }

  /// Of legs with a joint that cannot stand at zero: turns the others so that the leg's end is below its first joint.
  void put_feet_under_hips(const std::set<int>& moved) {
    const std::vector<float> com = scene_->engine().model_values(sim::Parameter::kLinkCom);
    const Kinematics& kinematics = scene_->kinematics();
    for (std::size_t l = 1; l < info().links.size(); ++l) {
      const int leaf = static_cast<int>(l);
      if (!is_leaf(leaf) || !hangs_on(leaf, base_)) continue;
      std::vector<const SurveyedJoint*> chain;
      bool bent = false;
      for (const SurveyedJoint& j : out_.joints)
        if (hangs_on(leaf, joint(j.index).link)) chain.push_back(&j), bent = bent || moved.contains(j.index);
      if (!bent || chain.empty()) continue;
      // A slim link reaches as far beyond its centre of mass as that is from its joint.
      std::array<double, 3> end{2.0 * static_cast<double>(com[3 * l]), 2.0 * static_cast<double>(com[3 * l + 1]),
                                2.0 * static_cast<double>(com[3 * l + 2])};
      if (const auto known = ends_.find(leaf); known != ends_.end()) end = known->second;
      const int hip = joint(chain.front()->index).link;
      const auto cost = [&] {
        const Kinematics::Posture posture = kinematics.at(qpos_);
        const Kinematics::Pose foot = posture.link_pose(leaf), root = posture.link_pose(hip);
        const double ahead = foot.pos[0] + turned(foot.rot, end)[0] - root.pos[0];
        double far = 0;
        for (const SurveyedJoint* j : chain) far += moved.contains(j->index) ? 0 : q(*j) * q(*j);
        return ahead * ahead + 1e-4 * far;
      };
      for (int sweep = 0; sweep < 3; ++sweep)
        for (const SurveyedJoint* j : chain) {
          // Those that swing the leg forth and back: a spider's hips do not.
          if (moved.contains(j->index) || j->slide) continue;
          if (std::abs(kinematics.at(qpos_).joint_axis(j->index)[1]) < 0.7) continue;
          double best = cost(), at = q(*j);
          for (int i = -60; i <= 60; ++i) {
            const double angle = 0.025 * i;
            if (j->limited && (angle < j->range[0] || angle > j->range[1])) continue;
            q(*j) = angle;
            if (const double c = cost(); c < best - 1e-9) best = c, at = angle;
          }
          q(*j) = at;
        }
    }
  }

  /// Links and geoms that touch what is fixed with the base at this height, with where.
  struct Touch {
    int link = 0, geom = 0;
    std::array<double, 3> pos{};
  };
  std::vector<Touch> touches(double height) {
    std::vector<float> state(qpos_.begin(), qpos_.end());
    state[static_cast<std::size_t>(free_qpos_) + 2] = static_cast<float>(height);
    scene_->set_qpos(state);
    scene_->forward();
    std::vector<Touch> all;
    for (const sim::Contact& c : scene_->engine().contacts(0)) {
      if (c.distance > 1e-4) continue;
      const bool first = info().is_fixed(c.link1), second = info().is_fixed(c.link2);
      if (first != second) all.push_back({first ? c.link2 : c.link1, first ? c.geom2 : c.geom1, c.pos});
    }
    return all;
  }

  /// The base's height at which the robot touches the ground, and with what.
  void find_ground() {
    constexpr double kHighest = 20;  // m
    double low = -kHighest, high = kHighest;
    const auto base = static_cast<std::size_t>(free_qpos_);
    feet_.clear(), foot_points_.clear(), foot_geoms_.clear();
    if (touches(low).empty()) return;
    for (int i = 0; i < 40; ++i) {
      const double middle = 0.5 * (low + high);
      (touches(middle).empty() ? high : low) = middle;
    }
    if (out_.keyframe.empty()) qpos_[base + 2] = std::ceil(1000 * high) / 1000;
    std::copy_n(qpos_.begin() + free_qpos_, 3, out_.base_pos.begin());
    for (const Touch& touch : touches(high - kFootDepth)) {
      if (touch.link == base_ || !is_leaf(touch.link)) continue;
      if (std::ranges::find(feet_, touch.link) == feet_.end()) {
        feet_.push_back(touch.link);
        foot_points_.push_back(touch.pos);
      }
      foot_geoms_[touch.link].insert(touch.geom);
    }
    for (const Touch& touch : touches(high - 0.001))
      if (touch.link == base_) feet_.clear();  // it lies on its base
    ground_ = high;
  }

  void find_feet() {
    bool by_geom = !feet_.empty();
    std::map<std::string, int> geom_names;
    for (const sim::GeomInfo& geom : info().geoms) ++geom_names[geom.name];
    for (const int link : feet_) {
      const std::set<int>& geoms = foot_geoms_[link];
      const std::string name = info().geoms[static_cast<std::size_t>(*geoms.begin())].name;
      by_geom = by_geom && geoms.size() == 1 && !name.empty() && geom_names[name] == 1;
    }
    for (const int link : feet_)
      out_.feet.push_back(bare_name(by_geom ? info().geoms[static_cast<std::size_t>(*foot_geoms_[link].begin())].name
                                            : info().links[static_cast<std::size_t>(link)].name));
    if (by_geom)
      for (const sim::GeomInfo& geom : info().geoms) out_.all_feet_names.push_back(bare_name(geom.name));
    else
      for (const sim::LinkInfo& link : info().links) out_.all_feet_names.push_back(bare_name(link.name));
  }

  void find_gains() {
    const Kinematics& kinematics = scene_->kinematics();
    Kinematics::Posture posture = kinematics.at(qpos_);
    const std::vector<float> armature = scene_->engine().model_values(sim::Parameter::kDofArmature);
    double mass = 0;
    for (const sim::LinkInfo& link : info().links) mass += link.mass;
    double heaviest = 0;
    std::vector<double> load(out_.joints.size());
    for (std::size_t i = 0; i < out_.joints.size(); ++i) {
      const SurveyedJoint& j = out_.joints[i];
      const JointInfo& model = joint(j.index);
      double hanging = 0;  // kg
      for (std::size_t l = 0; l < info().links.size(); ++l)
        if (hangs_on(static_cast<int>(l), model.link)) hanging += info().links[l].mass;
      const int dof[] = {model.dof};
      double inertia = 0;
      posture.mass_matrix(dof, {&inertia, 1});
      inertia = std::max(0.0, inertia - static_cast<double>(armature[static_cast<std::size_t>(model.dof)]));
      // All of it at its radius of gyration.
      load[i] = j.slide ? hanging * kGravity : kGravity * std::sqrt(hanging * inertia);
      if (out_.free_base && !j.slide && !feet_.empty())
        for (std::size_t f = 0; f < feet_.size(); ++f) {
          if (!hangs_on(feet_[f], model.link)) continue;
          const Kinematics::Pose pose = posture.link_pose(model.link);
          const std::array<double, 3> arm = turned(pose.rot, model.pos);
          double far = 0, high = 0;
          for (std::size_t k = 0; k < 3; ++k) {
            // Contacts were found with the base at the ground's height less the depth.
            const double point = foot_points_[f][k] +
                                 (k == 2 ? qpos_[static_cast<std::size_t>(free_qpos_) + 2] - ground_ + kFootDepth : 0);
            const double d = pose.pos[k] + arm[k] - point;
            far += d * d;
            if (k == 2) high = d;
          }
          out_.leg_length = std::max(out_.leg_length, high);
          load[i] = std::max(load[i], mass * kGravity / static_cast<double>(feet_.size()) * std::sqrt(far));
        }
      if (!j.slide) heaviest = std::max(heaviest, load[i]);
    }
    const auto two_digits = [](double x) {
      if (!(x > 0)) return 0.0;
      const double unit = std::pow(10, std::floor(std::log10(x)) - 1);
      return std::round(x / unit) * unit;
    };
    for (std::size_t i = 0; i < out_.joints.size(); ++i) {
      SurveyedJoint& j = out_.joints[i];
      const double own = static_cast<double>(armature[static_cast<std::size_t>(joint(j.index).dof)]);
      // A wrist turns nothing heavy, and yet it has to hold still.
      const double carried = j.slide ? std::max(load[i], 1.0) : std::max({load[i], 0.05 * heaviest, 0.01});
      const double sag = j.slide ? kSagOfSlides : out_.free_base ? kSagOfLegs : kSagOfArms;
      j.stiffness = two_digits(std::max(carried / sag, own * kNaturalFrequency * kNaturalFrequency));
      j.armature = own > 0 ? 0 : two_digits(j.stiffness / (kNaturalFrequency * kNaturalFrequency));
      j.damping = two_digits(2 * kDampingRatio * j.stiffness / kNaturalFrequency);
      const auto [least, most] = joint(j.index).force_range;  // a URDF's <limit effort>
      j.effort = std::min(two_digits(3 * carried), std::max(most, -least));
    }
  }

  void find_hand() {
    std::vector<int> leaves;
    const auto depth = [&](int link) {
      return std::ranges::count_if(out_.joints,
                                   [&](const SurveyedJoint& j) { return hangs_on(link, joint(j.index).link); });
    };
    std::ptrdiff_t deepest = 0;
    for (std::size_t l = 1; l < info().links.size(); ++l) {
      const int link = static_cast<int>(l);
      const bool of_robot =
          std::ranges::any_of(out_.joints, [&](const SurveyedJoint& j) { return joint(j.index).link == link; });
      if (!of_robot || !is_leaf(link)) continue;
      if (depth(link) > deepest) leaves.clear(), deepest = depth(link);
      if (depth(link) == deepest) leaves.push_back(link);
    }
    if (leaves.empty()) return;
    int hand = leaves.front();
    if (leaves.size() > 1) {
      int above = hand;
      while (above > 0 && !std::ranges::all_of(leaves, [&](int leaf) { return hangs_on(leaf, above); }))
        above = parent(above);
      if (depth(above) >= 2) hand = above;
    }
    out_.hand = bare_name(info().links[static_cast<std::size_t>(hand)].name);
    for (const SurveyedJoint& j : out_.joints)
      if (joint(j.index).link != hand && hangs_on(joint(j.index).link, hand)) out_.fingers.push_back(j.name);
    for (const char* word : {"grasp", "grip", "pinch", "tcp", "ee", "tool", "attachment", "end_effector"})
      for (const sim::SiteInfo& site : info().sites)
        if (out_.hand_site.empty() && site.link == hand && site.name.find(word) != std::string::npos)
          out_.hand_site = bare_name(site.name);
    find_reach(hand);
  }

  void find_reach(int hand) {
    const Kinematics& kinematics = scene_->kinematics();
    constexpr int kSamples = 400;
    constexpr std::uint64_t kSeed = 1;
    std::array<std::vector<double>, 3> places;
    const std::vector<double> begin = qpos_;
    const int site = out_.hand_site.empty() ? -1 : kinematics.site(full_site(hand));
    for (int s = 0; s < kSamples; ++s) {
      const RandomStream random(kSeed, RandomPurpose::kEnvironment, static_cast<std::uint64_t>(s), 0);
      std::uint64_t draw = 0;
      for (const SurveyedJoint& j : out_.joints) {
        double low = begin[static_cast<std::size_t>(joint(j.index).qpos)] - 1, high = low + 2;
        if (j.limited) low = std::max(low, j.range[0]), high = std::min(high, j.range[1]);
        q(j) = low + (high - low) * static_cast<double>(random.uniform(draw++));
      }
      const Kinematics::Posture posture = kinematics.at(qpos_);
      const Kinematics::Pose pose = site >= 0 ? posture.site_pose(site) : posture.link_pose(hand);
      for (std::size_t k = 0; k < 3; ++k) places[k].push_back(pose.pos[k]);
    }
    qpos_ = begin;
    for (std::size_t k = 0; k < 3; ++k) {
      std::ranges::sort(places[k]);
      const auto at = [&](double share) {
        return std::round(100 * places[k][static_cast<std::size_t>(share * (kSamples - 1))]) / 100;
      };
      out_.reach[k] = {at(0.25), at(0.75)};
    }
  }
  std::string full_site(int hand) const {
    for (const sim::SiteInfo& site : info().sites)
      if (site.link == hand && bare_name(site.name) == out_.hand_site) return site.name;
    return out_.hand_site;
  }

  std::filesystem::path file_;
  RobotSurvey out_;
  std::unique_ptr<sim::Scene> scene_;
  std::vector<double> qpos_;
  int free_qpos_ = -1, base_ = -1;
  double ground_ = 0;
  std::vector<int> feet_;
  std::vector<std::array<double, 3>> foot_points_;
  std::map<int, std::set<int>> foot_geoms_;
  std::map<int, std::array<double, 3>> ends_;  // m, of legs, in their last links' frames
};

}  // namespace

RobotSurvey survey_robot(const std::filesystem::path& file, bool fixed) {
  return Surveyor(file, fixed).survey(!fixed);
}

}  // namespace cohort::tasks
