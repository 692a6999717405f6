#!/usr/bin/env python3
"""Writes the fixture of the transformer network with the Diffusion Policy package.

    make_transformer_fixtures.py DIFFUSION_POLICY OUT

DIFFUSION_POLICY is a checkout of github.com/real-stanford/diffusion_policy; OUT is tests/models/fixtures/diffusion. As
make_unet_fixtures.py does: float64, float32 weights and inputs by the formula of reference.py, dropout off. "lowdim" has the
sizes of the package's own configuration for low-dimensional observations.
"""
import json
import sys
from pathlib import Path

import torch

import reference

CASES = {
    "lowdim": dict(chunk=10, action_width=2, observations=2, features=20, n_layer=8, n_head=4, n_emb=256, causal_attn=True),
    "encoder": dict(chunk=6, action_width=3, observations=3, features=5, n_layer=2, n_head=2, n_emb=24, causal_attn=False,
                    n_cond_layers=2),
}


def main():
    sys.path.insert(0, sys.argv[1])
    from diffusion_policy.model.diffusion.transformer_for_diffusion import TransformerForDiffusion
    out = {}
    for name, case in CASES.items():
        sizes = {k: v for k, v in case.items() if k.startswith("n_") or k == "causal_attn"}
        net = TransformerForDiffusion(input_dim=case["action_width"], output_dim=case["action_width"], horizon=case["chunk"],
                                      n_obs_steps=case["observations"], cond_dim=case["features"], **sizes)
        reference.fill(net)
        net = net.double().eval()
        batch = 3
        actions = reference.tensor("actions", batch, case["chunk"], case["action_width"]).double()
        features = reference.tensor("features", batch, case["observations"], case["features"]).double()
        target = reference.tensor("target", batch, case["chunk"], case["action_width"]).double()
        timesteps = torch.tensor([0, 37, 99])
        prediction = net(actions, timesteps.double(), features)
        loss = torch.nn.functional.mse_loss(prediction, target)
        loss.backward()
        out[name] = {"case": case, "parameters": sum(p.numel() for p in net.parameters()), "timesteps": timesteps.tolist(),
                     "buffers": [k for k, _ in net.named_buffers()],
                     "output": reference.short(prediction.flatten().tolist()), "loss": loss.item(),
                     "gradients": reference.gradient_facts(net.named_parameters())}
        print(name, out[name]["parameters"], out[name]["loss"])
    Path(sys.argv[2], "transformer.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
