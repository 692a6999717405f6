/// A format of robot data that no file of src names: a text file with a line per episode.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "data/conversion.h"
#include "data/convert.h"
#include "data/format.h"
#include "data/open_episodes.h"

namespace cohort::data {

class LineEpisode final : public Episode {
 public:
  LineEpisode(const std::vector<double>& actions, std::size_t width) : actions_(actions), width_(width) {}
  std::int64_t steps() const override { return static_cast<std::int64_t>(actions_.size() / width_); }
  void read(std::size_t, std::int64_t begin, std::int64_t, std::span<float> out) const override { copy(begin, out); }
  void read(std::size_t, std::int64_t begin, std::int64_t, std::span<double> out) const override { copy(begin, out); }
  void read(std::size_t, std::int64_t begin, std::int64_t, std::span<std::int64_t> out) const override {
    copy(begin, out);
  }
  std::string_view text(std::size_t, std::int64_t) const override { return ""; }
  StoredImage image(std::size_t, std::int64_t, std::string&) const override { return {}; }
  std::string_view metadata(std::string_view) const override { return ""; }
  std::string location() const override { return "lines"; }

 private:
  template <class T>
  void copy(std::int64_t begin, std::span<T> out) const {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<T>(actions_[static_cast<std::size_t>(begin) * width_ + i]);
  }
  const std::vector<double>& actions_;
  std::size_t width_;
};

/// A text file: its first line says how many numbers an action has; then a line per episode, with the actions of all steps, which
/// this format calls `move`.
class LineEpisodes final : public EpisodeSource {
 public:
  explicit LineEpisodes(const std::filesystem::path& file) : name_(file.string()) {
    std::istringstream text(read_file(file));
    text >> width_ >> std::ws;
    fields_ = {{.name = "move", .shape = {static_cast<std::int64_t>(width_)}}};
    for (std::string line; std::getline(text, line);) {
      std::istringstream numbers(line);
      std::vector<double>& actions = actions_.emplace_back();
      for (double action; numbers >> action;) actions.push_back(action);
    }
  }
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(actions_.size()); }
  const std::vector<StepField>& fields() const override { return fields_; }
  const std::vector<std::string>& metadata_names() const override { return none_; }
  std::int64_t steps(std::int64_t e) const override { return open(e)->steps(); }
  std::shared_ptr<const Episode> open(std::int64_t e) const override {
    return std::make_shared<LineEpisode>(actions_[static_cast<std::size_t>(e)], width_);
  }
  std::int64_t bytes_when_open(std::int64_t, std::span<const std::size_t>) const override { return 0; }
  std::uint64_t content_hash() const override { return 1; }
  std::int64_t bytes_held() const override { return 0; }
  const std::vector<std::string>& skipped() const override { return none_; }
  std::string_view format_name() const override { return "lines"; }
  std::int64_t number(std::int64_t e) const override { return e + 1; }
  std::string schema_name(const std::string& field) const override { return field == "move" ? "action" : field; }

 private:
  std::string name_;
  std::vector<std::vector<double>> actions_;  // of each episode's steps
  std::size_t width_ = 1;
  std::vector<StepField> fields_;
  std::vector<std::string> none_;
};

inline void write_lines(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                        const std::filesystem::path& out, const ConvertSettings& settings, ConvertReport& report) {
  std::size_t action = source.fields().size();
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const std::string name = schema_name(field_to_write(source, f, settings.rename).name);
    if (name == "action")
      action = f;
    else
      report.left_out.push_back(name + ": lines hold actions only");
  }
  COHORT_THROW_UNLESS(action < source.fields().size(), "{} has no action", source.name());
  const std::int64_t width = source.fields()[action].elements();
  std::string text = format("{}\n", width);
  for (const std::int64_t e : episodes) {
    const auto episode = source.open(e);
    std::vector<double> actions(static_cast<std::size_t>(episode->steps() * width));
    episode->read(action, 0, episode->steps(), std::span(actions));
    for (const double a : actions) text += format("{} ", a);
    text += "\n";
    count_converted(*episode, episodes.size(), out, report);
  }
  write_file_atomically(out, text);
  report.path = out;
}

inline DataFormat lines_format() {
  return {.name = "lines",
          .title = "Lines",
          .contents = "a .lines file",
          .extensions = {".lines"},
          .probe = [](const std::filesystem::path& path) { return path.extension() == ".lines"; },
          .open = [](const std::filesystem::path& path,
                     const OpenSettings&) { return std::make_unique<LineEpisodes>(path); },
          .write = write_lines,
          .recording_path = [](const std::filesystem::path& out,
                               const std::string& name) { return out / (name + ".lines"); }};
}

}  // namespace cohort::data
