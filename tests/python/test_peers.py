"""The layer's classes with the packages that they are written for."""

import pathlib
import tempfile
import unittest
import warnings

import cohort
import gymnasium
import numpy as np

NEEDS = ("gymnasium", "cloudpickle", "farama_notifications", "torch", "stable_baselines3", "rsl_rl", "tensordict", "mujoco")


# A reward of 1, which after five control steps of an environment is worth 3.
CURRICULUM = """
scene: {cartpole: {mjcf: library:/cartpole.xml}}
simulation: {control_period: 0.02, episode_length_s: 10}
actions: {force: {type: joint_effort, joints: slider, scale: 1}}
observations: {policy: {cart_pos: joint_pos("slider")}}
rewards: {one: {formula: 1, weight: 1, per_second: false}}
curriculum: {more: {type: reward_weight, reward_name: one, weight_stages: [{step: 0, weight: 1}, {step: 5, weight: 3}]}}
"""


def curriculum(folder: str) -> pathlib.Path:
    path = pathlib.Path(folder, "grows.yaml")
    path.write_text(CURRICULUM)
    return path


class Curricula(unittest.TestCase):
    """What learns moves a task's curriculum; what plays is at its end."""

    def test_they_move_for_trainers_and_stand_at_their_end_for_who_plays(self):
        import torch

        def rewards(envs, action):
            if not isinstance(envs, cohort.rsl_rl.VecEnv):  # that one begins by itself
                envs.reset()
            return [float(envs.step(action)[1][0]) for _ in range(8)]

        moves, at_the_end = [1.0] * 4 + [3.0] * 4, [3.0] * 8
        numbers, tensor = np.zeros((2, 1), np.float32), torch.zeros(2, 1)
        with tempfile.TemporaryDirectory() as folder:
            task = curriculum(folder)
            self.assertEqual(rewards(cohort.make_vec(task, 2, threads=1), numbers), at_the_end)
            self.assertEqual(rewards(cohort.make_vec(task, 2, threads=1, learning=True), numbers), moves)
            self.assertEqual(rewards(cohort.sb3.VecEnv(task, 2, threads=1), numbers), moves)
            self.assertEqual(rewards(cohort.sb3.VecEnv(task, 2, threads=1, learning=False), numbers), at_the_end)
            self.assertEqual(rewards(cohort.rsl_rl.VecEnv(task, 2, threads=1), tensor), moves)
            self.assertEqual(rewards(cohort.rsl_rl.VecEnv(task, 2, threads=1, learning=False), tensor), at_the_end)


class Gymnasium(unittest.TestCase):
    def test_half_cheetah_has_its_spaces_and_the_same_statistics_of_random_actions(self):
        n, steps = 16, 200
        theirs = gymnasium.make_vec("HalfCheetah-v5", n, vectorization_mode="sync")
        ours = cohort.make_vec("HalfCheetah-v5", n, threads=1)
        self.assertEqual(ours.single_action_space, theirs.single_action_space)
        self.assertEqual(ours.observation_space.shape, theirs.observation_space.shape)
        rng = np.random.default_rng(0)
        actions = rng.uniform(-1, 1, (steps, n, 6)).astype(np.float32)
        rewards, observations = {}, {}
        for name, envs in (("theirs", theirs), ("ours", ours)):
            first, _ = envs.reset(seed=0)
            rows = [first]
            paid = []
            for action in actions:
                o, r, *_ = envs.step(action)
                rows.append(o)
                paid.append(r)
            rewards[name], observations[name] = np.asarray(paid), np.concatenate(rows)
        # Starts are drawn by other generators: means over 3,200 steps, their spread over 16 environments.
        spread = rewards["theirs"].mean(0).std() / np.sqrt(n)
        self.assertLess(abs(rewards["ours"].mean() - rewards["theirs"].mean()), 5 * spread)
        a, b = observations["ours"], observations["theirs"]
        # Of the joints: whether a cheetah falls on its back (height and pitch) is too rare an event for 16 environments.
        a, b = a[:, 2:], b[:, 2:]
        np.testing.assert_allclose(a.std(0), b.std(0), rtol=0.15)
        np.testing.assert_array_less(np.abs(a.mean(0) - b.mean(0)), 0.2 * b.std(0))


class StableBaselines3(unittest.TestCase):
    def test_its_checker_finds_nothing(self):
        from stable_baselines3.common.env_checker import check_env

        warnings.simplefilter("ignore")
        check_env(cohort.make("cartpole-balance"))

    def test_ppo_learns_half_cheetah_for_twenty_iterations(self):
        import stable_baselines3
        from stable_baselines3.common.callbacks import BaseCallback
        from stable_baselines3.common.vec_env import VecNormalize

        class Means(BaseCallback):
            """The mean reward of each iteration's steps, as the task pays it."""

            def __init__(self):
                super().__init__()
                self.of_iterations, self.of_steps = [], []

            def _on_step(self):
                self.of_steps.append(self.training_env.get_original_reward().mean())
                return True

            def _on_rollout_end(self):
                self.of_iterations.append(np.mean(self.of_steps))
                self.of_steps = []

        warnings.simplefilter("ignore")
        n, steps, iterations = 128, 32, 20
        envs = VecNormalize(cohort.sb3.VecEnv("HalfCheetah-v5", n, threads=1))
        model = stable_baselines3.PPO("MlpPolicy", envs, n_steps=steps, batch_size=n * steps // 4, n_epochs=4, seed=0, device="cpu",
                                      learning_rate=2e-3, gamma=0.98, policy_kwargs={"net_arch": [64], "log_std_init": -1.0})
        means = Means()
        model.learn(iterations * n * steps, callback=means)
        self.assertEqual((model._n_updates, model.num_timesteps), (4 * iterations, iterations * n * steps))
        # Random actions lose 0.15 a step to what they cost; a cheetah that runs forward earns.
        self.assertEqual(len(means.of_iterations), iterations)
        self.assertLess(means.of_iterations[0], 0)
        self.assertGreater(np.mean(means.of_iterations[-5:]), 0.2, means.of_iterations)


class RslRl(unittest.TestCase):
    def test_ages_that_are_written_cut_episodes_off_and_nothing_else(self):
        import torch

        env = cohort.rsl_rl.VecEnv("quadruped-velocity", 3, seed=4, threads=1)
        whole = cohort.rsl_rl.VecEnv("quadruped-velocity", 3, seed=4, threads=1)
        self.assertEqual((env.num_actions, env.max_episode_length), (12, 1000))
        env.episode_length_buf = torch.tensor([0, 997, 0])
        action = torch.zeros(3, 12)
        for step in range(1, 4):
            observations, rewards, dones, extras = env.step(action)
            expected, paid, *_ = whole.step(action)
            self.assertEqual(dones.tolist(), [0, int(step == 3), 0])
            self.assertEqual(extras["time_outs"].tolist(), [False, step == 3, False])
            torch.testing.assert_close(rewards, paid, rtol=0, atol=0)
            rows = [0, 2] if step == 3 else [0, 1, 2]
            torch.testing.assert_close(observations["policy"][rows], expected["policy"][rows], rtol=0, atol=0)
        self.assertFalse(torch.equal(observations["policy"][1], expected["policy"][1]))
        self.assertEqual(env.episode_length_buf.tolist(), [3, 0, 3])

    def test_groups_leave_out_what_only_the_critic_sees_and_need_no_copy(self):
        env = cohort.rsl_rl.VecEnv("quadruped-velocity", 2, critic_only=["base_lin_vel"], threads=1)
        groups = env.get_observations()
        self.assertEqual((groups["policy"].shape, groups["critic"].shape), ((2, 45), (2, 48)))
        with self.assertRaisesRegex(ValueError, "base_speed"):
            cohort.rsl_rl.VecEnv("quadruped-velocity", 2, critic_only=["base_speed"], threads=1)

    def test_its_runner_teaches_the_dog_for_twenty_iterations(self):
        import torch
        from rsl_rl.runners import OnPolicyRunner

        n, steps, iterations = 256, 24, 20
        # Without the task's lower bound of 0, to which all rewards of the first iterations would be raised.
        env = cohort.rsl_rl.VecEnv("quadruped-velocity", n, seed=1, threads=1, reward_scales=["floor:0"])
        rows, step = [], env.step

        def counted(actions):
            results = step(actions)
            rows.append((float(results[1].mean()), results[3]["log"]["/reward/linear"]))
            return results

        env.step = counted
        model = {"class_name": "MLPModel", "hidden_dims": [64], "activation": "elu", "obs_normalization": True}
        config = {
            "num_steps_per_env": steps, "save_interval": 1000, "run_name": "", "logger": "tensorboard",
            "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
            "actor": {**model, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.3}},
            "critic": model,
            "algorithm": {"class_name": "PPO", "num_learning_epochs": 5, "num_mini_batches": 4, "learning_rate": 1e-3,
                          "schedule": "adaptive", "desired_kl": 0.01, "rnd_cfg": None, "symmetry_cfg": None},
        }
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as folder:
            runner = OnPolicyRunner(env, config, folder, device="cpu")
            runner.learn(num_learning_iterations=iterations, init_at_random_ep_len=True)
        self.assertEqual(runner.current_learning_iteration, iterations - 1)
        self.assertTrue((env.episode_length_buf < 1000).all())
        reward, tracking = np.asarray(rows).reshape(iterations, steps, 2).mean(1).T
        # The first iteration has the fall from the start in it; from the second on it is the policy that changes.
        self.assertGreater(reward[-3:].mean(), 0.6 * reward[1], reward)
        self.assertGreater(tracking[-3:].mean(), 1.2 * tracking[1], tracking)


class LeRobot(unittest.TestCase):
    def test_environments_of_a_hub_are_named_as_it_names_them(self):
        made = cohort.lerobot.make_env(2, False, {"tasks": ["reach"], "settings": {"image_size": (32, 48), "threads": 1, "horizon": 2}})
        envs = made["cohort"][0]
        observations, _ = envs.reset(seed=[3, 4])
        self.assertTrue(envs.observation_space.contains(observations))
        self.assertEqual(observations["pixels"]["wrist"].shape, (2, 32, 48, 3))
        self.assertEqual((observations["agent_pos"].shape, observations["environment_state"].shape), ((2, 3), (2, 6)))
        self.assertEqual(envs.call("task_description"), ("reach the green ball",) * 2)
        self.assertEqual(envs.call("_max_episode_steps"), (2, 2))
        for _ in range(2):
            *_, truncations, infos = envs.step(np.zeros((2, envs.single_action_space.shape[0]), np.float32))
        self.assertTrue(truncations.all())
        # What LeRobot's rollout reads: final_info["is_success"].
        self.assertEqual(infos["final_info"]["is_success"].tolist(), [False, False])
        self.assertEqual(len(envs.call("render")), 2)
        self.assertIsInstance(envs, gymnasium.vector.SyncVectorEnv)  # LeRobot films those alone
        np.testing.assert_array_equal(envs.envs[1].render(), envs.call("render")[1])
        self.assertEqual([(e.task, e.task_description) for e in envs.envs], [("reach", "reach the green ball")] * 2)
        with self.assertRaisesRegex(ValueError, "names no task"):
            cohort.lerobot.make_env(2)


if __name__ == "__main__":
    unittest.main()
