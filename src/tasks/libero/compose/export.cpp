#include "tasks/libero/compose/export.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include <fcntl.h>
#include <unistd.h>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "sim/host/compile.h"
#include "tasks/libero/compose/assets.h"
#include "tasks/libero/compose/description.h"
#include "tasks/libero/compose/initial_states.h"
#include "tasks/libero/compose/sources.h"

namespace cohort::tasks::libero::compose {
namespace {

namespace fs = std::filesystem;

/// A folder beside `out` that takes its place when all is in it, and goes otherwise.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& out) : out_(fs::absolute(out).lexically_normal()) {
    if (!out_.has_filename()) out_ = out_.parent_path();
    std::error_code failed;
    COHORT_THROW_UNLESS(!fs::exists(out_) || (fs::is_directory(out_) && fs::is_empty(out_)),
                        "{} exists and is not an empty folder: name a new one, or remove it", out_.string());
    const fs::path aside = format("{}.unfinished-{}", out_.string(), ::getpid());
    fs::create_directories(out_.parent_path(), failed);
    COHORT_THROW_UNLESS(!failed && fs::create_directory(aside, failed), "the folder {} cannot be made{}",
                        aside.string(), failed ? ": " + failed.message() : ", it is there already");
    path_ = aside;
  }
  ~Unfinished() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const fs::path& path() const { return path_; }
  void finish() {
    // Once for all: a variant is a file of a few lines, of which there are thousands.
    if (const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
      ::syncfs(folder);
      ::close(folder);
    }
    std::error_code failed;
    fs::rename(path_, out_, failed);  // onto an empty folder, too
    COHORT_THROW_UNLESS(!failed, "{} cannot become {}: {}", path_.string(), out_.string(), failed.message());
    path_.clear();
    sync_path(out_.parent_path());
  }

 private:
  fs::path out_, path_;
};

/// A file of a folder that is not finished; it comes to the disk with the others.
void write_part(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << content;
  out.close();
  COHORT_THROW_UNLESS(out.good(), "cannot write {}: {}", file.string(), std::strerror(errno));
}

/// The model with the assets' names in ../assets.
void store_assets(XmlNode& model, AssetStore& assets) {
  std::set<std::string> colliding;
  for_each_node(model, [&](const XmlNode& node) {
    if (node.name == "geom" && !(node.get("contype") == "0" && node.get("conaffinity") == "0"))
      colliding.insert(node.get("mesh"));
  });
  for (XmlNode& asset : model.section("asset").children)
    if (asset.has("file"))
      asset.set("file", assets.add(asset.get("file"), asset.name == "mesh" && colliding.count(asset.get("name")) > 0));
  XmlNode& compiler = model.section("compiler");
  compiler.set("meshdir", "../assets");
  compiler.set("texturedir", "../assets");
  compiler.set("autolimits", "true");
}

/// What a reset changes in the model: fixtures have their places, and sites of robot and things are not seen.
void apply_reset(XmlNode& model, const ComposedScene& scene, const MeasuredModel& measured,
                 const std::map<std::string, FixturePose>& fixtures) {
  std::set<std::string> hidden;
  for_each_node(scene.robot.model, [&](const XmlNode& node) {
    if (node.name == "site") hidden.insert(node.get("name"));
  });
  std::map<std::string, FixturePose> by_root;
  for (const ComposedThing& thing : scene.things) {
    hidden.insert(thing.sites.begin(), thing.sites.end());
    if (!thing.fixture) continue;
    const MeasuredModel::Body& body = measured.body(thing.root);
    const auto placed = fixtures.find(thing.name);
    by_root[thing.root] = placed == fixtures.end() ? FixturePose{body.pos, body.quat} : placed->second;
  }
  for_each_node(model, [&](XmlNode& node) {
    const std::string name = node.get("name");
    if (const auto pose = by_root.find(name); node.name == "body" && pose != by_root.end()) {
      node.set("pos", text_of(pose->second.pos));
      node.set("quat", text_of(pose->second.quat));
    } else if (node.name == "site") {
      std::vector<double> rgba;
      for (const float part : measured.site(name).rgba) rgba.push_back(std::nearbyint(part * 1e7) / 1e7);
      for (double& part : rgba) part = std::max(0.0, part);
      if (hidden.count(name) > 0) rgba[3] = 0;
      node.set("rgba", text_of(rgba));
    }
  });
}

/// Lights and clip planes depend on it. It is written down because smaller meshes would change what a compiler finds.
void write_statistic(XmlNode& model, const MeasuredModel& measured) {
  XmlNode& statistic = model.section("statistic");
  statistic.set("meaninertia", text_of(measured.mean_inertia));
  statistic.set("meanmass", text_of(measured.mean_mass));
  statistic.set("meansize", text_of(measured.mean_size));
  statistic.set("extent", text_of(measured.extent));
  statistic.set("center", text_of(measured.center));
}

MeasuredModel compile_and_measure(const ComposedScene& scene, const std::string& task) {
  const sim::EntityDeclaration whole{task, sim::Mjcf{.file = "", .xml = to_xml(scene.model)}};
  return measure_model(sim::compile_scene({&whole, 1}, {}, {}).mjb, scene.robot);
}

/// Whether the task's scene is that of LIBERO's task, whatever is said to the robot.
bool same_scene(const ChosenTask& task, const Problem& problem, const LiberoSource& libero) {
  if (task.variant.base.empty()) return false;
  const fs::path base_file = libero.root / "bddl_files" / task.folder / (task.variant.base + ".bddl");
  Problem base = read_problem(read_file(base_file), base_file.string());
  base.language = problem.language;
  return base == problem;
}

config::Json camera_entry(const Arena& arena, const Variant& variant) {
  for (const ArenaCamera& camera : arena.cameras)
    if (camera.name == "agentview") {
      const CameraPose pose = moved_camera({camera.pos, camera.quat}, variant);
      return {{"pos", pose.pos}, {"quat_wxyz", pose.quat}};
    }
  throw Error(format("the arena {} has no camera agentview", arena.kind));
}

/// What a task of LIBERO-Plus changes, beside its layout.
config::Json changes_of(const ChosenTask& task, const Arena& arena) {
  const Variant& variant = task.variant;
  config::Json json{{"agentview", camera_entry(arena, variant)}};
  if (variant.noise != 0) json["picture_noise"] = variant.noise;
  if (variant.start != 0) {
    const fs::path file =
        task.source->root / "envs/robots" / (arena.mounted ? "mounted_panda.py" : "on_the_ground_panda.py");
    json["init_qpos"] = start_posture(read_file(file), arena.mounted ? "MountedPanda" : "OnTheGroundPanda",
                                      variant.start, file.string());
  }
  return json;
}

class Exporter {
 public:
  Exporter(const ExportSettings& settings, const LiberoSource& libero, const fs::path& robosuite, const fs::path& out)
      : settings_(settings),
        libero_(libero),
        robosuite_(robosuite),
        out_(out),
        assets_(out / "assets", libero.assets) {}

  void write(const ChosenTask& task, const std::string& name) {
    const fs::path file = task.problem_file(), folder = out_ / name;
    Problem problem = read_problem(read_file(file), file.string());
    config::Json json;
    std::string scene;
    if (same_scene(task, problem, libero_)) {
      json = {{"task", task.task}, {"suite", task.suite}, {"scene_of", task.folder + "__" + task.variant.base}};
      json.update(changes_of(task, arena_of(problem.name)));
    } else {
      std::tie(json, scene) = write_scene(task, problem, folder);
      if (task.source->family == Family::kPlus) json.update(changes_of(task, arena_of(problem.name)));
    }
    json["language"] = language_for(task, problem);
    if (!task.variant.perturbation.empty()) json["perturbation"] = task.variant.perturbation;
    write_part(folder / "task.json", json_text(json, 1));
    if (!scene.empty()) write_part(folder / "scene.xml", scene);
  }

  void finish(const SuiteMap& suites) {
    assets_.write_manifest();
    config::Json json = config::Json::object();
    for (const auto& [suite, tasks] : suites) json[suite] = tasks;
    write_file_atomically(out_ / "suites.json", json_text(json, 1));
  }

 private:
  /// LIBERO takes the sentence from the task's name. Where a variant's name is not the sentence it is the problem's, or
  /// that of the task which is changed.
  static std::string language_for(const ChosenTask& task, const Problem& problem) {
    const Variant& variant = task.variant;
    if (task.source->family == Family::kPro || variant.perturbation == "language") return problem.language;
    if (task.source->family == Family::kLibero) return language_of(task.task);
    if (!variant.base.empty()) return language_of(variant.base);
    // "TASK_level1_sample1" and "TASK_moved_level1_sample1".
    std::string changed = task.file.substr(0, task.file.find("_level"));
    if (changed.ends_with("_moved")) changed.resize(changed.size() - std::string_view("_moved").size());
    return language_of(changed);
  }

  /// Writes the initial states. Returns what task.json and scene.xml are to hold.
  std::pair<config::Json, std::string> write_scene(const ChosenTask& task, const Problem& problem,
                                                   const fs::path& folder) {
    ComposedScene scene = compose_scene({task.source->assets, robosuite_}, problem);
    const std::map<std::string, FixturePose> fixtures = place_fixtures(scene);
    XmlNode model = scene.model;
    store_assets(model, assets_);
    const MeasuredModel measured = compile_and_measure(scene, task.task);
    apply_reset(model, scene, measured, fixtures);
    write_statistic(model, measured);
    write_npy(folder / "init_states.npy", read_initial_states(task.states_file(), settings_.states));
    config::Json json = describe_task(task.suite, task.task, scene, measured, fixtures);
    json["bddl_file"] = task.folder + "/" + task.variant.problem + ".bddl";
    return {std::move(json), to_xml(model)};
  }

  const ExportSettings& settings_;
  const LiberoSource& libero_;
  fs::path robosuite_, out_;
  AssetStore assets_;
};

}  // namespace

std::vector<LeftOut> export_libero(const ExportSettings& settings,
                                   const std::function<void(int done, int total, const std::string& folder)>& report) {
  const std::vector<LiberoSource> sources = find_libero(settings.libero);
  const fs::path robosuite = find_robosuite_assets(settings.robosuite.empty() ? settings.libero : settings.robosuite);
  const Choice choice = choose_tasks(sources, settings.suites, settings.tasks, settings.perturbations);
  COHORT_THROW_UNLESS(settings.states >= 0, "{} initial states: 0 is for all", settings.states);
  Unfinished out(settings.out);
  Exporter exporter(settings, sources.front(), robosuite, out.path());
  int done = 0;
  for (const ChosenTask& task : choice.tasks) {
    const std::string name = task.suite + "__" + task.file;
    try {
      exporter.write(task, name);
    } catch (const Error& e) {
      throw Error(format("{}: {}", name, e.what()));
    }
    report(++done, static_cast<int>(choice.tasks.size()), name);
  }
  exporter.finish(all_suites(sources));
  out.finish();
  return choice.left_out;
}

}  // namespace cohort::tasks::libero::compose
