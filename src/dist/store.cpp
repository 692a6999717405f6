#include "dist/store.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <poll.h>

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/error.h"
#include "core/log.h"
#include "dist/own_address.h"
#include "dist/store_socket.h"

namespace cohort::dist {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr auto kFirstWarning = std::chrono::seconds(10);
constexpr auto kAddressWarning = std::chrono::seconds(4);  // nobody answers there, or the name is unknown
constexpr auto kBetweenWarnings = std::chrono::seconds(60);
constexpr auto kOwnKnock = std::chrono::seconds(3);  // rank 0 asks whether MASTER_ADDR leads to it

/// Nobody outside this machine has to reach the store. An elastic job with one node left keeps its store where the next
/// node will look for it.
bool only_here(const rank::Environment& env) {
  return env.one_node() && env.full_world_size == 0;
}

double in_seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// Warns while it lives that something is waited for: after 10 s, then every minute.
class WaitingNotice {
 public:
  WaitingNotice(const std::string& what, milliseconds limit)
      : thread_([this, what, limit] {
          const auto start = Clock::now();
          std::unique_lock lock(mutex_);
          for (auto next = start + kFirstWarning; !changed_.wait_until(lock, next, [this] { return over_; });
               next += kBetweenWarnings)
            log::warning("{}; waiting for {:.0f} s by now, and for {:.0f} s at most", what,
                         in_seconds(Clock::now() - start), in_seconds(limit));
        }) {}
  ~WaitingNotice() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  WaitingNotice(const WaitingNotice&) = delete;
  WaitingNotice& operator=(const WaitingNotice&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

/// Keeps LibTorch's log back while it lives: the store's lines carry a C++ stack for every attempt, and what they say
/// is told here. Its warnings stay back afterwards: when a connection breaks, the store writes such a stack, too, before
/// anybody can say who is lost. Where TORCH_CPP_LOG_LEVEL is set, it holds; LibTorch reads it by itself under Python
/// only.
class QuietLibTorch {
 public:
  QuietLibTorch() : before_(FLAGS_caffe2_log_level) {
    constexpr int kError = 2, kFatal = 3;  // of TORCH_CPP_LOG_LEVEL
    if (std::getenv("TORCH_CPP_LOG_LEVEL") != nullptr) {
      static std::once_flag once;
      std::call_once(once, [] { c10::initLogging(); });
      before_ = FLAGS_caffe2_log_level;
    } else {
      before_ = std::max(before_, kError);
      FLAGS_caffe2_log_level = kFatal;
    }
  }
  ~QuietLibTorch() { FLAGS_caffe2_log_level = before_; }
  QuietLibTorch(const QuietLibTorch&) = delete;
  QuietLibTorch& operator=(const QuietLibTorch&) = delete;

 private:
  int before_;
};

/// wait_for_listener with warnings on the way.
void wait_with_warnings(const std::string& host, int port, milliseconds timeout, const std::string& who) {
  const auto start = Clock::now();
  for (milliseconds patience = kAddressWarning;; patience = kBetweenWarnings) {
    const auto left = timeout - std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    const bool last = left <= patience;
    try {
      return wait_for_listener(host, port, std::min(patience, left), who);
    } catch (const Error& problem) {
      const double waited = in_seconds(Clock::now() - start);
      if (last && waited < in_seconds(kAddressWarning)) throw;
      if (last) throw Error(format("{}; it waited for {:.0f} s in all", problem.what(), waited));
      log::warning("{}; waiting for {:.0f} s by now, and for {:.0f} s at most", problem.what(), waited,
                   in_seconds(timeout));
    }
  }
}

/// Where MASTER_ADDR is another machine's, the other ranks look for the store there, and rank 0 would wait in vain.
/// `listening`: the store's socket, on all addresses of this machine.
void check_leads_here(const rank::Environment& env, const std::string& host, int listening, milliseconds timeout) {
  const AddressOwner owner = owner_of(host);
  if (owner == AddressOwner::kThisMachine) return;
  // A name that is made known later than this process starts (a service of Kubernetes) is waited for.
  if (owner == AddressOwner::kUnknown)
    return wait_with_warnings(host, env.master_port, timeout, format("rank 0 of {}", env.world_size));
  std::string answer = "something else answers there";
  try {
    wait_for_listener(host, env.master_port, std::min<milliseconds>(kOwnKnock, timeout), "rank 0");
    // A router may translate the address to this machine's: then the knock is in the socket's queue.
    pollfd knock{listening, POLLIN, 0};
    if (poll(&knock, 1, 1000) > 0) return;
  } catch (const Error&) {
    answer = "nothing answers there";
  }
  throw Error(format(
      "rank 0 of {} hosts the store on this machine, but MASTER_ADDR={} is another machine's address (port {}: "
      "{}). Set MASTER_ADDR of all ranks to an address of the machine on which rank 0 runs, or start rank 0 on {}",
      env.world_size, host, env.master_port, answer, host));
}

}  // namespace

std::string store_host(const rank::Environment& env) {
  return only_here(env) && !env.agent_hosts_store ? "127.0.0.1" : env.master_addr;
}

c10::intrusive_ptr<c10d::Store> open_store(const rank::Environment& env, std::chrono::milliseconds timeout) {
  const bool hosts = env.rank == 0 && !env.agent_hosts_store;
  const std::string host = store_host(env);
  const std::string who = format("rank {} of {}", env.rank, env.world_size);

  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env.master_port);
  options.isServer = hosts;
  options.numWorkers = static_cast<std::size_t>(env.world_size);
  options.timeout = timeout;
  OwnedSocket socket;
  if (hosts) {
    if (env.store_fd) {
      const int port = bound_port(*env.store_fd);
      COHORT_THROW_UNLESS(port == env.master_port, "COHORT_STORE_FD={} is bound to port {}, but MASTER_PORT={}",
                          *env.store_fd, port, env.master_port);
      socket = OwnedSocket(*env.store_fd);
    } else {
      socket = open_store_socket(env.master_port, only_here(env), env.port_origin);
      if (!only_here(env)) check_leads_here(env, host, socket.get(), timeout);
    }
    options.masterListenFd = socket.get();
  } else {
    wait_with_warnings(host, env.master_port, timeout, who);
  }
  try {
    const QuietLibTorch quiet;
    const WaitingNotice notice(
        hosts ? format("{} hosts the store at {}:{}, but not all ranks have joined it", who, host, env.master_port)
              : format("{} reached {}:{}, but no store answers there: is it another service's port?", who, host,
                       env.master_port),
        timeout);
    auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
    socket.release();
    return store;
  } catch (const std::exception& problem) {
    // LibTorch's messages carry a C++ stack after the first line.
    const std::string text(problem.what());
    const std::string reason = text.substr(0, text.find('\n'));
    socket.release();  // the store's server closes it
    if (hosts)
      throw Error(format(
          "rank 0 of {} hosts the store at {}:{}, but not all ranks joined it within {:.1f} s ({}). Look at the output "
          "of "
          "the ranks that are missing; start exactly WORLD_SIZE={} processes with the same MASTER_ADDR and MASTER_PORT",
          env.world_size, host, env.master_port, std::chrono::duration<double>(timeout).count(), reason,
          env.world_size));
    throw Error(format(
        "{} reached {}:{}, but did not get through to a store there ({}). Check that MASTER_PORT={} is not another "
        "service's port",
        who, host, env.master_port, reason, env.master_port));
  }
}

}  // namespace cohort::dist
