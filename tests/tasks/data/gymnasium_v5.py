"""What gymnasium's MuJoCo tasks do: writes gymnasium_v5.npz beside this file.

    .deps/python/bin/python tests/tasks/data/gymnasium_v5.py

with the wheels of versions.env: gymnasium 1.4.0, mujoco-core 4.0.1, numpy. Of each task, for three seeds: the state and
the observation after a reset, actions (some beyond the bounds), and what 200 steps gave: every reward, its terms in the
order of our TaskSpec::reward_terms and whether the episode was over; every 20th step's state and observation.
"""
import pathlib
import sys
import types

# Pictures need them, and nothing else of gymnasium.
for name in ("glfw", "imageio"):
    sys.modules.setdefault(name, types.ModuleType(name))

import gymnasium
import mujoco
import numpy

STEPS, EVERY, SEEDS = 200, 20, (3, 4, 5)
TERMS = {
    "Ant-v5": ["reward_forward", "reward_ctrl", "reward_contact", "reward_survive"],
    "HalfCheetah-v5": ["reward_forward", "reward_ctrl"],
    "Hopper-v5": ["reward_forward", "reward_ctrl", "reward_survive"],
    "Humanoid-v5": ["reward_forward", "reward_ctrl", "reward_contact", "reward_survive"],
    "InvertedDoublePendulum-v5": ["reward_survive", "distance_penalty", "velocity_penalty"],
    "InvertedPendulum-v5": ["reward_survive"],
    "Pusher-v5": ["reward_dist", "reward_ctrl", "reward_near"],
    "Reacher-v5": ["reward_dist", "reward_ctrl"],
    "Swimmer-v5": ["reward_forward", "reward_ctrl"],
    "Walker2d-v5": ["reward_forward", "reward_ctrl", "reward_survive"],
}

arrays = {}
for name, keys in TERMS.items():
    env = gymnasium.make(name).unwrapped
    data = env.data
    state = lambda: numpy.concatenate([data.qpos, data.qvel])
    high = env.action_space.high.astype(numpy.float64)
    rows = {k: [] for k in ("start", "first", "action", "reward", "terms", "terminated", "state", "observation")}
    for seed in SEEDS:
        random = numpy.random.default_rng(seed)
        first, _ = env.reset(seed=seed)
        rows["start"].append(numpy.concatenate([state(), data.qacc_warmstart]))
        rows["first"].append(first)
        # A pole falls over at once under the largest forces.
        scale = 0.3 if name.startswith("Inverted") else 1.2
        action = (scale * high * random.uniform(-1, 1, (STEPS, high.size))).astype(numpy.float32)
        rows["action"].append(action)
        run = {k: [] for k in ("reward", "terms", "terminated", "state", "observation")}
        for step in range(STEPS):
            observation, reward, terminated, truncated, info = env.step(action[step])
            assert not truncated
            run["reward"].append(reward)
            run["terms"].append([info[k] for k in keys])
            run["terminated"].append(terminated)
            if (step + 1) % EVERY == 0:
                run["state"].append(state())
                run["observation"].append(observation)
        for k, values in run.items():
            rows[k].append(values)
    for k, values in rows.items():
        arrays[f"{name}/{k}"] = numpy.asarray(values, dtype=numpy.float64)
    arrays[f"{name}/spec"] = numpy.asarray(
        [gymnasium.spec(name).max_episode_steps, env.dt, *env.action_space.low, *env.action_space.high], numpy.float64)

path = pathlib.Path(__file__).with_suffix(".npz")
numpy.savez(path, **arrays)
print(path, path.stat().st_size, gymnasium.__version__, mujoco.__version__)
for name in TERMS:
    print(name, arrays[f"{name}/first"].shape, "over in", int(arrays[f"{name}/terminated"].sum()), "of",
          arrays[f"{name}/reward"].size)
