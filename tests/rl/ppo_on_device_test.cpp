// PPO on tasks that compute on a device, beside the same on the CPU. The devices are the host's memory
// (tests/sim/host_cuda), which LibTorch does not see: what it would read there, it is given as copies, which are not
// counted.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/record_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/files.h"
#include "rl/device_tensors.h"
#include "rl/environments.h"
#include "rl/runner.h"
#include "sim/backends/cuda/runner.h"
#include "sim/host_cuda/host_cuda.h"
#include "support/process.h"
#include "tasks/device_episodes.h"
#include "tasks/on_device.h"
#include "tasks/registry.h"
#include "tensors/convert.h"
#include "weights/weights.h"

namespace cohort::rl {
namespace {

const std::string kExamples = std::string(COHORT_SOURCE_DIR) + "/examples/tasks/";

class CopiedTensors final : public DeviceTensors {
 public:
  bool sees(DeviceId device) const override { return device.kind == DeviceKind::kCuda; }
  at::Tensor read(const ArrayView& view) const override {
    at::Tensor copy = at::empty(std::vector<std::int64_t>(view.shape.begin(), view.shape.begin() + view.rank),
                                tensors::to_scalar_type(view.type));
    EXPECT_EQ(sim::cuda::download(view.device.index, view.stream, copy.mutable_data_ptr(), view.data, view.bytes()),
              nullptr);
    copied += static_cast<long long>(view.bytes());
    return copy;
  }
  void write_before(const ArrayView&) const override {}
  mutable long long copied = 0;
};

std::unique_ptr<tasks::Task> make(const std::string& task, int n_envs, bool device,
                                  std::vector<std::string> overrides) {
  tasks::TaskSettings settings{.n_envs = n_envs, .overrides = std::move(overrides)};
  if (device) settings.device = {DeviceKind::kCuda, 1};
  return tasks::make_task(task.find('/') == std::string::npos ? kExamples + task : task, settings);
}

PolicySettings small_policy() {
  PolicySettings policy;
  policy.actor_hidden_dims = policy.critic_hidden_dims = {16, 16};
  return policy;
}

struct Training {
  Training(const std::string& name, int n_envs, bool device, const std::vector<std::string>& overrides)
      : task(make(name, n_envs, device, overrides)),
        runner(*task, RunnerSettings{.seed = 3, .num_steps_per_env = 12, .init_at_random_ep_len = true}, {},
               small_policy(), {.device_tensors = &tensors}) {}
  CopiedTensors tensors;
  std::unique_ptr<tasks::Task> task;
  PpoRunner runner;
};

void expect_same(const weights::NamedTensors& a, const weights::NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
  }
}

void expect_same_training(const std::string& task, int n_envs, const std::vector<std::string>& overrides) {
  Training here(task, n_envs, false, overrides), there(task, n_envs, true, overrides);
  for (int i = 0; i < 3; ++i) {
    const Iteration a = here.runner.iterate(), b = there.runner.iterate();
    const Rollout &x = here.runner.rollout(), &y = there.runner.rollout();
    for (const auto field : {&Rollout::observations, &Rollout::actions, &Rollout::means, &Rollout::log_probs,
                             &Rollout::values, &Rollout::rewards, &Rollout::dones, &Rollout::returns})
      EXPECT_TRUE(at::equal(x.*field, y.*field));
    EXPECT_EQ(a.losses.loss, b.losses.loss);
    EXPECT_GT(a.episodes.ended, 0);
    EXPECT_EQ(a.episodes.ended, b.episodes.ended);
    EXPECT_EQ(a.episodes.mean_return, b.episodes.mean_return);
    EXPECT_EQ(a.episodes.mean_length, b.episodes.mean_length);
    EXPECT_EQ(a.episodes.success_rate, b.episodes.success_rate);
    ASSERT_EQ(a.reward_terms.size(), b.reward_terms.size());
    for (std::size_t t = 0; t < a.reward_terms.size(); ++t)
      EXPECT_NEAR(a.reward_terms[t].second, b.reward_terms[t].second, 1e-9) << "sums in another order";
    ASSERT_EQ(a.metrics.size(), b.metrics.size());
    for (std::size_t m = 0; m < a.metrics.size(); ++m) EXPECT_NEAR(a.metrics[m].second, b.metrics[m].second, 1e-9);
  }
  expect_same(weights::module_state(*here.runner.networks()), weights::module_state(*there.runner.networks()));
  expect_same(here.runner.environments().state(), there.runner.environments().state());
  const Environments::Payments a = here.runner.environments().payments(), b = there.runner.environments().payments();
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.successes, b.successes);
  EXPECT_EQ(a.ended, b.ended);
  EXPECT_NEAR(a.without_success, b.without_success, 1e-6);
  EXPECT_NEAR(a.with_success, b.with_success, 1e-6);
}

TEST(PpoOnDevice, LearnsTheCartPoleWithTheBitsOfTheCpu) {
  expect_same_training("cartpole.yaml", 16, {"horizon=9"});
}

TEST(PpoOnDevice, MetricsAreThoseOfTheCpu) {
  const cohort::testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "metrics.yaml") << read_file(kExamples + "cartpole.yaml") << R"yaml(
metrics:
  speed: abs(joint_vel("hinge"))
  place: {formula: 'joint_pos("slider")', reduce: last}
)yaml";
  const std::string task = (folder.path() / "metrics.yaml").string();
  Training of_device(task, 16, true, {"horizon=9"});
  EXPECT_EQ(of_device.runner.iterate().metrics.size(), 2u);
  expect_same_training(task, 16, {"horizon=9"});
}

TEST(PpoOnDevice, LearnsTheDogWithTheBitsOfTheCpu) {
  expect_same_training("quadruped.yaml", 16, {"horizon=9"});
}

TEST(PpoOnDevice, ResumesOnTheDeviceWhatTheCpuHasBegun) {
  Training here("cartpole.yaml", 16, false, {"horizon=9"}), there("cartpole.yaml", 16, true, {"horizon=9"});
  here.runner.iterate();
  there.runner.resume(here.runner.checkpoint(), "the CPU's");
  here.runner.iterate(), there.runner.iterate();
  expect_same(weights::module_state(*here.runner.networks()), weights::module_state(*there.runner.networks()));
  expect_same(here.runner.environments().state(), there.runner.environments().state());
}

TEST(PpoOnDevice, AControlStepCopiesToTheHostOnlyWhoseEpisodesAreOver) {
  const int n = 16, steps = 10;
  const auto task = make("quadruped.yaml", n, true, {"horizon=4"});
  const CopiedTensors tensors;
  Environments environments(*task, 5, 0, true, tensors);
  const at::Tensor actions = at::zeros({n, task->spec().action.width()});
  environments.step(actions);
  const long long before = host_cuda::counts(1).downloaded, excused = tensors.copied;
  std::int64_t over = 0;
  for (int s = 0; s < steps; ++s) {
    environments.action_noise(task->spec().action.width(), s);
    over += environments.step(actions).dones.sum().item<std::int64_t>();
  }
  EXPECT_GE(over, 2 * n);
  EXPECT_EQ(host_cuda::counts(1).downloaded - before - (tensors.copied - excused), n * steps);
}

TEST(PpoOnDevice, ARolloutAsksNoTensorForANumberInAControlStep) {
  // The same updates with more control steps: numbers are asked for as often.
  std::vector<std::int64_t> asked;
  for (const int steps : {4, 12}) {
    const auto task = make("cartpole.yaml", 16, false, {"horizon=3"});
    PpoRunner runner(*task, RunnerSettings{.seed = 3, .num_steps_per_env = steps}, {}, small_policy());
    static std::int64_t count;
    count = 0;
    const at::CallbackHandle handle = at::addGlobalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& of) -> std::unique_ptr<at::ObserverContext> {
          const std::string name = of.name();
          if (name == "aten::_local_scalar_dense" || name == "aten::nonzero") ++count;
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
    runner.iterate();
    at::removeCallback(handle);
    asked.push_back(count);
  }
  EXPECT_GT(asked[0], 0) << "the update asks for some";
  EXPECT_EQ(asked[0], asked[1]);
}

TEST(PpoOnDevice, AnUpdateAsksNoTensorForANumberInAMinibatch) {
  // With the networks that a device has (elsewhere selu too is computed outside of the fused layers): more minibatches
  // ask for numbers as often as few, and so do their copies to the host. Adam's kernel of a CPU reads its rate there.
  static thread_local int in_adam;
  static std::int64_t asked;
  std::vector<std::int64_t> of_epochs;
  for (const int epochs : {1, 4}) {
    const auto task = make("cartpole.yaml", 16, false, {"horizon=3"});
    PolicySettings policy = small_policy();
    policy.activation = "selu";
    PpoSettings ppo;
    ppo.num_learning_epochs = epochs;
    PpoRunner runner(*task, RunnerSettings{.seed = 3, .num_steps_per_env = 8}, ppo, policy);
    in_adam = 0, asked = 0;
    struct Leaves : at::ObserverContext {};
    const at::CallbackHandle handle = at::addGlobalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& of) -> std::unique_ptr<at::ObserverContext> {
              const std::string name = of.name();
              if (name == "aten::_fused_adam_") {
                ++in_adam;
                return std::make_unique<Leaves>();
              }
              if (in_adam == 0 && (name == "aten::_local_scalar_dense" || name == "aten::nonzero")) ++asked;
              return nullptr;
            },
            [](const at::RecordFunction&, at::ObserverContext* adam) {
              if (adam != nullptr) --in_adam;
            })
            .scopes({at::RecordScope::FUNCTION}));
    runner.iterate();
    at::removeCallback(handle);
    of_epochs.push_back(asked);
  }
  EXPECT_EQ(of_epochs[0], of_epochs[1]);
}

}  // namespace
}  // namespace cohort::rl
