#!/usr/bin/env python3
"""Writes a diffusion policy's folder with lerobot 0.6.1 (CPython 3.12, torch 2.11, diffusers 0.38) and what it answers.

    make_lerobot_fixtures.py OUT

OUT is tests/policies/diffusion/lerobot: folder/ is what its save_pretrained writes, folder.json the actions that it executes
of the chunks for two observations, from the noise that a run of ours begins with (seed 0, environment 0, first chunk).
"""
import json
import sys
from pathlib import Path

import numpy as np
import torch

import reference
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
from lerobot.policies.diffusion.modeling_diffusion import DiffusionPolicy
from lerobot.policies.diffusion.processor_diffusion import make_diffusion_pre_post_processors

STATE, ENVIRONMENT, ACTION, HORIZON = 5, 4, 3, 8


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    config = DiffusionConfig(
        input_features={"observation.environment_state": PolicyFeature(FeatureType.ENV, (ENVIRONMENT,)),
                        "observation.state": PolicyFeature(FeatureType.STATE, (STATE,))},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (ACTION,))}, device="cpu",
        horizon=HORIZON, n_action_steps=4, n_obs_steps=2, down_dims=(16, 32), diffusion_step_embed_dim=16,
        noise_scheduler_type="DDIM", num_inference_steps=10, drop_n_last_frames=3)
    policy = DiffusionPolicy(config)
    reference.fill(policy)
    policy.eval()

    def statistics(width):
        return {"min": np.full(width, -4, np.float32), "max": np.linspace(3, 5, width, dtype=np.float32),
                "mean": np.zeros(width, np.float32), "std": np.ones(width, np.float32)}
    stats = {"observation.state": statistics(STATE), "observation.environment_state": statistics(ENVIRONMENT),
             "action": statistics(ACTION)}
    before, after = make_diffusion_pre_post_processors(config, dataset_stats=stats)
    for part in (policy, before, after):
        part.save_pretrained(out / "folder")
    (out / "folder" / "README.md").unlink(missing_ok=True)
    noise = torch.from_numpy(reference.normal(
        reference.stream(0, reference.SAMPLING, 0, 0, 0, HORIZON * ACTION))).reshape(1, HORIZON, ACTION)
    answers = []
    for i in range(2):
        batch = before({"observation.state": 3 * reference.tensor(f"state {i}", STATE),
                        "observation.environment_state": reference.tensor(f"environment {i}", ENVIRONMENT)})
        # The first frame of an episode stands for the one before it.
        frames = {name: torch.stack([value, value], 1) for name, value in batch.items() if name.startswith("observation.")}
        with torch.no_grad():
            answers.append(reference.short(after(policy.diffusion.generate_actions(frames, noise=noise)).flatten().tolist()))
    print(answers[0][:3])
    Path(out, "folder.json").write_text(json.dumps({"actions": answers}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
