#include "dist/peers.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include <signal.h>
#include <unistd.h>

#include "core/format.h"

namespace cohort::dist {
namespace {

std::string host_identity() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  // Containers on one host share the boot id, but not the process table; the inode of the pid namespace tells them
  // apart.
  char pid_namespace[64] = "";
  if (readlink("/proc/self/ns/pid", pid_namespace, sizeof pid_namespace - 1) < 0) pid_namespace[0] = '\0';
  return format("{}/{}/{}", name, boot, pid_namespace);
}

bool has_ended(long pid) {
  if (kill(static_cast<pid_t>(pid), 0) != 0) return errno == ESRCH;
  // "pid (name) state ...": the name may hold spaces and brackets, the state follows the last one.
  std::ifstream file(format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos || bracket + 2 >= line.size()) return false;
  const char state = line[bracket + 2];
  return state == 'Z' || state == 'X';
}

}  // namespace

Peers::Peers(c10::intrusive_ptr<c10d::Store> store, int rank, int restart, const std::string& device)
    : store_(std::move(store)), key_(format("cohort/peers/{}", restart)), rank_(rank), host_(host_identity()) {
  const std::string entry = format("{} {} {} {}\n", rank, getpid(), host_, device.empty() ? "-" : device);
  store_->append(key_, std::vector<std::uint8_t>(entry.begin(), entry.end()));
}

void Peers::refresh() {
  try {
    const c10d::StoreTimeoutGuard guard(*store_, std::chrono::seconds(2));
    std::istringstream lines(store_->get_to_str(key_));
    std::vector<Peer> found;
    for (Peer peer; lines >> peer.rank >> peer.pid >> peer.host >> peer.device;) found.push_back(peer);
    known_ = std::move(found);
  } catch (const std::exception&) {
    // The store's host may be the one that died; what was known before still serves.
  }
}

std::vector<Peer> Peers::dead(std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    std::vector<Peer> result;
    for (const Peer& peer : known_)
      if (peer.rank != rank_ && peer.host == host_ && has_ended(peer.pid)) result.push_back(peer);
    if (!result.empty() || std::chrono::steady_clock::now() >= end) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

bool Peers::on_one_machine(int world_size) const {
  return std::ssize(known_) == world_size &&
         std::ranges::all_of(known_, [&](const Peer& peer) { return peer.host == host_; });
}

std::string Peers::shared_device() const {
  std::map<std::string, int> owners;
  for (const Peer& peer : known_) {
    if (peer.device == "-") continue;
    const auto [owner, is_new] = owners.emplace(peer.device, peer.rank);
    if (!is_new)
      return format("ranks {} and {} both use {}", std::min(owner->second, peer.rank),
                    std::max(owner->second, peer.rank), peer.device);
  }
  return "";
}

}  // namespace cohort::dist
