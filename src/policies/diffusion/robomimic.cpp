// The section "algo" of robomimic's diffusion_policy, as the DROID fork has it.
#include "policies/robomimic.h"

#include <nlohmann/json.hpp>

#include "models/diffusion/noise_choices.h"
#include "policies/diffusion/robomimic.h"

namespace cohort::policies {
namespace {

using config::Json;
using config::JsonSection;

/// Of a sampler that is not `enabled`, names may be any.
void read_noise(JsonSection& section, bool enabled, models::NoiseScheduleSettings& schedule,
                models::SamplerSettings& sampler) {
  section.take("num_train_timesteps", schedule.num_train_timesteps);
  if (enabled) {
    section.take_choice("beta_schedule", schedule.beta_schedule, models::beta_schedules());
    section.take_choice("prediction_type", schedule.prediction_type, models::prediction_types());
  } else {
    section.ignore("beta_schedule");
    section.ignore("prediction_type");
  }
  section.take("num_inference_timesteps", sampler.num_inference_timesteps);
  section.take("clip_sample", sampler.clip_sample);
  section.take("set_alpha_to_one", sampler.set_alpha_to_one);
  section.take("steps_offset", sampler.steps_offset);
}

}  // namespace

void read_robomimic_algo(JsonSection& algo, models::DiffusionPolicySettings& s, RobomimicPolicy& policy) {
  read_optimizer(algo, policy.optimizer);
  algo.in("horizon", [&](JsonSection& h) {
    h.take("observation_horizon", s.horizon.observation_horizon);
    h.take("action_horizon", s.horizon.action_horizon);
    h.take("prediction_horizon", s.horizon.prediction_horizon);
  });
  bool unet = true, transformer = false, ddpm = true, ddim = false;
  algo.in("unet", [&](JsonSection& u) {
    u.take("enabled", unet);
    u.take("diffusion_step_embed_dim", s.unet.diffusion_step_embed_dim);
    u.take("down_dims", s.unet.down_dims);
    u.take("kernel_size", s.unet.kernel_size);
    u.take("n_groups", s.unet.n_groups);
  });
  algo.in("transformer", [&](JsonSection& t) {
    t.take("enabled", transformer);
    t.take("n_layer", s.transformer.n_layer);
    t.take("n_head", s.transformer.n_head);
    t.take("n_emb", s.transformer.n_emb);
    t.take("p_drop_emb", s.transformer.p_drop_emb);
    t.take("p_drop_attn", s.transformer.p_drop_attn);
    t.take("causal_attn", s.transformer.causal_attn);
    t.take("n_cond_layers", s.transformer.n_cond_layers);
  });
  // The U-Net comes first in the reference, too.
  s.network = unet || !transformer ? "unet" : "transformer";
  if (!unet && !transformer)
    algo.refuse(algo.path() + ".unet.enabled", Json(false), "leaves the policy without a network");
  policy.ema_enabled = true;
  algo.in("ema", [&](JsonSection& e) {
    e.take("enabled", policy.ema_enabled);
    e.take("power", policy.ema_power);
  });
  s.noise_samples = 1;
  algo.take("noise_samples", s.noise_samples);
  models::NoiseScheduleSettings schedules[2];
  models::SamplerSettings samplers[2];
  samplers[0].kind = "ddpm";
  samplers[0].num_inference_timesteps = 100;
  schedules[1].num_train_timesteps = 50;
  algo.in("ddpm", [&](JsonSection& d) {
    d.take("enabled", ddpm);
    read_noise(d, ddpm, schedules[0], samplers[0]);
  });
  algo.in("ddim", [&](JsonSection& d) {
    d.take("enabled", ddim);
    read_noise(d, ddim, schedules[1], samplers[1]);
  });
  if (!ddpm && !ddim) algo.refuse(algo.path() + ".ddim.enabled", Json(false), "leaves the policy without a sampler");
  // DDPM comes first in the reference, too.
  s.schedule = schedules[ddpm ? 0 : 1];
  s.sampler = samplers[ddpm ? 0 : 1];
}

}  // namespace cohort::policies
