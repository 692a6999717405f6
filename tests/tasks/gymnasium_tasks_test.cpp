// Gymnasium's tasks beside what gymnasium itself did (data/gymnasium_v5.py).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "core/message_of.h"
#include "tasks/gymnasium/gymnasium_task.h"
#include "tasks/npz.h"
#include "tasks/registry.h"
#include "tasks/rollout.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

using sim::Access;
using sim::Field;

constexpr std::size_t kSteps = 200, kEvery = 20, kSeeds = 3;
/// Of each seed, that the batched engine steps from.
constexpr std::size_t kStates = 1000;

/// A task's arrays: of every seed start, first, action, reward, terms, terminated, state, observation; spec.
class Recorded {
 public:
  explicit Recorded(const std::string& name) : name_(name) {}
  const test::NpzArray& array(const std::string& what) const {
    static const auto all = test::read_npz(COHORT_SOURCE_DIR "/tests/tasks/data/gymnasium_v5.npz");
    return all.at(name_ + "/" + what);
  }
  /// The numbers of a seed, or of one of its steps.
  std::span<const double> row(const std::string& what, std::size_t seed) const { return part(array(what), 1, seed); }
  std::span<const double> row(const std::string& what, std::size_t seed, std::size_t step) const {
    const test::NpzArray& a = array(what);
    return part(a, 2, seed * static_cast<std::size_t>(a.shape[1]) + step);
  }

 private:
  static std::span<const double> part(const test::NpzArray& a, std::size_t dims, std::size_t which) {
    std::size_t size = 1;
    for (std::size_t i = dims; i < a.shape.size(); ++i) size *= static_cast<std::size_t>(a.shape[i]);
    return std::span<const double>(a.values).subspan(which * size, size);
  }
  std::string name_;
};

/// Null, with the reason, where gymnasium's models are missing.
std::unique_ptr<Task> made(const std::string& name, const TaskSettings& settings, std::string* missing) {
  try {
    return make_task(name, settings);
  } catch (const Error& e) {
    *missing = e.what();
    return nullptr;
  }
}

double& double_at(const ArrayView& view, std::int64_t env, std::size_t i) {
  return static_cast<double*>(view.data)[env * view.strides[0] + static_cast<std::int64_t>(i) * view.strides[1]];
}
float& float_at(const ArrayView& view, std::int64_t env, std::size_t i) {
  return static_cast<float*>(view.data)[env * view.strides[0] + static_cast<std::int64_t>(i) * view.strides[1]];
}

void write(SceneTask& task, Field field, std::int64_t env, std::span<const double> values) {
  // Fields that a step leaves are read only for those who do not know what they do.
  const Access access = sim::is_derived(field) ? Access::kRead : Access::kWrite;
  const ArrayView view = task.scene().engine().host_view(field, access);
  ASSERT_EQ(view.shape[1], static_cast<std::int64_t>(values.size())) << sim::field_name(field);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (view.type == ElementType::kFloat64) {
      double_at(view, env, i) = values[i];
    } else {
      float_at(view, env, i) = static_cast<float>(values[i]);
    }
  }
}

/// What an environment shows: every field that it observes, then the terms of the reward.
std::vector<std::vector<double>> shown(Task& task, std::size_t env) {
  std::vector<std::vector<double>> all;
  const auto add = [&](ArrayView view) {
    const std::span<const float> values = view.span<float>();
    const std::size_t width = values.size() / static_cast<std::size_t>(task.n_envs());
    const std::span<const float> row = values.subspan(env * width, width);
    all.emplace_back(row.begin(), row.end());
  };
  for (std::size_t f = 0; f < task.spec().observations.size(); ++f) add(task.observation(f));
  add(task.reward_terms());
  return all;
}

/// One step of the only environment.
void step(Task& task, std::span<const double> action) {
  std::vector<float> numbers(action.begin(), action.end());
  task.step(make_view(numbers.data(), {1, static_cast<std::int64_t>(numbers.size())}));
}

/// Puts the only environment where gymnasium stood after its reset.
void start(SceneTask& task, std::span<const double> state) {
  const std::int32_t envs[] = {0};
  const std::uint64_t seeds[] = {0};
  task.reset(envs, seeds);
  const auto nq = static_cast<std::size_t>(task.scene().info().nq),
             nv = static_cast<std::size_t>(task.scene().info().nv);
  ASSERT_EQ(state.size(), nq + 2 * nv);
  write(task, Field::kQpos, 0, state.first(nq));
  write(task, Field::kQvel, 0, state.subspan(nq, nv));
  task.scene().forward();
  write(task, Field::kWarmstart, 0, state.subspan(nq + nv));
  task.read_state();
}

/// Models from another folder, as long as this lives.
class OtherAssets {
 public:
  explicit OtherAssets(const std::string& folder) {
    if (const char* now = std::getenv(kName)) before_ = now;
    ::setenv(kName, folder.c_str(), 1);
  }
  ~OtherAssets() {
    if (before_) {
      ::setenv(kName, before_->c_str(), 1);
    } else {
      ::unsetenv(kName);
    }
  }
  OtherAssets(const OtherAssets&) = delete;
  OtherAssets& operator=(const OtherAssets&) = delete;

 private:
  static constexpr const char* kName = "COHORT_GYMNASIUM_ASSETS";
  std::optional<std::string> before_;
};

class GymnasiumTasks : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Names, GymnasiumTasks,
                         ::testing::Values("Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5",
                                           "InvertedDoublePendulum-v5", "InvertedPendulum-v5", "Pusher-v5",
                                           "Reacher-v5", "Swimmer-v5", "Walker2d-v5"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(GymnasiumTasks, HaveGymnasiumsTimeLimitPeriodAndBounds) {
  std::string missing;
  const auto task = made(GetParam(), {.n_envs = 1}, &missing);
  if (!task) GTEST_SKIP() << missing;
  const Recorded recorded(GetParam());
  const std::vector<double>& spec = recorded.array("spec").values;
  const auto width = static_cast<std::size_t>(task->spec().action.width());
  ASSERT_EQ(spec.size(), 2 + 2 * width);
  EXPECT_EQ(static_cast<double>(task->spec().horizon), spec[0]);
  EXPECT_DOUBLE_EQ(task->spec().control_period, spec[1]);
  for (std::size_t i = 0; i < width; ++i) {
    EXPECT_EQ(static_cast<double>(task->spec().action.low[i]), spec[2 + i]);
    EXPECT_EQ(static_cast<double>(task->spec().action.high[i]), spec[2 + width + i]);
  }
  EXPECT_EQ(task->spec().reward_terms.size(), recorded.array("terms").shape[2]);
}

TEST_P(GymnasiumTasks, AreGymnasiumsOverTwoHundredStepsOnTheEngineMujoco) {
  std::string missing;
  const auto made_task = made(GetParam(), {.n_envs = 1, .engine = "mujoco"}, &missing);
  if (!made_task) GTEST_SKIP() << missing;
  auto& task = dynamic_cast<SceneTask&>(*made_task);
  const Recorded recorded(GetParam());
  // Rewards and observations are given as floats, which are rounded by 2^-24 of themselves.
  constexpr double kRounding = 6e-8, kExact = 1e-9;
  // Gymnasium sums the squares of actions, which are floats, as floats.
  constexpr double kRoundings = 4 * kRounding;
  double largest = 0;
  for (std::size_t seed = 0; seed < kSeeds; ++seed) {
    start(task, recorded.row("start", seed));
    const auto compare = [&](std::span<const double> observation, const std::string& when) {
      std::vector<std::vector<double>> fields = shown(task, 0);
      fields.pop_back();
      std::size_t i = 0;
      for (const std::vector<double>& field : fields) {
        for (const double ours : field) {
          ASSERT_NEAR(ours, observation[i], kExact + kRounding * std::abs(observation[i])) << when << ", number " << i;
          ++i;
        }
      }
      ASSERT_EQ(i, observation.size());
    };
    compare(recorded.row("first", seed), "after the reset");
    for (std::size_t k = 0; k < kSteps; ++k) {
      const std::string when = format("seed {}, step {}", seed, k);
      step(task, recorded.row("action", seed, k));
      const std::span<const double> terms = recorded.row("terms", seed, k);
      double sum = 0;
      for (std::size_t i = 0; i < terms.size(); ++i) {
        sum += std::abs(terms[i]);
        ASSERT_NEAR(static_cast<double>(task.reward_terms().span<float>()[i]), terms[i],
                    kExact + kRoundings * std::abs(terms[i]))
            << when << ", " << task.spec().reward_terms[i];
      }
      ASSERT_NEAR(static_cast<double>(task.reward().span<float>()[0]), recorded.row("reward", seed, k)[0],
                  kExact + kRoundings * sum)
          << when;
      ASSERT_EQ(task.terminated().span<std::uint8_t>()[0] != 0, recorded.row("terminated", seed, k)[0] != 0) << when;
      if ((k + 1) % kEvery != 0) continue;
      const EnvState now = task.state(0);
      const std::span<const double> state = recorded.row("state", seed, k / kEvery);
      for (std::size_t i = 0; i < state.size(); ++i) {
        const double ours = i < now.qpos.size() ? now.qpos[i] : now.qvel[i - now.qpos.size()];
        largest = std::max(largest, std::abs(ours - state[i]));
      }
      compare(recorded.row("observation", seed, k / kEvery), when);
    }
  }
  EXPECT_LE(largest, kExact);
  std::printf("%s: 3 seeds of 200 steps, states within %.1e\n", GetParam(), largest);
}

/// How far the batched engine is after one step from each of 3,000 states that `exact`, on the engine `mujoco`, comes by.
struct Distances {
  std::vector<double> farthest;  ///< of each observed field, then of the reward's terms
  std::size_t far = 0, steps = 0;
};

/// Both tasks do what was recorded, five times over. The distance of two rows is over the row's largest number, at least 1. ignored: of
/// the fields, by number.
Distances step_by_step(SceneTask& exact, SceneTask& ours, const Recorded& recorded, std::vector<std::size_t> ignored) {
  std::vector<Field> taken = ours.scene().options().step_leaves;
  for (const Field f : {Field::kQpos, Field::kQvel, Field::kWarmstart}) taken.push_back(f);
  const auto width = static_cast<std::size_t>(ours.spec().action.width());
  const std::size_t fields = ours.spec().observations.size();
  std::vector<std::int32_t> envs(kStates);
  std::iota(envs.begin(), envs.end(), 0);
  std::vector<float> actions(kStates * width);
  Distances found{.farthest = std::vector<double>(fields + 1)};
  for (std::size_t seed = 0; seed < kSeeds; ++seed) {
    start(exact, recorded.row("start", seed));
    ours.reset(envs, consecutive_seeds(0, kStates));
    std::vector<std::vector<std::vector<double>>> expected;
    std::vector<bool> over;
    // The environment k begins where gymnasium's step k does.
    for (std::size_t k = 0; k < kStates; ++k) {
      for (const Field field : taken) {
        const ArrayView view = exact.scene().engine().host_view(field, Access::kRead);
        std::vector<double> values(static_cast<std::size_t>(view.shape[1]));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = double_at(view, 0, i);
        write(ours, field, static_cast<std::int64_t>(k), values);
      }
      const std::span<const double> action = recorded.row("action", seed, k % kSteps);
      for (std::size_t i = 0; i < width; ++i) actions[k * width + i] = static_cast<float>(action[i]);
      step(exact, action);
      expected.push_back(shown(exact, 0));
      over.push_back(exact.terminated().span<std::uint8_t>()[0] != 0);
    }
    ours.read_state();
    ours.step(make_view(actions.data(), {static_cast<std::int64_t>(kStates), static_cast<std::int64_t>(width)}));
    for (std::size_t k = 0; k < kStates; ++k) {
      const std::vector<std::vector<double>> seen = shown(ours, k);
      bool far = false;
      for (std::size_t f = 0; f < seen.size(); ++f) {
        double scale = 1, error = 0;
        for (std::size_t i = 0; i < seen[f].size(); ++i) {
          scale = std::max(scale, std::abs(expected[k][f][i]));
          error = std::max(error, std::abs(seen[f][i] - expected[k][f][i]));
        }
        found.farthest[f] = std::max(found.farthest[f], error / scale);
        if (std::find(ignored.begin(), ignored.end(), f) == ignored.end()) far = far || error > 1e-4 * scale;
      }
      found.far += far;
      ++found.steps;
      EXPECT_EQ(ours.terminated().span<std::uint8_t>()[k] != 0, over[k]) << "seed " << seed << ", step " << k;
    }
  }
  std::printf("%s: %zu steps, %zu beyond 1e-4; the farthest:", ours.spec().name.c_str(), found.steps, found.far);
  for (std::size_t f = 0; f <= fields; ++f)
    std::printf(" %s %.1e", f < fields ? ours.spec().observations[f].name.c_str() : "reward", found.farthest[f]);
  std::printf("\n");
  return found;
}

/// Where a contact begins within a step, MuJoCo itself is up to 1.6e-2 away after a perturbation of 1e-7 of a humanoid's
/// state: contacts' forces begin with the velocities, all at once.
constexpr double kBeginningContact = 0.1;

/// 1e-4 in all but this share of the steps, and at most so far in those.
void expect_near(const Distances& found, const std::vector<std::size_t>& ignored, double share = 1e-3,
                 double most = 1e-3) {
  EXPECT_LE(static_cast<double>(found.far), share * static_cast<double>(found.steps));
  for (std::size_t f = 0; f < found.farthest.size(); ++f) {
    if (std::find(ignored.begin(), ignored.end(), f) == ignored.end()) EXPECT_LE(found.farthest[f], most) << f;
  }
}

TEST_P(GymnasiumTasks, AreGymnasiumsStepByStepOnTheBatchedEngine) {
  std::string missing;
  // Gymnasium to the last bit, by the test above.
  const auto exact = made(GetParam(), {.n_envs = 1, .engine = "mujoco"}, &missing);
  const auto ours = made(GetParam(), {.n_envs = kStates}, &missing);
  if (!exact || !ours) GTEST_SKIP() << missing;
  auto &from = dynamic_cast<SceneTask&>(*exact), &task = dynamic_cast<SceneTask&>(*ours);
  if (ours->spec().name != "Humanoid-v5") {
    expect_near(step_by_step(from, task, Recorded(GetParam()), {}), {});
    return;
  }
  // PGS, which the humanoid's file asks for, ends before it has converged: of the contacts' forces more often than not,
  // of velocities now and then.
  const std::vector<std::size_t> forces{ours->observation_index("cfrc_ext"), ours->spec().observations.size()};
  expect_near(step_by_step(from, task, Recorded(GetParam()), forces), forces, 5e-3, kBeginningContact);
}

TEST(GymnasiumHumanoid, HasTheForcesOfNewtonsMethodOnTheBatchedEngine) {
  std::string missing;
  const auto ours = made("Humanoid-v5", {.n_envs = kStates}, &missing);
  if (!ours) GTEST_SKIP() << missing;
  EXPECT_NE(ours->spec().summary.find("Newton"), std::string::npos);
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / format("cohort_newton_{}", getpid());
  std::filesystem::create_directories(folder);
  std::string model = gymnasium_model({.name = "Humanoid-v5", .file = "humanoid.xml", .summary = ""});
  const std::size_t at = model.find("PGS");
  ASSERT_NE(at, std::string::npos);
  model.replace(at, 3, "Newton");
  write_file_atomically(folder / "humanoid.xml", model);
  const OtherAssets other(folder.string());
  const auto exact = make_task("Humanoid-v5", {.n_envs = 1, .engine = "mujoco"});
  expect_near(
      step_by_step(dynamic_cast<SceneTask&>(*exact), dynamic_cast<SceneTask&>(*ours), Recorded("Humanoid-v5"), {}), {},
      1e-3, kBeginningContact);
  std::filesystem::remove_all(folder);
}

/// The reset noise of all coordinates and velocities together, by gymnasium's formulas.
struct Noise {
  double position, velocity;
  bool normal;  ///< velocities; uniform otherwise, as all positions are
};
Noise noise_of(const std::string& name) {
  if (name == "HalfCheetah-v5" || name == "Ant-v5" || name == "InvertedDoublePendulum-v5") return {0.1, 0.1, true};
  if (name == "Swimmer-v5") return {0.1, 0.1, false};
  if (name == "InvertedPendulum-v5" || name == "Humanoid-v5") return {0.01, 0.01, false};
  if (name == "Reacher-v5") return {0.1, 0.005, false};
  if (name == "Pusher-v5") return {0, 0.005, false};
  return {5e-3, 5e-3, false};
}

TEST_P(GymnasiumTasks, TheResetNoiseHasGymnasiumsDistribution) {
  constexpr int kEnvs = 256;
  std::string missing;
  const auto task = made(GetParam(), {.n_envs = kEnvs}, &missing);
  if (!task) GTEST_SKIP() << missing;
  auto& scene_task = dynamic_cast<SceneTask&>(*task);
  std::vector<std::int32_t> envs(kEnvs);
  std::iota(envs.begin(), envs.end(), 0);
  task->reset(envs, consecutive_seeds(0, kEnvs));
  const std::string name = GetParam();
  const Noise noise = noise_of(name);
  const std::vector<double>& qpos0 = scene_task.scene().info().qpos0;
  // The target's and the cylinder's coordinates, which have a distribution of their own.
  const std::size_t others = name == "Reacher-v5" ? 2 : name == "Pusher-v5" ? 4 : 0;
  const auto check = [&](double scale, bool normal, bool positions) {
    double squares = 0, sum = 0, largest = 0, fourth = 0;
    std::size_t count = 0;
    for (int env = 0; env < kEnvs; ++env) {
      const EnvState now = scene_task.state(env);
      const std::span<const double> all = positions ? now.qpos : now.qvel;
      for (std::size_t i = 0; i + others < all.size(); ++i) {
        const double x = all[i] - (positions ? qpos0[i] : 0.0);
        sum += x, squares += x * x, fourth += x * x * x * x, largest = std::max(largest, std::abs(x));
        ++count;
      }
    }
    const double n = static_cast<double>(count), deviation = normal ? scale : scale / std::sqrt(3.0);
    EXPECT_NEAR(sum / n, 0, 5 * deviation / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(squares / n), deviation, 5 * deviation / std::sqrt(n));
    if (scale == 0) return;
    // 3 of a normal distribution, 1.8 of a uniform one.
    EXPECT_NEAR(fourth * n / (squares * squares), normal ? 3.0 : 1.8, 0.8);
    if (!normal) EXPECT_LE(largest, scale * (1 + 1e-5));
  };
  check(noise.position, false, true);
  check(noise.velocity, noise.normal, false);
  for (int env = 0; env < kEnvs; ++env) {
    const EnvState now = scene_task.state(env);
    for (std::size_t i = now.qvel.size() - others; i < now.qvel.size(); ++i) EXPECT_EQ(now.qvel[i], 0);
    const std::span<const double> q = now.qpos;
    if (name == "Reacher-v5") EXPECT_LT(std::hypot(q[2], q[3]), 0.2);
    if (name != "Pusher-v5") continue;
    EXPECT_GT(std::hypot(q[7], q[8]), 0.17);
    EXPECT_TRUE(q[7] <= 0 && q[7] >= -0.3001 && std::abs(q[8]) <= 0.2001) << q[7] << " " << q[8];
    EXPECT_TRUE(q[9] == 0 && q[10] == 0);
  }
}

/// What an environment shows in 40 steps of its own, while others begin anew.
std::vector<std::vector<std::vector<double>>> episode(Task& task, std::int32_t env, int others_every) {
  const auto n = static_cast<std::size_t>(task.n_envs()), width = static_cast<std::size_t>(task.spec().action.width());
  std::vector<std::int32_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::uint64_t> seeds = consecutive_seeds(100, static_cast<int>(n));
  seeds[static_cast<std::size_t>(env)] = 7;
  task.reset(all, seeds);
  std::vector<float> actions(n * width);
  std::vector<std::vector<std::vector<double>>> seen{shown(task, static_cast<std::size_t>(env))};
  for (int k = 0; k < 40; ++k) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto j = static_cast<double>(i % width);
      actions[i] = task.spec().action.high[i % width] * static_cast<float>(std::sin(0.3 * k + j));
    }
    task.step(make_view(actions.data(), {static_cast<std::int64_t>(n), static_cast<std::int64_t>(width)}));
    seen.push_back(shown(task, static_cast<std::size_t>(env)));
    if (n == 1 || k % others_every != 0) continue;
    const std::int32_t other = (env + 1) % static_cast<std::int32_t>(n);
    const std::uint64_t seed = 1000 + static_cast<std::uint64_t>(k);
    task.reset({&other, 1}, {&seed, 1});
  }
  return seen;
}

TEST_P(GymnasiumTasks, HaveEpisodesOfTheSameBitsWhateverTheOthersDo) {
  std::string missing;
  const auto alone = made(GetParam(), {.n_envs = 1}, &missing);
  const auto among = made(GetParam(), {.n_envs = 21, .threads = 2}, &missing);
  if (!alone || !among) GTEST_SKIP() << missing;
  EXPECT_EQ(episode(*alone, 0, 1), episode(*among, 17, 3));
}

TEST(GymnasiumModels, AreAskedForWithTheCommandThatBringsThem) {
  const OtherAssets other("/nowhere");
  const std::string text = message_of([] { make_task("Ant-v5", {}); });
  EXPECT_NE(text.find("`scripts/setup` brings it"), std::string::npos) << text;
  EXPECT_NE(text.find("/nowhere/ant.xml"), std::string::npos) << text;
}

}  // namespace
}  // namespace cohort::tasks
