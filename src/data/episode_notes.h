/// What was found out about the episodes of a set by opening all of them, kept for the next time: which ones pass the
/// filters, what they are told to do. An answer is a function of the data's content hash and name and of the
/// question; one process of a machine finds it out. It lies in episode_notes_<hash>.json where KeptFiles says.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/episodes.h"
#include "data/kept_files.h"

namespace cohort::data {

class EpisodeNotes {
 public:
  /// setting: as KeptFiles takes it; with auto only sets of 64 MiB or more leave notes. `data`: where they lie.
  EpisodeNotes(const EpisodeSource& source, const std::filesystem::path& data, const std::string& setting);

  /// The kept answer if `sound` takes it, else what `find_out` returns, which is then kept.
  nlohmann::json answer(const std::string& question, const std::function<bool(const nlohmann::json&)>& sound,
                        const std::function<nlohmann::json()>& find_out) const;

  /// Why each of so many episodes is damaged, "" of sound ones. `look` says it of one; it is called from several
  /// threads.
  std::vector<std::string> faults(std::int64_t episodes, int threads,
                                  const std::function<std::string(std::int64_t)>& look) const;

 private:
  const EpisodeSource& source_;
  KeptFiles files_;
};

}  // namespace cohort::data
