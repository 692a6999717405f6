#!/usr/bin/env python3
"""Writes the fixtures of the denoising networks with the reference packages.

    make_unet_fixtures.py DROID_POLICY_LEARNING OUT

DROID_POLICY_LEARNING is a checkout of github.com/droid-dataset/droid_policy_learning; OUT is tests/models/fixtures/diffusion.
Networks run unchanged, in float64 (so that their own rounding does not count), on float32 weights and inputs by the formula of
reference.py. unet.json: per case sizes, count of parameters, output, loss, and facts about every gradient, by name.
"""
import json
import sys
from pathlib import Path

import torch

import reference
from droid import conditional_unet

CASES = {
    # The network of the DROID configuration.
    "droid": dict(chunk=16, action_width=10, observations=2, features=1031),
    # Diffusion Policy's Push-T with state observations: 2 observations of 5 numbers, actions of 2 columns.
    "pusht_state": dict(chunk=16, action_width=2, observations=2, features=5),
    "small": dict(chunk=8, action_width=3, observations=1, features=4, diffusion_step_embed_dim=12, down_dims=[16, 24, 40],
                  kernel_size=3, n_groups=4),
}


def main():
    unet_class = conditional_unet(sys.argv[1])
    torch.set_num_threads(2)
    out = {}
    for name, case in CASES.items():
        sizes = {k: case[k] for k in ("diffusion_step_embed_dim", "down_dims", "kernel_size", "n_groups") if k in case}
        net = unet_class(case["action_width"], case["observations"] * case["features"], **sizes)
        reference.fill(net)
        net = net.double()
        batch = 3
        actions = reference.tensor("actions", batch, case["chunk"], case["action_width"]).double()
        features = reference.tensor("features", batch, case["observations"], case["features"]).double()
        target = reference.tensor("target", batch, case["chunk"], case["action_width"]).double()
        timesteps = torch.tensor([0, 37, 99])
        prediction = net(actions, timesteps.double(), global_cond=features.flatten(1))
        loss = torch.nn.functional.mse_loss(prediction, target)
        loss.backward()
        out[name] = {"case": case, "parameters": sum(p.numel() for p in net.parameters()), "timesteps": timesteps.tolist(),
                     "output": reference.short(prediction.flatten().tolist()), "loss": loss.item(),
                     "gradients": reference.gradient_facts(net.named_parameters())}
        print(name, out[name]["parameters"], out[name]["loss"])
    Path(sys.argv[2], "unet.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
