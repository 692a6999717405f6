"""Writes push_t_fixtures.json: resets and steps of gym-pusht itself, which push_t_test.cpp compares with.

Use, in a Python environment of its own (none of this is needed to build or run Cohort):
  python3 -m venv /some/folder && /some/folder/bin/pip install gym-pusht==0.1.8 pymunk==6.11.1
  SDL_VIDEODRIVER=dummy /some/folder/bin/python make_push_t_fixtures.py
gym-pusht asks for pymunk 6, which holds a Chipmunk 7.0.3, the version that Debian packages. The versions that were used go
into the file.
"""
import importlib.metadata
import json
import os
import pathlib

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
import numpy as np
import pymunk
from gymnasium.utils import seeding
from gym_pusht.envs.pusht import PushTEnv

RESET_SEEDS = [0, 1, 2, 3, 42, 1000, 100000, 123456789, 4294967295]
# Given states, beside seeds: near a wall, touching the agent, turned several times, at the goal.
STATES = [
    [100.0, 100.0, 256.0, 300.0, 0.0],
    [256.0, 180.0, 256.0, 210.0, 0.3],
    [400.0, 400.0, 140.0, 130.0, -4.0],
    [60.0, 450.0, 380.0, 150.0, 9.0],
    [256.0, 100.0, 237.0, 243.0, 0.7853981633974483],
]
STEPS = 60


def pose(env):
    return [*map(float, env.agent.position), *map(float, env.agent.velocity), *map(float, env.block.position),
            float(env.block.angle)]


def action(random, env, kind):
    """Targets that meet the block: anywhere, around the block, or a slow walk."""
    if kind == 0:
        return random.uniform(0, 512, 2)
    if kind == 1:
        return np.clip(np.array(env.block.position) + random.normal(0, 60, 2), 0, 512)
    towards = np.array(env.block.local_to_world((0, 45))) - np.array(env.agent.position)
    return np.clip(np.array(env.agent.position) + 0.4 * towards + random.normal(0, 15, 2), 0, 512)


def episode(start, kind, number):
    env = PushTEnv(obs_type="state")
    if isinstance(start, int):
        observation, _ = env.reset(seed=start)
    else:
        observation, _ = env.reset(options={"reset_to_state": start})
    random = np.random.default_rng(number)
    out = {"start": start, "reset_observation": observation.tolist(), "steps": []}
    for _ in range(STEPS):
        act = action(random, env, kind)
        observation, reward, terminated, _, info = env.step(act)
        out["steps"].append({"action": act.tolist(), "observation": observation.tolist(), "reward": float(reward),
                             "coverage": float(info["coverage"]), "terminated": bool(terminated), "pose": pose(env)})
    out["keypoints"] = env.get_keypoints(env._block_shapes).flatten().tolist()
    return out


def main():
    resets = []
    for seed in RESET_SEEDS:
        rng = seeding.np_random(seed)[0]
        # The draws of PushTEnv.reset; each is also checked through the environment below.
        state = [rng.integers(50, 450), rng.integers(50, 450), rng.integers(100, 400), rng.integers(100, 400),
                 rng.uniform(-np.pi, np.pi)]
        drawn, _ = PushTEnv(obs_type="state").reset(seed=seed)
        given, _ = PushTEnv(obs_type="state").reset(options={"reset_to_state": state})
        assert np.array_equal(drawn, given), seed
        resets.append({"seed": seed, "state": [float(x) for x in state], "observation": drawn.tolist()})
    starts = [0, 7, 1234] + STATES
    episodes = [episode(start, kind, 3 * i + kind) for i, start in enumerate(starts) for kind in range(3)]
    moved = [e for e in episodes if max(abs(a - b) for a, b in zip(e["reset_observation"][2:4],
                                                                    e["steps"][-1]["observation"][2:4])) > 1]
    assert len(moved) > len(episodes) // 2, "too few episodes touch the block to compare contacts"
    versions = {name: importlib.metadata.version(name) for name in ("gym-pusht", "gymnasium", "pymunk", "numpy", "shapely")}
    versions["chipmunk"] = pymunk.chipmunk_version
    path = pathlib.Path(__file__).with_name("push_t_fixtures.json")
    path.write_text(json.dumps({"versions": versions, "resets": resets, "episodes": episodes}) + "\n", encoding="utf-8")
    print(path, versions, len(episodes), "episodes,", len(moved), "of them with contact")


main()
