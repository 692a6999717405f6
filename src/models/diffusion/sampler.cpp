#include "models/diffusion/sampler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/check_choice.h"

namespace cohort::models {
namespace {

const std::vector<std::string> kKinds{"ddpm", "ddim", "dpm_solver++"};
const std::vector<std::string> kSpacings{"default", "leading", "linspace", "trailing"};
const std::vector<std::string> kVariances{"fixed_small", "fixed_small_log", "fixed_large"};
const std::vector<std::string> kSolvers{"midpoint", "heun"};
const std::vector<std::string> kFinalSigmas{"zero", "sigma_min"};

}  // namespace

void describe(config::Fields& fields, SamplerSettings& s) {
  fields.add_choice("kind", s.kind, kKinds, "how actions are drawn from noise");
  fields.add("num_inference_timesteps", s.num_inference_timesteps, "network calls per action chunk");
  fields.add_choice("timestep_spacing", s.timestep_spacing, kSpacings,
                    "which timesteps those are; default: leading, for dpm_solver++ linspace");
  fields.add("steps_offset", s.steps_offset, "added to the timesteps of the spacing \"leading\"");
  fields.add("clip_sample", s.clip_sample, "ddpm, ddim: clamp the predicted actions to +-clip_sample_range");
  fields.add("clip_sample_range", s.clip_sample_range, "in normalised actions");
  fields.add_choice("variance_type", s.variance_type, kVariances, "ddpm: the noise that a step adds");
  fields.add("set_alpha_to_one", s.set_alpha_to_one, "ddim: the last step ends without noise");
  fields.add("eta", s.eta, "ddim: 0 is deterministic, 1 draws as much noise as ddpm");
  fields.add("use_clipped_model_output", s.use_clipped_model_output,
             "ddim: derive the noise again from the clipped actions");
  fields.add("solver_order", s.solver_order, "dpm_solver++: 1, 2 or 3");
  fields.add_choice("solver_type", s.solver_type, kSolvers, "dpm_solver++ of order 2");
  fields.add("lower_order_final", s.lower_order_final, "dpm_solver++: falling order at the end of fewer than 15 steps");
  fields.add("euler_at_final", s.euler_at_final, "dpm_solver++: order 1 in the last step");
  fields.add("use_karras_sigmas", s.use_karras_sigmas, "dpm_solver++: noise levels of Karras et al. 2022");
  fields.add_choice("final_sigmas_type", s.final_sigmas_type, kFinalSigmas,
                    "dpm_solver++: the noise level after the last step");
}

std::string spacing_of(const SamplerSettings& s) {
  if (s.timestep_spacing != "default") return s.timestep_spacing;
  return s.kind == "dpm_solver++" ? "linspace" : "leading";
}

void check(const SamplerSettings& s, const NoiseScheduleSettings& schedule) {
  check_choice("sampler", "kind", s.kind, kKinds);
  check_choice("sampler", "timestep_spacing", s.timestep_spacing, kSpacings);
  check_choice("sampler", "variance_type", s.variance_type, kVariances);
  check_choice("sampler", "solver_type", s.solver_type, kSolvers);
  check_choice("sampler", "final_sigmas_type", s.final_sigmas_type, kFinalSigmas);
  const int train = schedule.num_train_timesteps;
  const bool solver = s.kind == "dpm_solver++";
  const int most = solver ? train - 1 : train;
  COHORT_THROW_UNLESS(s.num_inference_timesteps >= 1 && s.num_inference_timesteps <= most,
                      "sampler: num_inference_timesteps = {}, but must be 1 to {}, as num_train_timesteps = {}",
                      s.num_inference_timesteps, most, train);
  COHORT_THROW_UNLESS(s.steps_offset >= 0, "sampler: steps_offset = {}, but must not be negative", s.steps_offset);
  if (!solver || !s.use_karras_sigmas)
    spaced_timesteps(spacing_of(s), train, s.num_inference_timesteps, s.steps_offset, solver);
  COHORT_THROW_UNLESS(s.clip_sample_range > 0, "sampler: clip_sample_range = {}, but must be positive",
                      s.clip_sample_range);
  COHORT_THROW_UNLESS(s.eta >= 0 && s.eta <= 1, "sampler: eta = {}, but must be in [0, 1]", s.eta);
  COHORT_THROW_UNLESS(s.solver_order >= 1 && s.solver_order <= 3, "sampler: solver_order = {}, but must be 1, 2 or 3",
                      s.solver_order);
}

std::vector<std::int64_t> spaced_timesteps(const std::string& spacing, int end, int count, int offset, bool open) {
  // numpy's round: halves to even, as std::nearbyint does by default.
  std::vector<std::int64_t> timesteps;
  const int points = open ? count + 1 : count;
  if (spacing == "linspace") {
    for (int i = 0; i < points; ++i) {
      // numpy's linspace multiplies the index by the step, and sets the last point to the end.
      const double step = points > 1 ? static_cast<double>(end - 1) / (points - 1) : 0.0;
      const double value = i == points - 1 && points > 1 ? end - 1 : i * step;
      timesteps.push_back(static_cast<std::int64_t>(std::nearbyint(value)));
    }
    std::reverse(timesteps.begin(), timesteps.end());
    if (open) timesteps.pop_back();
  } else if (spacing == "leading") {
    const int ratio = end / points;
    for (int i = points - 1; i >= (open ? 1 : 0); --i)
      timesteps.push_back(static_cast<std::int64_t>(i) * ratio + offset);
  } else {
    // numpy's arange(end, 0, -step): as many values as the quotient rounded up.
    const double step = static_cast<double>(end) / count;
    const auto values = static_cast<int>(std::ceil(static_cast<double>(-end) / -step));
    for (int i = 0; i < values; ++i) timesteps.push_back(static_cast<std::int64_t>(std::nearbyint(end - i * step)) - 1);
  }
  COHORT_THROW_UNLESS(timesteps.front() < end && timesteps.back() >= 0,
                      "sampler: steps_offset = {} moves the first of {} timesteps to {}, but the last is {}", offset,
                      count, timesteps.front(), end - 1);
  return timesteps;
}

std::unique_ptr<Sampler> make_sampler(const SamplerSettings& settings, const NoiseSchedule& schedule) {
  check(settings, schedule.settings());
  if (settings.kind == "ddpm") return make_ddpm(settings, schedule);
  if (settings.kind == "ddim") return make_ddim(settings, schedule);
  return make_dpm_solver(settings, schedule);
}

}  // namespace cohort::models
