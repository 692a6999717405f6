#include "report/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/log.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

constexpr int kMostRunsPerSecond = 1000;

std::string date_time(std::chrono::system_clock::time_point now, const char* pattern) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, pattern, &local));
}

void check_name(const std::string& name) {
  const fs::path path(name);
  const bool leaves =
      std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".." || part == "."; });
  const bool control = std::any_of(name.begin(), name.end(), [](char c) { return c >= 0 && c < 0x20; });
  COHORT_THROW_UNLESS(!name.empty() && path.is_relative() && !leaves && !control,
                      "the run's name becomes a folder and cannot be '{}': use letters, digits, '-', '_' and '/'",
                      name);
}

fs::path target_of(const fs::path& link) {
  std::error_code error;
  return fs::read_symlink(link, error);
}

/// Those of `path` and the folders above it that do not exist, inner ones first.
std::vector<fs::path> missing_folders(fs::path path) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (; !path.empty() && !fs::exists(path, error) && !error; path = path.parent_path()) missing.push_back(path);
  return missing;
}

}  // namespace

RunFolder RunFolder::create(const fs::path& outputs, const std::string& name,
                            std::chrono::system_clock::time_point now) {
  check_name(name);
  const fs::path parent = outputs / name;
  std::error_code error;
  fs::create_directories(parent, error);
  COHORT_THROW_UNLESS(!error, "cannot create the folder {} for results: {}; choose another one", parent.string(),
                      error.message());
  const std::string stem = date_time(now, "%Y-%m-%d_%H-%M-%S");
  for (int i = 1; i <= kMostRunsPerSecond; ++i) {
    const fs::path path = parent / (i == 1 ? stem : format("{}-{}", stem, i));
    // mkdir tells whether it was this process that made it, which create_directory does not in a race.
    if (::mkdir(path.c_str(), 0777) == 0) {
      try {
        replace_symlink(path.filename(), parent / "latest");
      } catch (const Error& e) {
        log::warning("{}", e.what());  // a file system without links, or something of the user's of that name
      }
      return RunFolder(path);
    }
    COHORT_THROW_UNLESS(errno == EEXIST, "cannot create the folder {} for results: {}; choose another one",
                        path.string(), std::strerror(errno));
  }
  throw Error(format("{} holds {} runs of the same second already", parent.string(), kMostRunsPerSecond));
}

RunFolder RunFolder::open(const fs::path& path) {
  std::error_code error;
  COHORT_THROW_UNLESS(fs::is_directory(path, error), "{} is not the folder of a run", path.string());
  return RunFolder(path);
}

void RunFolder::save_configuration(std::string_view config_json, std::span<const std::string> overrides) const {
  std::error_code error;
  const bool resumed = fs::exists(config_file(), error);
  if (resumed && read_file(config_file()) != config_json) {
    int i = 1;
    while (fs::exists(path_ / format("config.{}.json", i), error)) ++i;
    write_file_atomically(path_ / format("config.{}.json", i), read_file(config_file()));
  }
  write_file_atomically(config_file(), config_json);
  std::string lines;
  if (fs::exists(overrides_file(), error)) lines = read_file(overrides_file());
  if (resumed) lines += "# resumed " + date_time(std::chrono::system_clock::now(), "%Y-%m-%d %H:%M:%S") + "\n";
  for (const std::string& line : overrides) lines += line + "\n";
  write_file_atomically(overrides_file(), lines);
}

std::vector<fs::path> RunFolder::files() const {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path_, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error))
    if (it->is_regular_file(error)) found.push_back(fs::relative(it->path(), path_, error));
  std::sort(found.begin(), found.end());
  return found;
}

ClaimedFolder::ClaimedFolder(const fs::path& outputs, const std::string& name)
    : latest_before_(target_of(outputs / name / "latest")),
      missing_before_(missing_folders(outputs / name)),
      folder_(RunFolder::create(outputs, name)) {
  try {
    claim_ = std::make_unique<RunClaim>(folder_.path());
  } catch (const Error&) {
    remove();
    throw;
  }
}

ClaimedFolder::ClaimedFolder(const fs::path& path) : folder_(RunFolder::open(path)), keep_(true) {
  claim_ = std::make_unique<RunClaim>(folder_.path());
}

ClaimedFolder::~ClaimedFolder() {
  if (!keep_) remove();
}

void ClaimedFolder::remove() const {
  log::remove_file(folder_.log_file().string());
  const fs::path parent = folder_.path().parent_path(), latest = parent / "latest";
  std::error_code error;
  if (target_of(latest) == folder_.path().filename()) {
    fs::remove(latest, error);
    if (!latest_before_.empty() && fs::exists(parent / latest_before_, error))
      fs::create_symlink(latest_before_, latest, error);
  }
  fs::remove_all(folder_.path(), error);
  for (const fs::path& folder : missing_before_) fs::remove(folder, error);  // unless something is in it by now
}

}  // namespace cohort::report
