"""gymnasium's VectorEnv and Env over tasks."""

import pathlib
import threading
import unittest

import cohort
import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

NEEDS = ("gymnasium", "cloudpickle", "farama_notifications")
ROOT = pathlib.Path(__file__).resolve().parents[2]
TASK = "cartpole-balance"


def falling(n, **settings):
    """Environments whose poles fall soon: episodes of 7 steps at most."""
    return cohort.make_vec(TASK, n, horizon=7, threads=1, **settings)


def pushes(rng, n):
    return rng.uniform(-1, 1, (n, 1)).astype(np.float32)


class Vector(unittest.TestCase):
    def test_spaces_and_shapes_are_those_of_the_task(self):
        envs = cohort.make_vec("HalfCheetah-v5", 5, seed=1, threads=1)
        self.assertIsInstance(envs, gymnasium.vector.VectorEnv)
        # gymnasium's HalfCheetah-v5: Box(-inf, inf, (17,)), Box(-1, 1, (6,), float32).
        self.assertEqual(envs.single_observation_space, gymnasium.spaces.Box(-np.inf, np.inf, (17,), np.float32))
        self.assertEqual(envs.single_action_space, gymnasium.spaces.Box(-1, 1, (6,), np.float32))
        self.assertEqual(envs.observation_space.shape, (5, 17))
        observations, infos = envs.reset()
        self.assertTrue(envs.observation_space.contains(observations))
        self.assertEqual(infos, {})
        observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
        self.assertTrue(envs.observation_space.contains(observations))
        for array, kind in ((rewards, np.float32), (terminations, np.bool_), (truncations, np.bool_), (infos["success"], np.bool_)):
            self.assertEqual((array.shape, array.dtype), ((5,), np.dtype(kind)))
        self.assertEqual(envs.metadata["autoreset_mode"], AutoresetMode.SAME_STEP)
        self.assertEqual(envs.metadata["render_fps"], 20)

    def test_an_episode_is_a_function_of_its_seed_and_actions(self):
        rng = np.random.default_rng(3)
        actions = [pushes(rng, 4) for _ in range(30)]
        runs = []
        for n, order in ((4, [0, 1, 2, 3]), (2, [2, 0])):
            envs = falling(n)
            first, _ = envs.reset(seed=[10 + e for e in order])
            rows = [first]
            for action in actions:
                rows.append(envs.step(action[order])[0])
            runs.append(np.stack(rows))
        np.testing.assert_array_equal(runs[0][:, [2, 0]], runs[1])
        envs = falling(4)
        np.testing.assert_array_equal(envs.reset(seed=10)[0], runs[0][0])  # an integer: seed + i
        self.assertFalse(np.array_equal(envs.reset()[0], runs[0][0]))  # the next episodes

    def test_same_step_gives_the_last_observation_and_the_first_of_the_next_episode(self):
        envs, rng = falling(3), np.random.default_rng(0)
        alone = cohort.make(TASK, horizon=7)
        envs.reset(seed=5)
        before, _ = alone.reset(seed=5)
        for step in range(1, 8):
            actions = pushes(rng, 3)
            observations, rewards, terminations, truncations, infos = envs.step(actions)
            last, reward, terminated, truncated, _ = alone.step(actions[0])
            self.assertEqual((terminated, truncated), (bool(terminations[0]), bool(truncations[0])))
            self.assertEqual(np.float32(reward), rewards[0])
            if step < 7:
                self.assertNotIn("final_obs", infos)
                np.testing.assert_array_equal(observations[0], last)
        self.assertTrue(truncations.all())
        np.testing.assert_array_equal(infos["_final_obs"], [True] * 3)
        np.testing.assert_array_equal(infos["final_obs"][0], last)
        self.assertEqual(set(infos["final_info"]), {"success", "_success", "broken", "_broken"})
        self.assertFalse(np.array_equal(observations[0], last))
        np.testing.assert_array_equal(envs.episode_steps(), [0, 0, 0])

    def test_next_step_takes_a_step_to_begin_anew(self):
        envs, same, rng = falling(2, autoreset="next_step"), falling(2), np.random.default_rng(0)
        self.assertEqual(envs.metadata["autoreset_mode"], AutoresetMode.NEXT_STEP)
        envs.reset(seed=5), same.reset(seed=5)
        for _ in range(7):
            actions = pushes(rng, 2)
            last, _, _, truncations, infos = envs.step(actions)
            first, _, _, _, final = same.step(actions)
        self.assertTrue(truncations.all())
        np.testing.assert_array_equal(last[1], final["final_obs"][1])
        observations, rewards, terminations, truncations, infos = envs.step(pushes(rng, 2))
        np.testing.assert_array_equal(observations, first)  # the same next episodes
        self.assertEqual((rewards.tolist(), truncations.any(), terminations.any()), ([0, 0], False, False))
        self.assertNotIn("final_obs", infos)
        actions = pushes(rng, 2)
        np.testing.assert_array_equal(envs.step(actions)[0], same.step(actions)[0])

    def test_a_mask_resets_those_alone(self):
        envs = falling(3)
        envs.reset(seed=1)
        moved, *_ = envs.step(np.ones((3, 1), np.float32))
        observations, _ = envs.reset(seed=[None, 9, None], options={"reset_mask": np.asarray([False, True, False])})
        np.testing.assert_array_equal(observations[[0, 2]], moved[[0, 2]])
        np.testing.assert_array_equal(observations[1], falling(1).reset(seed=9)[0][0])
        with self.assertRaisesRegex(ValueError, "reset_mask"):
            envs.reset(options={"reset_mask": np.zeros(3, np.bool_)})

    def test_dictionaries_cameras_terms_and_settings(self):
        envs = cohort.make_vec("reach", 2, cameras=["wrist"], image_size=(24, 32), reward_terms=True, threads=1, horizon=3,
                               render_mode="rgb_array", render_size=(40, 48))
        observations, _ = envs.reset(seed=0)
        self.assertTrue(envs.observation_space.contains(observations))
        self.assertEqual(observations["wrist"].shape, (2, 24, 32, 3))
        self.assertGreater(int(observations["wrist"].max()), 0)
        np.testing.assert_array_equal(observations["eef_pos"], envs.views()["eef_pos"])
        for _ in range(3):
            observations, rewards, _, truncations, infos = envs.step(np.zeros((2, envs.single_action_space.shape[0]), np.float32))
        np.testing.assert_allclose(infos["reward_terms"].sum(1), rewards, rtol=1e-6)
        self.assertTrue(truncations.all())
        self.assertEqual(infos["final_obs"][0]["eef_pos"].shape, (3,))
        pictures = envs.render()
        self.assertEqual([p.shape for p in pictures], [(40, 48, 3)] * 2)
        self.assertFalse(np.array_equal(*pictures))  # two seeds

    def test_a_task_file_and_its_settings_are_taken(self):
        envs = cohort.make_vec(ROOT / "examples/tasks/double_pendulum.yaml", 2, threads=1, reward_scales=["height:0.5"], play=True)
        usual = cohort.make_vec(ROOT / "examples/tasks/double_pendulum.yaml", 2, threads=1)
        terms = envs.task["reward_terms"].index("height")
        for e in (envs, usual):
            e.reset(seed=1), e.step(np.zeros((2, 1), np.float32))
        np.testing.assert_allclose(envs._core.reward_terms()[:, terms] * 2, usual._core.reward_terms()[:, terms], rtol=1e-6)

    def test_gymnasiums_checker_passes_one_environment(self):
        for name in ("HalfCheetah-v5", "reach"):
            check_env(cohort.make(name, render_mode="rgb_array", render_size=(32, 32)))

    def test_gymnasiums_wrappers_take_it(self):
        envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(falling(2))
        envs = gymnasium.wrappers.vector.RescaleObservation(gymnasium.wrappers.vector.ClipReward(envs, max_reward=0.5), -1, 1) \
            if np.isfinite(envs.single_observation_space.low).all() else gymnasium.wrappers.vector.ClipReward(envs, max_reward=0.5)
        envs.reset(seed=0)
        for _ in range(7):
            _, rewards, _, _, infos = envs.step(np.zeros((2, 1), np.float32))
            self.assertLessEqual(rewards.max(), 0.5)
        np.testing.assert_array_equal(infos["episode"]["l"], [7, 7])


class Mistakes(unittest.TestCase):
    def test_names_and_values_that_are_wrong_are_named(self):
        with self.assertRaisesRegex(cohort.Error, "did you mean 'HalfCheetah-v5'"):
            cohort.make_vec("halfcheetah")
        with self.assertRaisesRegex(cohort.Error, "horizn.*horizon"):
            cohort.make_vec(TASK, horizn=3)
        for words, said in (({"autoreset": "never"}, "same_step"), ({"cameras": ["top"]}, "no camera 'top'"),
                            ({"render_mode": "human"}, "rgb_array"), ({"observations": "list"}, "flat"), ({"threads": 0}, "threads")):
            with self.assertRaisesRegex(ValueError, said):
                cohort.make_vec(TASK, 2, **words)
        with self.assertRaisesRegex(ValueError, "num_envs=0"):
            cohort.make_vec(TASK, 0)

    def test_actions_of_another_shape_are_refused_and_the_environments_go_on(self):
        envs = falling(2)
        with self.assertRaisesRegex(RuntimeError, "reset"):
            envs.step(np.zeros((2, 1), np.float32))
        envs.reset(seed=0)
        with self.assertRaisesRegex(cohort.Error, r"shape \(3, 1\): cartpole-balance takes \(2, 1\)"):
            envs.step(np.zeros((3, 1), np.float32))
        with self.assertRaises(TypeError):
            envs.step(np.zeros(2, np.float32))
        expected, other = falling(2), np.zeros((2, 1), np.float32)
        expected.reset(seed=0)
        np.testing.assert_array_equal(envs.step(other)[0], expected.step(other)[0])
        np.testing.assert_array_equal(envs.step(np.zeros((2, 1)))[0], expected.step(other)[0])  # doubles are converted

    def test_an_action_that_is_not_finite_breaks_its_environment_alone(self):
        envs, whole = falling(2), falling(2)
        envs.reset(seed=0), whole.reset(seed=0)
        observations, rewards, terminations, _, infos = envs.step(np.asarray([[np.nan], [0.5]], np.float32))
        self.assertEqual((infos["broken"].tolist(), terminations.tolist(), float(rewards[0])), ([True, False], [True, False], 0.0))
        self.assertTrue(np.isfinite(observations).all())
        np.testing.assert_array_equal(observations[1], whole.step(np.asarray([[0.1], [0.5]], np.float32))[0][1])

    def test_two_threads_in_one_batch_are_refused_and_two_batches_run_at_once(self):
        envs = [cohort.make_vec("HalfCheetah-v5", 64, threads=1) for _ in range(2)]
        for e in envs:
            e.reset(seed=0)
        actions = np.zeros((2000, 64, 6), np.float32)
        results = {}
        threads = [threading.Thread(target=lambda i=i: results.update({i: envs[i].rollout(actions)[0]})) for i in range(2)]
        for t in threads:
            t.start()
        while not envs[0].episode_steps().any():  # until its rollout runs
            pass
        with self.assertRaisesRegex(cohort.Error, "another thread"):
            envs[0].step(actions[0])
        for t in threads:
            t.join()
        np.testing.assert_array_equal(results[0], results[1])

    def test_closed_environments_say_so(self):
        envs = falling(1)
        envs.reset(seed=0)
        envs.close()
        with self.assertRaisesRegex(cohort.Error, "closed"):
            envs.step(np.zeros((1, 1), np.float32))


if __name__ == "__main__":
    unittest.main()
