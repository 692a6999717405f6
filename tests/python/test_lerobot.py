"""LeRobot's own loops over cohort.lerobot's environments."""

import pathlib
import tempfile
import unittest
from importlib import metadata

import cohort
import numpy as np
import torch

NEEDS = ("lerobot",)
HUB = """
from cohort.lerobot import make_env as of_cohort

def make_env(n_envs=1, use_async_envs=False):
    return of_cohort(n_envs, use_async_envs, {"tasks": ["reach", "push"], "settings": {"image_size": (32, 48), "threads": 1, "horizon": 12}})
"""


def policy_of(envs):
    """A policy of LeRobot's class that rests, and remembers what it was shown."""
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.pretrained import PreTrainedPolicy

    class Rests(PreTrainedPolicy):
        config_class, name = ACTConfig, "rests"

        def __init__(self):
            super().__init__(ACTConfig(device="cpu", output_features={"action": PolicyFeature(FeatureType.ACTION, (3,))}))
            self.seen = None

        def get_optim_params(self):
            return {}

        def reset(self):
            self.seen = None

        def forward(self, batch):
            raise NotImplementedError

        def predict_action_chunk(self, batch, **words):
            raise NotImplementedError

        def select_action(self, batch, **words):
            self.seen = {name: getattr(value, "shape", value) for name, value in batch.items()}
            return torch.zeros(envs.num_envs, envs.single_action_space.shape[0])

    return Rests()


class LeRobot(unittest.TestCase):
    def test_its_evaluation_plays_films_and_counts(self):
        from lerobot.scripts.lerobot_eval import eval_policy

        envs = cohort.lerobot.create_envs(["reach"], 3, image_size=(32, 48), threads=1, horizon=12)["cohort"][0]
        policy = policy_of(envs)

        def same(x):
            return x

        with tempfile.TemporaryDirectory() as folder:
            said = eval_policy(envs, policy, same, same, same, same, 6, max_episodes_rendered=2, videos_dir=pathlib.Path(folder), start_seed=40)
            # It has filmed; whether imageio can write what it filmed is not ours.
            self.assertEqual([pathlib.Path(p).name for p in said["video_paths"]], ["eval_episode_0.mp4", "eval_episode_1.mp4"])
        self.assertEqual(policy.seen["observation.state"], (3, 3))
        self.assertEqual(policy.seen["observation.environment_state"], (3, 6))
        self.assertEqual(policy.seen["observation.images.wrist"], (3, 3, 32, 48))
        self.assertEqual(policy.seen["task"], ["reach the green ball"] * 3)
        self.assertEqual([row["seed"] for row in said["per_episode"]], list(range(40, 46)))
        # What it counts is what the environments paid.
        for row in said["per_episode"]:
            single = cohort.make_vec("reach", 1, threads=1, horizon=12)
            single.reset(seed=row["seed"])
            paid = single.rollout(np.zeros((12, 1, single.single_action_space.shape[0]), np.float32))[0]
            self.assertAlmostEqual(row["sum_reward"], float(paid.sum()), places=4)
        self.assertEqual(said["aggregated"]["pc_success"], 0.0)

    def test_its_loader_of_environment_hubs_takes_the_two_lines(self):
        from lerobot.envs.utils import _call_make_env, _import_hub_module, _normalize_hub_result

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "env.py")
            path.write_text(HUB)
            module = _import_hub_module(str(path), "someone/somewhere")
            made = _normalize_hub_result(_call_make_env(module, n_envs=2, use_async_envs=False, cfg=None))
        self.assertEqual([envs.task["name"] for envs in made["cohort"].values()], ["reach", "push"])
        self.assertEqual({envs.num_envs for envs in made["cohort"].values()}, {2})

    def test_an_environments_configuration_of_ones_own_gives_them_to_its_factory(self):
        import dataclasses

        from lerobot.envs.configs import EnvConfig
        from lerobot.envs.factory import make_env

        if not hasattr(EnvConfig, "create_envs"):
            self.skipTest(f"lerobot {metadata.version('lerobot')} has no EnvConfig.create_envs: 0.6 has")

        @EnvConfig.register_subclass("cohort_test")
        @dataclasses.dataclass
        class Cohort(EnvConfig):
            task: str = "reach"

            @property
            def gym_kwargs(self):
                return {}

            def create_envs(self, n_envs, use_async_envs=False):
                return cohort.lerobot.create_envs([self.task], n_envs, use_async_envs, threads=1, image_size=(32, 48))

        made = make_env(Cohort(), n_envs=2)
        self.assertEqual(made["cohort"][0].num_envs, 2)


if __name__ == "__main__":
    unittest.main()
