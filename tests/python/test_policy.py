"""Trained policies on NumPy's arrays."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import cohort
import numpy as np

NEEDS = ("gymnasium", "cloudpickle", "farama_notifications")
BIN = pathlib.Path(os.environ.get("COHORT_BIN", cohort.prefix() / "bin"))


def program(*words, cwd):
    done = subprocess.run([str(BIN / "cohort"), *map(str, words)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Policies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BIN / "cohort-train").is_file():
            raise unittest.SkipTest("the programs are not built: scripts/build release")
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        program("train", "ppo", "task=cartpole-balance", "n_envs=16", "num_steps_per_env=16", "max_iterations=3", "threads=1",
                f"output_dir={cls.folder}", "name=cart", cwd=cls.folder)
        (cls.run_,) = (cls.folder / "cart").glob("2*")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_it_gets_the_returns_of_cohort_evaluate_to_the_bit(self):
        program("evaluate", "--task", "cartpole-balance", "--policy", self.run_, "--episodes", 3, "--first-seed", 7, "--threads", 1,
                "--json", "e.json", "horizon=60", cwd=self.folder)
        table = json.loads((self.folder / "e.json").read_text())["policies"][0]["table"]
        for observations in ("dict", "flat"):
            policy = cohort.policy.load(self.run_)
            envs = cohort.make_vec("cartpole-balance", 3, horizon=60, threads=1, observations=observations)
            seen, _ = envs.reset(seed=7)
            policy.reset(seeds=[7, 8, 9])
            returns = np.zeros(3)
            for _ in range(60):
                actions = policy(seen)
                self.assertEqual((actions.shape, actions.dtype), ((3, 1), np.float32))
                seen, rewards, _, truncations, _ = envs.step(actions)
                returns += rewards
            self.assertTrue(truncations.all())
            self.assertEqual(returns.tolist(), [row["return"] for row in table])

    def test_one_observation_gives_the_action_of_its_row(self):
        policy = cohort.policy.load(self.run_)
        self.assertEqual([o["name"] for o in policy.spec["observations"]], ["cart_pos", "pole_direction", "cart_vel", "pole_vel"])
        rows = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
        policy.reset(n=4)
        batch = policy(rows)
        alone = cohort.policy.load(self.run_)
        for row, action in zip(rows, batch):
            alone.reset()
            np.testing.assert_array_equal(alone(row), action)
        parts = {"observation.cart_pos": rows[:, :1], "obs/pole_direction": rows[:, 1:3], "cart_vel": rows[:, 3:4], "pole_vel": rows[:, 4:]}
        np.testing.assert_array_equal(policy(parts), batch)

    def test_what_does_not_fit_is_named(self):
        policy = cohort.policy.load(self.run_)
        with self.assertRaisesRegex(ValueError, r"\(n, 5\) is needed"):
            policy(np.zeros((2, 4), np.float32))
        with self.assertRaisesRegex(KeyError, "cart_pos"):
            policy({"pole_vel": np.zeros((1, 1), np.float32)})
        policy.reset(seeds=[1, 2])
        policy(np.zeros((2, 5), np.float32))
        with self.assertRaisesRegex(ValueError, "3 observations, and reset\\(\\) began 2"):
            policy(np.zeros((3, 5), np.float32))
        with self.assertRaisesRegex(ValueError, "one seed"):
            policy.reset(seeds=[1, 1])
        with self.assertRaises(cohort.Error):
            cohort.policy.load(self.folder / "nothing")

    def test_torch_and_it_live_in_one_process(self):
        import torch

        policy = cohort.policy.load(self.run_)
        first = policy(np.ones((1, 5), np.float32))
        self.assertEqual(float(torch.ones(3).sum()), 3)
        policy.reset()
        np.testing.assert_array_equal(policy(torch.ones(1, 5).numpy()), first)


if __name__ == "__main__":
    unittest.main()
