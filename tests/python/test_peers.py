"""The layer's classes with the packages that they are written for."""

import tempfile
import unittest
import warnings

import cohort
import gymnasium
import numpy as np

NEEDS = ("gymnasium", "cloudpickle", "farama_notifications", "torch", "stable_baselines3", "rsl_rl", "tensordict", "mujoco")


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
    def test_ppo_learns_for_twenty_iterations(self):
        import stable_baselines3
        from stable_baselines3.common.env_checker import check_env
        from stable_baselines3.common.vec_env import VecMonitor

        warnings.simplefilter("ignore")
        check_env(cohort.make("cartpole-balance"))
        envs = VecMonitor(cohort.sb3.VecEnv("cartpole-balance", 32, threads=1))
        model = stable_baselines3.PPO("MlpPolicy", envs, n_steps=32, batch_size=512, n_epochs=4, seed=0, device="cpu",
                                      learning_rate=3e-3, policy_kwargs={"net_arch": [32]})
        model.learn(20 * 32 * 32)
        self.assertEqual(model._n_updates, 80)
        self.assertEqual(model.num_timesteps, 20480)
        lengths = [episode["l"] for episode in model.ep_info_buffer]
        # Of random actions an episode is worth and lasts less; an untrained policy's lets the pole fall.
        self.assertTrue(lengths)
        returns = [episode["r"] for episode in model.ep_info_buffer]
        self.assertGreater(np.mean(returns[-20:]), np.mean(returns[:20]))


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

    def test_its_runner_trains_the_dog_for_twenty_iterations(self):
        from rsl_rl.runners import OnPolicyRunner

        env = cohort.rsl_rl.VecEnv("quadruped-velocity", 32, seed=1, threads=1)
        model = {"class_name": "MLPModel", "hidden_dims": [32], "activation": "elu", "obs_normalization": True}
        config = {
            "num_steps_per_env": 12, "save_interval": 1000, "run_name": "", "logger": "tensorboard",
            "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
            "actor": {**model, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}},
            "critic": model,
            "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2, "learning_rate": 1e-3,
                          "schedule": "adaptive", "desired_kl": 0.01, "rnd_cfg": None, "symmetry_cfg": None},
        }
        with tempfile.TemporaryDirectory() as folder:
            runner = OnPolicyRunner(env, config, folder, device="cpu")
            runner.learn(num_learning_iterations=20, init_at_random_ep_len=True)
        self.assertEqual(runner.current_learning_iteration, 19)
        self.assertTrue((env.episode_length_buf < 1000).all())


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
        with self.assertRaisesRegex(ValueError, "names no task"):
            cohort.lerobot.make_env(2)


if __name__ == "__main__":
    unittest.main()
