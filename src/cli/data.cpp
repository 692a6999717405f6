// `cohort data`: making, looking into, measuring and converting data sets. The executable cohort-data, which `cohort`
// becomes: libhdf5 brings some thirty libraries, which would cost every other subcommand its quick start.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include <unistd.h>

#include "cli/next_command.h"
#include "cli/parse_arguments.h"
#include "cli/shown_data.h"
#include "cli/subcommand.h"
#include "cli/train_on.h"
#include "core/devices_cpu.h"
#include "core/files.h"
#include "core/log.h"
#include "core/stop_signal.h"
#include "data/convert.h"
#include "data/format.h"
#include "data/images/codec.h"
#include "data/inspect.h"
#include "data/open_episodes.h"
#include "data/robot_statistics.h"
#include "data/transforms/filter.h"
#include "tasks/two_link_arm.h"
#include "view/data_page.h"

namespace cohort::cli {
namespace {

/// What every subcommand that reads robot data asks.
struct Source {
  std::string path;
  data::OpenSettings settings;
  CLI::Option* index_cache = nullptr;

  /// `whole`: files are taken whole where no split is named.
  void add_to(CLI::App& app, bool whole = false) {
    if (whole) settings.split = "whole";
    app.add_option("path", path, "an RLDS or LeRobot folder, an HDF5 file or folder, or a manifest of trajectories")
        ->required();
    app.add_option("--format", settings.format, "auto, rlds, hdf5 or lerobot")->capture_default_str();
    app.add_option("--split", settings.split,
                   "as tfds.load takes it, train[:95%]; of HDF5 files a mask's name, or all; auto: train, where HDF5 "
                   "files have that mask, else all; whole: train of RLDS and LeRobot, all of HDF5 files")
        ->capture_default_str();
    app.add_option("--on-corrupt", settings.on_corrupt, "error; or skip: leave damaged records out and name them")
        ->capture_default_str();
    app.add_option("--tolerance-s", settings.tolerance_s,
                   "s, how far a frame's time in a LeRobot video may lie from its step's")
        ->capture_default_str();
    app.add_option("--step-filter", settings.step_filter,
                   "steps that are left out, as data.step_filter: 'idle(action)', those in which nothing happens");
    app.add_option("--threads", settings.threads, "0: one per core")->capture_default_str();
    index_cache = app.add_option("--index-cache", settings.index_cache,
                                 "where places, lengths and faults of episodes are kept: auto, never, or a folder")
                      ->capture_default_str();
  }
  std::unique_ptr<data::EpisodeSource> open() const { return data::open_episodes(path, settings); }
  int threads() const { return settings.threads > 0 ? settings.threads : available_cores(); }
};

struct InspectArguments {
  Source source;
  data::ContactSheetSettings sheet;
  std::vector<std::string> filters;
  std::vector<std::int64_t> numbers;
  std::string out, html;
};

/// Episodes of the numbers, in their order. Throws Error for one that is not among them.
std::vector<std::int64_t> episodes_of(const data::EpisodeSource& source, const std::vector<std::int64_t>& among,
                                      const std::vector<std::int64_t>& numbers) {
  std::vector<std::int64_t> found;
  for (const std::int64_t number : numbers) {
    const auto at = std::find_if(among.begin(), among.end(),
                                 [&](std::int64_t episode) { return source.number(episode) == number; });
    if (at == among.end())
      throw Error(format("{} has no episode {} among the {} chosen, whose numbers are {} to {}", source.name(), number,
                         among.size(), source.number(among.front()), source.number(among.back())));
    found.push_back(*at);
  }
  return found;
}

/// The episodes that a contact sheet would show.
void write_data_page(const data::EpisodeSource& source, const InspectArguments& arguments,
                     const std::vector<std::int64_t>& chosen, const std::string& summary) {
  const auto n = static_cast<std::int64_t>(chosen.size());
  const std::int64_t shown = arguments.numbers.empty() ? std::min(arguments.sheet.episodes, n) : n;
  std::vector<view::DataEpisode> episodes;
  for (std::int64_t i = 0; i < shown; ++i)
    episodes.push_back(shown_episode(source, chosen[static_cast<std::size_t>(i * n / shown)], kPagePictures));
  const std::string page = view::data_page(source.name(), summary, episodes);
  write_file_atomically(arguments.html, page);
  std::printf("\n%zu episodes in %s, %s: open it in a browser\n", episodes.size(), arguments.html.c_str(),
              format_bytes(static_cast<double>(page.size())).c_str());
}

void inspect(const InspectArguments& arguments) {
  const auto source = arguments.source.open();
  std::vector<std::int64_t> chosen = data::filter_episodes(*source, arguments.filters, arguments.source.threads());
  if (!arguments.numbers.empty()) chosen = episodes_of(*source, chosen, arguments.numbers);
  const std::string summary = data::inspect_text(*source, chosen);
  std::fputs(summary.c_str(), stdout);
  if (!arguments.html.empty()) write_data_page(*source, arguments, chosen, summary);
  if (arguments.out.empty()) return;
  data::ContactSheetSettings sheet = arguments.sheet;
  if (!arguments.numbers.empty()) sheet.episodes = static_cast<std::int64_t>(chosen.size());
  sheet.among = chosen;
  for (const std::int64_t episode : chosen) sheet.numbers.push_back(source->number(episode));
  write_file_atomically(arguments.out, data::encode_png(data::contact_sheet(*source, sheet)));
  std::printf("\ncontact sheet: %s\n", arguments.out.c_str());
}

struct StatsArguments {
  Source source;
  std::vector<std::string> actions, proprio, filters;
  std::string out, cache = "auto";
};

/// The field that data sets of this kind call the action.
std::string usual_action(const data::EpisodeSource& source) {
  for (const char* name : {"action", "actions"})
    for (const data::StepField& field : source.fields())
      if (field.name == name && field.kind == data::StepKind::kNumber) return name;
  throw UsageError("the data have no field action or actions: name the components with --action");
}

void stats(StatsArguments arguments) {
  // Who wants no statistics beside the data wants no index there either.
  if (arguments.source.index_cache->count() == 0) arguments.source.settings.index_cache = arguments.cache;
  const auto source = arguments.source.open();
  std::vector<std::string> actions = arguments.actions;
  if (actions.empty()) actions.push_back(usual_action(*source));
  const data::ComponentVector action(actions, *source, "actions"), proprio(arguments.proprio, *source, "proprio");
  const auto episodes = data::filter_episodes(*source, arguments.filters, arguments.source.threads());
  const auto statistics = data::compute_statistics(*source, episodes, action, proprio, arguments.source.path,
                                                   {.threads = arguments.source.threads(), .cache = arguments.cache});
  const std::string json = data::to_json(statistics).dump(2) + "\n";
  if (arguments.out.empty())
    std::fputs(json.c_str(), stdout);
  else
    write_file_atomically(arguments.out, json);
  if (!source->selection().empty()) std::fprintf(stderr, "%s\n", source->selection().c_str());
  for (const std::string& fault : source->skipped()) std::fprintf(stderr, "left out: %s\n", fault.c_str());
  if (arguments.out.empty()) return;  // standard output is the statistics
  if (auto next = train_on(arguments.source.path); !next.empty()) {
    next.push_back("data.statistics=" + arguments.out);
    say_next("a policy that learns from them, scaled by these", next);
  }
}

struct ConvertArguments {
  Source source;
  data::ConvertSettings convert;
  std::vector<std::string> filters;
  std::string out;
  bool keep_names = false;
};

void convert(ConvertArguments arguments) {
  const auto source = arguments.source.open();
  if (arguments.convert.to.empty()) {
    for (const data::DataFormat& known : data::formats())
      for (const std::string& extension : known.extensions)
        if (arguments.out.ends_with(extension)) arguments.convert.to = known.name;
    if (arguments.convert.to.empty())
      throw UsageError(format("convert: {} may become {}: say it with --to", arguments.out, data::format_names()));
  }
  arguments.convert.rename = !arguments.keep_names;
  arguments.convert.episodes = data::filter_episodes(*source, arguments.filters, arguments.source.threads());
  answer_stop_signals("stops after this episode and removes what it has written; Ctrl-C again: at once");
  const data::ConvertReport report = data::convert_episodes(*source, arguments.out, arguments.convert);
  std::printf("%s: %lld episodes, %lld steps\n", report.path.c_str(), static_cast<long long>(report.episodes),
              static_cast<long long>(report.steps));
  if (!source->selection().empty()) std::printf("%s\n", source->selection().c_str());
  for (const std::string& line : report.said) std::printf("%s\n", line.c_str());
  for (const std::string& field : report.left_out) std::printf("left out %s\n", field.c_str());
  for (const std::string& fault : source->skipped()) std::printf("left out: %s\n", fault.c_str());
  if (const auto next = train_on(report.path); !next.empty())
    say_next("a policy that learns from them", next);
  else
    say_next("what they hold", {"data", "inspect", report.path.string()});
}

/// What changes a set as a whole: the result is another one, the source stays as it is.
struct EditArguments {
  std::vector<std::string> paths;
  std::string out, format = "auto", on_corrupt = "error", task;
  std::vector<std::string> episodes, parts, changes;
};

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
  for (const std::string& text : arguments.episodes) {
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
    std::int64_t end = all;
    if (text.find('.') != std::string::npos) {
      double fraction = 0;
      const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), fraction);
      if (error != std::errc() || rest != text.data() + text.size() || !(fraction > 0 && fraction <= 1))
        throw UsageError(format("--parts {}={}: a fraction is above 0 and at most 1", name, text));
      constexpr double kWhole = 1 - 1e-9;  // 0.7 + 0.3 may be a little less
      share += fraction;
      end = share >= kWhole ? all : std::llround(share * static_cast<double>(all));
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

/// Becomes the executable that has LibTorch.
int become_embed(const std::vector<std::string>& arguments) {
  const std::string path = sibling("cohort-embed");
  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin() + 1, arguments.end());
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  ::execv(path.c_str(), list.data());
  throw Error(format("cannot run {}: {}", path, std::strerror(errno)));
}

CLI::App* add_inspect(CLI::App& app, InspectArguments& inspecting) {
  CLI::App* inspect_app =
      app.add_subcommand("inspect", "schema, episodes and lengths of robot data; frames and curves");
  inspecting.source.add_to(*inspect_app);
  inspect_app->add_option("--out", inspecting.out, "PNG with a contact sheet of frames and curves of the actions");
  inspect_app
      ->add_option(
          "--html", inspecting.html,
          "an .html page with these episodes' pictures and curves side by side, for a browser without a network")
      ->check([](const std::string& text) {
        return text.ends_with(".html") ? "" : format("--html {}: a page's name ends in .html", text);
      });
  inspect_app->add_option("--filter", inspecting.filters, "rules for episodes, e.g. 'min_steps(16)'");
  inspect_app->add_option("--episode", inspecting.numbers,
                          "this one only, or these: LeRobot's episode_index, else the place from 0 on");
  inspect_app->add_option("--episodes", inspecting.sheet.episodes, "on the sheet")->capture_default_str();
  inspect_app->add_option("--frames", inspecting.sheet.frames, "per episode and camera")->capture_default_str();
  inspect_app->add_option("--frame-height", inspecting.sheet.frame_height, "pixels")->capture_default_str();
  inspect_app->add_option("--curves", inspecting.sheet.curves, "number fields to draw; else those called action");
  return inspect_app;
}

CLI::App* add_stats(CLI::App& app, StatsArguments& measuring) {
  CLI::App* stats_app = app.add_subcommand("stats", "mean, std, bounds and quantiles of actions, as JSON");
  measuring.source.add_to(*stats_app);
  stats_app->add_option("--action", measuring.actions, "components, e.g. 'action[3:6] | euler_xyz->rotation_6d'");
  stats_app->add_option("--proprio", measuring.proprio, "components of the low-dimensional observation");
  stats_app->add_option("--filter", measuring.filters, "rules for episodes, e.g. 'min_steps(16)'");
  stats_app->add_option("--out", measuring.out, "file; else standard output");
  stats_app
      ->add_option("--cache", measuring.cache,
                   "of statistics, and of --index-cache where that is not given: auto, never, or a folder")
      ->capture_default_str();
  return stats_app;
}

CLI::App* add_convert(CLI::App& app, ConvertArguments& converting) {
  converting.convert.to.clear();
  CLI::App* convert_app = app.add_subcommand("convert", "robot data of any format to RLDS, HDF5 or LeRobot");
  converting.source.add_to(*convert_app, /*whole=*/true);
  convert_app->add_option("--to", converting.convert.to, "rlds, hdf5 or lerobot; else hdf5 where --out ends so");
  convert_app
      ->add_option(
          "out,--out", converting.out,
          "rlds: the folder that gets NAME/1.0.0; hdf5: the file; lerobot: the folder; also as the second path")
      ->required();
  convert_app->add_option("--name", converting.convert.name, "of the RLDS data set")->capture_default_str();
  convert_app->add_option("--image-encoding", converting.convert.image_encoding, "of raw frames: png (exact) or jpeg")
      ->capture_default_str();
  convert_app->add_option("--filter", converting.filters, "rules for episodes, e.g. 'min_steps(16)'");
  convert_app->add_flag("--keep-names", converting.keep_names, "do not rename obs/ to observation/ and the like");
  data::LeRobotConvertSettings& lerobot = converting.convert.lerobot;
  const std::string only = "LeRobot";
  convert_app->add_option("--fps", lerobot.fps, "steps per second; else what the data say")->group(only);
  convert_app->add_option("--images", lerobot.images, "video (lossy), or image: PNGs and JPEGs in the tables")
      ->capture_default_str()
      ->group(only);
  convert_app->add_option("--vcodec", lerobot.vcodec, "of videos: auto, libsvtav1 (AV1) or h264")
      ->capture_default_str()
      ->group(only);
  convert_app->add_option("--state", lerobot.state, "components of observation.state, e.g. 'obs/eef_pos[0:2]'")
      ->group(only);
  convert_app->add_option("--action", lerobot.action, "components of action; else the field of that name")->group(only);
  convert_app->add_option("--task", lerobot.task, "of all episodes; else what the data say")->group(only);
  convert_app->add_flag("--keep-float64", lerobot.keep_float64, "do not narrow them to float32")->group(only);
  return convert_app;
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

/// What makes other sets of sets, with what each was told.
struct EditCommands {
  EditArguments merging, splitting, deleting, renaming, retasking;
  CLI::App *merge = nullptr, *split = nullptr, *remove = nullptr, *rename = nullptr, *retask = nullptr;
};

void add_edits(CLI::App& app, EditCommands& edits) {
  edits.merge = add_edit(app, "merge", "several LeRobot sets as one; no video is coded again", edits.merging, true);
  edits.split = add_edit(app, "split", "a data set as several, in the order of its episodes", edits.splitting, false);
  edits.split
      ->add_option("--parts", edits.splitting.parts,
                   "NAME=0.8 (a fraction), NAME=50 (episodes) or NAME=rest; --out/NAME")
      ->required();
  edits.remove = add_edit(app, "delete-episodes", "a data set without some of its episodes", edits.deleting, false);
  edits.remove->add_option("--episodes", edits.deleting.episodes, "numbers and ranges: 3 7-9")->required();
  edits.rename = add_edit(app, "rename", "a LeRobot set with other names of features", edits.renaming, false);
  edits.rename
      ->add_option("--fields", edits.renaming.changes, "OLD=NEW, e.g. observation.images.laptop=observation.images.top")
      ->required();
  edits.retask = add_edit(app, "retask", "a LeRobot set with other texts of its tasks", edits.retasking, false);
  auto* task = edits.retask->add_option("--task", edits.retasking.task, "the text, of all episodes");
  auto* replace = edits.retask->add_option("--replace", edits.retasking.changes, "'OLD TEXT=NEW TEXT'");
  task->excludes(replace);
}

/// Runs the one that was asked for; false: none was.
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

struct ArmArguments {
  tasks::TwoLinkArmSettings settings;
  std::string out = "outputs/two_link_arm.csv";
};

void add_arm(CLI::App& app, ArmArguments& making) {
  CLI::App* arm = app.add_subcommand(
      "two-link-arm", "a CSV table from a simulated two-link arm: 10 measured columns, 2 torques to find");
  arm->add_option("--rows", making.settings.rows, "samples")->capture_default_str();
  arm->add_option("--seed", making.settings.seed, "keys torques and noise")->capture_default_str();
  arm->add_option("--sample-period", making.settings.sample_period, "s between rows")->capture_default_str();
  arm->add_option("--torque-range", making.settings.torque_range, "N m at the shoulder")->capture_default_str();
  arm->add_option("--noise", making.settings.noise, "relative sensor noise")->capture_default_str();
  arm->add_option("--out", making.out, "the file")->capture_default_str();
}

int run_data(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == "embed") return become_embed(arguments);
  CLI::App app("Makes, looks into, measures and converts data sets.", "cohort data");
  app.require_subcommand(1);

  InspectArguments inspecting;
  CLI::App* inspect_app = add_inspect(app, inspecting);
  StatsArguments measuring;
  CLI::App* stats_app = add_stats(app, measuring);
  ConvertArguments converting;
  CLI::App* convert_app = add_convert(app, converting);
  EditCommands edits;
  add_edits(app, edits);
  // For the list of subcommands.
  app.add_subcommand("embed", "instructions through T5, once, for policies that are told what to do");

  ArmArguments making;
  add_arm(app, making);
  std::vector<std::string> names;
  for (const CLI::App* known : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(known->get_name());
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (!first.starts_with("-") && std::find(names.begin(), names.end(), first) == names.end())
    throw UsageError(format("data: what shall be done? one of {}{}", join(names, ", "),
                            first.empty() ? "" : format(", not '{}'", first)));
  if (const auto code = parse_arguments(app, arguments)) return *code;
  if (inspect_app->parsed()) {
    inspect(inspecting);
  } else if (stats_app->parsed()) {
    stats(measuring);
  } else if (convert_app->parsed()) {
    convert(converting);
  } else if (!run_edit(edits)) {
    tasks::write_two_link_arm_csv(making.out, making.settings);
    std::printf("%s: %lld rows of a simulated two-link arm\n", making.out.c_str(),
                static_cast<long long>(making.settings.rows));
  }
  return 0;
}

}  // namespace
}  // namespace cohort::cli

int main(int argc, char** argv) {
  return cohort::cli::run_program(
      "cohort data", [&] { return cohort::cli::run_data(std::vector<std::string>(argv + 1, argv + argc)); });
}
