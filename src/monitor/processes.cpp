#include "monitor/processes.h"

#include <algorithm>
#include <charconv>

#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "monitor/host_text.h"

namespace cohort::monitor {
namespace fs = std::filesystem;
namespace {

fs::path folder_of(std::int64_t pid, const fs::path& root) {
  return root / "proc" / format("{}", pid);
}

std::vector<std::int64_t> process_ids(const fs::path& root) {
  std::vector<std::int64_t> ids;
  std::error_code error;
  for (fs::directory_iterator it(root / "proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos)
      if (const auto pid = parse_count(name)) ids.push_back(static_cast<std::int64_t>(*pid));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::uint64_t number_at(const std::vector<std::string_view>& words, std::size_t index) {
  return index < words.size() ? parse_count(words[index]).value_or(0) : 0;
}

/// Port and inode of every listening socket in a table of /proc/net.
void add_listening(const fs::path& table, const std::vector<int>& ports, std::vector<ListeningPort>& found) {
  const auto text = read_file_if_there(table);
  if (!text) return;
  for (const std::string_view line : split_lines(*text)) {
    const auto words = split_words(line);  // sl local remote st queues timer retransmits uid timeout inode
    if (words.size() < 10 || words[3] != "0A") continue;
    const std::string_view address = words[1];
    const std::size_t colon = address.rfind(':');
    int port = 0;
    if (colon == std::string_view::npos) continue;
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port, 16);
    const bool known =
        std::any_of(found.begin(), found.end(), [&](const ListeningPort& other) { return other.port == port; });
    if (!known && std::find(ports.begin(), ports.end(), port) != ports.end())
      found.push_back({.port = port, .inode = number_at(words, 9), .pid = 0, .name = ""});
  }
}

}  // namespace

std::optional<ProcessFigures> read_process(std::int64_t pid, const fs::path& root) {
  const auto text = read_file_if_there(folder_of(pid, root) / "stat");
  if (!text) return {};
  // pid (name) state parent ...; the name may hold blanks and parentheses.
  const std::size_t open = text->find('('), close = text->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  const auto words = split_words(std::string_view(*text).substr(close + 1));
  if (words.size() < 22) return {};
  static const double ticks = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  static const auto page = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)));
  ProcessFigures p;
  p.pid = pid;
  p.name = text->substr(open + 1, close - open - 1);
  p.state = words[0][0];
  p.parent = static_cast<std::int64_t>(number_at(words, 1));
  p.cpu_s = static_cast<double>(number_at(words, 11) + number_at(words, 12)) / ticks;
  p.threads = static_cast<int>(number_at(words, 17));
  p.started = number_at(words, 19);
  p.rss = number_at(words, 21) * page;
  return p;
}

std::vector<ProcessFigures> all_processes(const fs::path& root) {
  std::vector<ProcessFigures> all;
  for (const std::int64_t pid : process_ids(root))
    if (auto process = read_process(pid, root)) all.push_back(std::move(*process));
  return all;
}

std::string process_command(std::int64_t pid, const fs::path& root) {
  std::string text = read_file_if_there(folder_of(pid, root) / "cmdline").value_or("");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

std::optional<std::string> process_variable(std::int64_t pid, const std::string& name, const fs::path& root) {
  const auto text = read_file_if_there(folder_of(pid, root) / "environ");
  if (!text) return {};
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\0', begin), text->size());
    const std::string_view entry = std::string_view(*text).substr(begin, end - begin);
    if (entry.starts_with(name + "=")) return std::string(entry.substr(name.size() + 1));
    begin = end + 1;
  }
  return {};
}

bool is_alive(std::int64_t pid, std::uint64_t started, const fs::path& root) {
  const auto process = read_process(pid, root);
  return process && process->started == started && process->state != 'Z' && process->state != 'X';
}

std::vector<OpenFile> open_files(std::int64_t pid, const fs::path& root) {
  std::vector<OpenFile> files;
  std::error_code error;
  for (fs::directory_iterator it(folder_of(pid, root) / "fd", error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const fs::path target = fs::read_symlink(it->path(), gone);
    if (!gone) files.push_back({.descriptor = it->path(), .target = target.string()});
  }
  return files;
}

std::vector<ListeningPort> listening_on(const std::vector<int>& ports, const fs::path& root) {
  std::vector<ListeningPort> found;
  add_listening(root / "proc/net/tcp", ports, found);
  add_listening(root / "proc/net/tcp6", ports, found);
  if (found.empty()) return found;
  for (const std::int64_t pid : process_ids(root)) {
    for (const OpenFile& file : open_files(pid, root)) {
      if (!file.target.starts_with("socket:[")) continue;
      const auto inode = parse_count(std::string_view(file.target).substr(8));
      for (ListeningPort& port : found) {
        if (!inode || port.inode != *inode || port.pid != 0) continue;
        port.pid = pid;
        if (const auto process = read_process(pid, root)) port.name = process->name;
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const ListeningPort& a, const ListeningPort& b) { return a.port < b.port; });
  return found;
}

ProcessorTime processor_time(const fs::path& root) {
  ProcessorTime time;
  const auto text = read_file_if_there(root / "proc/stat");
  const auto line = text ? value_of(*text, "cpu ") : std::nullopt;
  if (!line) return time;
  // user nice system idle iowait irq softirq steal; guest time is counted in user already.
  const auto words = split_words(*line);
  for (std::size_t i = 0; i < std::min<std::size_t>(8, words.size()); ++i) {
    const std::uint64_t ticks = number_at(words, i);
    time.all += ticks;
    if (i != 3 && i != 4) time.busy += ticks;
  }
  return time;
}

}  // namespace cohort::monitor
