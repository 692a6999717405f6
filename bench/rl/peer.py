"""The Python peer of compare.py: PPO by rsl-rl-lib in EnvPool's environments.

    peer.py TASK SEED SETTINGS_JSON

SETTINGS_JSON: n_envs, num_steps, iterations, threads (EnvPool's), torch_threads, hidden, activation, epochs, minibatches, clip, lr,
schedule, gamma, lam, entropy, init_std, targets. Prints a line of JSON for every iteration: control steps so far, the mean
return of the last hundred episodes, seconds of simulating, acting and learning. Ends when the largest of `targets` is reached.
"""
import collections
import json
import os
import sys
import time

settings = json.loads(sys.argv[3])
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(settings["torch_threads"])

import envpool  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from rsl_rl.algorithms import PPO  # noqa: E402
from rsl_rl.models import MLPModel  # noqa: E402
from rsl_rl.storage import RolloutStorage  # noqa: E402
from tensordict import TensorDict  # noqa: E402

GROUPS = {"actor": ["policy"], "critic": ["policy"]}


def main():
    torch.manual_seed(int(sys.argv[2]))
    torch.set_num_threads(settings["torch_threads"])
    n = settings["n_envs"]
    env = envpool.make_gymnasium(sys.argv[1], num_envs=n, seed=int(sys.argv[2]), num_threads=settings["threads"])
    low, high = env.action_space.low, env.action_space.high
    offset, scale = 0.5 * (low + high), 0.5 * (high - low)

    def seen(observations):
        return TensorDict({"policy": torch.from_numpy(observations.astype(numpy.float32))}, batch_size=[n])

    observations = seen(env.reset()[0])
    width = env.action_space.shape[0]
    shape = {"hidden_dims": settings["hidden"], "activation": settings["activation"], "obs_normalization": True}
    actor = MLPModel(observations, GROUPS, "actor", width, **shape,
                     distribution_cfg={"class_name": "GaussianDistribution", "init_std": settings["init_std"],
                                       "std_type": "log"})
    critic = MLPModel(observations, GROUPS, "critic", 1, **shape)
    storage = RolloutStorage("rl", n, settings["num_steps"], observations, [width])
    ppo = PPO(actor, critic, storage, num_learning_epochs=settings["epochs"], num_mini_batches=settings["minibatches"],
              clip_param=settings["clip"], gamma=settings["gamma"], lam=settings["lam"], value_loss_coef=1.0,
              entropy_coef=settings["entropy"], learning_rate=settings["lr"], max_grad_norm=1.0,
              use_clipped_value_loss=True, schedule=settings["schedule"], desired_kl=0.01)
    ppo.train_mode()
    returns, ended = numpy.zeros(n), collections.deque(maxlen=100)
    for iteration in range(settings["iterations"]):
        simulating = acting = 0.0
        with torch.inference_mode():
            for _ in range(settings["num_steps"]):
                begin = time.perf_counter()
                actions = ppo.act(observations).numpy() * scale + offset
                acted = time.perf_counter()
                found, rewards, terminated, truncated, _ = env.step(actions)
                simulated = time.perf_counter()
                observations = seen(found)
                ppo.process_env_step(observations, torch.from_numpy(rewards.astype(numpy.float32)),
                                     torch.from_numpy(terminated | truncated).float(),
                                     {"time_outs": torch.from_numpy(truncated & ~terminated).float()})
                returns += rewards
                for e in numpy.nonzero(terminated | truncated)[0]:
                    ended.append(returns[e])
                    returns[e] = 0
                acting += acted - begin + time.perf_counter() - simulated
                simulating += simulated - acted
        begin = time.perf_counter()
        with torch.inference_mode():
            ppo.compute_returns(observations)
        ppo.update()
        learning = time.perf_counter() - begin
        mean = float(numpy.mean(ended)) if ended else None
        print(json.dumps({"steps": (iteration + 1) * n * settings["num_steps"], "return": mean, "simulating_s": simulating,
                          "acting_s": acting, "learning_s": learning}), flush=True)
        if mean is not None and mean >= max(settings["targets"]):
            break


if __name__ == "__main__":
    main()
