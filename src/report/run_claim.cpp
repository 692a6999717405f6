#include "report/run_claim.h"

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

using LockClock = std::chrono::steady_clock;

/// Who holds a folder.
struct Holder {
  std::string host;
  std::string processes;  ///< its machine's boot and its table of processes: pids mean the same where these are equal
  long pid = 0;
  std::string started;  ///< of the process, in the kernel's ticks: a pid may be given again
  std::string since;    ///< of the claim, local time

  std::string text() const { return format("pid {} on {}, since {}", pid, host, since); }
};

struct ProcessLook {
  char state = 0;  ///< as proc(5) has it; 0: there is no such process
  std::string started;
};

/// /proc/PID/stat: "pid (name) state ..."; the name may hold brackets; the start is the 22nd field.
ProcessLook look_at(long pid) {
  std::ifstream file(format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return {};
  std::istringstream words(line.substr(bracket + 1));
  std::vector<std::string> fields;
  for (std::string word; words >> word;) fields.push_back(word);
  constexpr std::size_t kStart = 22 - 3;
  if (fields.size() <= kStart) return {};
  return {fields.front().front(), fields[kStart]};
}

Holder this_process() {
  Holder own;
  char name[256] = "?";
  ::gethostname(name, sizeof name - 1);
  own.host = name;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code none;
  const std::string pids = fs::read_symlink("/proc/self/ns/pid", none).string();
  if (!boot.empty() && !pids.empty()) own.processes = boot + "/" + pids;
  own.pid = ::getpid();
  own.started = look_at(own.pid).started;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char since[32];
  std::strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S", &local);
  own.since = since;
  return own;
}

/// Always as long as before, so that it can be written in place.
std::string to_record(const Holder& holder, std::uint64_t beat) {
  const nlohmann::ordered_json json = {{"host", holder.host},   {"processes", holder.processes},
                                       {"pid", holder.pid},     {"started", holder.started},
                                       {"since", holder.since}, {"beat", format("{:020}", beat)}};
  return json_text(json) + "\n";
}

/// The file as it is now, opened anew: over NFS only that shows what another machine has written.
struct LockFile {
  std::uint64_t inode = 0;  ///< 0: there is none
  std::string text;

  explicit LockFile(const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status {};
    if (::fstat(fd, &status) == 0) inode = status.st_ino;
    char piece[4096];
    for (ssize_t n = 0; (n = ::pread(fd, piece, sizeof piece, static_cast<off_t>(text.size()))) > 0;)
      text.append(piece, static_cast<std::size_t>(n));
    ::close(fd);
  }
  std::optional<Holder> holder() const {
    const auto json = try_json<nlohmann::json>(text);
    if (!json.is_object()) return std::nullopt;
    try {
      return Holder{.host = json.at("host"),
                    .processes = json.at("processes"),
                    .pid = json.at("pid"),
                    .started = json.at("started"),
                    .since = json.at("since")};
    } catch (const nlohmann::json::exception&) {
      return std::nullopt;
    }
  }
};

std::uint64_t inode_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/// Why the holder of a locked file has no right to it any more; "": it has; nothing: the file is another's by now.
std::optional<std::string> obstacle_of(const LockFile& found, const fs::path& path, const ClaimLimits& limits) {
  const auto holder = found.holder();
  const Holder own = this_process();
  if (holder && !own.processes.empty() && holder->processes == own.processes) {
    const ProcessLook look = look_at(holder->pid);
    if (look.state == 0 || look.state == 'Z' || look.state == 'X' || look.started != holder->started)
      return "has ended, and its lock stayed";
    if (look.state == 'T' || look.state == 't') return "is stopped";
    return "";
  }
  if (holder)
    log::info("{}: {} holds this folder; looking for up to {} s whether it is alive", path.parent_path().string(),
              holder->text(), limits.silence.count() / 1000);
  constexpr std::chrono::milliseconds kLook{100};
  for (const auto end = LockClock::now() + limits.silence; LockClock::now() < end;) {
    std::this_thread::sleep_for(kLook);
    const LockFile now(path);
    if (now.inode != found.inode) return std::nullopt;
    if (now.text != found.text) return "";
  }
  return format("has given no sign of life for {} s", limits.silence.count() / 1000);
}

}  // namespace

/// Writes the file again and again, and sees whether it is still this process'.
class RunClaim::Beats {
 public:
  Beats(const fs::path& file, int lock, const Holder& own, std::chrono::milliseconds every)
      : file_(file), lock_(lock), own_(own), every_(every) {
    // Signals belong to the thread that trains.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Beats() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Beats(const Beats&) = delete;
  Beats& operator=(const Beats&) = delete;

 private:
  void run() {
    const std::uint64_t inode = inode_of(lock_);
    std::unique_lock lock(mutex_);
    for (std::uint64_t beat = 1; !changed_.wait_for(lock, every_, [this] { return stop_; }); ++beat) {
      const LockFile now(file_);
      // A file server may give an inode's number again.
      const auto holder = now.holder();
      const bool of_another = holder && (holder->host != own_.host || holder->processes != own_.processes ||
                                         holder->pid != own_.pid || holder->started != own_.started);
      if (now.inode != 0 && (now.inode != inode || of_another)) leave(now);
      const std::string record = to_record(own_, beat);
      // Where that fails once, the next one comes; a holder on this machine is not judged by it.
      [[maybe_unused]] const ssize_t written = ::pwrite(lock_, record.data(), record.size(), 0);
    }
  }
  /// Nothing of this process may be written any more, its log included.
  [[noreturn]] void leave(const LockFile& now) const {
    const auto holder = now.holder();
    std::fputs(format("this process stood still, and its run {} has been taken over{}: it ends here\n",
                      file_.parent_path().string(), holder ? " by " + holder->text() : "")
                   .c_str(),
               stderr);
    ::_exit(1);
  }

  const fs::path file_;
  const int lock_;
  const Holder own_;
  const std::chrono::milliseconds every_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

RunClaim::RunClaim(const fs::path& folder, const ClaimLimits& limits) : file_(folder / "run.lock") {
  for (;;) {
    lock_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    COHORT_THROW_UNLESS(lock_ >= 0, "cannot open {} for writing: {}", file_.string(), std::strerror(errno));
    const bool locked = ::flock(lock_, LOCK_EX | LOCK_NB) == 0;
    const int reason = errno;
    const LockFile found(file_);
    if (locked && found.inode == inode_of(lock_)) break;
    if (!locked && reason != EWOULDBLOCK) {
      log::warning("{} cannot be locked ({}): see to it that no other process trains in this folder", file_.string(),
                   std::strerror(reason));
      break;
    }
    ::close(lock_);
    lock_ = -1;
    if (locked || found.inode == 0) continue;  // its holder has just ended
    const auto obstacle = obstacle_of(found, file_, limits);
    if (!obstacle) continue;
    const auto holder = found.holder();
    const std::string who = holder ? holder->text() : "a process that has not said which";
    COHORT_THROW_UNLESS(!obstacle->empty(),
                        "another process is training in {}: {}. Wait until it has ended, or stop it{}", folder.string(),
                        who, holder ? format(" there with `kill {}`", holder->pid) : "");
    log::warning("{}: its holder ({}) {}: this process takes the run over", folder.string(), who, *obstacle);
    // Its lock is on a file that has no name any more.
    if (LockFile(file_).inode == found.inode) ::unlink(file_.c_str());
  }
  const Holder own = this_process();
  const std::string record = to_record(own, 0);
  COHORT_THROW_UNLESS(::ftruncate(lock_, 0) == 0 &&
                          ::pwrite(lock_, record.data(), record.size(), 0) == static_cast<ssize_t>(record.size()),
                      "cannot write {}: {}", file_.string(), std::strerror(errno));
  beats_ = std::make_unique<Beats>(file_, lock_, own, limits.beat);
}

RunClaim::~RunClaim() {
  beats_.reset();
  if (LockFile(file_).inode == inode_of(lock_)) ::unlink(file_.c_str());
  ::close(lock_);
}

}  // namespace cohort::report
