#include "parallel/plan.h"

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/message_of.h"
#include "dist/group.h"
#include "parallel/fixture_model.h"

namespace cohort::parallel {
namespace {

const DeviceId kOwnCpu{};

std::vector<DeviceId> gpus(int count) {
  std::vector<DeviceId> result;
  for (int i = 0; i < count; ++i) result.push_back({DeviceKind::kCuda, i});
  return result;
}

rank::Environment ranks(int rank, int world_size, int local_world_size) {
  rank::Environment env;
  env.source = rank::EnvironmentSource::kVariables;
  env.rank = rank;
  env.world_size = world_size;
  env.local_world_size = local_world_size;
  env.local_rank = rank % local_world_size;
  env.master_addr = "node1";
  env.master_port = 29500;
  return env;
}

std::string all_lines(const Plan& plan) {
  std::string text;
  for (const std::string& line : plan.lines) text += line + "\n";
  return text;
}

TEST(Plan, OneDeviceIsASingleDevice) {
  const Plan plan = make_plan({{}, {kOwnCpu}, 8}, {});
  EXPECT_EQ(plan.mode, Mode::kSingleDevice);
  EXPECT_EQ(all_lines(plan),
            "parallel: single device (one process that sees one device)\n"
            "world: one process (no launcher's variables are set)\n"
            "device of this process: cpu\n"
            "effective batch: 32 = 32 per process x 1 process x 1 accumulated\n");
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(Plan, OneProcessThatSeesSeveralGpusIsDataParallel) {
  PlanSettings settings;
  settings.batch_size = 65;
  const Plan plan = make_plan({{}, gpus(4), 8}, settings);
  EXPECT_EQ(plan.mode, Mode::kDataParallel);
  EXPECT_EQ(plan.devices.size(), 4U);
  EXPECT_NE(all_lines(plan).find("batch of 65 is divided over 4 devices: 17 or 16 each"), std::string::npos)
      << all_lines(plan);
  EXPECT_EQ(plan.effective_batch, 65) << "DataParallel divides a process's batch";
}

TEST(Plan, FewerNodesOfAnElasticJobAccumulateMoreAndKeepTheEffectiveBatch) {
  const auto plan_of = [](int processes, int full, std::int64_t batch, std::int64_t accumulation) {
    PlanSettings settings;
    settings.batch_size = batch;
    settings.accumulation = accumulation;
    rank::Environment env = ranks(0, processes, processes);
    env.full_world_size = full;
    return make_plan({env, {kOwnCpu}, 8}, settings);
  };
  for (const int processes : {1, 2, 4, 8}) {
    const Plan plan = plan_of(processes, 8, 16, 3);
    EXPECT_EQ(plan.effective_batch, 16 * 8 * 3);
    EXPECT_EQ(plan.batch_size, 16) << "no process needs more memory than with all of them";
    EXPECT_EQ(plan.accumulation, 3 * 8 / processes);
  }
  const Plan three = plan_of(3, 4, 12, 1);  // 48 = 16 x 3, two batches of 8
  EXPECT_EQ(three.effective_batch, 48);
  EXPECT_EQ(three.batch_size, 8);
  EXPECT_EQ(three.accumulation, 2);
  EXPECT_FALSE(three.warnings.empty());
  const std::string refused = message_of([&] { plan_of(3, 4, 16, 1); });
  EXPECT_NE(refused.find("3 of 4 processes are there, and the effective batch of 64 cannot be divided"),
            std::string::npos)
      << refused;
}

TEST(Plan, SeveralProcessesAreDistributedWithOneDeviceEach) {
  PlanSettings settings;
  settings.batch_size = 16;
  settings.accumulation = 3;
  const Plan plan = make_plan({ranks(5, 8, 4), gpus(4), 8}, settings);
  EXPECT_EQ(plan.mode, Mode::kDistributedDataParallel);
  ASSERT_EQ(plan.devices.size(), 1U);
  EXPECT_EQ(plan.devices[0], (DeviceId{DeviceKind::kCuda, 1})) << "by the local rank";
  EXPECT_EQ(plan.effective_batch, 16 * 8 * 3);
  EXPECT_EQ(all_lines(plan),
            "parallel: DistributedDataParallel (8 processes, from RANK and WORLD_SIZE)\n"
            "world: rank 5 of 8 (local rank 1 of 4), from RANK and WORLD_SIZE, store at node1:29500\n"
            "device of this process: cuda:1\n"
            "effective batch: 384 = 16 per process x 8 processes x 3 accumulated\n");
}

TEST(Plan, MaskedRankTakesTheOnlyDeviceItSees) {
  const Plan plan = make_plan({ranks(3, 4, 4), gpus(1), 8}, {});
  EXPECT_EQ(plan.devices[0], (DeviceId{DeviceKind::kCuda, 0}));
}

TEST(Plan, MoreProcessesThanDevicesIsAnError) {
  EXPECT_EQ(message_of([] {
              make_plan({ranks(2, 3, 3), gpus(2), 8}, {});
            }),
            "local rank 2 has no device: this node shows 2 (cuda:0, cuda:1) to 3 processes; start at most 2 per node "
            "(--nproc_per_node=2), or make more visible");
}

TEST(Plan, LauncherWithOneProcessMeansOneDeviceAndNamesTheIdleOnes) {
  const Plan plan = make_plan({ranks(0, 1, 1), gpus(2), 8}, {});
  EXPECT_EQ(plan.mode, Mode::kSingleDevice);
  EXPECT_NE(all_lines(plan).find("1 other device is not used: cuda:1"), std::string::npos) << all_lines(plan);
}

TEST(Plan, DevicesThatNoProcessOfAJobTakesAreNamed) {
  EXPECT_NE(all_lines(make_plan({ranks(1, 2, 2), {kOwnCpu, kOwnCpu}, 8}, {}))
                .find("1 other device is not used: cpu (each process of a job takes one)"),
            std::string::npos);
  EXPECT_NE(all_lines(make_plan({ranks(1, 2, 2), gpus(4), 8}, {}))
                .find("2 other devices are not used: cuda:2, cuda:3 (each process of a job takes one)"),
            std::string::npos);
  rank::Environment unknown = ranks(1, 2, 2);
  unknown.local_world_size = 0;
  for (const Plan& plan : {make_plan({ranks(1, 2, 2), gpus(1), 8}, {}), make_plan({unknown, gpus(4), 8}, {})})
    EXPECT_EQ(all_lines(plan).find("not used"), std::string::npos) << all_lines(plan);
}

TEST(Plan, ModeThatContradictsTheEnvironmentIsAnError) {
  PlanSettings settings;
  settings.mode = "dp";
  EXPECT_NE(message_of([&] {
              make_plan({ranks(0, 2, 2), gpus(2), 8}, settings);
            }).find("parallel mode 'dp' is for one process, but this job has 2 (from RANK and WORLD_SIZE)"),
            std::string::npos);
  settings.mode = "ddp";
  EXPECT_NE(message_of([&] {
              make_plan({{}, gpus(4), 8}, settings);
            }).find("cohort launch --nproc_per_node=4 train"),
            std::string::npos);
  settings.mode = "fsdp";
  EXPECT_EQ(message_of([&] {
              make_plan({{}, {kOwnCpu}, 8}, settings);
            }),
            "parallel mode 'fsdp': it is auto, single, dp or ddp");
  settings.mode = "dp";
  EXPECT_EQ(make_plan({{}, {kOwnCpu, kOwnCpu}, 8}, settings).mode, Mode::kDataParallel);
  settings.mode = "single";
  EXPECT_EQ(make_plan({{}, {kOwnCpu, kOwnCpu}, 8}, settings).mode, Mode::kSingleDevice);
}

TEST(Plan, GlobalBatchSizeIsDividedOrItsNeighboursAreNamed) {
  PlanSettings settings;
  settings.global_batch_size = 96;
  settings.accumulation = 2;
  const Plan plan = make_plan({ranks(0, 4, 4), {kOwnCpu}, 8}, settings);
  EXPECT_EQ(plan.batch_size, 12);
  EXPECT_EQ(plan.effective_batch, 96);
  EXPECT_NE(all_lines(plan).find("(train.global_batch_size, divided)"), std::string::npos);
  settings.global_batch_size = 100;
  EXPECT_EQ(message_of([&] {
              make_plan({ranks(0, 4, 4), {kOwnCpu}, 8}, settings);
            }),
            "train.global_batch_size=100 cannot be divided by 4 processes x 2 accumulated batches; the nearest that "
            "can are 96 and 104");
  settings.global_batch_size = 5;
  EXPECT_EQ(
      message_of([&] {
        make_plan({ranks(0, 4, 4), {kOwnCpu}, 8}, settings);
      }),
      "train.global_batch_size=5 cannot be divided by 4 processes x 2 accumulated batches; the nearest that can is 8");
}

TEST(Plan, BatchSmallerThanTheDevicesIsAnErrorBeforeAnythingRuns) {
  PlanSettings settings;
  settings.batch_size = 2;
  EXPECT_EQ(message_of([&] {
              make_plan({{}, gpus(4), 8}, settings);
            }),
            "train.batch_size=2 cannot be divided among 4 devices (cuda:0, cuda:1, cuda:2, cuda:3); raise it to at "
            "least 4, or name fewer "
            "devices");
}

TEST(Plan, MoreLoaderThreadsThanCoresIsAWarningWithANumberThatFits) {
  PlanSettings settings;
  settings.workers = 3;
  const Plan plan = make_plan({ranks(0, 4, 4), {kOwnCpu}, 8}, settings);
  ASSERT_EQ(plan.warnings.size(), 1U);
  EXPECT_EQ(plan.warnings[0],
            "3 loader threads x 4 processes on this node are more than its 8 cores: they slow each other down; "
            "loader.workers=2 would fit");
  settings.workers = 2;
  EXPECT_TRUE(make_plan({ranks(0, 4, 4), {kOwnCpu}, 8}, settings).warnings.empty());
}

TEST(Plan, NotesOfTheEnvironmentBecomeWarnings) {
  rank::Environment env;
  env.notes = {"SLURM_NTASKS=4, but ..."};
  EXPECT_EQ(make_plan({env, {kOwnCpu}, 8}, {}).warnings, env.notes);
}

TEST(Plan, StrategiesAreMadeAsPlanned) {
  const auto replicas_of = [](std::vector<DeviceId> devices) {
    test::FixtureNet net;
    const Plan plan = make_plan({{}, std::move(devices), 8}, {});
    const auto strategy = make_strategy(plan, net.ptr(), nullptr);
    EXPECT_EQ(&strategy->module(), net.get());
    EXPECT_EQ(strategy->world_size(), 1);
    return strategy->replicas();
  };
  EXPECT_EQ(replicas_of({kOwnCpu}), 1);
  EXPECT_EQ(replicas_of({kOwnCpu, kOwnCpu, kOwnCpu}), 3);
}

TEST(Plan, DistributedStrategyOfOneProcessWorksAndItsWorldIsListed) {
  // A job of one process, as torchrun --nproc-per-node=1 makes it.
  PlanSettings settings;
  settings.mode = "ddp";
  const Plan plan = make_plan({ranks(0, 1, 1), {kOwnCpu}, 8}, settings);
  const auto group = dist::Group::create(plan.environment);
  const auto world = world_lines(plan, *group);
  ASSERT_EQ(world.size(), 1U);
  EXPECT_EQ(world[0].find("rank 0 on host "), 0U) << world[0];
  EXPECT_NE(world[0].find("): cpu, world_size=1"), std::string::npos) << world[0];
  test::FixtureNet net;
  const auto strategy = make_strategy(plan, net.ptr(), group);
  Batch batch;
  batch.add("x", test::fixture_input(0, 0));
  batch.add("y", test::fixture_target(0, 0));
  const auto loss = [](torch::nn::Module& model, const Batch& b) {
    return torch::mse_loss(dynamic_cast<test::FixtureNetImpl&>(model).forward(b.at("x")), b.at("y"));
  };
  for (int step = 0; step < 3; ++step) {
    strategy->zero_grad();
    const at::Tensor value = strategy->forward_backward(batch, loss, {});
    test::FixtureNet plain;
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < net->parameters().size(); ++i) plain->parameters()[i].copy_(net->parameters()[i]);
    const torch::AutoGradMode with_grad(true);
    const at::Tensor expected = loss(*plain, batch);
    expected.backward();
    EXPECT_EQ(value.item<float>(), expected.item<float>());
    for (std::size_t i = 0; i < net->parameters().size(); ++i)
      EXPECT_TRUE(torch::allclose(net->parameters()[i].grad(), plain->parameters()[i].grad(), 1e-6, 1e-8));
  }
  group->close();
}

}  // namespace
}  // namespace cohort::parallel
