// Tasks of files on a device beside the same on the CPU: the same bits over episodes that begin anew, and nothing copied
// to the host in a control step. The devices are the host's memory (tests/sim/host_cuda).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/philox.h"
#include "sim/host_cuda/host_cuda.h"
#include "support/process.h"
#include "tasks/on_device.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

const std::string kExamples = std::string(COHORT_SOURCE_DIR) + "/examples/tasks/";

/// A dog on uneven ground with something of everything that draws, remembers or differs between environments.
constexpr const char* kRandomized = R"yaml(
scene:
  robot: {mjcf: library:/quadruped.xml, joint_pos: {".*_hip": 0.8, ".*_knee": -1.5}}
  ground:
    terrain:
      {size: [4, 4], num_rows: 3, num_cols: 2, border_width: 2, horizontal_scale: 0.1,
       sub_terrains: [{type: random_uniform, noise_range: [0.0, 0.04], noise_step: 0.01}]}
simulation: {timestep: 0.005, decimation: 2, episode_length_s: 0.3}
actions: {joint_pos: {type: joint_position, scale: 0.8, delay: [0, 2]}}
commands: {twist: {resampling_time_range: [0.05, 0.1], ranges: {lin_vel_x: [-1, 1], ang_vel_z: [-1, 1]}}}
observations:
  policy:
    base_lin_vel: {noise: 0.1}
    base_ang_vel: {noise: {gaussian: 0.2}, scale: 0.5}
    joint_pos_rel: {bias: 0.05, delay: [0, 2]}
    joint_vel_rel: {history: 3, noise: 1.5}
    generated_commands: {command_name: twist}
    scan: {term: height_scan, size: [0.4, 0.2], resolution: 0.2}
    touches: contact(".*_shin")
    biases: encoder_bias
    late: action_delay
  critic:
    forces: contact_force(".*_shin")
rewards:
  track_linear_velocity: {std: 0.5, weight: 2}
  joint_torques_l2: -1.0e-4
  air: {formula: 'sum(held(not contact(".*_shin")))'}
metrics: {speed: norm(base.linear_velocity), length: {formula: step, reduce: last}}
terminations:
  tilted: {term: bad_orientation, limit_angle: 1.0}
success: last_step
events:
  place: {type: reset_root_state_uniform, pose_range: {z: [0.0, 0.1], yaw: [-3, 3]}, velocity_range: {z: [0, 0.3], yaw: [-1, 1]}}
  joints: {type: reset_joints_by_offset, position_range: [-0.2, 0.2], velocity_range: [-1, 1]}
  push: {type: push_by_setting_velocity, interval_range_s: [0.05, 0.1], velocity_range: {x: [-0.5, 0.5]}}
  mass: {type: body_mass, links: ".*", operation: scale, ranges: [0.8, 1.2]}
  friction: {type: geom_friction, geoms: ".*", operation: scale, ranges: [0.5, 1.5]}
  feet: {type: geom_size, links: ".*_shin", ranges: [0.8, 1.3]}
  shift: {type: geom_pos, links: ".*_shin", operation: add, ranges: [-0.01, 0.01]}
  damping: {type: joint_damping, joints: ".*", operation: scale, ranges: [0.5, 2]}
  gusts: {type: apply_external_force_torque, links: ".*_shin", force_range: [-5, 5], mode: interval, interval_range_s: [0.04, 0.08]}
  encoder_bias: {bias_range: [-0.01, 0.01]}
  action_delay: {delay_range: [0, 2]}
curriculum: {terrain_levels: {max_init_terrain_level: 2}}
)yaml";

class TaskOnDevice : public ::testing::Test {
 protected:
  std::string randomized() {
    const std::filesystem::path path = folder_.path() / "randomized.yaml";
    std::ofstream(path) << kRandomized;
    return path.string();
  }
  testing::TemporaryFolder folder_;
};

std::unique_ptr<Task> make(const std::string& file, int n_envs, bool device, std::vector<std::string> overrides = {}) {
  TaskSettings settings{.n_envs = n_envs, .overrides = std::move(overrides), .learning = true};
  if (device) settings.device = {DeviceKind::kCuda, 1};
  return make_task(file, settings);
}

std::vector<float> actions_of(Task& task, std::uint64_t moment) {
  const ActionSpec& spec = task.spec().action;
  std::vector<float> actions;
  for (int env = 0; env < task.n_envs(); ++env) {
    const RandomStream random(9, RandomPurpose::kAction, static_cast<std::uint64_t>(env), moment);
    for (std::size_t i = 0; i < spec.names.size(); ++i)
      // Some lie beyond their bounds.
      actions.push_back(spec.low[i] + (spec.high[i] - spec.low[i]) * (1.2f * random.uniform(i) - 0.1f));
  }
  return actions;
}

void step(Task& task, std::vector<float> actions) {
  task.step(make_view(actions.data(), {task.n_envs(), task.spec().action.width()}));
}

void begin(Task& task, std::span<const std::int32_t> envs, std::uint64_t first_seed) {
  std::vector<std::uint64_t> seeds;
  for (const std::int32_t env : envs) seeds.push_back(first_seed + static_cast<std::uint64_t>(env));
  task.reset(envs, seeds);
}

std::vector<std::int32_t> all_of(const Task& task) {
  std::vector<std::int32_t> envs;
  for (int env = 0; env < task.n_envs(); ++env) envs.push_back(env);
  return envs;
}

void append(std::vector<std::uint8_t>& bytes, const ArrayView& view) {
  const auto* from = static_cast<const std::uint8_t*>(view.data);
  bytes.insert(bytes.end(), from, from + view.bytes());
}

/// Everything that a task shows of a step.
std::vector<std::uint8_t> shown(Task& task) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t f = 0; f < task.spec().observations.size(); ++f) append(bytes, task.observation(f));
  for (const ArrayView& view : {task.reward(), task.reward_terms(), task.metrics(), task.success(), task.terminated(),
                                task.truncated(), task.broken()})
    append(bytes, view);
  return bytes;
}

/// Those whose episodes are over.
std::vector<std::int32_t> over(Task& task) {
  std::vector<std::int32_t> envs;
  const auto terminated = task.terminated().span<std::uint8_t>(), truncated = task.truncated().span<std::uint8_t>();
  for (std::size_t e = 0; e < terminated.size(); ++e)
    if (terminated[e] || truncated[e]) envs.push_back(static_cast<std::int32_t>(e));
  return envs;
}

void expect_equal_states(Task& a, Task& b) {
  const TaskState x = a.save(), y = b.save();
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].name, y[i].name);
    EXPECT_TRUE(x[i].bytes == y[i].bytes) << x[i].name;
  }
}

/// Plays a task on both; gives how many episodes have ended.
int expect_equal_episodes(const std::string& file, int n_envs, int steps,
                          const std::vector<std::string>& overrides = {}) {
  const auto here = make(file, n_envs, false, overrides), there = make(file, n_envs, true, overrides);
  EXPECT_EQ(here->on_device(), nullptr);
  EXPECT_NE(there->on_device(), nullptr);
  for (Task* task : {here.get(), there.get()}) begin(*task, all_of(*task), 100);
  EXPECT_TRUE(shown(*here) == shown(*there)) << "at the beginning";
  int ended = 0;
  for (int s = 0; s < steps; ++s) {
    std::vector<float> actions = actions_of(*here, static_cast<std::uint64_t>(s));
    if (s == 5) actions[0] = std::numeric_limits<float>::quiet_NaN();
    for (Task* task : {here.get(), there.get()}) step(*task, actions);
    EXPECT_TRUE(shown(*here) == shown(*there)) << "step " << s;
    const std::vector<std::int32_t> done = over(*here);
    ended += static_cast<int>(done.size());
    if (done.empty()) continue;
    for (Task* task : {here.get(), there.get()}) begin(*task, done, 1000 * static_cast<std::uint64_t>(s + 1));
    EXPECT_TRUE(shown(*here) == shown(*there)) << "after the reset of step " << s;
    if (::testing::Test::HasFailure()) break;
  }
  expect_equal_states(*here, *there);
  return ended;
}

TEST_F(TaskOnDevice, TheCartPoleHasTheBitsOfTheCpuOverEpisodes) {
  EXPECT_GE(expect_equal_episodes(kExamples + "cartpole.yaml", 33, 40, {"horizon=15"}), 66);
}

TEST_F(TaskOnDevice, TheDogHasTheBitsOfTheCpuOverEpisodes) {
  EXPECT_GE(expect_equal_episodes(kExamples + "quadruped.yaml", 5, 24, {"horizon=9"}), 10);
}

TEST_F(TaskOnDevice, AnArmWithAFrameToMoveAndAMarkerHasTheBitsOfTheCpuOverEpisodes) {
  EXPECT_GE(expect_equal_episodes("reach", 5, 16, {"horizon=6"}), 10);
}

TEST_F(TaskOnDevice, SparseAndScaledRewardsAreThoseOfTheCpu) {
  EXPECT_GE(expect_equal_episodes(kExamples + "cartpole.yaml", 3, 12, {"horizon=5", "reward=sparse"}), 6);
  EXPECT_GE(expect_equal_episodes(kExamples + "cartpole.yaml", 3, 12, {"horizon=5", "reward_scales=[upright:0.3]"}), 6);
}

TEST_F(TaskOnDevice, RandomisedEpisodesOnTerrainHaveTheBitsOfTheCpu) {
  EXPECT_GE(expect_equal_episodes(randomized(), 7, 36), 7);
}

TEST_F(TaskOnDevice, ASavedStateGoesOnHereAndThere) {
  const std::string file = randomized();
  const auto here = make(file, 4, false), there = make(file, 4, true), later = make(file, 4, true);
  for (Task* task : {here.get(), there.get()}) begin(*task, all_of(*task), 7);
  for (int s = 0; s < 5; ++s) {
    for (Task* task : {here.get(), there.get()}) step(*task, actions_of(*here, static_cast<std::uint64_t>(s)));
  }
  later->load(here->save(), "the CPU's state");
  EXPECT_TRUE(shown(*later) == shown(*there));
  for (int s = 5; s < 12; ++s) {
    for (Task* task : {there.get(), later.get()}) step(*task, actions_of(*here, static_cast<std::uint64_t>(s)));
    EXPECT_TRUE(shown(*later) == shown(*there)) << "step " << s;
  }
  expect_equal_states(*there, *later);
}

/// Bytes that a step, and a reset of some environments, copy to the host and from it.
struct Copied {
  long long down = 0, up = 0;
};
template <class F>
Copied copied_in(const F& f) {
  const host_cuda::Counts before = host_cuda::counts(1);
  f();
  const host_cuda::Counts after = host_cuda::counts(1);
  return {after.downloaded - before.downloaded, after.uploaded - before.uploaded};
}

TEST_F(TaskOnDevice, AControlStepCopiesNothingToTheHostAndAResetOnlyWhatItsEnvironmentsBeginWith) {
  const std::string file = randomized();
  std::vector<long long> of_reset;
  for (const int n : {40, 80}) {
    const auto task = make(file, n, true);
    begin(*task, all_of(*task), 1);
    const std::vector<float> actions = actions_of(*task, 0);
    step(*task, actions);
    // Gusts, which the host draws, come from step 4 on.
    for (int s = 0; s < 2; ++s) {
      const Copied step_copies = copied_in([&] { step(*task, actions); });
      EXPECT_EQ(step_copies.down, 0);
      EXPECT_EQ(step_copies.up, static_cast<long long>(actions.size() * sizeof(float)));
    }
    const std::vector<std::int32_t> some{3, 39};
    const Copied reset = copied_in([&] { begin(*task, some, 50); });
    // Where the robots stand and what they were told, for the curriculum of levels: 4 numbers each.
    EXPECT_EQ(reset.down, static_cast<long long>(some.size() * 4 * sizeof(float)));
    of_reset.push_back(reset.up);
  }
  EXPECT_EQ(of_reset[0], of_reset[1]);  // whatever the number of environments
  EXPECT_GT(of_reset[0], 0);
}

TEST_F(TaskOnDevice, WithoutItThePhysicsAloneIsOnTheDevice) {
  const auto there = make(kExamples + "cartpole.yaml", 4, true),
             apart = make(kExamples + "cartpole.yaml", 4, true, {"on_device=false"});
  EXPECT_EQ(apart->on_device(), nullptr);
  for (Task* task : {there.get(), apart.get()}) {
    begin(*task, all_of(*task), 3);
    for (int s = 0; s < 3; ++s) step(*task, actions_of(*task, static_cast<std::uint64_t>(s)));
  }
  EXPECT_TRUE(shown(*there) == shown(*apart));
}

TEST_F(TaskOnDevice, ActionsInTheDevicesMemoryAreNotCopied) {
  const auto there = make(kExamples + "quadruped.yaml", 4, true), same = make(kExamples + "quadruped.yaml", 4, true);
  for (Task* task : {there.get(), same.get()}) begin(*task, all_of(*task), 3);
  // The observations are as good numbers as any.
  OnDevice& device = *there->on_device();
  ArrayView actions = device.observations();
  const std::int64_t width = there->spec().action.width();
  std::vector<float> numbers(static_cast<std::size_t>(4 * width));
  std::vector<float> rows;
  for (int e = 0; e < 4; ++e)
    for (std::size_t f = 0; f < there->spec().observations.size(); ++f) {
      const auto own = static_cast<std::size_t>(there->spec().observations[f].elements());
      const auto row = there->observation(f).span<float>().subspan(static_cast<std::size_t>(e) * own, own);
      rows.insert(rows.end(), row.begin(), row.end());
    }
  std::copy_n(rows.begin(), numbers.size(), numbers.begin());
  actions.shape = {4, width}, actions.strides = {width, 1};
  const Copied copies = copied_in([&] { there->step(actions); });
  EXPECT_EQ(copies.up, 0);
  EXPECT_EQ(copies.down, 0);
  step(*same, numbers);
  EXPECT_TRUE(shown(*there) == shown(*same));
}

}  // namespace
}  // namespace cohort::tasks
