#include "rank/environment.h"

#include <map>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"

namespace cohort::rank {
namespace {

using Variables = std::map<std::string, std::string>;

Environment read(const Variables& variables) {
  return read_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string refusal(const Variables& variables) {
  return message_of([&] { read(variables); });
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"GROUP_RANK", "1"},
                             {"MASTER_ADDR", "node1"},
                             {"MASTER_PORT", "29511"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_RUN_ID", "job7"}};

TEST(RankEnvironment, NothingSetIsOneProcess) {
  const Environment env = read({});
  EXPECT_EQ(env.source, EnvironmentSource::kSingleProcess);
  EXPECT_FALSE(env.launched());
  EXPECT_EQ(env.world_size, 1);
  EXPECT_TRUE(env.one_node());
}

TEST(RankEnvironment, ReadsTorchrunsVariables) {
  const Environment env = read(kTorchrun);
  EXPECT_EQ(env.source, EnvironmentSource::kVariables);
  EXPECT_EQ(env.rank, 3);
  EXPECT_EQ(env.world_size, 4);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_world_size, 2);
  EXPECT_FALSE(env.one_node());
  EXPECT_TRUE(env.agent_hosts_store);
  EXPECT_EQ(env.restart_count, 2);
  EXPECT_EQ(env.run_id, "job7");
  EXPECT_EQ(env.describe(),
            "rank 3 of 4 (local rank 1 of 2), from RANK and WORLD_SIZE, store at node1:29511 (hosted by the agent)");
}

TEST(RankEnvironment, VariablesSetByHandOnOneHostNeedNoLocalRank) {
  const Environment env =
      read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_TRUE(env.one_node());
}

TEST(RankEnvironment, SocketOfTheLauncherIsForRankZeroOnly) {
  Variables v = kTorchrun;
  v.erase("TORCHELASTIC_USE_AGENT_STORE");
  v["COHORT_STORE_FD"] = "9";
  EXPECT_FALSE(read(v).store_fd.has_value());
  v["RANK"] = "0";
  v["LOCAL_RANK"] = "0";
  EXPECT_EQ(read(v).store_fd, 9);
}

TEST(RankEnvironment, PartialAndContradictorySetsNameTheVariable) {
  const auto without = [](const std::string& name) {
    Variables v = kTorchrun;
    v.erase(name);
    return refusal(v);
  };
  const auto with = [](const std::string& name, const std::string& value) {
    Variables v = kTorchrun;
    v[name] = value;
    return refusal(v);
  };
  EXPECT_EQ(without("RANK"),
            "RANK is not set, although WORLD_SIZE or LOCAL_RANK is; set it, or unset the others to run one process");
  EXPECT_EQ(without("WORLD_SIZE"),
            "WORLD_SIZE is not set, although RANK is; set it, or unset the others to run one process");
  EXPECT_NE(without("MASTER_ADDR").find("MASTER_ADDR is not set, although RANK and WORLD_SIZE are"), std::string::npos);
  EXPECT_NE(without("MASTER_PORT").find("MASTER_PORT is not set, although RANK and WORLD_SIZE are"), std::string::npos);
  EXPECT_NE(without("LOCAL_RANK").find("LOCAL_RANK is not set, and MASTER_ADDR=node1 may be another host"),
            std::string::npos);
  EXPECT_EQ(without("LOCAL_WORLD_SIZE"), "");
  EXPECT_EQ(with("RANK", "4"), "RANK=4 does not fit WORLD_SIZE=4: ranks run from 0 to 3");
  EXPECT_EQ(with("RANK", "-1"), "RANK=-1 does not fit WORLD_SIZE=4: ranks run from 0 to 3");
  EXPECT_EQ(with("RANK", "1x"), "RANK='1x' is not a whole number");
  EXPECT_EQ(with("WORLD_SIZE", "0"), "WORLD_SIZE=0: a job has at least one process");
  EXPECT_EQ(with("LOCAL_RANK", "2"), "LOCAL_RANK=2 does not fit LOCAL_WORLD_SIZE=2: ranks run from 0 to 1");
  EXPECT_EQ(with("LOCAL_WORLD_SIZE", "5"), "LOCAL_WORLD_SIZE=5 is more than the 4 processes of the job");
  EXPECT_EQ(with("MASTER_PORT", "70000"), "MASTER_PORT=70000 is not a TCP port (1 to 65535)");
  // An empty value is what an unset shell variable leaves behind.
  EXPECT_EQ(with("RANK", ""),
            "RANK is not set, although WORLD_SIZE or LOCAL_RANK is; set it, or unset the others to run one process");
}

TEST(RankEnvironment, AddressAloneIsNoJobButIsMentioned) {
  const Environment env = read({{"MASTER_ADDR", "node1"}});
  EXPECT_FALSE(env.launched());
  ASSERT_EQ(env.notes.size(), 1U);
  EXPECT_NE(env.notes[0].find("this process runs alone"), std::string::npos);
}

const Variables kSlurm = {{"SLURM_PROCID", "5"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_STEP_NUM_TASKS", "6"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "2"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NODELIST", "gpu[07-08,11]"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"},
                          {"SLURM_JOB_ID", "123456"}};

TEST(RankEnvironment, ReadsSlurmsVariables) {
  const Environment env = read(kSlurm);
  EXPECT_EQ(env.source, EnvironmentSource::kSlurm);
  EXPECT_EQ(env.rank, 5);
  EXPECT_EQ(env.world_size, 6) << "the step's tasks, not the job's";
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_world_size, 2);
  EXPECT_EQ(env.master_addr, "gpu07");
  EXPECT_EQ(env.master_port, 15000 + 123456 % 15000);
  EXPECT_EQ(env.port_origin, "derived from SLURM_JOB_ID=123456, SLURM_STEP_ID=0");
}

TEST(RankEnvironment, AddressAndPortOverrideSlurms) {
  Variables v = kSlurm;
  v["MASTER_ADDR"] = "10.0.0.7";
  v["MASTER_PORT"] = "4242";
  const Environment env = read(v);
  EXPECT_EQ(env.source, EnvironmentSource::kSlurm);
  EXPECT_EQ(env.master_addr, "10.0.0.7");
  EXPECT_EQ(env.master_port, 4242);
}

TEST(RankEnvironment, JobNumbersOfSlurmFederationsAreLargerThanAnInt) {
  Variables v = kSlurm;
  v["SLURM_JOB_ID"] = "3000000007";
  v["SLURM_STEP_ID"] = "2147483649";
  const Environment env = read(v);
  EXPECT_EQ(env.run_id, "3000000007");
  EXPECT_EQ(env.master_port, 15000 + static_cast<int>((3000000007ULL + 1009ULL * 2147483649ULL) % 15000ULL));
  v["SLURM_JOB_ID"] = "-5";
  EXPECT_EQ(refusal(v), "SLURM_JOB_ID='-5' is not a whole number");
}

TEST(RankEnvironment, BatchScriptOfSlurmIsOneProcessAndSaysSo) {
  // What a batch script sees: rank 0's variables, but nobody started the other tasks.
  for (const char* step : {"", "4294967291", "4294967290"}) {
    const Environment env = read({{"SLURM_PROCID", "0"},
                                  {"SLURM_NTASKS", "4"},
                                  {"SLURM_LOCALID", "0"},
                                  {"SLURM_JOB_ID", "7"},
                                  {"SLURM_STEP_ID", step}});
    EXPECT_FALSE(env.launched());
    ASSERT_EQ(env.notes.size(), 1U);
    EXPECT_NE(env.notes[0].find("SLURM_NTASKS=4, but this process was not started by srun"), std::string::npos);
  }
}

TEST(RankEnvironment, IncompleteSlurmNamesTheVariable) {
  Variables v = kSlurm;
  v.erase("SLURM_LOCALID");
  EXPECT_EQ(refusal(v),
            "SLURM_LOCALID is not set, although SLURM_PROCID is; set it, or unset the others to run one process");
  v = kSlurm;
  v.erase("SLURM_STEP_NODELIST");
  EXPECT_NE(refusal(v).find("SLURM_STEP_NODELIST is not set"), std::string::npos);
  v = kSlurm;
  v["SLURM_PROCID"] = "6";
  EXPECT_EQ(refusal(v), "SLURM_PROCID=6 does not fit SLURM_STEP_NUM_TASKS=6: ranks run from 0 to 5");
}

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "3456106497"}};

TEST(RankEnvironment, ReadsOpenMpisVariables) {
  const Environment env = read(kOpenMpi);
  EXPECT_EQ(env.source, EnvironmentSource::kOpenMpi);
  EXPECT_EQ(env.rank, 1);
  EXPECT_EQ(env.world_size, 2);
  EXPECT_TRUE(env.one_node());
  EXPECT_EQ(env.master_addr, "127.0.0.1");
  EXPECT_GE(env.master_port, 15000);
  EXPECT_LT(env.master_port, 30000);
  Variables other = kOpenMpi;
  other["OMPI_COMM_WORLD_RANK"] = other["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  EXPECT_EQ(read(other).master_port, env.master_port) << "all ranks of one mpirun derive the same port";
}

TEST(RankEnvironment, OpenMpiOverSeveralNodesNeedsAnAddress) {
  Variables v = kOpenMpi;
  v["OMPI_COMM_WORLD_SIZE"] = "4";
  EXPECT_NE(refusal(v).find("MASTER_ADDR is not set, and Open MPI started 4 processes on several nodes (2 here)"),
            std::string::npos);
  v["MASTER_ADDR"] = "node1";
  EXPECT_EQ(read(v).master_addr, "node1");
  v.erase("PMIX_NAMESPACE");
  EXPECT_NE(refusal(v).find("MASTER_PORT is not set"), std::string::npos);
}

// As mpiexec.hydra of MPICH 4.0.2 sets them.
const Variables kMpich = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

TEST(RankEnvironment, ReadsMpichsVariablesAndNeedsAPort) {
  EXPECT_NE(refusal(kMpich).find("export MASTER_PORT="), std::string::npos) << refusal(kMpich);
  Variables v = kMpich;
  v["MASTER_PORT"] = "4242";
  const Environment env = read(v);
  EXPECT_EQ(env.source, EnvironmentSource::kMpich);
  EXPECT_EQ(env.rank, 1);
  EXPECT_EQ(env.world_size, 2);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_TRUE(env.one_node());
  EXPECT_EQ(env.master_addr, "127.0.0.1");
  EXPECT_EQ(env.master_port, 4242);
  v["PMI_SIZE"] = "4";
  EXPECT_NE(refusal(v).find("mpirun started 4 processes on several nodes (2 here)"), std::string::npos) << refusal(v);
  v["MASTER_ADDR"] = "node1";
  EXPECT_EQ(read(v).master_addr, "node1");
  EXPECT_FALSE(read(v).one_node());
  const Environment alone =
      read({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}});
  EXPECT_EQ(alone.world_size, 1) << "one process needs no port";
}

TEST(RankEnvironment, MpichWithinASlurmJobIsAskedBeforeSlurmAndSrunsOwnPmiIsSlurms) {
  Variables v = kSlurm;  // mpirun's daemon is a task of Slurm's, whose variables both of its ranks have
  v.insert(kMpich.begin(), kMpich.end());
  v["MASTER_PORT"] = "4242";
  EXPECT_EQ(read(v).source, EnvironmentSource::kMpich);
  Variables pmi2 = kSlurm;  // srun --mpi=pmi2
  pmi2["PMI_RANK"] = "5";
  pmi2["PMI_SIZE"] = "6";
  EXPECT_EQ(read(pmi2).source, EnvironmentSource::kSlurm);
}

TEST(RankEnvironment, ExplicitVariablesWinOverMpiAndMpiOverSlurm) {
  Variables v = kSlurm;
  v.insert(kOpenMpi.begin(), kOpenMpi.end());
  EXPECT_EQ(read(v).source, EnvironmentSource::kOpenMpi) << "mpirun's daemons are Slurm tasks themselves";
  v.insert(kTorchrun.begin(), kTorchrun.end());
  EXPECT_EQ(read(v).source, EnvironmentSource::kVariables);
}

TEST(RankEnvironment, RanksThatDoNotMeetNeedNoAddressAndNoPort) {
  const auto place = [](const Variables& variables) {
    const Environment env = read_environment(
        [&](const std::string& name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          if (found == variables.end()) return std::nullopt;
          return found->second;
        },
        StoreUse::kNone);
    return format("{} of {}, {} of {}", env.rank, env.world_size, env.local_rank, env.local_world_size);
  };
  EXPECT_EQ(place({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), "1 of 2, 1 of 2");
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_RANK", "3"},
                   {"OMPI_COMM_WORLD_SIZE", "4"},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
            "3 of 4, 1 of 2");
  EXPECT_EQ(place({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}),
            "3 of 4, 1 of 2");
  EXPECT_EQ(place({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}, {"SLURM_STEP_ID", "0"}}),
            "3 of 4, 1 of 0");
}

TEST(SlurmNodeList, FirstHostOfEveryForm) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("node[3-5]"), "node3");
  EXPECT_EQ(first_host("node[03-05,9],other1"), "node03");
  EXPECT_EQ(first_host("node[7,9]"), "node7");
  EXPECT_EQ(first_host("rack[1-2]n[04-07].cluster"), "rack1n04.cluster");
  EXPECT_EQ(first_host("login,node[1-2]"), "login");
  EXPECT_THROW(first_host(""), Error);
  EXPECT_THROW(first_host("node["), Error);
}

TEST(SlurmTasksPerNode, RunLengthsAreExpanded) {
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
  EXPECT_THROW(tasks_on_node("2(x3),1", 4), Error);
  EXPECT_THROW(tasks_on_node("x", 0), Error);
}

}  // namespace
}  // namespace cohort::rank
