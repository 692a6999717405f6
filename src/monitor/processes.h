/// The processes of this machine and the ports that they listen on, from /proc (proc(5)). What may not be read (another
/// user's files, another system) is left out. `root` stands before every path (tests, recorded machines).
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cohort::monitor {

struct ProcessFigures {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::string name;           ///< of the program, 15 characters at most
  char state = '?';           ///< R running, S sleeping, D waiting for a disk, T stopped, Z ended
  std::uint64_t started = 0;  ///< clock ticks since the machine began
  double cpu_s = 0;           ///< processor time used so far, s
  std::uint64_t rss = 0;      ///< resident memory, bytes
  int threads = 0;
};

std::optional<ProcessFigures> read_process(std::int64_t pid, const std::filesystem::path& root = "/");
std::vector<ProcessFigures> all_processes(const std::filesystem::path& root = "/");

/// Its command line, words separated by blanks.
std::string process_command(std::int64_t pid, const std::filesystem::path& root = "/");
/// A variable of the environment it was started with.
std::optional<std::string> process_variable(std::int64_t pid, const std::string& name,
                                            const std::filesystem::path& root = "/");
/// Whether it is the one that began then and has not ended.
bool is_alive(std::int64_t pid, std::uint64_t started, const std::filesystem::path& root = "/");

struct OpenFile {
  std::filesystem::path descriptor;  ///< /proc/PID/fd/N: leads to the file even where its name does not
  std::string target;                ///< what it is: a path, "socket:[12]", ...
};
std::vector<OpenFile> open_files(std::int64_t pid, const std::filesystem::path& root = "/");

/// A TCP socket that listens.
struct ListeningPort {
  int port = 0;
  std::uint64_t inode = 0;
  std::int64_t pid = 0;  ///< 0: not known
  std::string name;      ///< of that process
};
/// Those of `ports` that somebody listens on, by port.
std::vector<ListeningPort> listening_on(const std::vector<int>& ports, const std::filesystem::path& root = "/");

/// Processor time of the whole machine since it began, in clock ticks; zeros where it is not known.
struct ProcessorTime {
  std::uint64_t busy = 0;
  std::uint64_t all = 0;
};
ProcessorTime processor_time(const std::filesystem::path& root = "/");

}  // namespace cohort::monitor
