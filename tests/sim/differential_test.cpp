// Random models against MuJoCo C (sim_differential for any number of them), and that the comparison finds what is
// wrong.
#include "differential.h"

#include <set>

#include <gtest/gtest.h>

#include "core/error.h"
#include "oracle.h"
#include "random_model.h"
#include "shrink.h"

namespace cohort::sim {
namespace {

using test::Choice;
using test::Comparison;
using test::Element;
using test::Finding;
using test::random_model;

/// Models of one test case: a few seconds, also for builds that are slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kModels = 4;
#elif defined(NDEBUG)
constexpr std::uint64_t kModels = 60;
#else
constexpr std::uint64_t kModels = 12;
#endif
constexpr std::uint64_t kCases = 5;

Comparison compare(const Element& model, const test::DifferentialOptions& options) {
  return test::compare_with_mujoco(test::compile_xml(test::to_xml(model)), options);
}

/// Found before, and not put right yet.
bool is_known(const Finding& f) {
  // Of faces and edges that meet, both ends are clipped to one point, where MuJoCo keeps two.
  return f.what.rfind("the same contact twice", 0) == 0;
}

class RandomModels : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomModels, StepAsMujocoDoes) {
  int states = 0, whole = 0, contacts = 0, by_teams = 0;
  for (std::uint64_t seed = kModels * GetParam(); seed < kModels * (GetParam() + 1); ++seed) {
    SCOPED_TRACE(format("sim_differential run {} 1", seed));
    Comparison c;
    try {
      c = compare(random_model(seed), {.seed = seed});
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    states += c.states, whole += c.whole, contacts += c.contacts;
    by_teams += c.by_teams;
    for (const Finding& f : c.findings) {
      if (is_known(f)) continue;
      ADD_FAILURE() << f.what << ": ours " << f.ours << ", MuJoCo's " << f.mujoco << ", " << f.excess
                    << " times what is allowed (" << f.where << ")\n"
                    << f.detail;
    }
  }
  EXPECT_GE(states, static_cast<int>(4 * kModels)) << "too many states are left out";
  EXPECT_GE(2 * whole, states) << "too few states are compared to the end";
  EXPECT_GE(8 * contacts, states) << "the models hardly touch anything";
  EXPECT_GE(3 * by_teams, states) << "teams solve too few of them";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomModels, ::testing::Range(std::uint64_t{0}, kCases));

/// A mistake in our model, and one of the kinds of findings that it makes.
struct Mistake {
  const char* name;
  void (*make)(Model&);
  const char* finding;
};

constexpr Mistake kMistakes[] = {
    {"other friction",
     [](Model& m) {
       for (PairRecord& p : m.pair) p.friction[0] *= 1.1f;
     },
     "row of a contact"},
    {"softer contacts",
     [](Model& m) {
       for (PairRecord& p : m.pair) p.weight_tran *= 1.1f;
     },
     "weight of a contact"},
    {"larger spheres",
     [](Model& m) {
       for (GeomRecord& g : m.geom) g.size[0] *= g.shape == mjGEOM_SPHERE ? 1.01f : 1;
     },
     "distance of sphere and capsule"},
    {"no gravity", [](Model& m) { m.sizes.option.gravity[2] *= 0.99f; }, "acceleration without constraints"},
    {"no friction loss",
     [](Model& m) {
       for (FrictionRecord& f : m.friction) f.loss *= 0.5f;
     },
     "acceleration"},
    {"wider limits",
     [](Model& m) {
       for (LimitRecord& l : m.limit) l.upper += 0.01f;
     },
     "row of a joint's limit"},
    {"another timestep", [](Model& m) { m.sizes.option.timestep *= 1.05f; }, "velocity after a step"},
    {"sensors that are cut off",
     [](Model& m) {
       for (SensorRecord& s : m.sensor) s.cutoff = 0.01f;
     },
     "sensor framepos"},
};

TEST(Differential, FindsAMistakeInOurModel) {
  for (const Mistake& mistake : kMistakes) {
    std::set<std::string> kinds;
    for (std::uint64_t seed = 0; seed < 120 && kinds.count(mistake.finding) == 0; ++seed) {
      for (const Finding& f : compare(random_model(seed), {.seed = seed, .change_ours = mistake.make}).findings) {
        kinds.insert(f.what);
      }
    }
    EXPECT_EQ(kinds.count(mistake.finding), 1u) << mistake.name << " is not found";
  }
}

TEST(RandomModel, IsTheSameTextEverywhere) {
  std::uint64_t hash = 14695981039346656037ull;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (char c : test::to_xml(random_model(seed))) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    }
  }
  EXPECT_EQ(hash, 1107285945482353839u)
      << "a change of the random models changes what a seed means: write the new hash here";
}

void collect_tags(const Element& e, std::set<std::string>& tags) {
  tags.insert(e.tag);
  for (const auto& [name, value] : e.attributes) {
    if (name == "type" || name == "integrator" || name == "dyntype") tags.insert(value);
  }
  for (const Element& child : e.children) collect_tags(child, tags);
}

TEST(RandomModel, HasEveryKindOfElement) {
  std::set<std::string> tags;
  for (std::uint64_t seed = 0; seed < 400; ++seed) collect_tags(random_model(seed), tags);
  for (const char* tag :
       {"freejoint",    "free",       "ball",         "hinge",       "slide",       "plane",       "hfield",
        "sphere",       "capsule",    "ellipsoid",    "cylinder",    "box",         "mesh",        "fixed",
        "spatial",      "pulley",     "exclude",      "pair",        "connect",     "weld",        "joint",
        "tendon",       "motor",      "position",     "velocity",    "intvelocity", "damper",      "general",
        "filterexact",  "integrator", "implicitfast", "RK4",         "inertial",    "camera",      "flag",
        "clock",        "ballquat",   "tendonpos",    "actuatorfrc", "framequat",   "frameangacc", "accelerometer",
        "magnetometer", "force",      "torque",       "touch",       "rangefinder", "contact",     "subtreeangmom"}) {
    EXPECT_EQ(tags.count(tag), 1u) << tag;
  }
}

TEST(RandomModel, LeavesOutWhatItsChoiceSays) {
  Choice choice;
  for (const char* part : {"tendons", "equalities", "sensors", "actuators", "flags"})
    test::member(choice, part) = false;
  EXPECT_THROW(test::member(choice, "springs"), Error);
  std::set<std::string> tags;
  for (std::uint64_t seed = 0; seed < 100; ++seed) collect_tags(random_model(seed, choice), tags);
  for (const char* tag : {"tendon", "equality", "sensor", "actuator", "flag"}) EXPECT_EQ(tags.count(tag), 0u) << tag;
}

TEST(Shrink, LeavesWhatShows) {
  const auto shows = [](const Element& root) {
    std::set<std::string> tags;
    collect_tags(root, tags);
    return tags.count("slide") == 1;
  };
  std::uint64_t seed = 0;
  while (!shows(random_model(seed))) ++seed;
  EXPECT_EQ(test::to_xml(test::shrink(random_model(seed), shows)),
            "<mujoco>\n  <worldbody>\n    <joint type='slide'/>\n  </worldbody>\n</mujoco>\n");
}

}  // namespace
}  // namespace cohort::sim
