/// Who hosts the rendezvous of an elastic job, in files that all of its nodes share: what decides when the host is
/// lost, or when nodes lose sight of each other.
///
///   const TermFile terms("/shared/arm.rendezvous", job, secret);
///   const std::optional<Term> newest = terms.newest();
///   if (terms.claim({.number = newest->number + 1, .host = "10.0.0.2", .port = 29400})) ...  // nobody else has it
///
/// The last one says that the job has ended, and with which code, to nodes that were cut off: nobody may go on then. A
/// later job under the same path counts on from there.
///
/// Terms are numbered from 1. Each is a file, PATH.1, PATH.2, ..., that never changes: JSON in one line, in the next its
/// HMAC-SHA256 under the job's secret. A file gets its name by link(2), which fails where the name is taken, so that of
/// several that claim a term one gets it, also over NFS (open(2), the remarks on O_EXCL).
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "launch/elastic_server.h"

namespace cohort::launch {

struct Term {
  int number = 1;
  std::string host;
  int port = 0;
  std::optional<int> ended = std::nullopt;  ///< the job's exit code; then there is no host
};

class TermFile {
 public:
  /// Throws Error where the folder of `path` is not there, or cannot be written to.
  TermFile(const std::filesystem::path& path, std::string job, std::string secret);

  /// Nothing where no term has been claimed. Throws Error where a file is another job's, or not signed by this secret.
  std::optional<Term> newest() const;
  /// The newest of this host; nothing where it has none.
  std::optional<Term> newest_of(const ElasticEndpoint& host) const;
  /// False where somebody has that term. Throws Error when the file cannot be written.
  bool claim(const Term& term) const;

  std::string name_of(int number) const;

 private:
  std::optional<Term> read(int number) const;
  std::filesystem::path path_;
  std::string job_, secret_;
};

}  // namespace cohort::launch
