// `cohort model`: what a model holds, and whether the batched engine runs it.
#include "sim/host/model.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "cli/model_morph.h"
#include "cli/model_survey.h"
#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "core/error.h"
#include "sim/backends/cpu/engine.h"
#include "sim/backends/mujoco/engine.h"
#include "sim/host/compile.h"
#include "sim/host/model_file.h"
#include "sim/host/overlaps.h"
#include "sim/host/visual_model.h"

namespace cohort::cli {
namespace {

const char* joint_name(sim::JointType type) {
  constexpr const char* kNames[] = {"free", "ball", "slide", "hinge"};
  return kNames[static_cast<int>(type)];
}

struct Count {
  std::int64_t n;
  const char *one, *many;
};
/// "2 tendons, 1 mesh", of what there is.
std::string list_of(std::initializer_list<Count> counts) {
  std::string list;
  for (const Count& c : counts) {
    if (c.n > 0) list += format("{}{} {}", list.empty() ? "" : ", ", c.n, c.n == 1 ? c.one : c.many);
  }
  return list;
}

void print_line(const char* what, std::size_t index, const std::string& name, const std::string& rest) {
  std::puts(format("  {:<8} {:>3} {:<20} {}", what, index, name, rest).c_str());
}

void print_parts(const sim::ModelInfo& m) {
  const auto range = [](const std::array<double, 2>& r) { return format("  range [{:.4g}, {:.4g}]", r[0], r[1]); };
  const auto each = [](const char* what, const auto& items, auto text, std::size_t first = 0) {
    for (std::size_t i = first; i < items.size(); ++i) print_line(what, i, items[i].name, text(items[i]));
  };
  each(
      "link", m.links,
      [](const sim::LinkInfo& l) {
        return format("in {}, {:.4g} kg{}", l.parent, l.mass, l.mocap >= 0 ? ", mocap" : "");
      },
      1);
  each("joint", m.joints, [&](const sim::JointInfo& j) {
    return format("{:<6} of {}, qpos {:>3}, dof {:>3}{}", joint_name(j.type), j.link, j.qpos, j.dof,
                  j.limited ? range(j.range) : "");
  });
  each("actuator", m.actuators,
       [&](const sim::ActuatorInfo& a) { return format("ctrl {:>3}{}", a.ctrl, a.limited ? range(a.range) : ""); });
  each("geom", m.geoms, [](const sim::GeomInfo& g) { return format("{:<9} of {}", g.type, g.link); });
  each("site", m.sites, [](const sim::SiteInfo& x) { return format("of {}", x.link); });
  each("sensor", m.sensors, [](const sim::SensorInfo& x) {
    return format("{:<18} values {} to {}", x.type, x.address, x.address + x.size - 1);
  });
  each("keyframe", m.keyframes, [](const sim::KeyframeInfo& k) { return format("time {} s", k.time); });
}

/// file: its name is the model's where that has none of its own.
void print(const sim::ModelInfo& m, const std::string& file, bool verbose) {
  // What MuJoCo calls a model without a name.
  const std::string name = m.name == "MuJoCo Model" ? std::filesystem::path(file).filename().string() : m.name;
  std::puts(format("{}: {} links, {} joints, {} coordinates, {} dofs, {} actuators with {} controls, {} geoms, {} "
                   "sensors, {} keyframes",
                   name, m.links.size() - 1, m.joints.size(), m.nq, m.nv, m.actuators.size(), m.nu, m.geoms.size(),
                   m.sensors.size(), m.keyframes.size())
                .c_str());
  const sim::PartCounts& p = m.parts;
  const std::string others = list_of({{m.na, "activation", "activations"},
                                      {m.nmocap, "mocap body", "mocap bodies"},
                                      {p.sites, "site", "sites"},
                                      {p.tendons, "tendon", "tendons"},
                                      {p.equalities, "equality", "equalities"},
                                      {p.pairs, "contact pair", "contact pairs"},
                                      {p.exclusions, "excluded pair", "excluded pairs"},
                                      {p.meshes, "mesh", "meshes"},
                                      {p.height_fields, "height field", "height fields"},
                                      {p.cameras, "camera", "cameras"}});
  if (!others.empty()) std::puts(others.c_str());
  std::puts(
      format("timestep {} s, integrator {}, solver {}, {} cones", m.timestep, m.integrator, m.solver, m.cone).c_str());
  if (verbose) print_parts(m);
}

/// How many geoms are in which of MuJoCo's groups, where pictures leave some out.
void print_groups(const sim::VisualModel& seen) {
  std::array<int, 6> count{};
  for (const sim::VisualGeom& g : seen.geoms)
    if (g.id >= 0) ++count[static_cast<std::size_t>(g.group)];
  if (count[3] + count[4] + count[5] == 0) return;
  std::string groups, all;
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (count[i] == 0) continue;
    groups += format("{}{} in {}", groups.empty() ? "" : ", ", count[i], i);
    all += format("{}{}", all.empty() ? "" : ",", i);
  }
  std::puts(
      format("groups of geoms: {}; pictures show 0, 1 and 2, with --geom-groups {} all of them", groups, all).c_str());
}

/// Bytes of an environment on a CPU by part, and how many fit.
void print_memory(const sim::Model& model) {
  const sim::MemoryPlan plan = sim::plan_cpu_engine(model, {});
  std::string parts;
  for (const sim::MemoryPlan::Part& part : plan.parts) {
    parts += format("{}{} {:.0f}", parts.empty() ? "" : ", ", part.name, part.bytes);
  }
  std::puts(format("memory: {:.0f} bytes per environment ({}), {} per thread; {} environments fit here now",
                   plan.bytes_per_environment(), parts, format_bytes(plan.thread_bytes), plan.most_environments())
                .c_str());
}

void print_start(const sim::ModelInfo& m) {
  const std::string outside = m.starts_outside_limits();
  if (!outside.empty()) std::puts(("warning: " + outside).c_str());
}

/// A model that `--compile` or a scene wrote.
int describe_compiled(const std::string& file, bool verbose) {
  const sim::Model model = sim::load_model(file);
  const sim::ModelInfo& m = model.info;
  print(m, file, verbose);
  print_memory(model);
  print_start(m);
  for (const sim::EntityInfo& e : m.entities) {
    std::puts(format("entity {}: {} links, {} geoms", e.name, e.links.size(), e.geoms.size()).c_str());
  }
  std::puts("compiled for the engine batched: `cohort simulate` runs it without MuJoCo's files");
  return 0;
}

struct ModelSettings {
  std::string file, compile_to;
  FileOptions file_options;
  bool verbose = false, compare = false;
};

int describe(const ModelSettings& s) {
  if (s.file.ends_with(".cohort")) return describe_compiled(s.file, s.verbose);
  const sim::EntityDeclaration entity{"model", morph_of(s.file, s.file_options)};
  sim::SceneOptions options;
  options.exclude = exclusions(s.file_options.exclude);
  const sim::CompiledScene scene = sim::compile_scene(std::span(&entity, 1), {}, options);
  const sim::ModelInfo m = sim::describe_mjb(scene.mjb);
  print(m, s.file, s.verbose);
  print_groups(sim::import_visual_model(scene.mjb));
  for (const std::string& warning : scene.warnings) std::puts(format("warning: {}", warning).c_str());
  print_start(m);
  const std::string overlap = sim::describe_overlaps(m, sim::make_mujoco_engine(scene.mjb, 1, {})->contacts(0));
  if (!overlap.empty()) std::puts(format("warning: {}", overlap).c_str());
  const std::vector<sim::Unsupported> missing = sim::find_unsupported(scene.mjb);
  if (missing.empty()) {
    const std::string otherwise = sim::taken_otherwise(m);
    std::puts(format("engine batched: runs it{}{}", otherwise.empty() ? "" : "; ", otherwise).c_str());
    print_memory(sim::import_model(scene.mjb));
  } else {
    std::puts(format("engine batched: does not run it (engine mujoco does): {}", sim::to_string(missing)).c_str());
  }
  if (!s.compile_to.empty()) {
    const sim::VisualModel seen = sim::import_visual_model(scene.mjb);
    sim::save_model(sim::import_model(scene.mjb), s.compile_to, &seen);
    std::puts(format("compiled to {}", s.compile_to).c_str());
  }
  if (s.compare && missing.empty()) compare_model(entity.morph, options.exclude);
  return 0;
}

/// An option that would not be looked at is an error, not ignored.
void check_together(const ModelSettings& s, bool folder, bool compile) {
  if (s.file.empty()) throw UsageError("MODEL is empty: name a file or a folder");
  if (folder && (compile || s.verbose || s.file_options.any())) {
    throw UsageError(
        format("{} is a folder: --compile, --verbose, --fixed-base, --repair-inertia, --srdf and --exclude are for one "
               "model",
               s.file));
  }
  if (s.compare && s.file.ends_with(".cohort")) {
    throw UsageError(
        format("--compare: {} is compiled, and MuJoCo does not read it; name the file that it was made from", s.file));
  }
  if (!folder) check_file_options(s.file, s.file_options);
  if (compile && !s.compile_to.ends_with(".cohort")) {
    throw UsageError(format("--compile {}: the file ends in .cohort", s.compile_to));
  }
  const bool compiled = s.file.ends_with(".cohort");
  if (compile && compiled && !folder) throw UsageError(format("--compile: {} is compiled already", s.file));
}

int run_model(const std::vector<std::string>& arguments) {
  ModelSettings s;
  CLI::App app("Says what a model holds and whether the batched engine runs it.", "cohort model");
  app.add_option("MODEL", s.file,
                 "MJCF or URDF file, or a compiled .cohort model; a folder: a table of all models below it")
      ->required();
  app.add_flag("-v,--verbose", s.verbose, "links, joints, actuators, geoms, sensors and keyframes one by one");
  app.add_flag("--compare", s.compare, "run the model, or each of a folder, beside MuJoCo: how far do they part?");
  add_file_options(app, s.file_options);
  const CLI::Option* compile = app.add_option(
      "--compile", s.compile_to, "write the batched engine's model to this .cohort file, which needs no MuJoCo");
  if (const auto code = parse_arguments(app, arguments)) return *code;
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(s.file, ignored);
  check_together(s, folder, compile->count() > 0);
  return folder ? survey_models(s.file, s.compare) : describe(s);
}

const Register kModel({"model", "what a model holds, and which engine runs it", run_model, ""});

}  // namespace
}  // namespace cohort::cli
