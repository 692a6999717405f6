// One rank of the process-group tests: dist_worker SCENARIO [FILE]. Prints "error: ..." and returns 1 on an exception. A
// rank that is late goes on when the file is there.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <signal.h>
#include <unistd.h>

#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "dist/cuda_plugin.h"
#include "dist/group.h"

namespace cohort::dist {
namespace {

using namespace std::chrono_literals;

void expect(bool condition, const char* what) {
  if (!condition) throw Error(format("expectation failed: {}", what));
}

void wait_for_file(const std::string& file) {
  while (!std::filesystem::exists(file)) std::this_thread::sleep_for(5ms);
}

/// Longer than any rank is late on a busy machine.
GroupOptions patient_options() {
  GroupOptions options;
  options.store_timeout = 300s;
  options.collective_timeout = 300s;
  return options;
}

/// Every collective with rank-dependent data against closed formulas.
void check_collectives(Group& group) {
  const int rank = group.rank();
  const int n = group.world_size();
  const int sum = n * (n + 1) / 2;  // of rank + 1
  at::Tensor t = torch::full({3, 2}, rank + 1.0f);
  group.all_reduce(t);
  expect(torch::equal(t, torch::full({3, 2}, static_cast<float>(sum))), "sum");
  t = torch::full({5}, rank + 1.0, at::kDouble);
  group.all_reduce(t, Reduction::kMean);
  expect(torch::equal(t, torch::full({5}, static_cast<double>(sum) / n, at::kDouble)), "mean");
  t = torch::tensor({rank, -rank}, at::kLong);
  group.all_reduce(t, Reduction::kMax);
  expect(torch::equal(t, torch::tensor({n - 1, 0}, at::kLong)), "max");
  t = torch::tensor({rank, -rank}, at::kLong);
  group.all_reduce(t, Reduction::kMin);
  expect(torch::equal(t, torch::tensor({0, 1 - n}, at::kLong)), "min");

  // A transposed view: the values land in it, not in a copy.
  at::Tensor base = torch::arange(6, at::kFloat).reshape({2, 3}) * (rank + 1);
  at::Tensor view = base.t();
  group.all_reduce(view);
  expect(torch::equal(base, torch::arange(6, at::kFloat).reshape({2, 3}) * sum), "sum of a transposed view");

  t = torch::full({4}, rank, at::kLong);
  group.broadcast(t, n - 1);
  expect(torch::equal(t, torch::full({4}, n - 1, at::kLong)), "broadcast from the last rank");

  const auto uneven = group.all_gather(torch::full({rank, 2}, rank, at::kLong));
  expect(static_cast<int>(uneven.size()) == n, "number of gathered tensors");
  for (int i = 0; i < n; ++i)
    expect(torch::equal(uneven[static_cast<std::size_t>(i)], torch::full({i, 2}, i, at::kLong)), "uneven all_gather");
  const auto scalars = group.all_gather(torch::tensor(rank + 0.5));
  for (int i = 0; i < n; ++i)
    expect(scalars[static_cast<std::size_t>(i)].item<double>() == i + 0.5, "all_gather of scalars");

  const auto texts =
      group.all_gather_bytes(std::string(static_cast<std::size_t>(3 * rank), 'x') + '\0' + std::to_string(rank));
  for (int i = 0; i < n; ++i)
    expect(texts[static_cast<std::size_t>(i)] ==
               std::string(static_cast<std::size_t>(3 * i), 'x') + '\0' + std::to_string(i),
           "all_gather_bytes");
  expect(group.broadcast_bytes(rank == 0 ? "from zero" : "", 0) == "from zero", "broadcast_bytes");
  group.barrier();
}

/// Same calls as tests/dist/gloo_interop.py, which a Python rank makes.
void meet_python(Group& group) {
  at::Tensor t = torch::arange(10, at::kFloat) * (group.rank() + 1);
  group.all_reduce(t);
  expect(torch::equal(t, torch::arange(10, at::kFloat) * 3), "sum with a Python rank");
  t = torch::full({3}, group.rank(), at::kLong);
  group.broadcast(t, 0);
  expect(torch::equal(t, torch::zeros({3}, at::kLong)), "broadcast from rank 0");
  t = torch::full({3}, group.rank(), at::kLong);
  group.broadcast(t, 1);
  expect(torch::equal(t, torch::ones({3}, at::kLong)), "broadcast from rank 1");
  at::Tensor big = torch::full({1 << 20}, group.rank() + 1.0f);
  group.all_reduce(big, Reduction::kMean);
  expect(torch::equal(big, torch::full({1 << 20}, 1.5f)), "mean of a large tensor with a Python rank");
  group.barrier();
}

/// Collectives on this rank's GPU beside those on the CPU, in one group.
void check_gpu_collectives(Group& group) {
  const at::Device gpu(at::kCUDA, static_cast<c10::DeviceIndex>(group.options().device.index));
  const int rank = group.rank();
  const int n = group.world_size();
  at::Tensor t = torch::full({1000}, rank + 1.0f, gpu);
  group.all_reduce(t, Reduction::kMean);
  expect(t.is_cuda() && torch::equal(t.cpu(), torch::full({1000}, (n + 1) / 2.0f)), "mean on the GPU");
  t = torch::full({7}, rank, at::TensorOptions(gpu).dtype(at::kLong));
  group.broadcast(t, n - 1);
  expect(torch::equal(t.cpu(), torch::full({7}, n - 1, at::kLong)), "broadcast on the GPU");
  const auto parts = group.all_gather(torch::full({rank + 1, 2}, rank, at::TensorOptions(gpu).dtype(at::kLong)));
  for (int i = 0; i < n; ++i)
    expect(torch::equal(parts[static_cast<std::size_t>(i)].cpu(), torch::full({i + 1, 2}, i, at::kLong)),
           "uneven all_gather on the GPU");
  check_collectives(group);
}

/// Sockets of this process that listen on `port`, as hexadecimal local addresses from /proc/net/tcp{,6}.
std::string listeners(int port) {
  std::string found;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      if (state == "0A" && local.ends_with(format(":{:04X}", port))) found += local + " ";
    }
  }
  return found;
}

/// Whether a shared library of that name is in this process.
bool is_mapped(const std::string& name) {
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);)
    if (line.find(name) != std::string::npos) return true;
  return false;
}

int run(const std::string& scenario, const std::string& file) {
  if (scenario == "cuda_devices") {
    expect(!cuda_plugin_loaded() && !is_mapped("libtorch_cuda"), "nothing of CUDA is loaded before it is asked for");
    std::string why;
    const int count = load_cuda_plugin().device_count(why);
    expect(cuda_plugin_loaded() && is_mapped("libtorch_cuda"), "the plugin brings libtorch_cuda");
    expect((count > 0) == why.empty(), "a reason exactly when there is no device");
    expect(torch::cuda::is_available() == (count > 0), "LibTorch sees what the plugin sees");
    std::printf("%d CUDA devices %s\n", count, why.c_str());
    return 0;
  }
  const rank::Environment env = rank::read_environment();
  GroupOptions options = patient_options();
  if (scenario == "gpu_collectives") {
    std::string why;
    options.device = {DeviceKind::kCuda, env.local_rank % std::max(1, load_cuda_plugin().device_count(why))};
  }
  if (scenario == "unreachable") options.store_timeout = 1s;
  if (scenario == "missing_rank") options.store_timeout = 2s;
  if (scenario == "patient") options.store_timeout = 12s;
  if (scenario == "late_rank") options.collective_timeout = 3s;
  if (scenario == "throws") options.collective_timeout = 10s;
  const auto group = Group::create(env, options);
  std::printf("joined %s\n", env.describe().c_str());
  std::fflush(stdout);

  if (scenario == "collectives") {
    check_collectives(*group);
    group->close();
  } else if (scenario == "gpu_collectives") {
    check_gpu_collectives(*group);
    group->close();
  } else if (scenario == "destructor") {
    check_collectives(*group);
    if (env.rank == 1) std::this_thread::sleep_for(300ms);  // the others' destructors wait for this rank
  } else if (scenario == "python") {
    meet_python(*group);
    group->close();
  } else if (scenario == "listeners") {
    if (env.rank == 0) std::printf("listening %s\n", listeners(env.master_port).c_str());
    group->close();
  } else if (scenario == "died_peer") {
    at::Tensor t = torch::ones({4});
    group->all_reduce(t);
    if (env.rank == 1) raise(SIGKILL);
    try {
      group->all_reduce(t);
    } catch (const Error& problem) {
      std::printf("first: %s\n", problem.what());
      group->all_reduce(t);  // says that the group has failed, at once
    }
  } else if (scenario == "broken_pipe") {
    // As Gloo does when a peer has died: it writes, and takes EPIPE for an answer.
    int ends[2];
    COHORT_CHECK(::pipe(ends) == 0, "no pipe");
    ::close(ends[0]);
    const bool refused = ::write(ends[1], "x", 1) < 0 && errno == EPIPE;
    std::printf("%s\n", refused ? "the pipe is broken" : "the pipe is whole");
    group->close();
  } else if (scenario == "dies_once") {
    // Under a launcher that starts the job again: rank 1 dies in the first attempt only.
    check_collectives(*group);
    if (env.rank == 1 && env.restart_count == 0) raise(SIGKILL);
    check_collectives(*group);
    group->close();
  } else if (scenario == "late_rank" || scenario == "waiting_rank") {
    if (env.rank == 1) wait_for_file(file);
    at::Tensor t = torch::ones({4});
    group->all_reduce(t);
  } else if (scenario == "late_barrier") {
    // The time limit of this one barrier, not the group's.
    if (env.rank == 1) {
      wait_for_file(file);
    } else {
      group->barrier(500ms);
    }
  } else if (scenario == "throws") {
    // The destructor runs while an exception passes: it must not wait for the others, who never come to a barrier.
    if (env.rank == 0) throw Error("rank 0 gives up");
    wait_for_file(file);
    _exit(0);
  } else {
    throw Error("unknown scenario " + scenario);
  }
  std::puts("done");
  return 0;
}

}  // namespace
}  // namespace cohort::dist

int main(int argc, char** argv) {
  try {
    return cohort::dist::run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  } catch (const std::exception& problem) {
    std::printf("error: %s\n", problem.what());
    return 1;
  }
}
