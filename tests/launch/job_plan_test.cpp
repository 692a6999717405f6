// What is settled before a job starts: devices, addresses, and the environment of its ranks.
#include "launch/job_plan.h"

#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/devices_machine.h"
#include "core/error.h"
#include "core/message_of.h"
#include "launch/worker_environment.h"
#include "support/process.h"

namespace cohort::launch {
namespace {
using cohort::testing::contains;
using cohort::testing::Machine;

LaunchSettings two_ranks() {
  LaunchSettings settings;
  settings.ranks = 2;
  settings.command = {"/bin/true"};
  settings.threads_per_rank = 1;
  return settings;
}

TEST(JobPlan, GpuIdsNarrowTheMaskAndGiveRanksTheirGpusInThatOrder) {
  auto machine = Machine::uniform(4);
  machine.mask("3,1,0", {3, 1, 0});
  LaunchSettings settings = two_ranks();
  settings.gpu_ids = "0,3";
  std::vector<std::string> notes;
  const JobPlan plan = plan_job(settings, machine, notes);
  EXPECT_EQ(plan.settings.gpu_ids, "0,3");
  const auto egl = [&](std::size_t rank) {
    for (const auto& [name, value] : plan.devices[rank].variables)
      if (name == "EGL_DEVICE_ID") return value;
    return std::string("unset");
  };
  EXPECT_EQ(egl(0), "0");
  EXPECT_EQ(egl(1), "3");
  settings.gpu_ids = "2";
  EXPECT_TRUE(contains(message_of([&] { plan_job(settings, machine, notes); }), "'2' is not among those"));
}

TEST(JobPlan, EveryRanksGpuIsExplained) {
  auto machine = Machine::uniform(2);
  std::vector<std::string> notes;
  plan_job(two_ranks(), machine, notes);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(contains(notes[1], "local rank 1: GPU 1 of this machine")) << notes[1];
  auto none = Machine::without_driver();
  LaunchSettings settings = two_ranks();
  settings.expects_gpu = true;
  notes.clear();
  plan_job(settings, none, notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(contains(notes[0], "no GPU, the ranks work on the CPU")) << notes[0];
}

TEST(JobPlan, RanksGetTheLoopbackAddressAndAnotherNameIsNoted) {
  auto machine = Machine::without_driver();
  LaunchSettings settings = two_ranks();
  for (const char* name : {"127.0.0.1", "localhost", "::1"}) {
    settings.master_addr = name;
    std::vector<std::string> notes;
    plan_job(settings, machine, notes);
    EXPECT_EQ(store_address(settings), "127.0.0.1");
    EXPECT_EQ(make_rendezvous(settings)->meet(0).store_address, "127.0.0.1");
    ASSERT_EQ(notes.size(), name == std::string("::1") ? 1u : 0u) << name;
    if (!notes.empty())
      EXPECT_TRUE(contains(notes[0], "--master_addr=::1: the store of a job on one node listens on 127.0.0.1 only"))
          << notes[0];
  }
}

TEST(JobPlan, WhatCannotWorkIsRefusedBeforeAnythingStarts) {
  auto machine = Machine::without_driver();
  std::vector<std::string> notes;
  const auto refused = [&](auto&& change) {
    LaunchSettings settings = two_ranks();
    change(settings);
    return message_of([&] { plan_job(settings, machine, notes); });
  };
  EXPECT_TRUE(contains(refused([](auto& s) { s.ranks = 0; }), "at least one rank"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.command = {"no-such-program-here"}; }), "there is no program"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.local_ranks_filter = {2}; }), "names rank 2, but there are 2 ranks"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.gpu_ids = "0"; }), "sees no GPU"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.grace_period = -1; }), "--grace-period=-1: give 0 to 31536000 s"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.grace_period = 1e12; }), "--grace-period=1"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.max_restarts = -1; }), "--max-restarts=-1 must not be negative"));
  EXPECT_TRUE(
      contains(refused([](auto& s) { s.nodes = s.max_restarts = 2; }), "is restarted only where their agents meet"));
}

TEST(WorkerEnvironment, RankAndLocalRankAreToldApart) {
  LaunchSettings settings = two_ranks();
  JobIdentity job;
  job.meeting = {.node_rank = 3, .nodes = 5, .first_rank = 6, .world_size = 10, .store_address = "h", .store_port = 7};
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : rank_variables(settings, job, 1, {}, {})) found[name] = value;
  EXPECT_EQ(found["RANK"], "7");
  EXPECT_EQ(found["LOCAL_RANK"], "1");
  EXPECT_EQ(found["GROUP_RANK"], "3");
  EXPECT_EQ(found["ROLE_RANK"], "7");
  EXPECT_EQ(found["WORLD_SIZE"], "10");
  EXPECT_EQ(found["LOCAL_WORLD_SIZE"], "2");
  EXPECT_EQ(found["GROUP_WORLD_SIZE"], "5");
  EXPECT_EQ(found["MASTER_ADDR"] + ":" + found["MASTER_PORT"], "h:7");
}

}  // namespace
}  // namespace cohort::launch
