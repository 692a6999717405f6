// Our ranks get what torchrun's get, and Python's torch.distributed works in them.
#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/files.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

using Environment = std::map<std::string, std::string>;

/// Variables whose names the launchers choose, as `env` printed them.
Environment launcher_variables(const std::string& text) {
  static const std::vector<std::string> kPrefixes = {"RANK=",       "LOCAL_",      "GROUP_",        "ROLE_",
                                                     "WORLD_SIZE=", "MASTER_",     "TORCHELASTIC_", "TORCH_NCCL_",
                                                     "OMP_",        "CUDA_VISIBLE"};
  Environment found;
  for (const std::string& line : lines_of(text))
    for (const std::string& prefix : kPrefixes)
      if (line.rfind(prefix, 0) == 0) found[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  return found;
}

/// The environments of two ranks, which the program writes into files.
std::vector<Environment> environments(std::vector<std::string> launcher,
                                      const std::map<std::string, std::string>& variables = {}) {
  TemporaryFolder folder;
  write_file_atomically(folder.path() / "show", "#!/bin/sh\nenv > " + folder.path().string() + "/$RANK\n");
  fs::permissions(folder.path() / "show", fs::perms::owner_all);
  launcher.push_back((folder.path() / "show").string());
  const Outcome outcome = run(launcher, variables);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return {launcher_variables(text_of(folder.path() / "0")), launcher_variables(text_of(folder.path() / "1"))};
}

std::vector<std::string> torchrun(std::vector<std::string> arguments) {
  std::vector<std::string> all = {python_path(), "-m", "torch.distributed.run"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

TEST(LaunchContract, RanksGetTorchrunsVariablesWithTorchrunsValues) {
  const std::vector<std::string> flags = {"--nproc-per-node=2", "--role=trainer", "--rdzv-id=job7",
                                          "--master-port=" + std::to_string(free_port()), "--no-python"};
  const auto theirs = environments(torchrun(flags), {{"CUDA_VISIBLE_DEVICES", "0,1"}});
  const auto ours = environments(launch(flags), {{"CUDA_VISIBLE_DEVICES", "0,1"}});
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_GE(theirs[rank].size(), 18u);
    for (const auto& [name, value] : theirs[rank]) {
      ASSERT_TRUE(ours[rank].contains(name)) << name;
      // Theirs: the agent's store, one thread, a temporary file. Ours: rank 0's store, cores / ranks.
      static const std::set<std::string> kDiffer = {"TORCHELASTIC_USE_AGENT_STORE", "OMP_NUM_THREADS",
                                                    "TORCHELASTIC_ERROR_FILE"};
      if (!kDiffer.contains(name)) EXPECT_EQ(ours[rank].at(name), value) << name;
    }
    EXPECT_EQ(ours[rank].at("TORCHELASTIC_USE_AGENT_STORE"), "False");
    EXPECT_GE(std::stoi(ours[rank].at("OMP_NUM_THREADS")), 1);
    for (const auto& [name, value] : ours[rank]) EXPECT_TRUE(theirs[rank].contains(name)) << name << "=" << value;
  }
}

/// The environments of two nodes' ranks, two on each; `launcher` gives the command of a node.
std::vector<Environment> environments_on_two_nodes(
    const std::function<std::vector<std::string>(std::vector<std::string>)>& launcher) {
  TemporaryFolder folder;
  // A rank of torchrun's that ends before another has begun may close the store: wait for all.
  write_file_atomically(folder.path() / "show",
                        "#!/bin/sh\ncd " + folder.path().string() +
                            "\nenv > $RANK.part; mv $RANK.part $RANK\n"
                            "until [ -e 0 ] && [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do sleep 0.05; done\n");
  fs::permissions(folder.path() / "show", fs::perms::owner_all);
  const std::string port = std::to_string(free_port());
  const auto node = [&](const std::string& rank) {
    std::vector<std::string> command =
        launcher({"--nnodes=2", "--node-rank=" + rank, "--master-addr=127.0.0.1", "--master-port=" + port,
                  "--nproc-per-node=2", "--rdzv-id=job7", "--role=trainer", "--no-python"});
    command.push_back((folder.path() / "show").string());
    return command;
  };
  Process first(node("0")), second(node("1"));
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(second.wait().code, 0) << second.err();
  std::vector<Environment> found;
  for (const char* rank : {"0", "1", "2", "3"}) found.push_back(launcher_variables(text_of(folder.path() / rank)));
  return found;
}

TEST(LaunchContract, RanksOfTwoNodesGetTorchrunsVariablesWithTorchrunsValues) {
  const auto theirs = environments_on_two_nodes(torchrun);
  const auto ours = environments_on_two_nodes(launch);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    ASSERT_GE(theirs[rank].size(), 18u);
    for (const auto& [name, value] : theirs[rank]) {
      ASSERT_TRUE(ours[rank].contains(name)) << name;
      static const std::set<std::string> kDiffer = {"TORCHELASTIC_USE_AGENT_STORE", "OMP_NUM_THREADS",
                                                    "TORCHELASTIC_ERROR_FILE", "MASTER_PORT"};
      if (!kDiffer.contains(name)) EXPECT_EQ(ours[rank].at(name), value) << name << " of rank " << rank;
    }
  }
}

TEST(LaunchContract, ASetThreadCountIsKept) {
  for (const auto& rank : environments(launch({"--nproc_per_node=2", "--no-python"}), {{"OMP_NUM_THREADS", "3"}}))
    EXPECT_EQ(rank.at("OMP_NUM_THREADS"), "3");
  for (const auto& rank :
       environments(launch({"--nproc_per_node=2", "--num_cpu_threads_per_process=5", "--no-python"})))
    EXPECT_EQ(rank.at("OMP_NUM_THREADS"), "5");
}

TEST(LaunchContract, FlagsAreAlsoReadFromPetVariables) {
  const auto ranks = environments(launch({"--no-python"}),
                                  {{"PET_NPROC_PER_NODE", "2"}, {"PET_ROLE", "actor"}, {"PET_RDZV_ID", "r1"}});
  EXPECT_EQ(ranks[1].at("LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(ranks[1].at("ROLE_NAME"), "actor");
  EXPECT_EQ(ranks[1].at("TORCHELASTIC_RUN_ID"), "r1");
  const auto flag_wins =
      environments(launch({"--nproc_per_node=2", "--no_python"}), {{"PET_NPROC_PER_NODE", "7"}, {"PET_MODULE", "0"}});
  EXPECT_EQ(flag_wins[0].at("WORLD_SIZE"), "2");
}

TEST(LaunchContract, AnOuterLaunchersRankDoesNotLeakIntoTheJob) {
  const auto ranks = environments(launch({"--nproc_per_node=2", "--no-python"}),
                                  {{"RANK", "5"}, {"WORLD_SIZE", "9"}, {"MASTER_PORT", "1"}, {"LOCAL_RANK", "3"}});
  EXPECT_EQ(ranks[0].at("RANK"), "0");
  EXPECT_EQ(ranks[1].at("WORLD_SIZE"), "2");
  EXPECT_NE(ranks[1].at("MASTER_PORT"), "1");
  EXPECT_EQ(ranks[0].at("MASTER_PORT"), ranks[1].at("MASTER_PORT"));
}

TEST(LaunchContract, MixedPrecisionIsExportedForAccelerateAndForCohort) {
  const Outcome outcome =
      run(launch({"--num_processes", "2", "--multi_gpu", "--mixed_precision", "bf16", "--dynamo_backend=no",
                  "--num_machines=1", "--machine_rank=0", "--main_process_port", "0", "--", "/bin/sh", "-c",
                  "echo $ACCELERATE_MIXED_PRECISION $COHORT_MIXED_PRECISION"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "[rank 0] bf16 bf16") && contains(outcome.out, "[rank 1] bf16 bf16"))
      << outcome.out;
}

/// A script that sums rank + 1 over the ranks.
fs::path all_reduce_script(const TemporaryFolder& folder, const std::string& set_up) {
  const fs::path path = folder.path() / "train.py";
  write_file_atomically(
      path, set_up +
                "\nimport torch, torch.distributed as dist, os\n"
                "dist.init_process_group('gloo', **(dict(store=store, rank=int(os.environ['RANK']), world_size=2)\n"
                "                                   if 'store' in globals() else {}))\n"
                "t = torch.tensor([dist.get_rank() + 1.0])\n"
                "dist.all_reduce(t)\n"
                "print('sum', t.item(), 'local', os.environ['LOCAL_RANK'], flush=True)\n"
                "dist.barrier()\ndist.destroy_process_group()\n");
  return path;
}

TEST(LaunchContract, PythonRanksMeetThroughMasterAddrAndPort) {
  for (const char* libuv : {"1", "0"}) {
    TemporaryFolder folder;
    const Outcome outcome = run(launch({"--nproc_per_node=2", all_reduce_script(folder, "").string()}),
                                {{"PYTHON_EXEC", python_path()}, {"USE_LIBUV", libuv}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(contains(outcome.out, "[rank 0] sum 3.0 local 0")) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "[rank 1] sum 3.0 local 1")) << outcome.out;
  }
}

TEST(LaunchContract, PythonRanksOfTwoAgentsMeetAtTheGivenAddress) {
  TemporaryFolder folder;
  const std::string script = all_reduce_script(folder, "").string();
  const std::string port = std::to_string(free_port());
  const auto node = [&](const std::string& rank) {
    return launch({"--nnodes=2", "--node-rank=" + rank, "--rdzv-endpoint=127.0.0.1:" + port, script});
  };
  const std::map<std::string, std::string> variables = {{"PYTHON_EXEC", python_path()}};
  Process second(node("1"), variables), first(node("0"), variables);
  const Outcome outcome = first.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "sum 3.0 local 0")) << outcome.out;
  const Outcome other = second.wait();
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(contains(other.out, "sum 3.0 local 0")) << other.out;
}

TEST(LaunchContract, RankZeroMayHostTheStoreOnTheInheritedSocket) {
  TemporaryFolder folder;
  const std::string store =
      "import os, torch.distributed as d, datetime\n"
      "fd = os.environ.get('COHORT_STORE_FD')\n"
      "assert (fd is not None) == (os.environ['RANK'] == '0')\n"
      "store = d.TCPStore(os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']), 2, fd is not None,\n"
      "                   timeout=datetime.timedelta(seconds=240), master_listen_fd=int(fd) if fd else None)";
  const Outcome outcome =
      run(launch({"--nproc_per_node=2", all_reduce_script(folder, store).string()}), {{"PYTHON_EXEC", python_path()}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "[rank 0] sum 3.0") && contains(outcome.out, "[rank 1] sum 3.0")) << outcome.out;
}

TEST(LaunchContract, RanksReachTheStoreUnderEveryNameOfThisMachine) {
  TemporaryFolder folder;
  write_file_atomically(
      folder.path() / "meet.py",
      "import os, socket, time\n"
      "if os.environ['RANK'] == '0':\n"
      "    store = socket.socket(fileno=int(os.environ['COHORT_STORE_FD']))\n"
      "    store.settimeout(200)\n"
      "    store.listen()\n"
      "    print('heard', store.accept()[0].recv(5).decode(), 'at', store.getsockname()[0], flush=True)\n"
      "else:\n"
      "    for _ in range(2000):\n"
      "        try:\n"
      "            peer = socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), 1)\n"
      "            break\n"
      "        except OSError:\n"
      "            time.sleep(0.1)\n"
      "    peer.sendall(b'hello')\n");
  std::vector<std::string> names = {"localhost", "127.0.0.2", "0.0.0.0"};
  if (has_ipv6_loopback()) names.insert(names.end(), {"::1", "[::1]"});
  for (const std::string& name : names) {
    const Outcome outcome =
        run(launch({"--nproc_per_node=2", "--master_addr=" + name, (folder.path() / "meet.py").string()}),
            {{"PYTHON_EXEC", python_path()}});
    EXPECT_EQ(outcome.code, 0) << name << "\n" << outcome.err;
    EXPECT_TRUE(contains(outcome.out, "heard hello at 127.0.0.1")) << name << "\n" << outcome.out << outcome.err;
    EXPECT_EQ(contains(outcome.err, "--master_addr=" + name + ": the store of a job on one node"), name != "localhost")
        << outcome.err;
  }
}

TEST(LaunchContract, TheFirstCauseOfAPythonJobIsItsExceptionByRecord) {
  TemporaryFolder folder;
  write_file_atomically(
      folder.path() / "fails.py",
      "import os, time\nfrom torch.distributed.elastic.multiprocessing.errors import record\n@record\ndef main():\n"
      "  if os.environ['RANK'] == '1': raise ValueError('row 7 has no target')\n  time.sleep(1000)\nmain()\n");
  const Outcome outcome =
      run(launch({"--nproc_per_node=2", (folder.path() / "fails.py").string()}), {{"PYTHON_EXEC", python_path()}});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "message   ValueError: row 7 has no target")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "fails.py")) << "the traceback\n" << outcome.err;
}

TEST(LaunchContract, OurErrorFileIsShownByTorchrun) {
  const Outcome outcome = run(torchrun(
      {"--nproc-per-node=1", "--master-port=" + std::to_string(free_port()), "--no-python", cohort_path(), "trian"}));
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.err, "there is no subcommand 'trian', did you mean 'train'?")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "error_file: /")) << outcome.err;
}

TEST(LaunchContract, ScriptsAndModulesRunUnderPythonAsWithTorchrun) {
  TemporaryFolder folder;
  write_file_atomically(folder.path() / "tool.py", "import sys\nprint(__name__, sys.argv[1:])\n");
  const std::map<std::string, std::string> variables = {{"PYTHON_EXEC", python_path()},
                                                        {"PYTHONPATH", folder.path().string()}};
  const Outcome script =
      run(launch({"--nproc_per_node=2", (folder.path() / "tool.py").string(), "--lr", "-r", "0.1"}), variables);
  EXPECT_TRUE(contains(script.out, "[rank 1] __main__ ['--lr', '-r', '0.1']")) << script.out << script.err;
  const Outcome module = run(launch({"--nproc_per_node=2", "-m", "tool", "--flag=1"}), variables);
  EXPECT_TRUE(contains(module.out, "[rank 0] __main__ ['--flag=1']")) << module.out << module.err;
  const Outcome old =
      run(launch({"--nproc_per_node=2", "--pass-local-rank=local_rank", (folder.path() / "tool.py").string(), "x"}),
          variables);
  EXPECT_TRUE(contains(old.out, "[rank 1] __main__ ['--local_rank=1', 'x']")) << old.out << old.err;
}

}  // namespace
}  // namespace cohort::testing
