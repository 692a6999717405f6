#!/usr/bin/env python3
"""Writes the fixtures of whole policies with the reference packages.

    make_policy_fixtures.py DROID_POLICY_LEARNING OUT [small|default|pictures]

DROID_POLICY_LEARNING is a checkout of github.com/droid-dataset/droid_policy_learning; OUT is tests/models/fixtures/diffusion.
policy.json: 100 training steps of the package's DiffusionPolicyUNet (its train_on_batch and optimizer, a smaller U-Net, moving
average off), then a chunk of actions by its _get_action_trajectory; and the keys of its checkpoint for two cameras that
share an image encoder.
policy_default.json: 100 such steps with the package's U-Net at its own default size (80.7 million parameters with the MLP in
front of it), its default learning rate, and small batches.
policy_pictures.json: a policy that sees two cameras through one ResNet-18 with a spatial softmax, and the state: gradients of the
first step, and the losses of three steps of torch.optim.AdamW.
torch.randn and torch.randint give the numbers that a run of ours draws (reference.py). In float64.
"""
import functools
import json
import sys
from collections import OrderedDict
from pathlib import Path
from unittest import mock

import torch

import droid
import reference

SEED, STEPS, DRAWS = 7, 100, 2
STATE, WIDTH, CHUNK, FRAMES, TIMESTEPS = 5, 3, 16, 2, 100
CAMERA_1, CAMERA_2 = "camera/image/varied_camera_1_left_image", "camera/image/varied_camera_2_left_image"


def policy(module, shapes, cameras, learning_rate):
    import robomimic.utils.obs_utils as obs_utils
    from robomimic.config import config_factory
    config = config_factory("diffusion_policy")
    with config.unlocked():
        config.observation.modalities.obs.low_dim = [k for k in shapes if k not in cameras]
        config.observation.modalities.obs.rgb = cameras
        config.observation.encoder.rgb.core_kwargs = dict(
            feature_dimension=16, backbone_class="ResNet18Conv", backbone_kwargs=dict(pretrained=False),
            pool_class="SpatialSoftmax", flatten=True,
            pool_kwargs=dict(num_kp=8, learnable_temperature=False, temperature=1.0, noise_std=0.0, output_variance=False))
        config.algo.ddpm.enabled, config.algo.ddim.enabled, config.algo.ema.enabled = False, True, False
        config.algo.ddim.num_train_timesteps = TIMESTEPS
        config.algo.noise_samples = DRAWS
        config.algo.optim_params.policy.learning_rate.initial = learning_rate
    obs_utils.initialize_obs_utils_with_config(config)
    algorithm = module.DiffusionPolicyUNet(
        algo_config=config.algo, obs_config=config.observation, global_config=config,
        obs_key_shapes=OrderedDict(shapes), ac_dim=WIDTH, device=torch.device("cpu"))
    reference.fill(algorithm.nets)
    algorithm.nets.double()
    # int64 timesteps times float32 frequencies would be float32.
    algorithm.nets["policy"]["noise_pred_net"].module.diffusion_step_encoder[0].register_forward_pre_hook(
        lambda _, inputs: (inputs[0].double(),))
    return algorithm


def train(algorithm, batch):
    losses = []
    algorithm.set_train()
    for step in range(STEPS):
        samples = [step * batch + i for i in range(batch)]
        times, noise = reference.training_noise(SEED, step, samples, DRAWS, CHUNK, WIDTH, TIMESTEPS)
        state = reference.tensor(f"state {step}", batch, FRAMES, STATE).double()
        # Actions that depend on what is seen, so that there is something to learn.
        actions = (0.5 * reference.tensor(f"actions {step}", batch, CHUNK, WIDTH).double() +
                   0.5 * state[:, -1:, :WIDTH])
        with mock.patch.object(torch, "randn", lambda *_, **__: noise.double()), \
                mock.patch.object(torch, "randint", lambda *_, **__: times):
            info = algorithm.train_on_batch({"obs": {"state": state}, "actions": actions}, epoch=0)
        losses.append(info["losses"]["l2_loss"].item())
    return losses


def act(algorithm):
    algorithm.set_eval()
    noise = torch.from_numpy(reference.normal(reference.stream(SEED, reference.SAMPLING, 3, 2, 0, CHUNK * WIDTH)))
    state = reference.tensor("state to act on", 1, FRAMES, STATE).double()
    with mock.patch.object(torch, "randn", lambda *_, **__: noise.double().reshape(1, CHUNK, WIDTH)), torch.no_grad():
        return algorithm._get_action_trajectory({"state": state})


def run(module, learning_rate, batch):
    """Facts about a training run on states, and the trained policy."""
    algorithm = policy(module, {"state": [STATE]}, [], learning_rate)
    return {"seed": SEED, "batch": batch, "draws": DRAWS, "learning_rate": learning_rate,
            "parameters": sum(p.numel() for p in algorithm.nets.parameters()),
            "names": [reference.plain(k) for k, _ in algorithm.nets.named_parameters()],
            "losses": train(algorithm, batch)}, algorithm


def pictures(module):
    """Gradients and three steps of AdamW with two cameras."""
    batch, rate = 2, 1e-4
    algorithm = policy(module, {CAMERA_1: [3, 64, 64], "state": [STATE], CAMERA_2: [3, 64, 64]}, [CAMERA_1, CAMERA_2], rate)
    parameters = list(algorithm.nets.named_parameters())
    algorithm.optimizers["policy"] = torch.optim.AdamW([p for _, p in parameters], lr=rate, weight_decay=1e-2)
    algorithm.set_train()
    facts = {"seed": SEED, "batch": batch, "draws": DRAWS, "learning_rate": rate, "weight_decay": 1e-2,
             "parameters": sum(p.numel() for _, p in parameters), "losses": []}
    for step in range(3):
        times, noise = reference.training_noise(SEED, step, range(step * batch, (step + 1) * batch), DRAWS, CHUNK, WIDTH,
                                                TIMESTEPS)
        seen = {camera: (reference.tensor(f"{camera} {step}", batch, FRAMES, 3, 64, 64).double() + 1) / 2
                for camera in (CAMERA_1, CAMERA_2)}
        seen["state"] = reference.tensor(f"state {step}", batch, FRAMES, STATE).double()
        actions = reference.tensor(f"actions {step}", batch, CHUNK, WIDTH).double()
        with mock.patch.object(torch, "randn", lambda *_, **__: noise.double()), \
                mock.patch.object(torch, "randint", lambda *_, **__: times):
            info = algorithm.train_on_batch({"obs": seen, "actions": actions}, epoch=0)
        facts["losses"].append(info["losses"]["l2_loss"].item())
        if step == 0:  # what the step has left
            facts["gradients"] = reference.gradient_facts(parameters)
    return facts


def write(folder, name, result):
    Path(folder, name).write_text(json.dumps(result, separators=(",", ":")) + "\n")


def main():
    module, which = droid.package(sys.argv[1]), sys.argv[3:] or ["small", "default", "pictures"]
    torch.set_num_threads(1)
    if "default" in which:
        result, _ = run(module, 1e-4, 2)
        del result["names"]
        print(result["parameters"], result["losses"][:3], result["losses"][-3:])
        write(sys.argv[2], "policy_default.json", result)
    module.ConditionalUnet1D = functools.partial(module.ConditionalUnet1D, down_dims=[16, 32], diffusion_step_embed_dim=32)
    if "pictures" in which:
        result = pictures(module)
        print(result["parameters"], result["losses"], len(result["gradients"]))
        write(sys.argv[2], "policy_pictures.json", result)
    if "small" not in which:
        return
    result, algorithm = run(module, 1e-3, 4)
    result["actions"] = reference.short(act(algorithm).flatten().tolist())
    cameras = policy(module, {CAMERA_1: [3, 64, 64], "state": [STATE], CAMERA_2: [3, 64, 64]}, [CAMERA_1, CAMERA_2], 1e-3)
    result["checkpoint_keys"] = sorted(cameras.nets.state_dict())
    print(result["losses"][:3], result["losses"][-3:], result["actions"][:3], len(result["checkpoint_keys"]))
    write(sys.argv[2], "policy.json", result)


if __name__ == "__main__":
    main()
