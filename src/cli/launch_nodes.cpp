#include "cli/launch_nodes.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "cli/subcommand.h"
#include "launch/rendezvous.h"

namespace cohort::cli {
namespace {

constexpr int kUsualPort = 29500;  ///< torchrun's and accelerate's
constexpr int kMostNodes = 100000;

bool to_number(const std::string& text, int& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

struct NodeRange {
  int least = 1;
  int most = 1;
};

/// "2", "2:2" or "1:4": how many nodes take part.
NodeRange parse_nodes(const char* flag, const std::string& text) {
  const auto number = [&](const std::string& word) {
    int value = 0;
    if (!to_number(word, value) || value < 1 || value > kMostNodes)
      throw UsageError(format("launch: {}={} is no number of nodes: give 1 to {}, or MIN:MAX", flag, text, kMostNodes));
    return value;
  };
  const auto colon = text.find(':');
  const int least = number(text.substr(0, colon));
  const int most = colon == std::string::npos ? least : number(text.substr(colon + 1));
  if (least > most) throw UsageError(format("launch: {}={}: the least number of nodes stands first", flag, text));
  return {least, most};
}

NodeRange count_nodes(const NodeFlags& flags) {
  const NodeRange nodes = parse_nodes("--nnodes", flags.nnodes.empty() ? "1" : flags.nnodes);
  if (flags.num_machines == 0) return nodes;
  const NodeRange machines = parse_nodes("--num_machines", std::to_string(flags.num_machines));
  if (!flags.nnodes.empty() && (nodes.least != machines.least || nodes.most != machines.most))
    throw UsageError(
        format("launch: --nnodes={} and --num_machines={} contradict each other", flags.nnodes, flags.num_machines));
  return machines;
}

int own_rank(const NodeFlags& flags, int nodes) {
  if (flags.node_rank >= 0 && flags.machine_rank >= 0 && flags.node_rank != flags.machine_rank)
    throw UsageError("launch: --node_rank and --machine_rank contradict each other");
  const int rank = std::max({flags.node_rank, flags.machine_rank, 0});
  if (rank >= nodes)
    throw UsageError(format("launch: --node_rank={} does not fit --nnodes={}: nodes are numbered from 0 to {}", rank,
                            nodes, nodes - 1));
  return rank;
}

bool is_local(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == "[::1]" || host == "0.0.0.0" ||
         host == launch::own_host_name() || launch::is_own_address(host);
}

/// "host:port" of a static rendezvous is the store's. Under c10d it is the agents' own; the ranks' store gets a port of
/// its own there, and here.
void take_endpoint(launch::LaunchSettings& settings, const NodeFlags& flags) {
  const std::string& endpoint = flags.rdzv_endpoint;
  if (endpoint.empty()) return;
  const auto colon = endpoint.rfind(':');
  const std::string host = endpoint.substr(0, colon);
  if (settings.nodes == 1 && !is_local(host))
    throw UsageError(
        format("launch: --rdzv-endpoint={} is not on this machine, and the job has one node (--nnodes)", endpoint));
  if (settings.nodes > 1 && settings.master_addr.empty()) settings.master_addr = host;
  if (colon == std::string::npos) return;
  const std::string text = endpoint.substr(colon + 1);
  int port = 0;
  if (!to_number(text, port))
    throw UsageError(
        format("launch: --rdzv-endpoint={} has no port behind its colon: '{}' is no number", endpoint, text));
  check_port("--rdzv-endpoint", port);
  if (flags.rdzv_backend != "c10d" && settings.master_port == 0) settings.master_port = port;
}

/// "[::1]" without its brackets, which only a URL has.
std::string plain_host(const std::string& host) {
  return host.size() > 2 && host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2) : host;
}

/// --rdzv-conf: NAME=VALUE,..., of which there is one.
void take_conf(launch::LaunchSettings& settings, const NodeFlags& flags) {
  constexpr const char* kOnly = "state_file=";
  if (flags.rdzv_conf.empty()) return;
  if (flags.rdzv_conf.rfind(kOnly, 0) != 0 || flags.rdzv_conf.find(',') != std::string::npos ||
      flags.rdzv_conf.size() == std::string(kOnly).size())
    throw UsageError(
        format("launch: --rdzv-conf={} is not possible: the only setting is state_file=PATH, a file on a file system "
               "that all nodes share",
               flags.rdzv_conf));
  if (!settings.elastic || settings.numbered_nodes)
    throw UsageError(
        "launch: --rdzv-conf=state_file=PATH is for nodes that meet by --rdzv-backend=c10d --rdzv-endpoint=HOST:PORT");
  settings.state_file = flags.rdzv_conf.substr(std::string(kOnly).size());
}

/// Nodes that meet, and may come and go.
void settle_elastic(LaunchRequest& request, const NodeFlags& flags) {
  launch::LaunchSettings& settings = request.settings;
  settings.elastic = true;
  if (flags.standalone) throw UsageError("launch: --standalone and several nodes contradict each other");
  std::string rest = flags.rdzv_endpoint;
  for (bool first = true; first || !rest.empty(); first = false) {
    const auto comma = rest.find(',');
    const std::string endpoint = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    const auto colon = endpoint.rfind(':');
    const std::string host = plain_host(endpoint.substr(0, colon));
    if (host.empty())
      throw UsageError(
          "launch: nodes that come and go meet at --rdzv-endpoint=HOST:PORT, where HOST is a machine on which one of "
          "the agents runs, as the others reach it; with A:PORT,B:PORT the job survives the loss of A");
    int port = launch::LaunchSettings().rendezvous_port;
    if (colon != std::string::npos && (!to_number(endpoint.substr(colon + 1), port) || port < 1))
      throw UsageError(format("launch: --rdzv-endpoint={} has no port behind its colon", flags.rdzv_endpoint));
    check_port("--rdzv-endpoint", port);
    if (first) {
      settings.rendezvous_host = host;
      settings.rendezvous_port = port;
    } else {
      settings.further_endpoints.emplace_back(host, port);
    }
  }
  if (settings.run_id.empty())
    throw UsageError("launch: nodes that meet need one --rdzv-id, a name for the job that no other job there has");
  if (flags.num_processes > 0)
    throw UsageError(
        "launch: --num_processes counts over all machines, and how many there will be is not known: give "
        "--nproc_per_node");
  if (!settings.master_addr.empty())
    throw UsageError("launch: the ranks' store is where the nodes meet: leave --master-addr out");
  if (flags.rdzv_backend == "c10d")
    request.notes.push_back(
        "the agents meet by Cohort's own protocol: `cohort launch` on all nodes, none of torchrun's");
}

/// Restarts of nodes whose numbers are given: their agents meet on node 0, at the port after the store's.
void let_numbered_meet(launch::LaunchSettings& settings) {
  const char* secret = std::getenv("COHORT_JOB_SECRET");
  if (settings.job_secret_file.empty() && !(secret && *secret))
    throw UsageError(format(
        "launch: --max-restarts={} on several nodes: without a secret of the job nobody tells the others. Give "
        "all of them --job-secret-file=F (`openssl rand -hex 32 > F && chmod 600 F`), or let the scheduler start "
        "the job again",
        settings.max_restarts));
  if (settings.master_port == 65535)
    throw UsageError("launch: --master-port=65535: the agents of this job meet at the port after it; take a lower one");
  settings.elastic = settings.numbered_nodes = true;
  settings.rendezvous_host = plain_host(settings.master_addr);
  settings.rendezvous_port = settings.master_port + 1;
  if (settings.run_id.empty()) settings.run_id = "none";  // torchrun's word
}

/// What only several nodes need.
void settle_several(LaunchRequest& request, const NodeFlags& flags) {
  launch::LaunchSettings& settings = request.settings;
  if (flags.standalone)
    throw UsageError(format("launch: --standalone and --nnodes={} contradict each other", settings.nodes));
  if (settings.master_addr.empty())
    throw UsageError(
        "launch: several nodes need --master-addr (accelerate: --main_process_ip), the address of node 0 as the others "
        "see it");
  if (settings.master_port == 0) settings.master_port = kUsualPort;
  if (settings.max_restarts > 0) let_numbered_meet(settings);
  // accelerate counts processes over all machines, torchrun on each node.
  if (flags.num_processes <= 0) return;
  if (flags.num_processes % settings.nodes != 0)
    throw UsageError(
        format("launch: --num_processes={} is the number on all machines together and cannot be divided by "
               "--num_machines={}",
               flags.num_processes, settings.nodes));
  request.ranks = std::to_string(flags.num_processes / settings.nodes);
  if (!flags.nproc_per_node.empty() && flags.nproc_per_node != request.ranks)
    throw UsageError(format("launch: --nproc_per_node={} and --num_processes={} on {} machines contradict each other",
                            flags.nproc_per_node, flags.num_processes, settings.nodes));
}

}  // namespace

void check_port(const char* flag, int port) {
  if (port < 0 || port > 65535)
    throw UsageError(
        format("launch: {}: {} is no port: they go from 1 to 65535, and 0 chooses a free one", flag, port));
}

void settle_nodes(LaunchRequest& request, const NodeFlags& flags) {
  launch::LaunchSettings& settings = request.settings;
  const NodeRange nodes = count_nodes(flags);
  settings.least_nodes = nodes.least;
  settings.nodes = nodes.most;
  if (nodes.least != nodes.most || (nodes.most > 1 && flags.rdzv_backend == "c10d")) {
    settle_elastic(request, flags);
    return take_conf(settings, flags);
  }
  settings.node_rank = own_rank(flags, settings.nodes);
  if (!flags.main_process_ip.empty()) {
    if (!settings.master_addr.empty() && settings.master_addr != flags.main_process_ip)
      throw UsageError("launch: --master_addr and --main_process_ip contradict each other");
    settings.master_addr = flags.main_process_ip;
  }
  take_endpoint(settings, flags);
  if (settings.nodes > 1) settle_several(request, flags);
  take_conf(settings, flags);
  if (settings.master_addr.empty()) settings.master_addr = "127.0.0.1";
}

}  // namespace cohort::cli
