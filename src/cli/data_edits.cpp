#include "cli/data_edits.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "cli/subcommand.h"
#include "core/error.h"
#include "data/convert.h"
#include "data/format.h"
#include "data/open_episodes.h"

namespace cohort::cli {
namespace {

/// "OLD=NEW", of which the first = parts.
std::vector<std::pair<std::string, std::string>> changes_of(const std::vector<std::string>& texts, const char* flag) {
  std::vector<std::pair<std::string, std::string>> changes;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      throw UsageError(format("{} {}: write it as OLD=NEW", flag, text));
    changes.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return changes;
}

std::int64_t whole_number(std::string_view text, const std::string& what) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw UsageError(format("{}: '{}' is no number from 0 on", what, text));
  return value;
}

std::unique_ptr<data::EpisodeSource> open_whole(const EditArguments& arguments, const std::string& path) {
  // Of HDF5 files and RLDS, too: all episodes, whatever split they are in.
  return data::open_episodes(
      path, {.format = arguments.format, .split = "all", .on_corrupt = arguments.on_corrupt, .index_cache = "never"});
}

void print_edit(const data::EpisodeSource& source, const data::ConvertReport& report) {
  std::printf("%s: %lld episodes, %lld steps\n", report.path.c_str(), static_cast<long long>(report.episodes),
              static_cast<long long>(report.steps));
  for (const std::string& line : report.said) std::printf("%s\n", line.c_str());
  for (const std::string& field : report.left_out) std::printf("left out %s\n", field.c_str());
  for (const std::string& field : source.left_out()) std::printf("left out %s\n", field.c_str());
  for (const std::string& fault : source.skipped()) std::printf("left out: %s\n", fault.c_str());
}

/// These episodes of a set of any format as another one of the same format and names.
void write_some(const data::EpisodeSource& source, std::vector<std::int64_t> episodes, const std::string& out) {
  data::ConvertReport report;
  const data::DataFormat& same = data::format_of(source);
  if (same.edit)
    same.edit({{&source, std::move(episodes)}}, out, {}, report);
  else
    report = data::convert_episodes(source, out,
                                    {.to = same.name,
                                     .name = std::filesystem::path(source.name()).filename().string(),
                                     .rename = false,
                                     .episodes = std::move(episodes)});
  print_edit(source, report);
}

/// All episodes of a set whose format can be edited. Throws Error for another: "merge joins LeRobot sets; …".
data::EpisodePart whole_part(const data::EpisodeSource& source, const std::string& path, const std::string& joins,
                             const std::string& otherwise = "") {
  if (!data::format_of(source).edit) {
    const data::DataFormat& editable = data::editable_format();
    throw Error(format("{}: {} {} sets; make it one with `cohort data convert {} --to {} --out FOLDER`{}", path, joins,
                       editable.title, path, editable.name, otherwise));
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(source.size()));
  std::iota(all.begin(), all.end(), 0);
  return {&source, std::move(all)};
}

void merge(const EditArguments& arguments) {
  if (arguments.paths.size() < 2) throw UsageError("merge takes two data sets or more");
  std::vector<std::unique_ptr<data::EpisodeSource>> sources;
  std::vector<data::EpisodePart> parts;
  for (const std::string& path : arguments.paths) {
    sources.push_back(open_whole(arguments, path));
    parts.push_back(
        whole_part(*sources.back(), path, "merge joins", ", or name several sets where they are used (data.paths)"));
  }
  data::ConvertReport report;
  data::format_of(*sources.front()).edit(parts, arguments.out, {}, report);
  print_edit(*sources.front(), report);
}

void delete_episodes(const EditArguments& arguments) {
  const auto source = open_whole(arguments, arguments.paths.at(0));
  std::set<std::int64_t> deleted;
  std::vector<std::string> numbers;  // "0 5 7-9", "0,5,7-9"
  for (const std::string& text : arguments.episodes)
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      numbers.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  for (const std::string& text : numbers) {
    const std::size_t dash = text.find('-');
    const std::int64_t first = whole_number(text.substr(0, dash), "--episodes");
    const std::int64_t last = dash == std::string::npos ? first : whole_number(text.substr(dash + 1), "--episodes");
    if (last < first || last - first >= (std::int64_t{1} << 26))
      throw UsageError(format("--episodes {}: {} is before {}", text, last, first));
    for (std::int64_t number = first; number <= last; ++number) deleted.insert(number);
  }
  std::vector<std::int64_t> kept;
  std::set<std::int64_t> unknown = deleted;
  for (std::int64_t e = 0; e < source->size(); ++e) {
    unknown.erase(source->number(e));
    if (!deleted.contains(source->number(e))) kept.push_back(e);
  }
  if (!unknown.empty())
    throw Error(format("{} has no episode {}: its {} episodes are {} to {}", source->name(), *unknown.begin(),
                       source->size(), source->number(0), source->number(source->size() - 1)));
  if (kept.empty()) throw Error(format("{}: no episode would be left", source->name()));
  write_some(*source, std::move(kept), arguments.out);
}

/// "train=0.8 val=0.2" or "train=50 val=rest": parts one behind the other, in the order of the episodes.
void split(const EditArguments& arguments) {
  const auto source = open_whole(arguments, arguments.paths.at(0));
  const auto wanted = changes_of(arguments.parts, "--parts");
  const std::int64_t all = source->size();
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> parts;
  std::int64_t begin = 0;
  double share = 0;
  for (const auto& [name, text] : wanted) {
    if (name.find('/') != std::string::npos || name.starts_with("."))
      throw UsageError(format("--parts {}={}: '{}' becomes the name of a folder or file", name, text, name));
    if (std::ranges::count(wanted, name, [](const auto& part) { return part.first; }) > 1)
      throw UsageError(format("--parts names {} twice", name));
    std::int64_t end = all;
    const bool percent = text.ends_with("%");
    if (text.find('.') != std::string::npos || percent) {
      double fraction = 0;
      const char* last = text.data() + text.size() - (percent ? 1 : 0);
      const auto [rest, error] = std::from_chars(text.data(), last, fraction);
      if (percent) fraction /= 100;
      if (error != std::errc() || rest != last || !(fraction > 0 && fraction <= 1))
        throw UsageError(format("--parts {}={}: a fraction is above 0 and at most 1 (100 %)", name, text));
      constexpr double kRounding = 1e-9;  // 0.7 + 0.3 may be a little less
      share += fraction;
      if (share > 1 + kRounding)
        throw UsageError(format("--parts {}={}: the fractions are {:g} together, more than all", name, text, share));
      end = share >= 1 - kRounding ? all : std::llround(share * static_cast<double>(all));
    } else if (text != "rest") {
      end = begin + whole_number(text, "--parts");
    }
    if (end > all || end <= begin)
      throw Error(format("--parts {}={}: it would have {} of the {} episodes of {}, of which {} are taken already",
                         name, text, end - begin, all, source->name(), begin));
    std::vector<std::int64_t> episodes(static_cast<std::size_t>(end - begin));
    std::iota(episodes.begin(), episodes.end(), begin);
    parts.emplace_back(name, std::move(episodes));
    begin = end;
  }
  if (begin < all)
    std::printf("%lld of %lld episodes are in no part; NAME=rest takes them\n", static_cast<long long>(all - begin),
                static_cast<long long>(all));
  const std::vector<std::string>& extensions = data::format_of(*source).extensions;
  const std::string extension = extensions.empty() ? "" : extensions.front();
  std::filesystem::create_directories(arguments.out);
  for (auto& [name, episodes] : parts)
    write_some(*source, std::move(episodes), (std::filesystem::path(arguments.out) / (name + extension)).string());
}

/// Names of features, or texts of tasks.
void change_names(const EditArguments& arguments, const data::ConvertSettings& settings, const char* what) {
  const auto source = open_whole(arguments, arguments.paths.at(0));
  data::ConvertReport report;
  const data::EpisodePart whole = whole_part(*source, source->name(), std::string(what) + " changes");
  data::format_of(*source).edit({whole}, arguments.out, settings, report);
  print_edit(*source, report);
}

CLI::App* add_edit(CLI::App& app, const char* name, const char* about, EditArguments& edit, bool several) {
  CLI::App* edit_app = app.add_subcommand(name, about);
  CLI::Option* path = edit_app->add_option("path", edit.paths, several ? "data sets" : "a data set")->required();
  if (!several) path->expected(1);
  edit_app->add_option(several ? "--out" : "out,--out", edit.out, "the new data set; the old one stays as it is")
      ->required();
  edit_app->add_option("--format", edit.format, "auto, rlds, hdf5 or lerobot")->capture_default_str();
  edit_app->add_option("--on-corrupt", edit.on_corrupt, "error; or skip: leave damaged episodes out and name them")
      ->capture_default_str();
  return edit_app;
}

}  // namespace

void add_edits(CLI::App& app, EditCommands& edits) {
  edits.merge = add_edit(app, "merge", "several LeRobot sets as one; no video is coded again", edits.merging, true);
  edits.split = add_edit(app, "split", "a data set as several, in the order of its episodes", edits.splitting, false);
  edits.split
      ->add_option("--parts", edits.splitting.parts,
                   "NAME=0.8 or NAME=80% (a fraction), NAME=50 (episodes) or NAME=rest; --out/NAME")
      ->required();
  edits.remove = add_edit(app, "delete-episodes", "a data set without some of its episodes", edits.deleting, false);
  edits.remove->add_option("--episodes", edits.deleting.episodes, "numbers and ranges: 3 7-9, or 3,7-9")->required();
  edits.rename = add_edit(app, "rename", "a LeRobot set with other names of features", edits.renaming, false);
  edits.rename
      ->add_option("--fields", edits.renaming.changes, "OLD=NEW, e.g. observation.images.laptop=observation.images.top")
      ->required();
  edits.retask = add_edit(app, "retask", "a LeRobot set with other texts of its tasks", edits.retasking, false);
  auto* task = edits.retask->add_option("--task", edits.retasking.task, "the text, of all episodes");
  auto* replace = edits.retask->add_option("--replace", edits.retasking.changes, "'OLD TEXT=NEW TEXT'");
  task->excludes(replace);
}

bool run_edit(const EditCommands& edits) {
  data::ConvertSettings changed;
  if (edits.merge->parsed()) {
    merge(edits.merging);
  } else if (edits.split->parsed()) {
    split(edits.splitting);
  } else if (edits.remove->parsed()) {
    delete_episodes(edits.deleting);
  } else if (edits.rename->parsed()) {
    changed.lerobot.renamed = changes_of(edits.renaming.changes, "--fields");
    change_names(edits.renaming, changed, "rename");
  } else if (edits.retask->parsed()) {
    if (edits.retasking.task.empty() && edits.retasking.changes.empty())
      throw UsageError("retask: name the text of all episodes with --task, or one to replace with --replace 'OLD=NEW'");
    changed.lerobot.task = edits.retasking.task;
    changed.lerobot.retasked = changes_of(edits.retasking.changes, "--replace");
    change_names(edits.retasking, changed, "retask");
  } else {
    return false;
  }
  return true;
}

}  // namespace cohort::cli
