#include "data/episode_notes.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/threads.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kNotesFromBytes = 64 << 20;

}  // namespace

EpisodeNotes::EpisodeNotes(const EpisodeSource& source, const std::filesystem::path& data, const std::string& setting)
    : source_(source), files_(data, setting == "auto" && source.stored_bytes() < kNotesFromBytes ? "never" : setting) {}

nlohmann::json EpisodeNotes::answer(const std::string& question,
                                    const std::function<bool(const nlohmann::json&)>& sound,
                                    const std::function<nlohmann::json()>& find_out) const {
  if (!files_.any()) return find_out();
  ContentHash hash;
  hash.add(source_.content_hash());
  hash.add(source_.name());  // of HDF5 the path, which rules for file_path look at
  hash.add(question);
  const std::string name = format("episode_notes_{:016x}.json", hash.value());
  const auto known = [&]() -> std::optional<nlohmann::json> {
    const auto kept = files_.read(name);
    if (!kept) return std::nullopt;
    nlohmann::json note = try_json<nlohmann::json>(kept->content);
    if (note.is_object() && note.value("question", nlohmann::json()) == question && note.contains("answer") &&
        sound(note["answer"]))
      return std::move(note["answer"]);
    log::debug("{} holds no answer to: {}; it is made anew", kept->path.string(), question);
    return std::nullopt;
  };
  if (auto answer = known()) return *std::move(answer);
  const auto turn = files_.turn(name);
  if (auto answer = known()) return *std::move(answer);
  nlohmann::json found = find_out();
  try {
    files_.write(name, json_text(nlohmann::json{{"question", question}, {"answer", found}}) + "\n",
                 format("{}: {}", source_.name(), question));
  } catch (const nlohmann::json::exception& e) {  // texts that are no UTF-8 are not kept
    log::debug("{}: {}", name, e.what());
  }
  return found;
}

std::vector<std::string> EpisodeNotes::faults(std::int64_t episodes, int threads,
                                              const std::function<std::string(std::int64_t)>& look) const {
  const auto sound = [&](const nlohmann::json& answer) {
    std::int64_t last = -1;
    for (const nlohmann::json& fault : answer) {
      if (!fault.is_array() || fault.size() != 2 || !fault[0].is_number_integer() || !fault[1].is_string())
        return false;
      const auto episode = fault[0].get<std::int64_t>();
      if (episode <= last || episode >= episodes) return false;
      last = episode;
    }
    return answer.is_array();
  };
  const nlohmann::json list = answer("episodes that are damaged", sound, [&] {
    std::vector<std::string> found(static_cast<std::size_t>(episodes));
    parallel_for(episodes, threads, [&](std::int64_t e) { found[static_cast<std::size_t>(e)] = look(e); });
    nlohmann::json damaged = nlohmann::json::array();
    for (std::size_t e = 0; e < found.size(); ++e)
      if (!found[e].empty()) damaged.push_back({e, found[e]});
    return damaged;
  });
  std::vector<std::string> all(static_cast<std::size_t>(episodes));
  for (const nlohmann::json& fault : list) all[fault[0].get<std::size_t>()] = fault[1].get<std::string>();
  return all;
}

}  // namespace cohort::data
