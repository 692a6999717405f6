#include "dist/store.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/error.h"
#include "dist/store_socket.h"

namespace cohort::dist {

std::string store_host(const RankEnvironment& env) {
  return env.one_node() && !env.agent_hosts_store ? "127.0.0.1" : env.master_addr;
}

c10::intrusive_ptr<c10d::Store> open_store(const RankEnvironment& env, std::chrono::milliseconds timeout) {
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
      socket = open_store_socket(env.master_port, env.one_node(), env.port_origin);
    }
    options.masterListenFd = socket.get();
  } else {
    wait_for_listener(host, env.master_port, timeout, who);
  }
  try {
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
