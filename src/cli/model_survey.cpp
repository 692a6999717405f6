#include "cli/model_survey.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/model_morph.h"
#include "core/error.h"
#include "core/log.h"
#include "core/philox.h"
#include "sim/backends/mujoco/engine.h"
#include "sim/host/compile.h"
#include "sim/host/model.h"
#include "sim/host/scene.h"

namespace cohort::cli {
namespace {

constexpr int kEnvironments = 4, kSteps = 5;
/// What the engines may differ by after one step and after kSteps: single precision, and two solvers that stop at one
/// tolerance.
constexpr double kAfterOne = 1e-4, kAfterAll = 1e-3;
/// A difference is put down to the model, not to us, where MuJoCo parts from itself by a tenth of it when its start is
/// rounded to single precision.
constexpr double kLikeRounding = 10;
/// Start velocities, rad/s and m/s.
constexpr float kSpeed = 0.2f;
/// As far as a solver goes that no limit ends.
constexpr int kMany = 500;
constexpr double kTight = 1e-12;

/// Velocities and positions of every environment after one step, then after all.
struct Run {
  std::vector<float> one, all;
  bool broken = false;
};

std::vector<float> motion(sim::Scene& scene) {
  std::vector<float> values = scene.get_dofs_velocity();
  const std::vector<float> position = scene.get_dofs_position();
  values.insert(values.end(), position.begin(), position.end());
  return values;
}

struct Variant {
  sim::EngineKind engine;
  bool rounded = false;    ///< starts one rounding error away
  bool converged = false;  ///< the solver goes on until it has converged
  bool controls = true;    ///< random ones in every step
};

/// What is compared: a model, and pairs of links that are left out of it (SceneOptions::exclude).
struct Compared {
  sim::Morph morph;
  std::vector<std::array<std::string, 2>> exclude{};
};

Run run(const Compared& model, Variant variant) {
  sim::SceneOptions options;
  options.engine = variant.engine;
  options.exclude = model.exclude;
  options.report_stops = false;  // Run::broken
  if (variant.converged) options.iterations = kMany, options.tolerance = kTight;
  sim::Scene scene(options);
  scene.add_entity(model.morph, "model");
  scene.build(kEnvironments);
  const int nv = scene.info().nv;
  std::vector<float> velocity, position = scene.get_dofs_position();
  for (int e = 0; e < kEnvironments; ++e) {
    const RandomStream random(1, RandomPurpose::kEnvironment, static_cast<std::uint64_t>(e), 0);
    for (int d = 0; d < nv; ++d) velocity.push_back(kSpeed * random.normal(static_cast<std::uint64_t>(d)));
  }
  if (variant.rounded) {
    for (std::size_t i = 0; i < velocity.size(); ++i) {
      const float side = i % 2 == 0 ? 1e30f : -1e30f;
      velocity[i] = std::nextafter(velocity[i], side);
      position[i] = std::nextafter(position[i] + 1, side) - 1;
    }
    scene.set_dofs_position(position);
  }
  scene.set_dofs_velocity(velocity);
  Run result;
  for (int s = 0; s < kSteps; ++s) {
    if (variant.controls) scene.set_random_ctrl(s);
    scene.step();
    if (s == 0) result.one = motion(scene);
  }
  result.all = motion(scene);
  const ArrayView status = scene.view(sim::Field::kStatus);
  for (int e = 0; e < kEnvironments; ++e) {
    result.broken = result.broken || static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] != 0;
  }
  return result;
}

/// The largest difference relative to the largest value.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0, scale = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    scale = std::max(scale, std::abs(static_cast<double>(b[i])));
  }
  return most / scale;
}

/// How far the engines part.
struct Comparison {
  double one = 0, all = 0;
  std::string rounded, converged;  ///< "1e-05, 2e-04": of MuJoCo rounded, of both converged; "" where nobody asked
  std::string verdict;
};

Comparison compare(const Compared& model) {
  const Run ours = run(model, {sim::EngineKind::kBatched}), theirs = run(model, {sim::EngineKind::kMujoco});
  Comparison c{difference(ours.one, theirs.one), difference(ours.all, theirs.all), "", "", ""};
  const auto two = [](double one, double all) { return format("{:.0e}, {:.0e}", one, all); };
  if (ours.broken && theirs.broken) {
    // Motors of many thousand N m, say, which the robot's own controllers never ask for.
    const Run calm = run(model, {.engine = sim::EngineKind::kBatched, .controls = false}),
              their_calm = run(model, {.engine = sim::EngineKind::kMujoco, .controls = false});
    const double calm_one = difference(calm.one, their_calm.one), calm_all = difference(calm.all, their_calm.all);
    const bool same = !calm.broken && !their_calm.broken && calm_one <= kAfterOne && calm_all <= kAfterAll;
    c.verdict = "broke in MuJoCo too under random controls; without controls " +
                (same ? std::string("same") : two(calm_one, calm_all));
    return c;
  }
  if (ours.broken || theirs.broken) {
    c.verdict = format("an environment broke, in {} only", ours.broken ? "the batched engine" : "MuJoCo");
    return c;
  }
  c.verdict = "same";
  if (c.one <= kAfterOne && c.all <= kAfterAll) return c;
  const Run rounded = run(model, {sim::EngineKind::kMujoco, true, false});
  const double own_one = difference(rounded.one, theirs.one), own_all = difference(rounded.all, theirs.all);
  const Run ours_converged = run(model, {sim::EngineKind::kBatched, false, true}),
            theirs_converged = run(model, {sim::EngineKind::kMujoco, false, true});
  const double one_converged = difference(ours_converged.one, theirs_converged.one),
               all_converged = difference(ours_converged.all, theirs_converged.all);
  c.rounded = two(own_one, own_all), c.converged = two(one_converged, all_converged);
  c.verdict = one_converged <= kAfterOne && all_converged <= kAfterAll ? "same where the solver converges"
              : c.one <= kLikeRounding * own_one && c.all <= kLikeRounding * own_all
                  ? "as far as MuJoCo from itself after rounding"
                  : "differs";
  return c;
}

/// The columns of a model that the batched engine runs.
std::string comparison(const sim::Morph& morph) {
  const Comparison c = compare({morph});
  return format("{:.0e} | {:.0e} | {} | {} | {}", c.one, c.all, c.rounded, c.converged, c.verdict);
}

/// Below a folder, all .xml and .urdf files, in capitals too, and the folders that cannot be opened.
void find_models(const std::filesystem::path& folder, std::vector<std::filesystem::path>& files,
                 std::vector<std::filesystem::path>& closed) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) {
      find_models(at->path(), files, closed);
      continue;
    }
    std::string suffix = at->path().extension().string();
    std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::tolower(c); });
    if (at->is_regular_file(ignored) && (suffix == ".xml" || suffix == ".urdf")) files.push_back(at->path());
  }
  if (error) closed.push_back(folder);
}

/// A bar would end the column, a line break the row.
std::string in_table(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

void compare_model(const sim::Morph& morph, const std::vector<std::array<std::string, 2>>& exclude) {
  const Comparison c = compare({morph, exclude});
  std::puts(format("beside MuJoCo, {} environments with random controls: {}", kEnvironments, c.verdict).c_str());
  const auto line = [](const std::string& what, const std::string& figures) {
    std::puts(format("  {:<40} {}", what, figures).c_str());
  };
  line(format("largest difference after 1 and {} steps", kSteps), format("{:.0e}, {:.0e}", c.one, c.all));
  if (!c.rounded.empty()) line("MuJoCo from itself, its start rounded", c.rounded);
  if (!c.converged.empty()) line("with solvers that converge", c.converged);
}

int survey_models(const std::filesystem::path& folder, bool compare) {
  std::vector<std::filesystem::path> files, closed;
  find_models(folder, files, closed);
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& skipped : closed) {
    log::warning("{} is left out: it cannot be read", skipped.string());
  }
  COHORT_THROW_UNLESS(!files.empty(), "{} holds no .xml or .urdf file", folder.string());
  std::puts(
      compare ? format("| model | dofs | batched engine | 1 step | {} steps | MuJoCo rounded, 1 and {} steps | "
                       "converged, 1 and {} steps | beside MuJoCo |\n| --- | --- | --- | --- | --- | --- | --- | --- |",
                       kSteps, kSteps, kSteps)
                    .c_str()
              : "| model | dofs | batched engine |\n| --- | --- | --- |");
  int runs = 0, compiled = 0;
  for (const std::filesystem::path& file : files) {
    const sim::Morph morph = morph_of(file.string(), {});
    const sim::EntityDeclaration entity{"model", morph};
    std::string dofs = "-", verdict, compared = " | | | |";
    const auto without_folder = [&](std::string text) {
      const std::string prefix = (folder / "").string();
      for (std::size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
      return in_table(text.substr(0, std::min(text.find('\n'), std::size_t{160})));
    };
    std::optional<sim::CompiledScene> scene;
    try {
      scene = sim::compile_scene(std::span(&entity, 1), {}, {});
    } catch (const Error& e) {
      verdict = "not a model: " + without_folder(e.what());
    }
    if (scene) {
      const int nv = sim::describe_mjb(scene->mjb).nv;
      dofs = format("{}", nv);
      std::set<std::string> features;
      for (const sim::Unsupported& u : sim::find_unsupported(scene->mjb)) features.insert(u.feature);
      ++compiled;
      if (features.empty()) ++runs;
      for (const std::string& feature : features) verdict += (verdict.empty() ? "no: " : ", ") + feature;
      if (features.empty()) verdict = "runs";
      if (features.empty() && compare && nv > 0) {
        try {
          compared = comparison(morph);
        } catch (const Error& e) {
          compared = " | | | | " + without_folder(e.what());
        }
      }
    }
    const std::string name = in_table(file.lexically_relative(folder).string());
    std::puts((compare ? format("| {} | {} | {} | {} |", name, dofs, verdict, compared)
                       : format("| {} | {} | {} |", name, dofs, verdict))
                  .c_str());
    std::fflush(stdout);
  }
  std::puts(format("\n{} of {} models run.", runs, compiled).c_str());
  return 0;
}

}  // namespace cohort::cli
