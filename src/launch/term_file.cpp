#include "launch/term_file.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/json_text.h"
#include "launch/elastic_messages.h"
#include "launch/signed_message.h"

namespace cohort::launch {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostTermBytes = 4096;

/// What is signed is not taken for a message of a connection, nor the other way round.
std::string signature_of_term(const std::string& secret, const std::string& json) {
  return hmac_sha256(secret, "term/" + json);
}

/// At most kMostTermBytes of it; nothing where there is none.
std::optional<std::string> read_term(const std::string& name) {
  const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  COHORT_THROW_UNLESS(fd >= 0, "--rdzv-conf=state_file: {} cannot be read: {}", name, std::strerror(errno));
  std::string text(kMostTermBytes, '\0');
  const ssize_t count = ::read(fd, text.data(), text.size());
  const int error = errno;
  ::close(fd);
  COHORT_THROW_UNLESS(count >= 0, "--rdzv-conf=state_file: {} cannot be read: {}", name, std::strerror(error));
  text.resize(static_cast<std::size_t>(count));
  return text;
}

}  // namespace

TermFile::TermFile(const fs::path& path, std::string job, std::string secret)
    : path_(fs::absolute(path)), job_(std::move(job)), secret_(std::move(secret)) {
  const fs::path folder = path_.parent_path();
  COHORT_THROW_UNLESS(!path_.filename().empty(), "--rdzv-conf=state_file={}: give a file's name", path.string());
  COHORT_THROW_UNLESS(::access(folder.c_str(), W_OK | X_OK) == 0,
                      "--rdzv-conf=state_file: the folder {}, on a file system that all nodes share, cannot be written "
                      "to: {}",
                      folder.string(), std::strerror(errno));
}

std::string TermFile::name_of(int number) const {
  return format("{}.{}", path_.string(), number);
}

std::optional<Term> TermFile::read(int number) const {
  const std::string name = name_of(number);
  const auto text = read_term(name);
  if (!text) return std::nullopt;
  const std::string json = text->substr(0, text->find('\n'));
  COHORT_THROW_UNLESS(*text == json + "\n" + signature_of_term(secret_, json) + "\n",
                      "{} is not signed with this job's secret: it is another job's, or damaged. Give each job a "
                      "state_file of its own, or remove it where its job is over",
                      name);
  const nlohmann::json term = parse_message(json);
  const std::string job = text_in(term, "job", 256);
  COHORT_THROW_UNLESS(job == job_ && number_in(term, "term", 1, kMostCount) == number,
                      "{} is of job '{}', not of '{}': give each job a state_file of its own, or remove it where that "
                      "job is over",
                      name, job, job_);
  if (term.contains("ended")) return Term{.number = number, .ended = number_in(term, "ended", 0, 255)};
  return Term{.number = number, .host = text_in(term, "host", 256), .port = number_in(term, "port", 1, 65535)};
}

std::optional<Term> TermFile::newest() const {
  std::optional<Term> found;
  for (int number = 1; auto next = read(number); ++number) found = std::move(next);
  return found;
}

std::optional<Term> TermFile::newest_of(const ElasticEndpoint& host) const {
  std::optional<Term> found;
  for (int number = 1; auto next = read(number); ++number)
    if (next->host == host.host && next->port == host.port) found = std::move(next);
  return found;
}

bool TermFile::claim(const Term& term) const {
  COHORT_CHECK(term.number >= 1, "term {}", term.number);
  nlohmann::ordered_json entry{{"job", job_}, {"term", term.number}};
  if (term.ended)
    entry["ended"] = *term.ended;
  else
    entry.update({{"host", term.host}, {"port", term.port}});
  const std::string json = json_text(entry);
  const std::string content = json + "\n" + signature_of_term(secret_, json) + "\n";
  const std::string own = format("{}.claim-{}", path_.string(), random_digits(8)), name = name_of(term.number);
  const auto fail = [&](const char* what, int error) {
    ::unlink(own.c_str());
    throw Error(format("--rdzv-conf=state_file: {} cannot be {}: {}", what == std::string("linked") ? name : own, what,
                       std::strerror(error)));
  };
  const int fd = ::open(own.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) fail("made", errno);
  const bool written =
      ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (!written) fail("written", error);
  int refused = ::link(own.c_str(), name.c_str()) == 0 ? 0 : errno;
  // Over NFS the answer may be lost: then the number of names tells.
  struct stat status {};
  if (refused != 0 && ::stat(own.c_str(), &status) == 0 && status.st_nlink == 2) refused = 0;
  if (refused != 0 && refused != EEXIST) fail("linked", refused);
  ::unlink(own.c_str());
  return refused == 0;
}

}  // namespace cohort::launch
