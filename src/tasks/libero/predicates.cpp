#include "tasks/libero/predicates.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/config.h"
#include "core/error.h"
#include "core/format.h"

namespace cohort::tasks::libero {
namespace {

// m
constexpr double kBesideOnObject = 0.03, kBelowOnSite = 0.005, kAboveOnSite = 0.10, kBelowInSite = 0.01, kUpHeight = 1;

/// When a category's joints count as open, closed, on or off (libero/libero/envs/objects/articulated_objects.py).
struct JointRules {
  const char* category;
  double open, close;  // of a stove: on, off
  bool open_is_above;  // and closed below
};
constexpr JointRules kJointRules[] = {
    {"wooden_cabinet", -0.14, 0.0, false}, {"white_cabinet", -0.14, 0.0, false}, {"microwave", -1.3, -0.005, false},
    {"short_cabinet", 0.10, 0.0, true},    {"short_fridge", 2.0, 0.0, true},     {"flat_stove", 0.5, 0.0, true},
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string maybe(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = config::nearest(word, known);
  return near.empty() ? "" : format(", is `{}` meant?", near);
}

}  // namespace

std::vector<std::string> Predicates::names() const {
  std::vector<std::string> all;
  for (const auto& [name, thing] : folder_.things) all.push_back(name);
  for (const auto& [name, site] : folder_.sites) all.push_back(name);
  return all;
}

const Thing& Predicates::thing(const PredicateWords& words, const std::string& name) const {
  const auto found = folder_.things.find(name);
  COHORT_THROW_UNLESS(found != folder_.things.end(), "predicate ({}): the scene has no object `{}`{}", join(words, " "),
                      name, maybe(name, names()));
  return found->second;
}

std::vector<bool> Predicates::geoms_of(const Thing& thing) const {
  std::vector<bool> set(model_.geoms.size());
  for (const std::string& name : thing.contact_geoms) set[static_cast<std::size_t>(model_.geom(name))] = true;
  return set;
}

std::size_t Predicates::add(const PredicateWords& words) {
  static const std::vector<std::string> kNames{"on", "in", "open", "close", "turnon", "turnoff", "up"};
  COHORT_THROW_UNLESS(!words.empty(), "a predicate has no name; there are {}", join(kNames, ", "));
  Predicate p;
  p.words = words;
  const std::string name = lower(words.front());
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  COHORT_THROW_UNLESS(found != kNames.end(), "predicate ({}): there is no predicate `{}`{}; there are {}",
                      join(words, " "), words.front(), maybe(name, kNames), join(kNames, ", "));
  p.kind = static_cast<Kind>(found - kNames.begin());
  const std::size_t arguments = p.kind == Kind::kOn || p.kind == Kind::kIn ? 2 : 1;
  COHORT_THROW_UNLESS(words.size() == 1 + arguments, "predicate ({}): {} takes {} argument{}", join(words, " "), name,
                      arguments, arguments == 1 ? "" : "s");
  if (p.kind == Kind::kOn || p.kind == Kind::kIn || p.kind == Kind::kUp)
    p.body = frames_.body(thing(words, words[1]).body);
  if (arguments == 2) take_region(p);
  if (p.kind == Kind::kOpen || p.kind == Kind::kClose || p.kind == Kind::kTurnOn || p.kind == Kind::kTurnOff)
    take_joints(p);
  all_.push_back(std::move(p));
  return all_.size() - 1;
}

void Predicates::take_region(Predicate& p) const {
  const std::string& name = p.words[2];
  const auto site = folder_.sites.find(name);
  p.at_site = site != folder_.sites.end();
  const Thing* other = nullptr;
  if (p.at_site) {
    p.other = frames_.site(site->second.site);
    p.half_size = site->second.half_size;
    // Regions of the arena are on at once, and being in a site asks for no contact.
    if (p.kind == Kind::kOn && !site->second.parent.empty()) other = &thing(p.words, site->second.parent);
  } else {
    other = &thing(p.words, name);
    COHORT_THROW_UNLESS(p.kind == Kind::kOn,
                        "predicate ({}): only a region can hold something: objects of category {} have no inside of "
                        "their own",
                        join(p.words, " "), other->category);
    p.other = frames_.body(other->body);
  }
  p.asks_touch = other != nullptr;
  if (!other) return;
  p.first_geoms = geoms_of(thing(p.words, p.words[1]));
  p.second_geoms = geoms_of(*other);
}

void Predicates::take_joints(Predicate& p) const {
  const bool opens = p.kind == Kind::kOpen || p.kind == Kind::kTurnOn;
  p.all_joints = !opens;
  const auto site = folder_.sites.find(p.words[1]);
  const bool is_site = site != folder_.sites.end();
  const std::vector<std::string>& joints = is_site ? site->second.joints : thing(p.words, p.words[1]).joints;
  if (joints.empty()) return;  // never open, always closed
  const std::string owner = is_site ? site->second.parent : p.words[1];
  const std::string category = thing(p.words, owner).category;
  const bool stove = category == "flat_stove", turns = p.kind == Kind::kTurnOn || p.kind == Kind::kTurnOff;
  const auto* rules = std::find_if(std::begin(kJointRules), std::end(kJointRules),
                                   [&](const JointRules& r) { return category == r.category; });
  COHORT_THROW_UNLESS(rules != std::end(kJointRules) && stove == turns,
                      "predicate ({}): LIBERO does not say when a {} is that", join(p.words, " "), category);
  for (const std::string& joint : joints)
    p.joints.push_back({.qpos = frames_.joint_at(frames_.joint(joint)).qpos,
                        .bound = opens ? rules->open : rules->close,
                        .above = opens == rules->open_is_above,
                        .or_equal = stove && opens});
}

Predicates::Verdict Predicates::judge(std::size_t i, const Frames::Poses& poses, std::span<const double> qpos) const {
  const Predicate& p = all_[i];
  const auto verdict = [](bool holds) { return holds ? Verdict::kYes : Verdict::kNo; };
  const auto holds = [&](const JointLimit& limit) { return limit.holds(qpos[limit.qpos]); };
  if (p.kind != Kind::kOn && p.kind != Kind::kIn && p.kind != Kind::kUp)
    return verdict(p.all_joints ? std::all_of(p.joints.begin(), p.joints.end(), holds)
                                : std::any_of(p.joints.begin(), p.joints.end(), holds));
  const Vec3& a = poses.pos[p.body];
  if (p.kind == Kind::kUp) return verdict(a[2] >= kUpHeight);
  bool there = false;
  if (!p.at_site) {
    const Vec3& b = poses.pos[p.other];
    there = b[2] <= a[2] && std::hypot(a[0] - b[0], a[1] - b[1]) < kBesideOnObject;
  } else {
    const Frames::Pose site = frames_.site_pose(poses, p.other);
    const Vec3& size = p.half_size;
    if (p.kind == Kind::kOn) {
      const Vec3 d = site.rot * (a - site.pos);
      there = size[2] - kBelowOnSite < d[2] && d[2] < size[2] + kAboveOnSite && std::abs(d[0]) < size[0] &&
              std::abs(d[1]) < size[1];
    } else {
      const Vec3 turned = site.rot * size;
      there = true;
      for (std::size_t k = 0; k < 3; ++k) {
        const double h = std::abs(turned[k]);
        const double low = site.pos[k] - h - (k == 2 ? kBelowInSite : 0);
        there = there && low < a[k] && a[k] < site.pos[k] + h;
      }
    }
  }
  return !there ? Verdict::kNo : p.asks_touch ? Verdict::kIfTouching : Verdict::kYes;
}

bool Predicates::touching(std::size_t i, std::span<const sim::Contact> contacts) const {
  const Predicate& p = all_[i];
  return std::any_of(contacts.begin(), contacts.end(), [&](const sim::Contact& c) {
    const auto a = static_cast<std::size_t>(c.geom1), b = static_cast<std::size_t>(c.geom2);
    return (p.first_geoms[a] && p.second_geoms[b]) || (p.first_geoms[b] && p.second_geoms[a]);
  });
}

}  // namespace cohort::tasks::libero
