// Models that other projects ship, beside MuJoCo C: every stage of a step and the sensors from random states, and a
// thousand steps of each robot, from MuJoCo's state before each. `scripts/setup --tests` brings the wheels they lie in.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "constraint_rows.h"
#include "core/error.h"
#include "core/philox.h"
#include "differential.h"

namespace cohort::sim {
namespace {

using test::cost_of;
using test::take;

/// The folder into which the wheels are unpacked: COHORT_MODELS, or Python's own.
std::filesystem::path site() {
  if (const char* folder = std::getenv("COHORT_MODELS")) return folder;
  const char* interpreter = std::getenv("COHORT_PYTHON");
  if (interpreter == nullptr) return {};
  const std::filesystem::path python = interpreter;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(python.parent_path().parent_path() / "lib", none)) {
    if (entry.path().filename().string().rfind("python3", 0) == 0) return entry.path() / "site-packages";
  }
  return {};
}

/// Larger ones take minutes; they are of the same parts.
constexpr int kMostDofs = 150;

/// What is found and is no mistake of ours.
struct Known {
  const char* file;
  const char* what;  ///< how the finding begins
};
constexpr Known kKnown[] = {
    // A sphere that touches the floor at its start, to the last bit.
    {"point.xml", "number of contacts of plane and sphere"},
    // Two spheres about one centre: any direction is a normal.
    {"actuation/actuation.xml", "normal of sphere and sphere"},
    {"actuation/position.xml", "normal of sphere and sphere"},
    // Small parts lie on a large table. Their faces are a few degrees from its top, which, over the table's length, is
    // more than the comparison allows; MuJoCo's normals are as far off, the other way.
    {"aloha_pot/scene.xml", "separation along the normal of faces of box and mesh"},
};

bool is_known(const std::string& file, const test::Finding& f) {
  return std::any_of(std::begin(kKnown), std::end(kKnown),
                     [&](const Known& k) { return file.ends_with(k.file) && f.what.rfind(k.what, 0) == 0; });
}

struct Wheel {
  const char* name;
  const char* path;  ///< a folder, or one model
  int models;        ///< that run, at least
  int whole;         ///< states that are compared to the end, at least
  int rows;          ///< of constraints in them, at least
};
constexpr Wheel kWheels[] = {{"gymnasium", "gymnasium/envs/mujoco/assets", 12, 60, 140},
                             {"warp", "mujoco_warp/test_data", 28, 140, 4000},
                             {"barkour", "mujoco/mjx/test_data/barkour_v0/assets/barkour_v0_mjx.xml", 1, 1, 60},
                             {"franka", "genesis/assets/xml/franka_emika_panda/panda.xml", 1, 3, 100}};

class PublicModels : public ::testing::TestWithParam<Wheel> {};

TEST_P(PublicModels, StepAsMujocoDoesFromRandomStates) {
  const Wheel& wheel = GetParam();
  const std::filesystem::path path = site() / wheel.path;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "there is no " << path;
  std::vector<std::filesystem::path> files{path};
  if (std::filesystem::is_directory(path)) {
    files.clear();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.path().extension() == ".xml") files.push_back(entry.path());
    }
  }
  int models = 0, whole = 0, rows = 0;
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE("sim_differential file " + file.string());
    std::vector<std::uint8_t> mjb;
    try {
      mjb = test::compile_file(file.string());
    } catch (const Error&) {
      continue;  // a part of another model
    }
    if (mj::load(mjb)->nv > kMostDofs) continue;
    const test::Comparison c = test::compare_with_mujoco(mjb, {.seed = 1});
    if (!c.refused.empty()) continue;  // docs/reference/public_models.md says which and why
    ++models;
    whole += c.whole, rows += c.rows;
    for (const test::Finding& f : c.findings) {
      if (is_known(file.string(), f)) continue;
      ADD_FAILURE() << f.what << ": ours " << f.ours << ", MuJoCo's " << f.mujoco << ", " << f.excess
                    << " times what is allowed (" << f.where << ")\n"
                    << f.detail;
    }
  }
  EXPECT_GE(models, wheel.models);
  EXPECT_GE(whole, wheel.whole);
  EXPECT_GE(rows, wheel.rows);
}

INSTANTIATE_TEST_SUITE_P(Wheels, PublicModels, ::testing::ValuesIn(kWheels),
                         [](const auto& each) { return std::string(each.param.name); });

struct Robot {
  const char* name;
  const char* path;
  int steps = 1000;
  /// Both solvers go on until they have converged: the file ends them after one to four iterations, where they differ
  /// (docs/reference/differences_from_mujoco.md).
  bool converged = false;
};
constexpr Robot kRobots[] = {
    {"ant", "gymnasium/envs/mujoco/assets/ant.xml"},
    {"half_cheetah", "gymnasium/envs/mujoco/assets/half_cheetah.xml"},
    {"hopper", "gymnasium/envs/mujoco/assets/hopper.xml"},
    {"walker2d", "gymnasium/envs/mujoco/assets/walker2d_v5.xml"},
    {"swimmer", "gymnasium/envs/mujoco/assets/swimmer.xml"},
    {"reacher", "gymnasium/envs/mujoco/assets/reacher.xml"},
    {"pusher", "gymnasium/envs/mujoco/assets/pusher_v5.xml"},
    {"double_pendulum", "gymnasium/envs/mujoco/assets/inverted_double_pendulum.xml"},
    {"humanoid", "mujoco_warp/test_data/humanoid/humanoid.xml"},
    {"three_humanoids", "mujoco_warp/test_data/humanoid/n_humanoid.xml"},
    {"constraints", "mujoco_warp/test_data/constraints.xml", 1000, true},
    {"pendula", "mujoco_warp/test_data/pendula.xml", 500},  // MuJoCo finds it unstable after 541
    {"barkour", "mujoco/mjx/test_data/barkour_v0/assets/barkour_v0_mjx.xml", 1000, true},
    {"franka", "genesis/assets/xml/franka_emika_panda/panda.xml"},
};

/// The demanded bound, of the largest velocity; and what single precision does typically: twice what is seen of the
/// robot of the stiffest contacts.
constexpr double kTolerance = 5e-4, kTypical = 2e-5;
/// The demanded bound on the solution's cost, beside rounding.
constexpr double kCostRatio = 1.025, kCostRounding = 1e-7;
/// Steps of a hundred whose state lies where rounding decides which contacts there are, or which of several ways out
/// of each other two meshes take (Franka's do in its first step).
constexpr double kDecidedByRounding = 1;

class PublicRobots : public ::testing::TestWithParam<Robot> {};

TEST_P(PublicRobots, StepAsMujocoDoesFromEveryStateOfAThousandSteps) {
  const Robot& robot = GetParam();
  const std::filesystem::path path = site() / robot.path;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "there is no " << path;
  test::Pair p(test::compile_file(path.string()));
  if (robot.converged) {
    p.mj->opt.iterations = p.view.option.iterations = 500;
    p.mj->opt.tolerance = 1e-14;
  }
  mjModel& m = *p.mj;
  mjData& d = *p.data;
  test::Block block(p.view);
  std::vector<double> errors;
  int costlier = 0;
  double worst_cost = 0, rows = 0;
  for (int step = 0; step < robot.steps; ++step) {
    const RandomStream random(3, RandomPurpose::kTest, 0, static_cast<std::uint64_t>(step));
    for (int i = 0; i < m.nu; ++i) {
      const bool limited = m.actuator_ctrllimited[i];
      const double lower = limited ? m.actuator_ctrlrange[2 * i] : -1,
                   upper = limited ? m.actuator_ctrlrange[2 * i + 1] : 1;
      const double share = static_cast<double>(random.uniform(static_cast<std::uint64_t>(i)));
      d.ctrl[i] = static_cast<float>(lower + (upper - lower) * share);
    }
    // Both start from what single precision keeps.
    for (const auto& [values, count] :
         {std::pair{d.qpos, m.nq}, {d.qvel, m.nv}, {d.act, m.na}, {d.qacc_warmstart, m.nv}}) {
      for (mjtSize i = 0; i < count; ++i) values[i] = static_cast<float>(values[i]);
    }
    block.load(p.view, d);
    test::evaluate(p.view, block.space);
    const std::vector<double> qacc = take(block.space.w.qacc, m.nv);
    block.load(p.view, d);
    test::evaluate_and_step(p.view, block.space);
    mj_forward(&m, &d);
    if (d.nefc > 0) {
      const double scale = 1 / (m.stat.meaninertia * m.nv);
      const double ours = cost_of(&m, &d, qacc) * scale, theirs = cost_of(&m, &d, take(d.qacc, m.nv)) * scale;
      const double excess = ours - theirs * kCostRatio - kCostRounding;
      costlier += !(excess <= 0);
      worst_cost = std::max(worst_cost, excess);
    }
    rows += d.nefc;
    // As it was: mj_forward leaves the next warm start.
    for (mjtSize i = 0; i < m.nv; ++i) d.qacc_warmstart[i] = static_cast<float>(d.qacc_warmstart[i]);
    mj_step(&m, &d);
    double scale = 1, most = 0;
    for (int i = 0; i < m.nv; ++i) {
      const double ours = block.space.w.v[i];
      scale = std::max(scale, std::abs(d.qvel[i]));
      most = std::max(most, std::isfinite(ours) ? std::abs(d.qvel[i] - ours) : 1e9);
    }
    errors.push_back(most / scale);
  }
  std::sort(errors.begin(), errors.end());
  const auto at = [&](double share) { return errors[static_cast<std::size_t>(share * (robot.steps - 1))]; };
  const auto beyond = errors.end() - std::upper_bound(errors.begin(), errors.end(), kTolerance);
  RecordProperty("velocity", format("median {:.1e}, of 99 % {:.1e}, worst {:.1e}, {} steps beyond {}", at(0.5),
                                    at(0.99), at(1), beyond, kTolerance));
  RecordProperty("cost",
                 format("{} steps costlier, at most by {:.1e}; {:.1f} rows", costlier, worst_cost, rows / robot.steps));
  EXPECT_LT(at(0.5), kTypical);
  EXPECT_LT(at(1 - kDecidedByRounding / 100), kTolerance) << "median " << at(0.5);
  EXPECT_LE(costlier, kDecidedByRounding / 100 * robot.steps) << "at most by " << worst_cost;
}

INSTANTIATE_TEST_SUITE_P(Robots, PublicRobots, ::testing::ValuesIn(kRobots),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace cohort::sim
