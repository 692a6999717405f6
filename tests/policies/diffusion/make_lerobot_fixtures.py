#!/usr/bin/env python3
"""Writes a diffusion policy's folder with lerobot 0.6.1 (CPython 3.12, torch 2.11, diffusers 0.38) and what it answers.

    make_lerobot_fixtures.py OUT [pictures]

With pictures: OUT/pictures_apart and OUT/pictures_shared, which lack model.safetensors (45 MB an encoder), and OUT/pictures.json
with the names and shapes of the weights, which the test fills by the formula, and the actions (lerobot 0.4.4 gives the same).

Without: OUT is tests/policies/diffusion/lerobot: folder/ is what its save_pretrained writes, folder.json the actions that it executes
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


def fill_buffers(policy):
    """Running statistics of batch norms by the formula: means U(+-0.1), variances 1 + U(+-0.1)."""
    for name, buffer in policy.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            value = reference.tensor(name, *buffer.shape, scale=0.1)
            buffer.copy_(value + (1 if name.endswith("running_var") else 0))


def pictures(out):
    facts = {}
    for case, size, crop, group_norm, apart, environment in (
            ("pictures_apart", (47, 45), (40, 38), True, True, True),
            ("pictures_shared", (40, 36), None, False, False, False)):
        cameras = {f"observation.images.{name}": PolicyFeature(FeatureType.VISUAL, (3, *size)) for name in ("front", "wrist")}
        features = dict(cameras)
        if environment:
            features["observation.environment_state"] = PolicyFeature(FeatureType.ENV, (ENVIRONMENT,))
        features["observation.state"] = PolicyFeature(FeatureType.STATE, (STATE,))
        config = DiffusionConfig(
            input_features=features, output_features={"action": PolicyFeature(FeatureType.ACTION, (ACTION,))}, device="cpu",
            horizon=HORIZON, n_action_steps=4, n_obs_steps=2, down_dims=(16, 32), diffusion_step_embed_dim=16,
            noise_scheduler_type="DDIM", num_inference_steps=2, drop_n_last_frames=3, crop_shape=crop,
            use_group_norm=group_norm, use_separate_rgb_encoder_per_camera=apart, pretrained_backbone_weights=None,
            spatial_softmax_num_keypoints=6)
        policy = DiffusionPolicy(config)
        reference.fill(policy)
        fill_buffers(policy)
        policy.eval()
        stats = {name: {"min": np.full(n, -4, np.float32), "max": np.linspace(3, 5, n, dtype=np.float32)}
                 for name, n in (("observation.state", STATE), ("observation.environment_state", ENVIRONMENT), ("action", ACTION))}
        for i, name in enumerate(cameras):
            stats[name] = {"mean": np.array([[[0.4 + 0.1 * i]], [[0.5]], [[0.3]]], np.float32),
                           "std": np.array([[[0.2]], [[0.25 + 0.05 * i]], [[0.3]]], np.float32)}
        before, after = make_diffusion_pre_post_processors(config, dataset_stats=stats)
        for part in (config, before, after):
            part.save_pretrained(out / case)
        noise = torch.from_numpy(reference.normal(
            reference.stream(0, reference.SAMPLING, 0, 0, 0, HORIZON * ACTION))).reshape(1, HORIZON, ACTION)
        answers = []
        for i in range(2):
            observation = {"observation.state": 3 * reference.tensor(f"state {i}", STATE)}
            if environment:
                observation["observation.environment_state"] = reference.tensor(f"environment {i}", ENVIRONMENT)
            for name in cameras:
                bytes_ = (reference.tensor(f"{name} {i}", 3, *size) * 127 + 128).to(torch.uint8)
                observation[name] = bytes_.float() / 255
            batch = before(observation)
            frames = {name: torch.stack([value, value], 1) for name, value in batch.items() if name.startswith("observation.")}
            frames["observation.images"] = torch.stack([frames[name] for name in cameras], dim=-4)
            with torch.no_grad():
                answers.append(reference.short(after(policy.diffusion.generate_actions(frames, noise=noise)).flatten().tolist()))
        print(case, answers[0][:3])
        facts[case] = {"weights": {name: list(value.shape) for name, value in policy.state_dict().items()}, "actions": answers}
    Path(out, "pictures.json").write_text(json.dumps(facts, separators=(",", ":")) + "\n")


def main():
    out = Path(sys.argv[1])
    if sys.argv[2:] == ["pictures"]:
        return pictures(out)
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
