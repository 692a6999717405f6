"""Writes stable_baselines3_update.json: a rollout, and what stable-baselines3's PPO makes of it in one update.

  pip install --no-deps stable-baselines3==2.9.2 pandas==3.1.1 cloudpickle farama-notifications   (and PyTorch, gymnasium)
  python tests/rl/make_stable_baselines3_fixture.py tests/rl/stable_baselines3_update.json

Its formula is ours with one minibatch in a pass (it normalises the advantages of each), values that are not clipped, and gradients that
are not either (it clips those of both networks together). Not run by the tests, which read the file.
"""
import json
import sys

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv

STEPS, ENVS, OBSERVATIONS, ACTIONS, PASSES = 6, 8, 3, 2, 4


class Nothing(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATIONS,))
    action_space = gymnasium.spaces.Box(-1, 1, (ACTIONS,))

    def reset(self, **_):
        return np.zeros(OBSERVATIONS, np.float32), {}


def numbers(array):
    """Nine digits give a float32 back as it was."""
    return [float(f"{x:.9g}") for x in np.asarray(array).flatten().tolist()]


def weights(policy):
    named = {"log_std": policy.log_std}
    for own, hidden, last in (("actor", policy.mlp_extractor.policy_net, policy.action_net),
                              ("critic", policy.mlp_extractor.value_net, policy.value_net)):
        for place, layer in ((0, hidden[0]), (2, hidden[2]), (4, last)):
            named[f"{own}.{place}.weight"], named[f"{own}.{place}.bias"] = layer.weight, layer.bias
    return {name: numbers(tensor.detach()) for name, tensor in named.items()}


def main(file_name):
    torch.manual_seed(5)
    torch.set_num_threads(1)
    settings = {"num_learning_epochs": PASSES, "num_mini_batches": 1, "clip_param": 0.15, "gamma": 0.97, "lam": 0.9,
                "value_loss_coef": 0.8, "entropy_coef": 0.02, "learning_rate": 3e-3, "max_grad_norm": 1e9,
                "use_clipped_value_loss": False, "schedule": "fixed"}
    model = PPO("MlpPolicy", DummyVecEnv([Nothing] * ENVS), n_steps=STEPS, batch_size=STEPS * ENVS, n_epochs=PASSES,
                learning_rate=settings["learning_rate"], gamma=settings["gamma"], gae_lambda=settings["lam"],
                clip_range=settings["clip_param"], ent_coef=settings["entropy_coef"], vf_coef=settings["value_loss_coef"],
                max_grad_norm=settings["max_grad_norm"], device="cpu",
                policy_kwargs={"net_arch": {"pi": [8, 8], "vf": [8, 8]}, "activation_fn": torch.nn.ELU, "log_std_init": -0.4,
                               "optimizer_kwargs": {"eps": 1e-8}})
    with torch.no_grad():  # so that the first actions are not all but the same
        model.policy.action_net.weight.mul_(30)
    model.set_logger(configure(None, []))
    out = {"steps": STEPS, "envs": ENVS, "observation_width": OBSERVATIONS, "action_width": ACTIONS,
           "settings": settings, "weights_before": weights(model.policy)}

    means, stds, dones = [], [], []
    starts = np.zeros(ENVS)
    with torch.no_grad():
        for _ in range(STEPS):
            seen = torch.randn(ENVS, OBSERVATIONS)
            actions, values, log_probs = model.policy(seen)
            distribution = model.policy.get_distribution(seen).distribution
            means.append(numbers(distribution.mean)), stds.append(numbers(distribution.stddev))
            model.rollout_buffer.add(seen.numpy(), actions.numpy(), (torch.randn(ENVS) * 2).numpy(), starts, values, log_probs)
            starts = (torch.rand(ENVS) < 0.2).float().numpy()
            dones.append(numbers(starts))
        last_values = model.policy.predict_values(torch.randn(ENVS, OBSERVATIONS)).flatten()
    buffer = model.rollout_buffer
    buffer.compute_returns_and_advantage(last_values, starts)
    out["last_values"] = numbers(last_values)
    flat = lambda rows: [x for row in rows for x in row]
    out["rollout"] = {"observations": numbers(buffer.observations), "actions": numbers(buffer.actions), "means": flat(means),
                      "stds": flat(stds), "log_probs": numbers(buffer.log_probs), "values": numbers(buffer.values),
                      "rewards": numbers(buffer.rewards), "dones": flat(dones)}
    out["returns"] = numbers(buffer.returns)
    advantages = torch.tensor(buffer.advantages)
    out["advantages"] = numbers((advantages - advantages.mean()) / (advantages.std() + 1e-8))
    model.train()
    logged = model.logger.name_to_value
    out["losses"] = {"surrogate": float(logged["train/policy_gradient_loss"]), "value": float(logged["train/value_loss"]),
                     "entropy": -float(logged["train/entropy_loss"])}
    out["weights_after"] = weights(model.policy)
    with open(file_name, "w") as file:
        file.write("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in out.items()) + "\n}\n")
    print(out["losses"], "clipped", float(logged["train/clip_fraction"]))


if __name__ == "__main__":
    main(sys.argv[1])
