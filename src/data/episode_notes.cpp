#include "data/episode_notes.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/log.h"

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
    nlohmann::json note = nlohmann::json::parse(kept->content, nullptr, false);
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
    files_.write(name, nlohmann::json{{"question", question}, {"answer", found}}.dump() + "\n",
                 format("{}: {}", source_.name(), question));
  } catch (const nlohmann::json::exception& e) {  // texts that are no UTF-8 are not kept
    log::debug("{}: {}", name, e.what());
  }
  return found;
}

}  // namespace cohort::data
