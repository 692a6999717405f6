#include "tasks/libero/compose/export.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include <unistd.h>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "sim/compile.h"
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
    sync_path(path_);
    std::error_code failed;
    fs::rename(path_, out_, failed);  // onto an empty folder, too
    COHORT_THROW_UNLESS(!failed, "{} cannot become {}: {}", path_.string(), out_.string(), failed.message());
    path_.clear();
    sync_path(out_.parent_path());
  }

 private:
  fs::path out_, path_;
};

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

}  // namespace

void export_libero(const ExportSettings& settings,
                   const std::function<void(int done, int total, const std::string& folder)>& report) {
  const LiberoSource libero = find_libero(settings.libero);
  const AssetFolders folders{libero.root / "assets", find_robosuite_assets(settings.robosuite)};
  const std::vector<ChosenTask> chosen = choose_tasks(libero.suites, settings.suites, settings.tasks);
  COHORT_THROW_UNLESS(settings.states >= 0, "{} initial states: 0 is for all", settings.states);
  Unfinished out(settings.out);
  AssetStore assets(out.path() / "assets", folders.libero);
  int done = 0;
  for (const ChosenTask& task : chosen) {
    const fs::path problem_file = libero.root / "bddl_files" / task.suite / (task.task + ".bddl");
    const std::string name = task.suite + "__" + task.task;
    const fs::path folder = out.path() / name;
    try {
      ComposedScene scene = compose_scene(folders, read_problem(read_file(problem_file), problem_file.string()));
      const std::map<std::string, FixturePose> fixtures = place_fixtures(scene);
      XmlNode model = scene.model;
      store_assets(model, assets);
      const MeasuredModel measured = compile_and_measure(scene, task.task);
      apply_reset(model, scene, measured, fixtures);
      write_statistic(model, measured);
      write_npy(
          folder / "init_states.npy",
          read_initial_states(libero.root / "init_files" / task.suite / (task.task + ".pruned_init"), settings.states));
      write_file_atomically(folder / "task.json",
                            describe_task(task.suite, task.task, scene, measured, fixtures).dump(1));
      write_file_atomically(folder / "scene.xml", to_xml(model));
    } catch (const Error& e) {
      throw Error(format("{}: {}", name, e.what()));
    }
    report(++done, static_cast<int>(chosen.size()), name);
  }
  assets.write_manifest();
  config::Json suites = config::Json::object();
  for (const auto& [suite, tasks] : libero.suites) suites[suite] = tasks;
  write_file_atomically(out.path() / "suites.json", suites.dump(1));
  out.finish();
}

}  // namespace cohort::tasks::libero::compose
