"""What gymnasium's MuJoCo tasks do: writes gymnasium_reference.json beside this file.

    python -m venv v && v/bin/pip install gymnasium==1.4.0 mujoco==4.0.0 imageio packaging
    v/bin/python tests/tasks/data/gymnasium_reference.py

Of each task: a start (qpos, qvel), actions (some beyond the bounds), and after each step the observation, the reward and
whether the episode is terminated.
"""
import json
import pathlib

import gymnasium
import mujoco
import numpy

STEPS = 60
tasks = {}
for name in ["HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Swimmer-v5", "InvertedPendulum-v5"]:
    env = gymnasium.make(name).unwrapped
    env.reset(seed=3)
    random = numpy.random.default_rng(7)
    start = {"qpos": env.data.qpos.tolist(), "qvel": env.data.qvel.tolist()}
    high = env.action_space.high.astype(numpy.float64)
    scale = 0.3 if name == "InvertedPendulum-v5" else 1.2
    steps = []
    for _ in range(STEPS):
        action = (scale * high * random.uniform(-1, 1, high.size)).astype(numpy.float32)
        observation, reward, terminated, _, info = env.step(action)
        steps.append({
            "action": [float(a) for a in action],
            "observation": [float(f"{x:.13g}") for x in observation],
            "reward": float(f"{reward:.13g}"),
            "terminated": bool(terminated),
        })
    tasks[name] = {
        "start": start,
        "max_episode_steps": gymnasium.spec(name).max_episode_steps,
        "low": env.action_space.low.tolist(),
        "high": env.action_space.high.tolist(),
        "period": env.dt,
        "steps": steps,
    }
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps({"gymnasium": gymnasium.__version__, "mujoco": mujoco.__version__, "tasks": tasks}))
print(path, path.stat().st_size, {k: (v["max_episode_steps"], v["period"], len(v["steps"][0]["observation"]), sum(s["terminated"] for s in v["steps"])) for k, v in tasks.items()})
