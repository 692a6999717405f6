"""Writes what gym-aloha does with the actions of aloha.json into that file: states and rewards.

Needs gym-aloha 0.1.3 (its package alone), dm_control 1.0.50 and mujoco 3.17.0 (dm_control does not know 4 yet):

    python make_aloha_fixtures.py fixtures/aloha.json

The file's actions are those of a scripted expert; `start` is the place of the objects. gym-aloha draws no pictures here,
which dm_control would do in every step.
"""
import json
import sys

import numpy as np
from dm_control import mujoco
from dm_control.rl import control
from gym_aloha.constants import ASSETS_DIR, DT
from gym_aloha.tasks import sim

KEPT = 20  # every so many steps the state


class WithoutPictures:
    def get_observation(self, physics):
        return {"qpos": self.get_qpos(physics), "qvel": self.get_qvel(physics)}


class Transfer(WithoutPictures, sim.TransferCubeTask):
    pass


class Insertion(WithoutPictures, sim.InsertionTask):
    pass


file = sys.argv[1]
tasks = json.load(open(file))
for name, entry in tasks.items():
    xml, kind = {"AlohaTransferCube-v0": ("bimanual_viperx_transfer_cube.xml", Transfer),
                 "AlohaInsertion-v0": ("bimanual_viperx_insertion.xml", Insertion)}[name]
    env = control.Environment(mujoco.Physics.from_xml_path(str(ASSETS_DIR / xml)), kind(), float("inf"),
                              control_timestep=DT, n_sub_steps=None, flat_observation=False)
    sim.BOX_POSE[0] = np.array(entry["start"])
    first = env.reset()
    entry.update(qpos=[], agent_pos=[], agent_vel=[], rewards=[])
    for step, action in enumerate(entry["actions"]):
        now = env.step(np.array(action, np.float32))
        entry["rewards"].append(int(now.reward))
        if (step + 1) % KEPT == 0:
            entry["qpos"].append(env.physics.data.qpos.tolist())
            entry["agent_pos"].append(now.observation["qpos"].tolist())
            entry["agent_vel"].append(now.observation["qvel"].tolist())
    print(name, len(entry["actions"]), "steps, rewards", sorted(set(entry["rewards"])))
json.dump(tasks, open(file, "w"), separators=(",", ":"))
