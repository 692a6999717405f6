// The command line: what is refused, and what is said then.
#include <gtest/gtest.h>

#include "core/files.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& part,
                        const std::map<std::string, std::string>& variables = {}) {
  const Outcome outcome = run(arguments, variables);
  EXPECT_EQ(outcome.code, 2) << part;
  EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  EXPECT_EQ(lines_of(outcome.err).size(), 1u) << "one line, no trace: " << outcome.err;
}

TEST(Cli, VersionAndHelp) {
  EXPECT_EQ(run({cohort_path(), "--version"}).out,
            "cohort " + lines_of(text_of(fs::path(COHORT_SOURCE_DIR) / "VERSION"))[0] + "\n");
  const Outcome help = run({cohort_path(), "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* name : {"launch", "devices", "train"}) EXPECT_TRUE(contains(help.out, name)) << help.out;
  EXPECT_EQ(run({cohort_path()}).code, 2);
  const std::string flags = run(launch({"--help"})).out;
  EXPECT_TRUE(contains(flags, "--nproc-per-node"));
  EXPECT_FALSE(contains(flags, "fp8")) << "what is refused is not offered: " << flags;
  EXPECT_FALSE(contains(flags, "rdt")) << "nor what does not exist yet: " << flags;
}

TEST(Cli, HelpAndVersionAreWordsToo) {
  EXPECT_EQ(run({cohort_path(), "version"}).out, run({cohort_path(), "--version"}).out);
  const Outcome help = run({cohort_path(), "help", "launch"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.out, run(launch({"--help"})).out);
  expect_usage_error({cohort_path(), "help", "lanch"}, "there is no subcommand 'lanch', did you mean 'launch'?");
}

/// What bash offers behind these words, the last of which is being typed.
std::string completions(const std::vector<std::string>& words) {
  std::string list = "'" + cohort_path() + "'";
  for (const std::string& word : words) list += " '" + word + "'";
  return run({"bash", "-c",
              "source <('" + cohort_path() + "' completion bash); COMP_WORDS=(" + list + "); COMP_CWORD=" +
                  std::to_string(words.size()) + "; _cohort 2>/dev/null; printf '%s\\n' \"${COMPREPLY[@]}\""})
      .out;
}

TEST(Cli, BashCompletesSubcommandsFlagsAndSettings) {
  EXPECT_EQ(completions({"lau"}), "launch\n");
  EXPECT_EQ(completions({"launch", "--nproc-per"}), "--nproc-per-node\n");
  EXPECT_EQ(run({cohort_path(), "completion", "bash"}).code, 0);
  EXPECT_EQ(run({cohort_path(), "completion", "zsh"}).code, 0);
  expect_usage_error({cohort_path(), "completion", "fish"}, "bash or zsh, not 'fish'");
}

TEST(Cli, AnUnknownSubcommandNamesTheNearestOne) {
  expect_usage_error({cohort_path(), "lanch"}, "there is no subcommand 'lanch', did you mean 'launch'?");
  expect_usage_error({cohort_path(), "xyzzy"}, "there is no subcommand 'xyzzy'; `cohort --help`");
}

TEST(Cli, AMissingExecutableIsNamedWithHowToBuildIt) {
  TemporaryFolder folder;
  fs::copy_file(cohort_path(), folder.path() / "cohort");
  const Outcome outcome = run({(folder.path() / "cohort").string(), "train", "informer"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "cohort-train is missing")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "scripts/build release --target cohort-train")) << outcome.err;
}

/// A stand-in for cohort-train that prints what it was given, beside a copy of cohort.
fs::path cohort_with_train(const TemporaryFolder& folder) {
  fs::copy_file(cohort_path(), folder.path() / "cohort");
  write_file_atomically(
      folder.path() / "cohort-train",
      "#!/bin/sh\n[ -z \"$COHORT_ONLY_CHECK_WORDS\" ] || exit 0\necho \"pid $$ rank $RANK:\" \"$@\"\nexit 5\n");
  fs::permissions(folder.path() / "cohort-train", fs::perms::owner_all);
  return folder.path() / "cohort";
}

TEST(Cli, TrainBecomesItsExecutableWithTheArgumentsUnchanged) {
  TemporaryFolder folder;
  Process process({cohort_with_train(folder).string(), "train", "informer", "data.path=a b.csv", "--resume"},
                  {{"RANK", ""}});
  const pid_t pid = process.pid();
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.out, "pid " + std::to_string(pid) + " rank : informer data.path=a b.csv --resume\n")
      << "the same process: a signal reaches the work itself";
}

TEST(Cli, TheFrontEndLinksNoLibTorch) {
  const Outcome outcome = run({"ldd", cohort_path()});
  EXPECT_EQ(outcome.code, 0);
  // "c10" alone may be part of an address.
  EXPECT_FALSE(contains(outcome.out, "libtorch") || contains(outcome.out, "libc10")) << outcome.out;
}

TEST(Cli, LaunchRunsSubcommandsOfTheSameBinary) {
  TemporaryFolder folder;
  const Outcome outcome =
      run({cohort_with_train(folder).string(), "launch", "--nproc_per_node=2", "train", "informer", "--tee=x"});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_TRUE(contains(outcome.out, "rank 1: informer --tee=x")) << outcome.out;
}

TEST(Cli, TheScriptsForOneTwoAndAllDevicesPassTheirArguments) {
  TemporaryFolder folder;
  const std::map<std::string, std::string> variables = {{"COHORT", cohort_with_train(folder).string()}, {"NPROC", "3"}};
  const auto script = [&](const std::string& name) {
    return run({COHORT_SOURCE_DIR "/scripts/" + name, "informer", "data.path=file.csv"}, variables);
  };
  EXPECT_TRUE(contains(script("train_1_device").out, "rank : informer data.path=file.csv parallel.mode=single\n"))
      << "one process would take all GPUs by itself";
  EXPECT_TRUE(contains(script("train_2_devices").out, "rank 1: informer data.path=file.csv"));
  EXPECT_TRUE(contains(script("train_n_devices").out, "rank 2: informer data.path=file.csv"));
  const Outcome missing = run({COHORT_SOURCE_DIR "/scripts/train_2_devices"}, {{"COHORT", "/no/such/cohort"}});
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(contains(missing.err, "is not built: run scripts/setup")) << missing.err;
}

TEST(LaunchUsage, WrongFlagsAndValuesAreNamed) {
  expect_usage_error(launch({}), "what shall the ranks run?");
  expect_usage_error(launch({"--nproc_per_nod=2", "train"}), "did you mean '--nproc_per_node'?");
  expect_usage_error(launch({"--nproc_per_node=two", "--", "/bin/true"}),
                     "neither a number from 1 on nor auto, cpu or gpu");
  expect_usage_error(launch({"--nproc_per_node=0", "--", "/bin/true"}), "neither a number");
  expect_usage_error(launch({"--nproc_per_node"}), "--nproc_per_node needs a value");
  expect_usage_error(launch({"--tee=7", "--", "/bin/true"}), "--tee='7'");
  expect_usage_error(launch({"--signals-to-handle=TERM", "--", "/bin/true"}), "'TERM' is no signal");
  expect_usage_error(launch({"--local-ranks-filter=a", "--", "/bin/true"}), "--local-ranks-filter='a'");
  expect_usage_error(launch({"trian"}), "did you mean 'train'?");
  expect_usage_error(launch({"--", "no-such-program"}), "'no-such-program' is no program");
  expect_usage_error(launch({"-m", "--no-python", "x"}), "contradict");
  expect_usage_error(launch({"launch", "train"}), "a rank cannot be another launch");
  expect_usage_error(launch({"--mixed_precision=fp8", "train"}), "fp8 is not possible");
  expect_usage_error(launch({"--multi_gpu", "--num_processes=1", "train"}), "at least 2 processes");
  expect_usage_error(launch({"--nproc_per_node=2", "--num_processes=3", "train"}), "contradict");
  expect_usage_error(launch({"--mixed_precision=tf32", "train"}), "tf32 is not possible: choose no, fp16 or bf16");
  expect_usage_error(launch({"--grace-period=-1", "train"}), "--grace-period=-1: give 0 to 31536000 seconds (a year)");
  for (const char* period : {"1e12", "nan", "inf"})
    expect_usage_error(launch({std::string("--grace-period=") + period, "train"}), "give 0 to 31536000 seconds");
  expect_usage_error(launch({"--master_port=-5", "train"}), "--master_port: -5 is no port");
  expect_usage_error(launch({"--main_process_port=70000", "train"}), "--main_process_port: 70000 is no port");
  expect_usage_error(launch({"train"}), "--master_port: -1 is no port", {{"PET_MASTER_PORT", "-1"}});
  expect_usage_error(launch({"--rdzv-endpoint=localhost:12ab", "train"}), "'12ab' is no number");
  expect_usage_error(launch({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:", "train"}), "'' is no number");
  expect_usage_error(launch({"--rdzv-endpoint=localhost:70000", "train"}), "--rdzv-endpoint: 70000 is no port");
}

TEST(LaunchUsage, WhatThisVersionDoesNotDoIsRefusedNeverIgnored) {
  for (const auto& [flag, part] : std::vector<std::pair<std::string, std::string>>{
           {"--nnodes=1:4", "nodes that come and go meet at --rdzv-endpoint=HOST:PORT"},
           {"--rdzv-backend=etcd", "nodes meet at an address that all of them are given"},
           {"--rdzv_endpoint=node7:29400", "is not on this machine"},
           {"--use_deepspeed", "DeepSpeed"},
           {"--numa-binding=node", "numactl"},
           {"--run-path", "no Python interpreter"},
           {"--dynamo_backend=inductor", "TorchDynamo"}})
    expect_usage_error(launch({flag, "--", "/bin/true"}), part);
}

// What `accelerate config` writes is taken; a typed flag outranks it, and what cannot be done is named.
TEST(LaunchUsage, AcceleratesConfigurationIsReadAndAskedForNothingMore) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "default_config.yaml").string();
  const std::string common =
      "compute_environment: LOCAL_MACHINE\ndebug: false\ndowncast_bf16: 'no'\nenable_cpu_affinity: false\n"
      "machine_rank: 0\nmain_process_ip: null\nmain_process_port: null\nmain_training_function: main\n"
      "num_machines: 1\nrdzv_backend: static\nsame_network: true\ntpu_env: []\ntpu_use_cluster: false\n"
      "tpu_use_sudo: false\n";
  const auto ranks_of = [&](const std::string& more, const std::vector<std::string>& flags) {
    write_file_atomically(file, common + more);
    std::vector<std::string> words{"--config_file", file};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(),
                 {"--", "/bin/sh", "-c", "echo R$RANK/$WORLD_SIZE $COHORT_BACKEND $ACCELERATE_MIXED_PRECISION"});
    return run(launch(words));
  };
  const std::string cpu = "distributed_type: MULTI_CPU\nuse_cpu: true\ngpu_ids: all\nmixed_precision: 'bf16'\n";
  const Outcome two = ranks_of(cpu + "num_processes: 2\n", {});
  if (contains(two.err, "yaml-cpp")) GTEST_SKIP() << "this build has no yaml-cpp";
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_TRUE(contains(two.out, "R0/2 cpu bf16") && contains(two.out, "R1/2 cpu bf16")) << two.output();
  EXPECT_TRUE(contains(two.err, "--num_processes=2")) << "what the file says, is said: " << two.err;
  const Outcome typed = ranks_of(cpu + "num_processes: 2\n", {"--num-processes=1", "--mixed_precision", "no"});
  EXPECT_TRUE(contains(typed.out, "R0/1 cpu no")) << typed.output();

  const Outcome refused =
      ranks_of("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\nfancy: 3\nnum_processes: 2\n", {});
  EXPECT_EQ(refused.code, 2);
  for (const char* part : {"distributed_type: DEEPSPEED", "deepspeed_config", "parallel.zero", "fancy: 3"})
    EXPECT_TRUE(contains(refused.err, part)) << part << "\n" << refused.err;
}

TEST(LaunchUsage, ATypoOfTheTrainingIsSaidOnceBeforeThereAreRanks) {
  const Outcome outcome =
      run(launch({"--nproc_per_node=3", "train", "regressor", "data.path=x.csv", "train.batch_sise=4"}));
  if (contains(outcome.err, "cohort-train")) GTEST_SKIP() << "this build has no LibTorch";
  EXPECT_NE(outcome.code, 0);
  const std::string typo = "unknown setting 'train.batch_sise'";
  const std::size_t first = outcome.err.find(typo);
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(typo, first + 1), std::string::npos) << outcome.err;
  EXPECT_FALSE(contains(outcome.output(), "rank")) << outcome.output();
}

TEST(LaunchUsage, WhatSeveralNodesNeedIsNamed) {
  const auto refused = [](std::vector<std::string> flags, const std::string& part,
                          const std::map<std::string, std::string>& variables = {}) {
    flags.insert(flags.end(), {"--", "/bin/true"});
    expect_usage_error(launch(flags), part, variables);
  };
  refused({"--nnodes=2"}, "several nodes need --master-addr");
  refused({"--num_machines=2"}, "several nodes need --master-addr (accelerate: --main_process_ip)");
  refused({}, "several nodes need --master-addr", {{"PET_NNODES", "2:2"}});
  refused({"--nnodes=two"}, "--nnodes=two is no number of nodes");
  refused({"--nnodes=0"}, "is no number of nodes");
  refused({"--node_rank=1"}, "--node_rank=1 does not fit --nnodes=1: nodes are numbered from 0 to 0");
  refused({"--nnodes=2", "--machine_rank=2"}, "does not fit --nnodes=2");
  refused({"--nnodes=2", "--num_machines=3"}, "contradict");
  refused({"--nnodes=2", "--node-rank=0", "--machine-rank=1"}, "contradict");
  refused({"--nnodes=2", "--standalone", "--master-addr=h"}, "contradict");
  refused({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0:29400"}, "need one --rdzv-id");
  refused({"--nnodes=4:1"}, "the least number of nodes stands first");
  refused({"--nnodes=1:2", "--rdzv-endpoint=127.0.0.1:29400", "--rdzv-id=j", "--num_processes=4"}, "--nproc_per_node");
  refused({"--num_machines=2", "--main_process_ip=h", "--num_processes=3"},
          "--num_processes=3 is the number on all machines together and cannot be divided by --num_machines=2");
  refused({"--num_machines=2", "--main_process_ip=h", "--num_processes=4", "--nproc_per_node=4"}, "contradict");
  refused({"--nnodes=2", "--master-addr=h", "--max-restarts=1"}, "without a secret of the job nobody tells the others");
  refused({"--nnodes=2", "--master-addr=h", "--master-port=65535", "--max-restarts=1", "--job-secret-file=f"},
          "the port after it");
  refused({"--rdzv-conf=timeout=3"}, "the only setting is state_file=PATH");
  refused({"--rdzv-conf=state_file="}, "the only setting is state_file=PATH");
  refused({"--rdzv-conf=state_file=f"}, "is for nodes that meet");
  refused({"--nnodes=2", "--master-addr=h", "--max-restarts=1", "--job-secret-file=f", "--rdzv-conf=state_file=f"},
          "is for nodes that meet");
  refused({"--max-restarts=-1"}, "must not be negative");
}

TEST(LaunchUsage, AnAgentWithTheNumberOfNodeZeroRunsOnThatNode) {
  const Outcome elsewhere =
      run(launch({"--nnodes=2", "--node-rank=0", "--master-addr=192.0.2.7", "--master-port=29511", "--", "/bin/true"}));
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_TRUE(contains(elsewhere.err,
                       "'192.0.2.7' is not an address of this machine: with several nodes --master_addr "
                       "is an address of node 0, and this agent has --node-rank=0"))
      << elsewhere.err;
  const Outcome all = run(launch({"--nnodes=2", "--master-addr=0.0.0.0", "--", "/bin/true"}));
  EXPECT_EQ(all.code, 1);
  EXPECT_TRUE(contains(all.err, "the address at which the others reach node 0")) << all.err;
}

TEST(LaunchUsage, OneNodeFormsOfTheSameFlagsAreAccepted) {
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--nnodes=1"},
           {"--nnodes", "1:1", "--node-rank", "0"},
           {"--standalone"},
           {"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--rdzv-id=7", "--nnodes=1"},
           // What `hostname --ip-address` says on Debian, and scripts hand on.
           {"--rdzv-backend=c10d", "--rdzv-endpoint=127.0.1.1:0", "--rdzv-id=7", "--nnodes=1"},
           {"--max_restarts=0"},
           {"--master_addr=localhost"},
           {"--use_env"},
           {"--main_process_ip=127.0.0.1", "--main_process_port=0"},
           {"--cpu", "--num_processes=2"}}) {
    std::vector<std::string> arguments = flags;
    arguments.insert(arguments.end(), {"--", "/bin/true"});
    const Outcome outcome = run(launch(arguments));
    EXPECT_EQ(outcome.code, 0) << flags[0] << ": " << outcome.err;
  }
  const Outcome noted = run(launch({"--monitor-interval=5", "--", "/bin/true"}));
  EXPECT_TRUE(contains(noted.err, "--monitor-interval has no effect")) << noted.err;
}

TEST(LaunchUsage, AStaticEndpointNamesTheStoresPort) {
  const std::string port = std::to_string(free_port());
  const Outcome outcome = run(
      launch({"--nproc_per_node=2", "--rdzv_endpoint=127.0.0.1:" + port, "--", "/bin/sh", "-c", "echo $MASTER_PORT"}));
  EXPECT_TRUE(contains(outcome.out, "[rank 1] " + port)) << outcome.out << outcome.err;
}

TEST(LaunchUsage, NprocWordsFollowTheMachine) {
  const Outcome cpu = run(launch({"--nproc_per_node=cpu", "--", "/bin/sh", "-c", "echo $WORLD_SIZE"}));
  EXPECT_EQ(cpu.code, 0) << cpu.err;
  EXPECT_TRUE(contains(cpu.err, "one for each core")) << cpu.err;
}

}  // namespace
}  // namespace cohort::testing
