#include "dist/group.h"

#include <algorithm>
#include <chrono>
#include <csignal>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/log.h"
#include "core/without_stack.h"
#include "dist/cuda_plugin.h"
#include "dist/gloo/gloo_backend.h"
#include "dist/group_breaker.h"
#include "dist/own_address.h"
#include "dist/peers.h"
#include "dist/recovery.h"
#include "dist/store.h"

namespace cohort::dist {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr auto kGoodbye = std::chrono::seconds(30);
constexpr auto kLookForDead = milliseconds(500);

/// LibTorch's messages carry a C++ stack after the first line.
std::string first_line(const std::exception& problem) {
  const std::string text(problem.what());
  return text.substr(0, text.find('\n'));
}

/// Gloo writes to its sockets by writev(2) and takes EPIPE for an answer (gloo/transport/tcp/pair.cc), but the signal
/// that comes with it would end a rank whose peer has died. Python, for which it is made, ignores that signal.
void ignore_broken_pipes() {
  struct sigaction present {};
  if (::sigaction(SIGPIPE, nullptr, &present) == 0 && present.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

bool contains_any(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    if (text.find(part) != std::string::npos) return true;
  return false;
}

bool is_timeout(const std::string& text) {
  return contains_any(text, {"Timed out", "timed out", "timeout", "Timeout"});
}

/// What fails before this share of its time limit did not fail because of it.
constexpr double kShareOfLimit = 0.9;

double time_in_seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

bool is_lost_connection(const std::string& text) {
  return contains_any(text,
                      {"Connection closed by peer", "Connection reset by peer", "Broken pipe", "Connection refused",
                       "Socket closed", "NCCL error", "remote process exited", "gloo/transport"});
}

c10d::ReduceOp to_c10d(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMax:
      return c10d::ReduceOp::MAX;
    case Reduction::kMin:
      return c10d::ReduceOp::MIN;
    default:
      return c10d::ReduceOp::SUM;  // kMean divides afterwards: Gloo has no average
  }
}

/// On which the other ranks reach this one. The way to the store is a way to them; a host's name may lead elsewhere.
std::string own_address_for(const rank::Environment& env) {
  return env.on_loopback() ? "127.0.0.1" : own_address_towards(env.master_addr);
}

at::Tensor bytes_to_tensor(const std::string& bytes) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(tensor.data_ptr<std::uint8_t>()));
  return tensor;
}

std::string tensor_to_bytes(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return std::string(reinterpret_cast<const char*>(flat.data_ptr<std::uint8_t>()),
                     static_cast<std::size_t>(flat.numel()));
}

}  // namespace

struct Group::Impl {
  rank::Environment env;
  GroupOptions options;
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::Backend> nccl;
  std::unique_ptr<Peers> peers;
  std::unique_ptr<GroupBreaker> breaker;  ///< where an agent of ours watches
  bool closed = false;
  std::string failure;  ///< first failed operation; empty while all is well
  int exceptions_at_start = std::uncaught_exceptions();

  void check_open(const char* operation) const {
    COHORT_THROW_UNLESS(failure.empty(), "rank {}: {} is not possible any more, since the group has failed: {}",
                        env.rank, operation, failure);
    COHORT_CHECK(!closed, "{} on a group that is closed", operation);
  }

  /// Runs one collective to its end.
  template <class Start>
  void run(Group& owner, const char* operation, const Start& start, std::optional<milliseconds> limit = std::nullopt) {
    check_open(operation);
    const auto begin = Clock::now();
    const WaitingForOthers waiting;
    try {
      const c10::intrusive_ptr<c10d::Work> work = start();
      if (work) work->wait();
    } catch (const std::exception& problem) {
      throw owner.explain(problem, operation, Group::Waited{Clock::now() - begin, limit});
    }
  }

  /// The tensor on which a collective can work: contiguous, on a device that a backend serves.
  at::Tensor prepare(const at::Tensor& tensor) const {
    at::Tensor ready = tensor.detach();
    if (ready.is_cpu() && !has_gloo() && nccl)
      ready = ready.to(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(options.device.index)));
    return ready.contiguous();
  }
};

Group::Group() : impl_(std::make_unique<Impl>()) {}

std::shared_ptr<Group> Group::create(const rank::Environment& env, const GroupOptions& options) {
  // Not make_shared: the constructor is private.
  std::shared_ptr<Group> result(new Group());
  result->impl_->env = env;
  result->impl_->options = options;
  result->connect(options.store_timeout);
  return result;
}

void Group::connect(milliseconds store_timeout) {
  Impl& self = *impl_;
  const rank::Environment& env = self.env;
  const GroupOptions& options = self.options;
  const bool cuda = options.device.kind == DeviceKind::kCuda;
  const CudaPlugin* plugin = cuda ? &load_cuda_plugin() : nullptr;
  if (env.world_size > 1) ignore_broken_pipes();

  self.breaker = env.world_size > 1 ? GroupBreaker::of_this_process(env.generation) : nullptr;
  if (env.world_size == 1) {
    self.store = c10::make_intrusive<c10d::HashStore>();
  } else {
    self.store = open_store(env, store_timeout);
    self.peers = std::make_unique<Peers>(self.store, env.rank, env.restart_count,
                                         cuda ? plugin->device_uuid(options.device.index) : std::string());
  }
  // Who connects again has been called, so that everybody is there: a rank that has died meanwhile is not waited for.
  const milliseconds connect_timeout =
      env.generation > 0 ? std::min(store_timeout, options.collective_timeout) : options.collective_timeout;
  const auto start = Clock::now();
  try {
    // Python's init_process_group nests its stores in this way; with the same keys C++ and Python ranks meet. An agent
    // that hosts the store (torchrun's) keeps it when it restarts the job, and with it the addresses of the dead ranks.
    c10::intrusive_ptr<c10d::Store> attempt = self.store;
    if (env.restart_count > 0)
      attempt = c10::make_intrusive<c10d::PrefixStore>(format("cohort/attempt_{}", env.restart_count), attempt);
    const auto outer = c10::make_intrusive<c10d::PrefixStore>("default_pg", attempt);
    const auto prefix = c10::make_intrusive<c10d::PrefixStore>("0/", outer);
    self.group = c10::make_intrusive<c10d::ProcessGroup>(prefix, env.rank, env.world_size);
    self.group->setDefaultBackend(cuda ? c10d::ProcessGroup::NCCL : c10d::ProcessGroup::GLOO);
    if (has_gloo() || !cuda) {
      const auto store = c10::make_intrusive<c10d::PrefixStore>("cpu/", prefix);
      const auto backend = make_gloo_backend(store, env.rank, env.world_size, connect_timeout, own_address_for(env));
      if (connect_timeout != options.collective_timeout) backend->setTimeout(options.collective_timeout);
      self.group->setBackend(at::kCPU, c10d::ProcessGroup::GLOO, backend);
    }
    if (cuda) {
      const auto store = c10::make_intrusive<c10d::PrefixStore>("cuda/", prefix);
      self.nccl =
          plugin->make_nccl_backend(store, env.rank, env.world_size, options.collective_timeout, options.device.index);
      self.group->setBackend(at::kCUDA, c10d::ProcessGroup::NCCL, self.nccl);
    }
    self.group->setGroupName("0");
    self.group->setGroupDesc("default_pg");
  } catch (const std::exception& problem) {
    throw explain(problem, "the connection of the ranks with each other",
                  Group::Waited{Clock::now() - start, std::min(store_timeout, connect_timeout)});
  }
  if (self.peers) {
    // Gloo's connections stand, so that every rank has published by now.
    self.peers->refresh();
    const std::string shared = self.peers->shared_device();
    // NCCL_HOSTID makes NCCL believe in several hosts: the way to try several ranks on one GPU.
    if (cuda && !shared.empty() && !rank::process_variable("NCCL_HOSTID")) {
      self.failure = shared;
      throw Error(
          format("{}, which NCCL refuses: start as many processes per node as it has GPUs, or give each its own with "
                 "CUDA_VISIBLE_DEVICES (cohort launch does)",
                 shared));
    }
  }
}

void Group::leave() {
  Impl& self = *impl_;
  if (self.failure.empty()) self.failure = "it has been left";
  try {
    if (self.nccl) self.nccl->abort();
  } catch (const std::exception& problem) {
    log::warning("while leaving the group: {}", first_line(problem));
  }
  self.nccl.reset();
  if (self.group && self.group.use_count() > 1)
    log::warning("something still holds on to the group of ranks that broke; other ranks may wait for this one");
  self.group.reset();
  self.peers.reset();
  self.store.reset();
  self.breaker.reset();
}

void Group::rejoin(int generation, milliseconds limit) {
  Impl& self = *impl_;
  COHORT_CHECK(!self.group && !self.closed, "a group is left before it is joined again");
  self.env.generation = generation;
  self.env.store_fd.reset();
  self.failure.clear();
  try {
    connect(limit);
  } catch (const std::exception& problem) {
    if (self.failure.empty()) self.failure = without_stack(problem.what());
    throw;
  }
}

Group::~Group() {
  Impl& self = *impl_;
  if (self.closed) return;
  if (self.failure.empty() && std::uncaught_exceptions() <= self.exceptions_at_start && self.group &&
      self.env.world_size > 1) {
    try {
      barrier(std::min<milliseconds>(kGoodbye, self.options.collective_timeout));
    } catch (const std::exception& problem) {
      log::warning("while leaving the group: {}", first_line(problem));
    }
  }
  try {
    if (self.nccl) self.failure.empty() ? self.nccl->shutdown() : self.nccl->abort();
  } catch (const std::exception& problem) {
    log::warning("while leaving the group: {}", first_line(problem));
  }
}

int Group::rank() const {
  return impl_->env.rank;
}
int Group::world_size() const {
  return impl_->env.world_size;
}
const rank::Environment& Group::environment() const {
  return impl_->env;
}
const GroupOptions& Group::options() const {
  return impl_->options;
}
bool Group::on_one_machine() const {
  return impl_->peers && impl_->peers->on_one_machine(impl_->env.world_size);
}
bool Group::a_rank_has_ended() const {
  return impl_->peers && !impl_->peers->dead(milliseconds(0)).empty();
}
bool Group::failed() const {
  return !impl_->failure.empty();
}
const std::string& Group::failure() const {
  return impl_->failure;
}
const c10::intrusive_ptr<c10d::ProcessGroup>& Group::process_group() const {
  return impl_->group;
}

void Group::all_reduce(at::Tensor& tensor, Reduction reduction) {
  COHORT_CHECK(reduction != Reduction::kMean || tensor.is_floating_point(), "the mean of {} values",
               c10::toString(tensor.scalar_type()));
  if (world_size() == 1) return impl_->check_open("all_reduce");
  const at::NoGradGuard no_grad;
  at::Tensor ready = impl_->prepare(tensor);
  impl_->run(*this, "all_reduce", [&] {
    std::vector<at::Tensor> tensors{ready};
    c10d::AllreduceOptions options;
    options.reduceOp = to_c10d(reduction);
    return impl_->group->allreduce(tensors, options);
  });
  if (reduction == Reduction::kMean) ready.div_(world_size());
  if (!ready.is_alias_of(tensor)) tensor.copy_(ready);
}

void Group::broadcast(at::Tensor& tensor, int root) {
  COHORT_CHECK(root >= 0 && root < world_size(), "root {} of {} ranks", root, world_size());
  if (world_size() == 1) return impl_->check_open("broadcast");
  const at::NoGradGuard no_grad;
  at::Tensor ready = impl_->prepare(tensor);
  impl_->run(*this, "broadcast", [&] {
    std::vector<at::Tensor> tensors{ready};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return impl_->group->broadcast(tensors, options);
  });
  if (!ready.is_alias_of(tensor)) tensor.copy_(ready);
}

std::vector<at::Tensor> Group::all_gather(const at::Tensor& tensor) {
  impl_->check_open("all_gather");
  if (world_size() == 1) return {tensor.detach().clone()};
  const at::NoGradGuard no_grad;
  const auto gather_equal = [&](const at::Tensor& part) {
    std::vector<at::Tensor> inputs{impl_->prepare(part)};
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (int i = 0; i < world_size(); ++i) outputs[0].push_back(at::empty_like(inputs[0]));
    impl_->run(*this, "all_gather", [&] { return impl_->group->allgather(outputs, inputs); });
    for (at::Tensor& output : outputs[0]) output = output.to(part.device());
    return outputs[0];
  };
  if (tensor.dim() == 0) return gather_equal(tensor);
  const std::vector<at::Tensor> sizes = gather_equal(at::full({1}, tensor.size(0), at::kLong));
  std::int64_t largest = 0;
  for (const at::Tensor& size : sizes) largest = std::max(largest, size.item<std::int64_t>());
  at::Tensor padded = tensor.detach();
  if (tensor.size(0) < largest) {
    std::vector<std::int64_t> shape = tensor.sizes().vec();
    shape[0] = largest;
    padded = at::zeros(shape, tensor.options());
    padded.narrow(0, 0, tensor.size(0)).copy_(tensor.detach());
  }
  std::vector<at::Tensor> parts = gather_equal(padded);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = parts[i].narrow(0, 0, sizes[i].item<std::int64_t>());
  return parts;
}

std::vector<std::string> Group::all_gather_bytes(const std::string& bytes) {
  std::vector<std::string> result;
  for (const at::Tensor& part : all_gather(bytes_to_tensor(bytes))) result.push_back(tensor_to_bytes(part));
  return result;
}

std::string Group::broadcast_bytes(const std::string& bytes, int root) {
  at::Tensor size = at::full({1}, static_cast<std::int64_t>(bytes.size()), at::kLong);
  broadcast(size, root);
  at::Tensor content = rank() == root ? bytes_to_tensor(bytes) : at::empty({size.item<std::int64_t>()}, at::kByte);
  broadcast(content, root);
  return tensor_to_bytes(content);
}

void Group::barrier(std::optional<milliseconds> timeout) {
  if (world_size() == 1) return impl_->check_open("barrier");
  impl_->run(
      *this, "barrier",
      [&] {
        c10d::BarrierOptions options;
        options.device = has_gloo() ? at::Device(at::kCPU)
                                    : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(impl_->options.device.index));
        if (timeout) options.timeout = *timeout;
        return impl_->group->barrier(options);
      },
      timeout);
}

void Group::close() {
  if (impl_->closed) return;
  barrier();
  if (impl_->nccl) impl_->nccl->shutdown();
  impl_->closed = true;
  impl_->nccl.reset();
  impl_->group.reset();
  impl_->peers.reset();
  impl_->store.reset();
  impl_->breaker.reset();
}

bool Group::is_communication_failure(const std::exception& problem) {
  const std::string text = first_line(problem);
  return is_lost_connection(text) || is_timeout(text);
}

Error Group::explain(const std::exception& problem, const std::string& operation, std::optional<Waited> waited) {
  Impl& self = *impl_;
  const std::string reason = first_line(problem);
  std::string message = format("rank {} of {}: {} failed", self.env.rank, self.env.world_size, operation);
  // LibTorch also names the limit ("timeout=1800000") where a connection could not be made at once.
  const double seconds = waited ? time_in_seconds(waited->time) : 0.0;
  const bool too_early =
      is_timeout(reason) && waited &&
      seconds < kShareOfLimit * time_in_seconds(waited->limit.value_or(self.options.collective_timeout));
  std::vector<Peer> dead;
  if (self.peers) {
    self.peers->refresh();
    dead = self.peers->dead(is_lost_connection(reason) || too_early ? kLookForDead : milliseconds(0));
  }
  if (!dead.empty()) {
    message += dead.size() == 1 ? " because rank " : " because ranks ";
    for (std::size_t i = 0; i < dead.size(); ++i)
      message += format("{}{} (pid {})", i == 0 ? "" : ", ", dead[i].rank, dead[i].pid);
    message += dead.size() == 1 ? " has ended; its own output tells why" : " have ended; their own output tells why";
  } else if (is_timeout(reason) && !too_early) {
    message += format(
        ": some rank did not take part {}. It may hang, be much slower, have stopped earlier (unequal numbers of "
        "steps), or be at another collective; look at the last lines of every rank's output",
        waited ? format("within {:.1f} s", seconds) : "in time");
  } else if (is_lost_connection(reason) || too_early) {
    message +=
        ": the connection to another rank broke, most likely because that rank failed or was killed; the rank whose "
        "output "
        "ends first tells why";
  }
  message += waited ? format(" ({}, after {:.1f} s)", reason, seconds) : format(" ({})", reason);
  if (self.failure.empty()) self.failure = message;
  return Error(message);
}

}  // namespace cohort::dist
