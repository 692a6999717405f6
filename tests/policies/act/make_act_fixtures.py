#!/usr/bin/env python3
"""Writes the fixtures of ACT with lerobot 0.6.1 (CPython 3.12, torch 2.11, no network).

    make_act_fixtures.py OUT

OUT is tests/policies/act/fixtures. networks.json: small networks of lerobot's ACTPolicy: names, shapes, losses, gradients,
ten steps of torch.optim.AdamW, a chunk; in float64, with weights and inputs by the formula that the tests use too
(reference.py). ensemble.json: what its ACTTemporalEnsembler makes of chunks. folder/: a policy's folder as lerobot saves it,
with its statistics, and in folder.json what it answers to two observations.
"""
import copy
import json
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "diffusion"))
import reference  # noqa: E402
from lerobot.configs.types import FeatureType, PolicyFeature  # noqa: E402
from lerobot.policies.act.configuration_act import ACTConfig  # noqa: E402
from lerobot.policies.act.modeling_act import ACTPolicy, ACTTemporalEnsembler  # noqa: E402
from lerobot.policies.act.processor_act import make_act_pre_post_processors  # noqa: E402

BATCH, STATE, ENVIRONMENT, ACTION, HEIGHT, WIDTH = 3, 5, 4, 3, 64, 32
CASES = {
    # VAE, state and environment, as the defaults have the layers.
    "vectors": dict(state=True, environment=True, cameras=0, steps=10, rate=1e-3, settings=dict(
        chunk_size=10, n_action_steps=10, dim_model=32, n_heads=4, dim_feedforward=48, n_encoder_layers=2,
        n_decoder_layers=1, latent_dim=8, n_vae_encoder_layers=2)),
    # Two cameras and the state; at the default learning rate, since a larger one drives what rounding changes through ReLUs.
    "cameras": dict(state=True, environment=False, cameras=2, steps=10, rate=1e-5, settings=dict(
        chunk_size=6, n_action_steps=3, dim_model=32, n_heads=4, dim_feedforward=48, n_encoder_layers=1,
        n_decoder_layers=1, latent_dim=8, n_vae_encoder_layers=1)),
    # One camera alone, norms first, GELU, two decoder layers, no VAE.
    "camera_alone": dict(state=False, environment=False, cameras=1, steps=2, rate=1e-5, settings=dict(
        chunk_size=6, n_action_steps=3, dim_model=32, n_heads=4, dim_feedforward=48, n_encoder_layers=1,
        n_decoder_layers=2, latent_dim=8, use_vae=False, pre_norm=True, feedforward_activation="gelu")),
}


def configuration(case, dropout=0.0):
    inputs = {}
    if case["state"]:
        inputs["observation.state"] = PolicyFeature(FeatureType.STATE, (STATE,))
    if case["environment"]:
        inputs["observation.environment_state"] = PolicyFeature(FeatureType.ENV, (ENVIRONMENT,))
    for i in range(case["cameras"]):
        inputs[f"observation.images.{i}"] = PolicyFeature(FeatureType.VISUAL, (3, HEIGHT, WIDTH))
    return ACTConfig(input_features=inputs, output_features={"action": PolicyFeature(FeatureType.ACTION, (ACTION,))},
                     pretrained_backbone_weights=None, device="cpu", dropout=dropout, **case["settings"])


def fill(policy):
    """Parameters by their formula, and the frozen norms' buffers."""
    reference.fill(policy)
    with torch.no_grad():
        for name, buffer in policy.named_buffers():
            if name.endswith("pos_enc"):
                continue
            u = reference.tensor(name, *buffer.shape)
            buffer.copy_((1 if name.endswith(("weight", "running_var")) else 0) + np.float32(0.1) * u)
    return policy


def batch_of(case, policy, name):
    chunk = case["settings"]["chunk_size"]
    batch = {"action": reference.tensor(f"action {name}", BATCH, chunk, ACTION).double()}
    if case["state"]:
        batch["observation.state"] = reference.tensor(f"state {name}", BATCH, STATE).double()
    else:
        # lerobot asks it for its device.
        batch["observation.state"] = torch.zeros(BATCH, 1, dtype=torch.float64)
    if case["environment"]:
        batch["observation.environment_state"] = reference.tensor(f"environment {name}", BATCH, ENVIRONMENT).double()
    mean = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float32).double().view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float32).double().view(3, 1, 1)
    for i in range(case["cameras"]):
        # Colours in [0, 1], then normalised as the processor does it.
        colours = (reference.tensor(f"camera {i} {name}", BATCH, 3, HEIGHT, WIDTH).double() + 1) / 2
        batch[f"observation.images.{i}"] = (colours - mean) / (std + 1e-8)
    padded = torch.zeros(BATCH, chunk, dtype=torch.bool)
    padded[1, chunk - 3:] = True
    padded[2, 1:] = True
    batch["action_is_pad"] = padded
    return batch


def train_step(policy, batch, latent_dim, name):
    noise = reference.tensor(f"noise {name}", BATCH, latent_dim).double()
    with mock.patch.object(torch, "randn_like", lambda _: noise):
        loss, parts = policy.forward(batch)
    return loss, parts


def network(case):
    policy = fill(ACTPolicy(configuration(case))).double()
    # Where no latent is drawn, lerobot makes a float32 one.
    policy.model.encoder_latent_input_proj.register_forward_pre_hook(lambda _, inputs: (inputs[0].double(),))
    latent = case["settings"]["latent_dim"]
    facts = {"names": {name: list(t.shape) for name, t in policy.state_dict().items()}}
    policy.train()
    loss, parts = train_step(policy, batch_of(case, policy, "0"), latent, "0")
    loss.backward()
    facts["loss"], facts["parts"] = loss.item(), parts
    facts["gradients"] = reference.gradient_facts(policy.named_parameters())
    policy.eval()
    chunk = policy.predict_action_chunk(batch_of(case, policy, "0"))
    facts["chunk"] = reference.short(chunk.flatten().tolist())
    with torch.no_grad():
        facts["evaluation_loss"] = policy.forward(batch_of(case, policy, "0"))[0].item()
    policy.train()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=case["rate"], weight_decay=1e-2)
    facts["learning_rate"], facts["losses"] = case["rate"], []
    for step in range(case["steps"]):
        optimizer.zero_grad()
        loss, _ = train_step(policy, batch_of(case, policy, str(step)), latent, str(step))
        loss.backward()
        optimizer.step()
        facts["losses"].append(loss.item())
    facts["trained_chunk"] = reference.short(policy.predict_action_chunk(batch_of(case, policy, "0")).flatten().tolist())
    return facts


def ensemble():
    rows, steps = 5, 8
    made = ACTTemporalEnsembler(0.01, rows)
    return {"rows": rows, "coefficient": 0.01, "actions": [
        reference.short(made.update(reference.tensor(f"chunk {t}", 1, rows, ACTION)).flatten().tolist())
        for t in range(steps)]}


def folder(out):
    case = copy.deepcopy(CASES["vectors"])
    case["settings"].update(n_action_steps=4, dim_feedforward=32, n_vae_encoder_layers=1, n_encoder_layers=1)
    config = configuration(case, dropout=0.1)
    policy = fill(ACTPolicy(config)).eval()
    def statistics(name, width):
        return {"mean": reference.tensor(f"{name} mean", width).numpy(),
                "std": 1.5 + reference.tensor(f"{name} std", width).numpy(),
                "min": np.full(width, -3, np.float32), "max": np.full(width, 3, np.float32)}
    stats = {"observation.state": statistics("state", STATE),
             "observation.environment_state": statistics("environment", ENVIRONMENT),
             "action": statistics("action", ACTION)}
    before, after = make_act_pre_post_processors(config, dataset_stats=stats)
    policy.save_pretrained(out)
    before.save_pretrained(out)
    after.save_pretrained(out)
    Path(out, "README.md").unlink(missing_ok=True)
    answers = []
    for i in range(2):
        batch = before({"observation.state": 3 * reference.tensor(f"state {i}", STATE),
                        "observation.environment_state": 3 * reference.tensor(f"environment {i}", ENVIRONMENT)})
        answers.append(reference.short(after(policy.predict_action_chunk(batch)).flatten().tolist()))
    return {"chunks": answers}


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    networks = {name: network(case) for name, case in CASES.items()}
    default = ACTPolicy(ACTConfig(
        input_features={"observation.images.top": PolicyFeature(FeatureType.VISUAL, (3, 480, 640)),
                        "observation.state": PolicyFeature(FeatureType.STATE, (14,))},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (14,))}, pretrained_backbone_weights=None,
        device="cpu"))
    networks["default"] = {"names": {name: list(t.shape) for name, t in default.state_dict().items()},
                           "parameters": sum(p.numel() for p in default.parameters())}
    for name in CASES:
        print(name, networks[name]["loss"], networks[name]["losses"][0], networks[name]["losses"][-1])

    def write(name, facts):
        Path(out, name).write_text(json.dumps(facts, separators=(",", ":")) + "\n")

    write("networks.json", networks)
    write("ensemble.json", ensemble())
    write("folder.json", folder(out / "folder"))


if __name__ == "__main__":
    main()
