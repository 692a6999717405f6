#include "cli/subcommand.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <system_error>

#include <unistd.h>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

#include "cli/wheel_parts.h"
#include "core/log.h"
#include "core/standard_descriptors.h"
#include "core/stop_signal.h"
#include "core/without_stack.h"
#include "launch/error_file.h"

namespace cohort::cli {
namespace fs = std::filesystem;
namespace {

std::map<std::string, Subcommand>& registry() {
  static std::map<std::string, Subcommand> all;
  return all;
}

/// OpenMP's threads wait for each other by spinning, for 300,000 rounds where they are no more than the cores
/// (libgomp's manual, GOMP_SPINCOUNT). On cores that other work uses too, the thread that spins holds up the one that
/// it waits for. A thousand rounds bridge the gap between two operations; then it sleeps. libgomp reads this when it is
/// loaded.
void keep_waiting_short() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "1000", 0);
}

}  // namespace

Register::Register(Subcommand subcommand) {
  const std::string name = subcommand.name;
  COHORT_CHECK(registry().emplace(name, std::move(subcommand)).second, "the subcommand {} is registered twice", name);
}

std::vector<Subcommand> subcommands() {
  std::vector<Subcommand> all;
  for (const auto& [name, subcommand] : registry()) all.push_back(subcommand);
  return all;
}

std::string own_path() {
  std::error_code error;
#if defined(__APPLE__)
  std::string buffer(4096, '\0');
  auto size = static_cast<std::uint32_t>(buffer.size());
  COHORT_THROW_UNLESS(_NSGetExecutablePath(buffer.data(), &size) == 0, "this program's own path is longer than {}",
                      buffer.size());
  const fs::path path = fs::canonical(buffer.c_str(), error);
#else
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
#endif
  COHORT_THROW_UNLESS(!error, "this program cannot find its own path: {}", error.message());
  return path.string();
}

std::string sibling(const std::string& executable) {
  const fs::path path = fs::path(own_path()).parent_path() / executable;
  COHORT_THROW_UNLESS(
      ::access(path.c_str(), X_OK) == 0,
      "{} is missing: it is built with LibTorch; run `scripts/setup` and `scripts/build release --target {}`",
      path.string(), executable);
  // The two that link no LibTorch.
  if (executable != "cohort" && executable != "cohort-data") check_wheel_parts(path);
  return path.string();
}

void become(const std::string& executable, const std::vector<std::string>& words) {
  const std::string path = sibling(executable);
  // The first is what `ps` shows.
  std::vector<std::string> copies{path};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  keep_waiting_short();
  ::execv(path.c_str(), arguments.data());
  throw Error(format("cannot execute {}: {}", path, std::strerror(errno)));
}

int run_program(const std::string& name, const std::function<int()>& body) {
  const auto tell = [&](const std::string& message) {
    log::write_to_files(log::Level::kError, message);
    log::flush();
    std::fprintf(stderr, "%s: %s\n", name.c_str(), message.c_str());
    launch::write_error_file(message);
  };
  try {
    open_standard_descriptors();
    const int code = body();
    // A full disk behind `>` shows here at the earliest.
    const bool flushed = std::fflush(stdout) == 0;
    const std::string reason = flushed ? "a part of it was lost before" : std::strerror(errno);
    if (code == 0 && (!flushed || std::ferror(stdout))) throw Error("cannot write standard output: " + reason);
    return code;
  } catch (const Stopped& e) {
    tell(e.what());
    return 128 + e.signal();
  } catch (const UsageError& e) {
    tell(e.what());
    return 2;
  } catch (const std::filesystem::filesystem_error& e) {
    const bool loops = e.code() == std::errc::too_many_symbolic_link_levels;
    const std::string other = e.path2().empty() ? "" : " and " + e.path2().string();
    tell(e.path1().string() + other + ": " + e.code().message() +
         (loops ? ": a link that leads back to itself; remove it, or let it point elsewhere" : ""));
    return 1;
  } catch (const std::exception& e) {
    tell(without_stack(e.what()));
    return 1;
  }
}

bool only_checks_words() {
  const char* value = std::getenv("COHORT_ONLY_CHECK_WORDS");
  return value && *value;
}

}  // namespace cohort::cli
