// `cohort data`: making, looking into, measuring and converting data sets. The executable cohort-data, which `cohort`
// becomes: libhdf5 brings some thirty libraries, which would cost every other subcommand its quick start.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/data_edits.h"
#include "cli/next_command.h"
#include "cli/parse_arguments.h"
#include "cli/shown_data.h"
#include "cli/subcommand.h"
#include "cli/train_on.h"
#include "core/devices_cpu.h"
#include "core/files.h"
#include "core/json_text.h"
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
  const std::string json = json_text(data::to_json(statistics), 2) + "\n";
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

CLI::App* add_inspect(CLI::App& app, InspectArguments& inspecting) {
  CLI::App* inspect_app =
      app.add_subcommand("inspect", "schema, episodes and lengths of robot data; frames and curves");
  inspecting.source.add_to(*inspect_app);
  inspect_app->add_option("--out", inspecting.out, "PNG with a contact sheet of frames and curves of the actions");
  inspect_app
      ->add_option(
          "--html", inspecting.html,
          "an .html page with these episodes' pictures and curves side by side, for a browser without a network")
      ->check(page_name);
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
  // Which has LibTorch.
  if (!arguments.empty() && arguments.front() == "embed")
    become("cohort-embed", {arguments.begin() + 1, arguments.end()});
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
