#include "launch/worker_group.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "launch/spawn.h"

extern char** environ;

namespace cohort::launch {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kPatience{2000};
constexpr const char* kFirstStepFile = "first_step";  ///< in a rank's folder, see LaunchSettings::tells_first_step

bool stored(const LaunchSettings& settings, int local_rank, int stream) {
  if (!settings.redirects.given && !settings.tee.given) return !settings.log_dir.empty();
  return ((settings.redirects.of(local_rank) | settings.tee.of(local_rank)) & stream) != 0;
}

bool shown(const LaunchSettings& settings, int local_rank, int stream) {
  if (!settings.local_ranks_filter.empty() && !settings.local_ranks_filter.contains(local_rank)) return false;
  return !(settings.redirects.of(local_rank) & stream) || (settings.tee.of(local_rank) & stream);
}

/// "[rank 0] ", or TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE with ${role_name}, ${rank} and ${local_rank} filled in, as
/// torchrun does.
std::string prefix_of(const LaunchSettings& settings, const Worker& worker) {
  const char* pattern = std::getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  std::string text = pattern ? pattern : "[rank ${rank}] ";
  const auto fill = [&](const std::string& name, const std::string& value) {
    for (std::size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
  };
  fill("${role_name}", settings.role);
  fill("${local_rank}", std::to_string(worker.local_rank));
  fill("${rank}", std::to_string(worker.rank));
  return text;
}

/// "device:inode" of a descriptor, by which a rank recognises its own standard error.
std::string identity_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return "";
  return format("{}:{}", static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino));
}

}  // namespace

bool writes_directly(const LaunchSettings& settings, int local_rank) {
  const bool alone = settings.ranks == 1 ||
                     (settings.local_ranks_filter.size() == 1 && settings.local_ranks_filter.contains(local_rank));
  if (!alone || std::getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE")) return false;
  return shown(settings, local_rank, 1) && shown(settings, local_rank, 2) && !stored(settings, local_rank, 1) &&
         !stored(settings, local_rank, 2);
}

WorkerGroup::WorkerGroup(const JobPlan& plan, Console& console, OrphanGuard& guard, const Rendezvous& rendezvous)
    : plan_(plan), console_(console), guard_(guard), rendezvous_(rendezvous) {
  folder_ = plan.log_dir / format("attempt_{}", plan.identity.attempt);
  // A single rank on a terminal stays in the foreground with the agent: it may read the keyboard (a debugger).
  own_groups_ = !(plan.settings.ranks == 1 && ::isatty(0) == 1);
}

WorkerGroup::~WorkerGroup() {
  if (finished_) return;
  for (const Worker& worker : workers_)
    if (worker.started) {
      ::kill(own_groups_ ? -worker.pid : worker.pid, SIGKILL);
      guard_.remove(worker.pid);
      while (::waitpid(worker.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
}

void WorkerGroup::make_folders() {
  std::error_code error;
  if (fs::exists(folder_, error)) {
    // The logs of an earlier job in the same folder are kept beside ours.
    fs::path aside;
    for (int n = 1; n == 1 || fs::exists(aside, error); ++n) aside = folder_.string() + format(".earlier-{}", n);
    fs::rename(folder_, aside, error);
    COHORT_THROW_UNLESS(!error, "cannot move the earlier logs {} aside: {}", folder_.string(), error.message());
    console_.line(2, "", format("cohort launch: the logs of an earlier job were moved to {}", aside.string()));
  }
  for (Worker& worker : workers_) {
    worker.folder = folder_ / format("rank_{}", worker.rank);
    fs::create_directories(worker.folder, error);
    COHORT_THROW_UNLESS(!error, "cannot create the log folder {}: {}", worker.folder.string(), error.message());
  }
}

std::vector<std::string> WorkerGroup::arguments_of(int local_rank) const {
  std::vector<std::string> arguments = plan_.settings.command;
  if (!plan_.settings.fill_local_rank) return arguments;
  const std::string placeholder = "${local_rank}";
  for (std::size_t i = 1; i < arguments.size(); ++i)
    for (std::size_t at; (at = arguments[i].find(placeholder)) != std::string::npos;)
      arguments[i].replace(at, placeholder.size(), std::to_string(local_rank));
  return arguments;
}

std::unique_ptr<RankStream> WorkerGroup::make_stream(const Worker& worker, int stream, bool shows_bar) const {
  const LaunchSettings& settings = plan_.settings;
  const char* name = stream == 1 ? "stdout.log" : "stderr.log";
  return std::make_unique<RankStream>(
      RankStream::Settings{.rank = worker.rank,
                           .stream = stream,
                           .prefix = prefix_of(settings, worker),
                           .show = shown(settings, worker.local_rank, stream),
                           .file = stored(settings, worker.local_rank, stream) ? worker.folder / name : fs::path(),
                           .holds_bar = shows_bar},
      console_);
}

void WorkerGroup::start(std::vector<std::unique_ptr<rank::Page>> pages) {
  const LaunchSettings& settings = plan_.settings;
  workers_.clear();
  for (int local_rank = 0; local_rank < settings.ranks; ++local_rank) {
    workers_.emplace_back();
    workers_.back().rank = plan_.identity.meeting.first_rank + local_rank;
    workers_.back().local_rank = local_rank;
  }
  make_folders();
  for (Worker& worker : workers_) {
    const auto index = static_cast<std::size_t>(worker.local_rank);
    if (index < pages.size()) {
      worker.page = std::move(pages[index]);
      worker.page->begin_round(settings.recovers());
    } else {
      worker.page = rank::Page::make(settings.recovers());
    }
    start_one(worker, 0);
  }
}

void WorkerGroup::start_one(Worker& worker, int recovery) {
  const LaunchSettings& settings = plan_.settings;
  struct Close {
    int fd;
    ~Close() {
      if (fd >= 0) ::close(fd);
    }
  };
  const Close null{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  const bool keyboard = ::isatty(0) == 1;
  // The bar of the first shown rank is drawn on a terminal; the others' bars would fight for the same line.
  const int bar_rank = settings.local_ranks_filter.empty() ? 0 : *settings.local_ranks_filter.begin();
  SpawnRequest request;
  request.program = plan_.program;
  request.arguments = arguments_of(worker.local_rank);
  request.own_group = own_groups_;
  // Rank 0 may read what is piped into the agent; a terminal only a single rank, as background groups are stopped for
  // it.
  request.standard_input = settings.ranks == 1 || (worker.local_rank == 0 && !keyboard) ? -1 : null.fd;
  RankFiles files{.error_file = (worker.folder / "error.json").string(), .recovery = recovery};
  if (settings.tells_first_step) files.first_step_file = (worker.folder / kFirstStepFile).string();
  if (!writes_directly(settings, worker.local_rank)) {
    const bool shows_bar =
        console_.terminal() && worker.local_rank == bar_rank && shown(settings, worker.local_rank, 2);
    worker.out = make_stream(worker, 1, false);
    worker.err = make_stream(worker, 2, shows_bar);
    request.standard_output = worker.out->write_end();
    request.standard_error = worker.err->write_end();
    if (shows_bar) {
      files.terminal_columns = console_.columns() - 1 - static_cast<int>(prefix_of(settings, worker).size());
      files.terminal_stream = identity_of(worker.err->write_end());
    }
  }
  // A rank that takes a dead one's place binds the port itself: the store of those before it has gone by then.
  const Close store{worker.rank == 0 && recovery == 0 ? rendezvous_.bind_store_socket() : -1};
  files.store_fd = store.fd;
  files.page_fd = worker.page->descriptor();
  request.inherited = {store.fd, files.page_fd};
  request.environment =
      merge_environment(environ, rank_variables(settings, plan_.identity, worker.local_rank,
                                                plan_.devices[static_cast<std::size_t>(worker.local_rank)], files));
  request.guard = guard_.descriptor();
  worker.pid = spawn(request);
  worker.started = true;
  if (worker.out) worker.out->close_write_end();
  if (worker.err) worker.err->close_write_end();
}

void WorkerGroup::retire(Worker& worker) {
  if (own_groups_) ::kill(-worker.pid, SIGKILL);
  const auto end = std::chrono::steady_clock::now() + kDrainTime;
  for (;;) {
    std::vector<pollfd> descriptors;
    std::vector<RankStream*> streams;
    for (RankStream* stream : {worker.out.get(), worker.err.get()})
      if (stream && stream->read_end() >= 0) {
        descriptors.push_back({stream->read_end(), POLLIN, 0});
        streams.push_back(stream);
      }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (descriptors.empty() || left <= 0) break;
    if (::poll(descriptors.data(), static_cast<nfds_t>(descriptors.size()), static_cast<int>(left)) <= 0) continue;
    for (std::size_t i = 0; i < streams.size(); ++i)
      if (descriptors[i].revents != 0) streams[i]->read();
    console_.write();
  }
  reap(worker);
}

void WorkerGroup::replace(Worker& worker, int recovery) {
  Worker next;
  next.rank = worker.rank;
  next.local_rank = worker.local_rank;
  next.recovery = recovery;
  next.page = std::move(worker.page);
  next.page->clear_for_next();
  next.folder = folder_ / format("rank_{}.recovery_{}", worker.rank, recovery);
  std::error_code error;
  fs::create_directories(next.folder, error);
  COHORT_THROW_UNLESS(!error, "cannot create the log folder {}: {}", next.folder.string(), error.message());
  worker = std::move(next);
  start_one(worker, recovery);
}

bool WorkerGroup::read_all() {
  bool open = false;
  for (Worker& worker : workers_)
    for (RankStream* stream : {worker.out.get(), worker.err.get()})
      if (stream && stream->read_end() >= 0) open = stream->read() || open;
  return open;
}

void WorkerGroup::poll(int wake, std::chrono::milliseconds at_most) {
  std::vector<pollfd> descriptors;
  descriptors.push_back({wake, POLLIN, 0});
  console_.add_to(descriptors);
  const std::size_t first_stream = descriptors.size();
  std::vector<RankStream*> streams;
  if (console_.queued() < Console::kMostQueued)
    for (Worker& worker : workers_)
      for (RankStream* stream : {worker.out.get(), worker.err.get()})
        if (stream && stream->read_end() >= 0) {
          streams.push_back(stream);
          descriptors.push_back({stream->read_end(), POLLIN, 0});
        }
  const int ready =
      ::poll(descriptors.data(), static_cast<nfds_t>(descriptors.size()), static_cast<int>(at_most.count()));
  if (ready > 0)
    for (std::size_t i = 0; i < streams.size(); ++i)
      if (descriptors[first_stream + i].revents != 0) streams[i]->read();
  console_.write();
  note_ended();
}

void WorkerGroup::note_ended() {
  for (Worker& worker : workers_) {
    if (!worker.started || worker.ended) continue;
    siginfo_t info{};
    // It stays a zombie until finish(), so that its number, and its group's, cannot become somebody else's.
    if (::waitid(P_PID, static_cast<id_t>(worker.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      continue;
    worker.ended = true;
    worker.ended_at = std::chrono::system_clock::now();
    if (info.si_code == CLD_EXITED)
      worker.exit_code = info.si_status;
    else
      worker.signal = info.si_status;
  }
}

void WorkerGroup::send(int signal, bool means_stop) {
  for (Worker& worker : workers_) {
    if (!worker.started) continue;
    if (means_stop && !worker.ended) worker.asked_to_stop = true;
    const pid_t target = own_groups_ ? -worker.pid : worker.pid;
    if (!own_groups_ && worker.ended) continue;
    ::kill(target, signal);
    if (means_stop && signal != SIGKILL) ::kill(target, SIGCONT);
  }
}

void WorkerGroup::send_to(const Worker& worker, int signal) const {
  const pid_t target = own_groups_ ? -worker.pid : worker.pid;
  ::kill(target, signal);
  ::kill(target, SIGCONT);
}

std::vector<std::unique_ptr<rank::Page>> WorkerGroup::take_pages() {
  COHORT_CHECK(finished_, "pages are given away when all ranks have ended");
  std::vector<std::unique_ptr<rank::Page>> pages;
  for (Worker& worker : workers_) pages.push_back(std::move(worker.page));
  return pages;
}

bool WorkerGroup::all_ended() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.ended; });
}

bool WorkerGroup::any_failed() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.failed(); });
}

bool WorkerGroup::has_made_a_step() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) {
    std::error_code error;
    return fs::exists(w.folder / kFirstStepFile, error);
  });
}

void WorkerGroup::finish(bool clean) {
  if (clean && own_groups_)
    for (const Worker& worker : workers_) ::kill(-worker.pid, SIGKILL);
  // What the ranks wrote before they ended is in the pipes already; only a process they left behind can keep one open.
  const auto end = std::chrono::steady_clock::now() + kDrainTime;
  for (bool open = true; open;) {
    // A slow reader is waited for, as by any program; by a job that is being stopped only for a while.
    while (console_.queued() >= Console::kMostQueued && !console_.reader_gone() &&
           !(clean && std::chrono::steady_clock::now() > end + kPatience)) {
      std::vector<pollfd> waiting;
      console_.add_to(waiting);
      ::poll(waiting.data(), static_cast<nfds_t>(waiting.size()), 100);
      console_.write();
    }
    std::vector<pollfd> descriptors;
    for (Worker& worker : workers_)
      for (RankStream* stream : {worker.out.get(), worker.err.get()})
        if (stream && stream->read_end() >= 0) descriptors.push_back({stream->read_end(), POLLIN, 0});
    if (descriptors.empty()) break;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    const int ready =
        ::poll(descriptors.data(), static_cast<nfds_t>(descriptors.size()), static_cast<int>(std::max<long>(left, 0)));
    if (ready == 0) break;
    open = read_all();
    console_.write();
  }
  for (Worker& worker : workers_) reap(worker);
  finished_ = true;
}

void WorkerGroup::reap(Worker& worker) {
  for (RankStream* stream : {worker.out.get(), worker.err.get()}) {
    if (!stream) continue;
    if (stream->read_end() >= 0)
      console_.line(2, "",
                    format("cohort launch: rank {} ended, but a process it started still holds its output; what that "
                           "writes from now on is not read",
                           worker.rank));
    stream->finish();
    if (!stream->file_failure().empty())
      console_.line(2, "",
                    format("cohort launch: the log of rank {} is incomplete: {}", worker.rank, stream->file_failure()));
  }
  guard_.remove(worker.pid);
  rusage usage{};
  while (::wait4(worker.pid, nullptr, 0, &usage) < 0 && errno == EINTR) {
  }
  worker.peak_memory = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

}  // namespace cohort::launch
