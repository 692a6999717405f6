#!/usr/bin/env python3
"""Writes the fixture of the noise schedules and samplers with the diffusers package.

    make_scheduler_fixtures.py OUT        (OUT: tests/models/fixtures/diffusion)

schedulers.json: one entry per case with the settings in our names, the timesteps and the sample after some of the steps; and,
per beta schedule, alphas_cumprod at some timesteps, and add_noise and velocity. A "network" stands in for the model: its
output is a fixed function of x and the timestep, 0.3 x + 0.5 u("model t"), u and all inputs by the formula in reference.py.
"""
import json
import sys
from pathlib import Path

import diffusers
import torch
from diffusers import DDIMScheduler, DDPMScheduler, DPMSolverMultistepScheduler

import reference

SHAPE = (2, 4, 3)
CASES = []


def case(kind, schedule=None, **settings):
    CASES.append((kind, schedule or {}, settings))


COSINE = {}
LINEAR = {"beta_schedule": "linear", "num_train_timesteps": 1000}
THOUSAND = {"num_train_timesteps": 1000}
case("ddim")
case("ddim", num_inference_timesteps=16)
case("ddim", set_alpha_to_one=False, clip_sample=False)
case("ddim", eta=1.0)
case("ddim", eta=0.4, use_clipped_model_output=True, clip_sample_range=0.7)
case("ddim", steps_offset=1, num_inference_timesteps=20)
case("ddim", dict(prediction_type="sample"))
case("ddim", dict(prediction_type="v_prediction"), clip_sample=False, timestep_spacing="trailing")
case("ddim", LINEAR, timestep_spacing="linspace", num_inference_timesteps=7)
case("ddim", dict(LINEAR, beta_schedule="scaled_linear"), timestep_spacing="trailing", num_inference_timesteps=7)
case("ddpm", num_inference_timesteps=100)
case("ddpm", num_inference_timesteps=10, variance_type="fixed_large", clip_sample=False)
case("ddpm", LINEAR, num_inference_timesteps=20, variance_type="fixed_small_log")
case("ddpm", dict(prediction_type="sample"), num_inference_timesteps=25)
case("ddpm", dict(prediction_type="v_prediction"), num_inference_timesteps=25, clip_sample_range=0.5)
case("ddpm", LINEAR, timestep_spacing="linspace", num_inference_timesteps=7)
case("ddpm", timestep_spacing="trailing", num_inference_timesteps=7, variance_type="fixed_large")
case("dpm_solver++", num_inference_timesteps=10)
case("dpm_solver++", dict(THOUSAND, prediction_type="sample"), num_inference_timesteps=5)
case("dpm_solver++", num_inference_timesteps=20)
case("dpm_solver++", LINEAR, num_inference_timesteps=20, solver_order=3)
case("dpm_solver++", LINEAR, num_inference_timesteps=8, solver_order=3)
case("dpm_solver++", LINEAR, num_inference_timesteps=9, solver_type="heun")
case("dpm_solver++", LINEAR, num_inference_timesteps=9, lower_order_final=False, final_sigmas_type="sigma_min", solver_order=3)
case("dpm_solver++", LINEAR, num_inference_timesteps=17, euler_at_final=True, final_sigmas_type="sigma_min")
case("dpm_solver++", dict(LINEAR, prediction_type="v_prediction"), num_inference_timesteps=12, use_karras_sigmas=True)
case("dpm_solver++", dict(prediction_type="sample"), num_inference_timesteps=8, use_karras_sigmas=True, solver_order=3)
case("dpm_solver++", LINEAR, num_inference_timesteps=10, timestep_spacing="leading", solver_order=1)
case("dpm_solver++", LINEAR, num_inference_timesteps=10, timestep_spacing="trailing")
KINDS = {"ddim": DDIMScheduler, "ddpm": DDPMScheduler, "dpm_solver++": DPMSolverMultistepScheduler}
OF_STEP = ("eta", "use_clipped_model_output")


def network(x, t):
    return 0.3 * x + 0.5 * reference.tensor(f"model {int(t)}", *SHAPE)


def run(kind, schedule, settings):
    schedule = dict({"num_train_timesteps": 100, "beta_schedule": "squaredcos_cap_v2"}, **schedule)
    arguments = {k: v for k, v in settings.items() if k not in OF_STEP + ("num_inference_timesteps",)}
    scheduler = KINDS[kind](**schedule, **arguments)
    scheduler.set_timesteps(settings.get("num_inference_timesteps", 10))
    x = reference.tensor("start", *SHAPE)
    states = {}
    step_arguments = {k: settings[k] for k in OF_STEP if k in settings}
    for i, t in enumerate(scheduler.timesteps):
        noise = reference.tensor(f"noise {i}", *SHAPE)
        module = sys.modules[type(scheduler).__module__]
        module.randn_tensor = lambda *_, noise=noise, **__: noise
        x = scheduler.step(network(x, t), t, x, **step_arguments).prev_sample
        if i % 5 == 0 or i + 1 == len(scheduler.timesteps):
            states[str(i)] = x.flatten().tolist()
    return {"kind": kind, "schedule": schedule, "settings": settings, "timesteps": scheduler.timesteps.tolist(), "states": states}


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    result = {"diffusers": diffusers.__version__, "cases": [run(*c) for c in CASES], "schedules": []}
    for schedule in ({"num_train_timesteps": 100, "beta_schedule": "squaredcos_cap_v2"},
                     {"num_train_timesteps": 1000, "beta_schedule": "squaredcos_cap_v2"},
                     {"num_train_timesteps": 1000, "beta_schedule": "linear"},
                     {"num_train_timesteps": 50, "beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}):
        scheduler = DDPMScheduler(**schedule)
        at = list(range(0, schedule["num_train_timesteps"], 7)) + [schedule["num_train_timesteps"] - 1]
        t = torch.tensor(at[:3] + at[-3:])
        x0, noise = reference.tensor("clean", len(t), 2, 3), reference.tensor("noise", len(t), 2, 3)
        result["schedules"].append({
            "schedule": schedule, "at": at, "alphas_cumprod": scheduler.alphas_cumprod[at].tolist(), "timesteps": t.tolist(),
            "add_noise": scheduler.add_noise(x0, noise, t).flatten().tolist(),
            "velocity": scheduler.get_velocity(x0, noise, t).flatten().tolist()})
    (out / "schedulers.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
