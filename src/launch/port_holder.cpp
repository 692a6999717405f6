#include "launch/port_holder.h"

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "core/format.h"
#include "launch/port.h"

namespace cohort::launch {
namespace {
namespace fs = std::filesystem;

/// Inodes of TCP sockets at the port, those that listen apart.
void tcp_sockets(const char* table, int port, std::set<std::string>& listening, std::set<std::string>& bound) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::vector<std::string> column;
    for (std::string word; words >> word;) column.push_back(word);
    if (column.size() < 10) continue;  // sl local remote st queues tr retransmits uid timeout inode
    const std::size_t colon = column[1].rfind(':');
    if (colon == std::string::npos || std::strtol(column[1].c_str() + colon + 1, nullptr, 16) != port) continue;
    (column[3] == "0A" ? listening : bound).insert(column[9]);
  }
}

/// The socket of abstract name by which a `cohort launch` says that a port is its own.
std::set<std::string> reservation_socket(int port) {
  std::set<std::string> found;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<std::string> column;
    for (std::string word; words >> word;) column.push_back(word);
    if (column.size() == 8 && column[7] == "@" + port_lock_name(port)) found.insert(column[6]);
  }
  return found;
}

/// The first process that has one of these sockets open.
std::string process_with(const std::set<std::string>& inodes) {
  if (inodes.empty()) return "";
  std::error_code skipped;
  for (fs::directory_iterator process("/proc", skipped), end; !skipped && process != end; process.increment(skipped)) {
    const std::string pid = process->path().filename().string();
    if (!std::isdigit(static_cast<unsigned char>(pid.front()))) continue;
    std::error_code unreadable;  // another user's
    for (fs::directory_iterator file(process->path() / "fd", unreadable), last; !unreadable && file != last;
         file.increment(unreadable)) {
      std::error_code closed;
      const std::string target = fs::read_symlink(file->path(), closed).string();
      if (closed || !target.starts_with("socket:[") || !inodes.contains(target.substr(8, target.size() - 9))) continue;
      std::string name;
      std::ifstream comm(process->path() / "comm");
      std::getline(comm, name);
      return name.empty() ? "pid " + pid : format("pid {} ({})", pid, name);
    }
  }
  return "";
}

}  // namespace

std::string port_holder(int port) {
  std::set<std::string> listening, bound;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) tcp_sockets(table, port, listening, bound);
  for (const std::set<std::string>& inodes : {listening, reservation_socket(port), bound})
    if (const std::string holder = process_with(inodes); !holder.empty()) return holder;
  return "";
}

}  // namespace cohort::launch
