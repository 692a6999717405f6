#include "launch/rendezvous.h"

#include <array>

#include <unistd.h>

#include "core/error.h"
#include "launch/elastic_rendezvous.h"

namespace cohort::launch {
namespace {

/// "::1" from "[::1]": programs take an address without the brackets of a URL.
std::string without_brackets(const std::string& host) {
  return host.size() > 2 && host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

std::string store_address(const LaunchSettings& settings) {
  return settings.nodes == 1 ? kLoopback : without_brackets(settings.master_addr);
}

std::string own_host_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

StandaloneRendezvous::StandaloneRendezvous(const LaunchSettings& settings)
    : ranks_(settings.ranks), port_(settings.master_addr, settings.master_port, StoreReach::kThisNode) {}

Meeting StandaloneRendezvous::meet(int /*attempt*/) {
  return {.world_size = ranks_, .store_address = kLoopback, .store_port = port_.port()};
}

StaticRendezvous::StaticRendezvous(const LaunchSettings& settings)
    : meeting_{.node_rank = settings.node_rank,
               .nodes = settings.nodes,
               .first_rank = settings.node_rank * settings.ranks,
               .world_size = settings.nodes * settings.ranks,
               .store_address = store_address(settings),
               .store_port = settings.master_port} {
  COHORT_THROW_UNLESS(settings.node_rank >= 0 && settings.node_rank < settings.nodes,
                      "--node-rank={} does not fit --nnodes={}: nodes are numbered from 0 to {}", settings.node_rank,
                      settings.nodes, settings.nodes - 1);
  COHORT_THROW_UNLESS(settings.master_port > 0, "several nodes need one port that all of them know: --master-port");
  if (settings.node_rank > 0) return;
  port_ = std::make_unique<PortReservation>(settings.master_addr, settings.master_port, StoreReach::kAllNodes);
}

Meeting StaticRendezvous::meet(int attempt) {
  COHORT_CHECK(attempt == 0, "attempt {} of a static rendezvous", attempt);
  return meeting_;
}

int StaticRendezvous::bind_store_socket() const {
  COHORT_CHECK(port_ != nullptr, "node {} does not run rank 0", meeting_.node_rank);
  return port_->bind_store_socket();
}

std::unique_ptr<Rendezvous> make_rendezvous(const LaunchSettings& settings) {
  if (settings.elastic) return std::make_unique<ElasticRendezvous>(settings);
  if (settings.nodes == 1) return std::make_unique<StandaloneRendezvous>(settings);
  return std::make_unique<StaticRendezvous>(settings);
}

}  // namespace cohort::launch
