"""The policy in NumPy of docs/guide/reinforcement_learning.md, beside what `cohort collect` recorded of the same policy.

  COHORT_BIN=build/release/bin python numpy_policy.py GUIDE.md
"""
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from run_guide import blocks_of

FIELDS = {"cartpole-balance": ["cart_pos", "pole_direction", "cart_vel", "pole_vel"]}
COHORT = os.path.abspath(os.path.join(os.environ["COHORT_BIN"], "cohort"))
# The guide's own activation, and one of the others that it knows.
RUNS = [[], ["policy.activation=tanh", "policy.actor_hidden_dims=[32]"]]


def cohort(*words):
    subprocess.run([COHORT, *words], check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def main(guide):
    snippet = next(block.text for block in blocks_of(guide) if block.words == ("python",))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, settings in enumerate(RUNS):
            cohort("train", "ppo", "task=cartpole-balance", "max_iterations=2", "n_envs=32", "charts=false", *settings)
            cohort("collect", "cartpole-balance", "--policy", "outputs/cartpole-balance/latest", "--episodes", "2",
                   "--keep", "all", "--format", "hdf5", "--out", f"recorded-{number}", "--name", "recorded")
            policy = {}
            exec(snippet, policy)
            with h5py.File(f"recorded-{number}/recorded.hdf5") as file:
                demo = file["data/demo_0"]
                actions = np.asarray(demo["actions"])
                seen = [np.asarray(demo["obs"][name]).reshape(len(actions), -1) for name in FIELDS["cartpole-balance"]]
            found = policy["act"](np.concatenate(seen, 1))
            difference = np.abs(found - actions).max()
            print(f"{settings}: {len(actions)} actions, largest {np.abs(actions).max():.3g}, difference {difference:.3g}")
            if not (difference < 1e-5 < np.abs(actions).max()):
                sys.exit("the guide's policy acts otherwise than cohort's")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
