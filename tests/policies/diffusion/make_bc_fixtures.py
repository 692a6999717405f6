#!/usr/bin/env python3
"""Writes the fixture of the behaviour cloning baselines with robomimic (0.3.0 from PyPI).

    make_bc_fixtures.py OUT        (OUT: tests/models/fixtures/diffusion)

bc.json: BC, BC with a Gaussian mixture, BC-RNN and BC-RNN with a mixture at robomimic's default sizes, weights and inputs by
the formula of reference.py, in float64: the training loss by the package's own algorithm, facts about every gradient, and for
policies without a mixture the actions of 12 steps (more than the RNN's horizon of 10).
"""
import json
import sys
from collections import OrderedDict
from pathlib import Path

import torch

import droid
import reference

SHAPES = OrderedDict([("eef", [3]), ("gripper", [2])])
BATCH, ROWS, WIDTH = 3, 4, 7
CASES = {
    "bc": {},
    "bc_losses": {"loss.l2_weight": 0.5, "loss.l1_weight": 2.0, "loss.cos_weight": 0.3, "actor_layer_dims": [32, 24]},
    "bc_gmm": {"gmm.enabled": True, "actor_layer_dims": [64, 48]},
    "bc_rnn": {"rnn.enabled": True, "rnn.rnn_type": "GRU", "rnn.hidden_dim": 24, "actor_layer_dims": [16]},
    # As in robomimic's benchmark: no MLP between the LSTM and the mixture.
    "bc_rnn_gmm": {"rnn.enabled": True, "gmm.enabled": True, "actor_layer_dims": []},
    "bc_rnn_gmm_exp": {"rnn.enabled": True, "gmm.enabled": True, "gmm.std_activation": "exp", "gmm.min_std": 0.01,
                       "gmm.num_modes": 3, "rnn.hidden_dim": 24, "rnn.num_layers": 1, "actor_layer_dims": []},
}


def algorithm_of(case):
    import robomimic.utils.obs_utils as obs_utils
    from robomimic.algo import algo_factory
    from robomimic.config import config_factory
    config = config_factory("bc")
    with config.unlocked():
        config.observation.modalities.obs.low_dim = list(SHAPES)
        config.observation.modalities.obs.rgb = []
        for path, value in case.items():
            node = config.algo
            *parents, leaf = path.split(".")
            for parent in parents:
                node = node[parent]
            node[leaf] = value
    obs_utils.initialize_obs_utils_with_config(config)
    return algo_factory("bc", config, obs_key_shapes=SHAPES, ac_dim=WIDTH, device=torch.device("cpu"))


def main():
    sys.meta_path.append(droid.Absent())
    torch.set_num_threads(1)
    out = {}
    for name, case in CASES.items():
        algorithm = algorithm_of(case)
        torch.set_default_dtype(torch.float64)
        reference.fill(algorithm.nets)
        algorithm.nets.double()
        batch = {"obs": {k: reference.tensor(k, BATCH, ROWS, *s).double() for k, s in SHAPES.items()}, "goal_obs": None,
                 "actions": reference.tensor("actions", BATCH, ROWS, WIDTH, scale=0.9).double()}
        if "rnn.enabled" not in case:  # process_batch_for_training, without its conversion to float32
            batch = {"obs": {k: v[:, 0] for k, v in batch["obs"].items()}, "goal_obs": None, "actions": batch["actions"][:, 0]}
        algorithm.set_train()
        losses = algorithm._compute_losses(algorithm._forward_training(batch), batch)
        losses["action_loss"].backward()
        out[name] = {"case": case, "loss": losses["action_loss"].item(),
                     "gradients": reference.gradient_facts(algorithm.nets.named_parameters())}
        if "gmm.enabled" not in case:
            algorithm.set_eval()
            algorithm.reset()
            with torch.no_grad():
                steps = [algorithm.get_action({k: reference.tensor(f"{k} {t}", 2, *s).double() for k, s in SHAPES.items()})
                         for t in range(12)]
            out[name]["actions"] = reference.short(torch.stack(steps).flatten().tolist())
        torch.set_default_dtype(torch.float32)
        print(name, out[name]["loss"])
    Path(sys.argv[1], "bc.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
