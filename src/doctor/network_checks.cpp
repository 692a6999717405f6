// What ranks need to find each other: interfaces, names, ports, firewall, containers' network and shared memory,
// InfiniBand.
#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>

#include <netdb.h>
#include <sys/socket.h>
#include <sys/statvfs.h>

#include "doctor/examination.h"
#include "doctor/recorded_machine.h"
#include "monitor/host_text.h"

namespace cohort::doctor {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kEnoughShm = 1ull << 30;
constexpr std::uint64_t kDockersShm = 64ull << 20;
constexpr int kTorchrunsPort = 29500, kFirstOfGuides = 12355, kLastOfGuides = 12365;

bool is_bridge_or_loop(const std::string& name) {
  for (const char* prefix : {"lo", "docker", "veth", "br-", "virbr", "cni", "flannel", "cali", "ifb", "dummy", "tunl"})
    if (name.starts_with(prefix)) return true;
  return false;
}

bool is_up(const Case& c, const std::string& name) {
  const std::string state = fact(c.root / "sys/class/net" / name / "operstate");
  return state != "down" && state != "lowerlayerdown";
}

/// Those of the machine's interfaces that NCCL's or Gloo's variable means. NCCL: a list of prefixes, "=" before it for
/// whole names, "^" for all but these (NCCL user guide, NCCL_SOCKET_IFNAME); Gloo: whole names.
std::vector<std::string> meant(const std::vector<std::string>& all, std::string list, bool prefixes) {
  bool except = false;
  if (prefixes && list.starts_with("^")) except = true, list.erase(0, 1);
  if (prefixes && list.starts_with("=")) prefixes = false, list.erase(0, 1);
  std::vector<std::string> chosen;
  for (const std::string& name : all) {
    bool matches = false;
    std::istringstream entries(list);
    for (std::string entry; std::getline(entries, entry, ',');)
      matches = matches || (prefixes ? name.starts_with(entry) : name == entry);
    if (matches != except) chosen.push_back(name);
  }
  return chosen;
}

void look_at_interfaces(const Case& c, Findings& found) {
  const auto all = names_in(c.root / "sys/class/net");
  if (all.empty()) return found.leave_out("/sys/class/net is not there");
  bool chosen = false;
  for (const bool nccl : {true, false}) {
    const std::string variable = nccl ? "NCCL_SOCKET_IFNAME" : "GLOO_SOCKET_IFNAME";
    const auto value = c.variable(variable);
    if (!value || value->empty()) continue;
    chosen = true;
    const auto interfaces = meant(all, *value, nccl);
    if (interfaces.empty()) {
      found.error(format("{} names no interface of this machine", variable),
                  format("{}={}; there are {}", variable, *value, join(all, ", ")),
                  format("unset it, or name one of them: {}={}", variable,
                         *std::find_if(all.begin(), all.end(), [&](const std::string& name) {
                           return !is_bridge_or_loop(name) || name == all.back();
                         })));
    } else if (std::none_of(interfaces.begin(), interfaces.end(),
                            [&](const std::string& name) { return is_up(c, name); })) {
      found.error(format("the interface of {} is down", variable),
                  format("/sys/class/net/{}/operstate is {}", interfaces.front(),
                         fact(c.root / "sys/class/net" / interfaces.front() / "operstate")),
                  format("ip link set {} up, or name another", interfaces.front()));
    }
  }
  std::vector<std::string> candidates;
  for (const std::string& name : all)
    if (!is_bridge_or_loop(name) && is_up(c, name)) candidates.push_back(name);
  if (c.nodes > 1 && !chosen && candidates.size() > 1)
    found.warning("NCCL and Gloo may choose an interface that the other nodes do not reach",
                  format("{} are up, NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME are not set", join(candidates, ", ")),
                  format("set both to the one between the nodes: NCCL_SOCKET_IFNAME={0} GLOO_SOCKET_IFNAME={0}",
                         candidates.front()));
  if (c.nodes > 1 && candidates.empty())
    found.error("no network interface is up", format("/sys/class/net has {}", join(all, ", ")), "ip link; ip address");
}

void look_at_firewall(const Case& c, Findings& found) {
  if (c.nodes < 2) return found.leave_out("the job takes one node (--nodes=N for more)");
  std::vector<std::string> signs;
  for (const char* file : {"proc/net/ip_tables_names", "proc/net/ip6_tables_names"})
    if (fact(c.root / file).find("filter") != std::string::npos) signs.push_back(format("/{} has filter", file));
  const std::string modules = fact(c.root / "proc/modules");
  for (const std::string_view line : monitor::split_lines(modules))
    for (const char* module : {"nft_reject", "nft_ct", "xt_conntrack"})
      if (line.starts_with(module)) signs.push_back(format("the module {} is loaded", module));
  if (!signs.empty())
    found.warning("a packet filter may keep the nodes apart", join(signs, "; "),
                  "open the ports between the nodes: beside the store's, Gloo and NCCL choose ports of their own; "
                  "nft list ruleset, or iptables -L, shows the rules");
}

void look_at_names(const Case& c, Findings& found) {
  const std::string address = c.variable("MASTER_ADDR").value_or("");
  if (address.empty()) return found.leave_out("MASTER_ADDR is not set");
  if (!c.live) return found.leave_out("names are not looked up for a recorded machine");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* result = nullptr;
  const int code = ::getaddrinfo(address.c_str(), nullptr, &hints, &result);
  if (code != 0) {
    found.error("MASTER_ADDR does not resolve", format("{}: {}", address, ::gai_strerror(code)),
                "use the address of rank 0's machine, or add its name to DNS or /etc/hosts");
    return;
  }
  bool loopback = false;
  for (const addrinfo* a = result; a != nullptr; a = a->ai_next) {
    char text[NI_MAXHOST] = {};
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      loopback = loopback || std::string(text).starts_with("127.") || std::string(text) == "::1";
  }
  ::freeaddrinfo(result);
  if (loopback && c.nodes > 1)
    found.error("MASTER_ADDR leads to this machine alone", format("{} resolves to loopback", address),
                "use an address that the other nodes reach; /etc/hosts often maps the machine's own name to 127.0.1.1");
}

void look_at_ports(const Case& c, Findings& found) {
  std::set<int> asked(c.ports.begin(), c.ports.end());
  if (const auto port = monitor::parse_count(c.variable("MASTER_PORT").value_or("")))
    asked.insert(static_cast<int>(std::min<std::uint64_t>(*port, 65535)));
  std::vector<int> ports(asked.begin(), asked.end());
  ports.push_back(kTorchrunsPort);
  for (int port = kFirstOfGuides; port <= kLastOfGuides; ++port) ports.push_back(port);
  for (const monitor::ListeningPort& taken : monitor::listening_on(ports, c.root)) {
    const bool own = std::any_of(c.machine.ranks.begin(), c.machine.ranks.end(),
                                 [&](const auto& rank) { return rank.status.pid == taken.pid; });
    const std::string who =
        taken.pid == 0 ? "a process that this user may not see" : format("process {} ({})", taken.pid, taken.name);
    const std::string remedy =
        format("leave --master_port out: a free one is found; or end that process (ss -ltnp sport = :{} shows it)",
               taken.port);
    if (own)
      found.note(format("port {} belongs to a job that runs", taken.port), who, "another job needs another port");
    else if (asked.contains(taken.port))
      found.error(format("port {} is in use", taken.port), format("{} listens on it", who), remedy);
    else
      found.warning(format("port {}, which guides and launchers take by default, is in use", taken.port),
                    format("{} listens on it", who), remedy);
  }
}

void look_at_containers_network(const Case& c, Findings& found) {
  const std::string sign = container_sign(c.root);
  if (sign.empty()) return found.leave_out("this is no container");
  if (c.nodes < 2) return found.leave_out("the job takes one node (--nodes=N for more)");
  const fs::path net = c.root / "sys/class/net";
  for (const std::string& name : names_in(net)) {
    if (name == "lo") continue;
    // One end of a pair whose other end lies outside: its link's index is not its own (sysfs-class-net, iflink).
    const std::string own = fact(net / name / "ifindex"), link = fact(net / name / "iflink");
    if (own.empty() || link.empty() || own == link) continue;
    found.error("the container has a network of its own: other nodes do not reach its ranks",
                format("{}; {} is a pair's end (ifindex {}, iflink {})", sign, name, own, link),
                "docker run --network host; in a compose file network_mode: host; in Kubernetes hostNetwork: true or a "
                "headless service");
    return;
  }
}

void look_at_shared_memory(const Case& c, Findings& found) {
  std::uint64_t size = 0;
  bool mounted = false;
  const std::string mounts = fact(c.root / "proc/mounts");
  for (const std::string_view line : monitor::split_lines(mounts)) {
    const auto words = monitor::split_words(line);
    if (words.size() < 4 || words[1] != "/dev/shm") continue;
    mounted = true;
    const std::size_t at = words[3].find("size=");
    if (at != std::string_view::npos) size = monitor::parse_count(words[3].substr(at + 5)).value_or(0) * 1024;
  }
  struct statvfs space {};
  const bool known = c.live && ::statvfs("/dev/shm", &space) == 0;
  if (known) size = space.f_frsize * space.f_blocks;
  const std::string remedy =
      "docker run --ipc host, or --shm-size 1g; in Kubernetes an emptyDir with medium: Memory at /dev/shm";
  if (!mounted && !known) {
    if (mounts.empty()) return found.leave_out("/proc/mounts is not there");
    found.warning("there is no /dev/shm", "/proc/mounts does not name it", remedy);
    return;
  }
  if (known && space.f_blocks > 0 && space.f_bavail * space.f_frsize < kDockersShm)
    found.error("/dev/shm is full",
                format("{} free of {}", format_bytes(static_cast<double>(space.f_bavail * space.f_frsize)),
                       format_bytes(static_cast<double>(size))),
                "rm what ended programs have left there; " + remedy);
  else if (size > 0 && size < kEnoughShm)
    found.warning(
        "/dev/shm is small for NCCL and for loaders with processes",
        format("{}{}", format_bytes(static_cast<double>(size)), size == kDockersShm ? ", Docker's default" : ""),
        remedy);
}

void look_at_infiniband(const Case& c, Findings& found) {
  const fs::path folder = c.root / "sys/class/infiniband";
  const auto adapters = names_in(folder);
  if (adapters.empty()) return found.leave_out("there is no InfiniBand or RoCE adapter");
  const bool off = c.variable("NCCL_IB_DISABLE").value_or("") == "1";
  bool any_active = false;
  for (const std::string& adapter : adapters)
    for (const std::string& port : names_in(folder / adapter / "ports")) {
      const std::string state = fact(folder / adapter / "ports" / port / "state");
      if (state.find("ACTIVE") != std::string::npos) {
        any_active = true;
        continue;
      }
      if (off) continue;
      found.warning(format("a port of {} does not work", adapter),
                    format("/sys/class/infiniband/{}/ports/{}/state is {}, phys_state {}", adapter, port, state,
                           fact(folder / adapter / "ports" / port / "phys_state")),
                    "NCCL_IB_DISABLE=1, or NCCL_IB_HCA with the adapters that work; cable, switch, opensm");
    }
  if (off && any_active)
    found.note("InfiniBand works and is switched off", "NCCL_IB_DISABLE=1", "unset it: sockets are slower");
  if (off || !any_active) return;
  const std::string limits = fact(c.root / "proc/self/limits");
  for (const std::string_view line : monitor::split_lines(limits))
    if (line.starts_with("Max locked memory")) {
      const auto words = monitor::split_words(line);
      const auto limit = words.size() > 3 ? monitor::parse_count(words[3]) : std::nullopt;
      if (limit && *limit < kEnoughShm)
        found.error("too little memory may be locked for InfiniBand",
                    format("/proc/self/limits: Max locked memory {}", format_bytes(static_cast<double>(*limit))),
                    "docker run --ulimit memlock=-1; elsewhere memlock unlimited in /etc/security/limits.conf");
    }
  const std::string modules = fact(c.root / "proc/modules");
  if (!nvidia_on_pci(c.root).empty() && !modules.empty() && modules.find("nvidia_peermem") == std::string::npos &&
      modules.find("nv_peer_mem") == std::string::npos)
    found.note("GPUs and InfiniBand exchange through the host's memory", "/proc/modules has no nvidia_peermem",
               "modprobe nvidia-peermem, unless NCCL uses DMA-BUF");
}

}  // namespace

std::vector<Check> network_checks() {
  return {{"net-interface", "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME, interfaces that are up", look_at_interfaces},
          {"net-firewall", "packet filters between nodes", look_at_firewall},
          {"net-name", "whether MASTER_ADDR resolves, and where to", look_at_names},
          {"net-port", "MASTER_PORT, 29500 and 12355 to 12365", look_at_ports},
          {"net-container", "the network of a container", look_at_containers_network},
          {"net-shm", "/dev/shm", look_at_shared_memory},
          {"net-infiniband", "ports of InfiniBand adapters, memory that may be locked", look_at_infiniband}};
}

}  // namespace cohort::doctor
