"""Writes rsl_rl_update.json: a rollout, and what rsl-rl-lib makes of it in one update; and the same of networks with
memory (GRU).

  pip install --no-deps rsl-rl-lib==5.5.1 tensordict==0.15.3 pyvers==0.2.3 cloudpickle==3.1.3 orjson==3.13.0
  python tests/rl/make_rsl_rl_fixture.py tests/rl/rsl_rl_update.json
  python tests/rl/make_rsl_rl_fixture.py tests/rl/rsl_rl_recurrent_update.json --recurrent

Not run by the tests, which read the file.
"""
import json
import sys

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel, RNNModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

STEPS, ENVS, OBSERVATIONS, ACTIONS = 6, 8, 3, 2
GROUPS = {"actor": ["policy"], "critic": ["policy"]}


def numbers(tensor):
    """Nine digits give a float32 back as it was."""
    return [float(f"{x:.9g}") for x in tensor.detach().flatten().tolist()]


def weights(actor, critic):
    named = {"actor." + k.removeprefix("mlp."): v for k, v in actor.named_parameters() if k.startswith("mlp.")}
    for name, network in (("actor", actor), ("critic", critic)):
        named.update({f"{name}_memory." + k.removeprefix("rnn.rnn."): v for k, v in network.named_parameters()
                      if k.startswith("rnn.")})
    named["log_std"] = actor.distribution.log_std_param
    named.update({"critic." + k.removeprefix("mlp."): v for k, v in critic.named_parameters() if k.startswith("mlp.")})
    return {name: numbers(tensor) for name, tensor in named.items()}


def collect(ppo, observe, dones):
    for _ in range(STEPS):
        observations = torch.randn(ENVS, OBSERVATIONS)
        ppo.act(observe(observations))
        done = (torch.rand(ENVS) < 0.2).float()
        dones.append(done)
        # Half of the ends are cut-offs: rsl_rl adds gamma V(s) of the same state to their rewards.
        ppo.process_env_step(observe(observations), torch.randn(ENVS) * 2, done,
                             {"time_outs": done * (torch.rand(ENVS) < 0.5)})


def main(file_name, recurrent):
    torch.manual_seed(3)
    torch.set_num_threads(1)
    observe = lambda x: TensorDict({"policy": x}, batch_size=[ENVS])
    start = observe(torch.zeros(ENVS, OBSERVATIONS))
    settings = {"hidden_dims": [8, 8], "activation": "elu"}
    model = MLPModel
    if recurrent:
        model, memory = RNNModel, {"rnn_type": "gru", "rnn_hidden_dim": 5, "rnn_num_layers": 2}
        settings.update(memory)
    actor = model(start, GROUPS, "actor", ACTIONS, **settings,
                  distribution_cfg={"class_name": "GaussianDistribution", "init_std": 0.7, "std_type": "log"})
    critic = model(start, GROUPS, "critic", 1, **settings)
    storage = RolloutStorage("rl", ENVS, STEPS, start, [ACTIONS])
    algorithm = {"num_learning_epochs": 3, "num_mini_batches": 4, "clip_param": 0.15, "gamma": 0.97, "lam": 0.9,
                 "value_loss_coef": 0.8, "entropy_coef": 0.02, "learning_rate": 3e-3, "max_grad_norm": 0.3,
                 "use_clipped_value_loss": True, "schedule": "adaptive", "desired_kl": 0.01}
    ppo = PPO(actor, critic, storage, **algorithm)
    out = {"steps": STEPS, "envs": ENVS, "observation_width": OBSERVATIONS, "action_width": ACTIONS,
           "settings": algorithm, "weights_before": weights(actor, critic)}
    if recurrent:
        out["memory"] = memory
        with torch.no_grad():
            for _ in range(3):  # the rollout finds environments that are remembered
                before = observe(torch.randn(ENVS, OBSERVATIONS))
                actor(before), critic(before)

    dones = []
    with torch.no_grad():
        collect(ppo, observe, dones)
    last = observe(torch.randn(ENVS, OBSERVATIONS))
    with torch.no_grad():
        remembered = critic.get_hidden_state()
        out["last_values"] = numbers(critic(last))
        critic.reset(hidden_state=remembered)
        ppo.compute_returns(last)
    means, stds = storage.distribution_params
    out["rollout"] = {"observations": numbers(storage.observations["policy"]), "actions": numbers(storage.actions),
                      "means": numbers(means), "stds": numbers(stds), "log_probs": numbers(storage.actions_log_prob),
                      "values": numbers(storage.values), "rewards": numbers(storage.rewards),
                      "dones": numbers(torch.stack(dones))}
    if recurrent:
        out["rollout"]["actor_memory"] = numbers(storage.saved_hidden_state_a[0][0])
        out["rollout"]["critic_memory"] = numbers(storage.saved_hidden_state_c[0][0])
    out["returns"], out["advantages"] = numbers(storage.returns), numbers(storage.advantages)

    kept = {}
    randperm = torch.randperm

    def keep_permutation(*arguments, **keywords):
        kept["permutation"] = randperm(*arguments, **keywords)
        return kept["permutation"]

    kls = []
    divergence = actor.get_kl_divergence

    def keep_divergence(old, new):
        kl = divergence(old, new)
        kls.append(float(kl.mean()))
        return kl

    torch.randperm, actor.get_kl_divergence = keep_permutation, keep_divergence
    losses = ppo.update()
    # With memory it takes the environments as they are.
    out["permutation"] = list(range(ENVS)) if recurrent else kept["permutation"].tolist()
    out["losses"], out["kl_of_last_minibatch"], out["learning_rate"] = losses, kls[-1], ppo.learning_rate
    out["weights_after"] = weights(actor, critic)
    with open(file_name, "w") as file:
        file.write("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in out.items()) + "\n}\n")
    print(losses, "kl", kls[:3], kls[-1], "rate", ppo.learning_rate)


if __name__ == "__main__":
    main(sys.argv[1], "--recurrent" in sys.argv)
