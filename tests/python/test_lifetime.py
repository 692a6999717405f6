"""Who owns what, and what signals, forks and exceptions leave behind."""

import gc
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import cohort
import numpy as np

NEEDS = ("gymnasium", "cloudpickle", "farama_notifications")


def resident() -> int:
    """Bytes of this process in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(script: str, argument: str = "", **more) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(script), argument], capture_output=True, text=True, timeout=120, **more)


class Views(unittest.TestCase):
    def test_a_view_shows_every_step_without_a_copy(self):
        envs = cohort.make_vec("HalfCheetah-v5", 3, threads=1)
        views = envs.views()
        address = views["qpos"].ctypes.data
        first, _ = envs.reset(seed=0)
        np.testing.assert_array_equal(np.concatenate([views["qpos"], views["qvel"]], 1), first)
        observations, rewards, *_ = envs.step(np.full((3, 6), 0.5, np.float32))
        np.testing.assert_array_equal(np.concatenate([views["qpos"], views["qvel"]], 1), observations)
        np.testing.assert_array_equal(views["rewards"], rewards)
        self.assertEqual(envs.views()["qpos"].ctypes.data, address)
        self.assertFalse(views["qpos"].flags.writeable or views["qpos"].flags.owndata)
        with self.assertRaises(ValueError):
            views["qpos"][0, 0] = 1

    def test_what_a_step_returned_no_later_step_changes(self):
        envs = cohort.make_vec("HalfCheetah-v5", 3, threads=1)
        observations, _ = envs.reset(seed=0)
        kept = observations.copy()
        results = envs.step(np.ones((3, 6), np.float32))
        copies = [np.copy(r) for r in results[:4]]
        envs.step(-np.ones((3, 6), np.float32))
        np.testing.assert_array_equal(observations, kept)
        for result, copy in zip(results, copies):
            np.testing.assert_array_equal(result, copy)

    def test_a_view_outlives_its_environments(self):
        envs = cohort.make_vec("HalfCheetah-v5", 64, threads=2)
        envs.reset(seed=0)
        observations, *_ = envs.step(np.ones((64, 6), np.float32))
        views = envs.views()
        envs.close()
        del envs
        gc.collect()
        others = cohort.make_vec("HalfCheetah-v5", 64, threads=2)  # would take memory that had been given back
        others.reset(seed=9)
        np.testing.assert_array_equal(np.concatenate([views["qpos"], views["qvel"]], 1), observations)

    def test_ten_thousand_views_leave_nothing(self):
        envs = cohort.make_vec("cartpole-balance", 256, threads=1)
        envs.reset(seed=0)
        action = np.zeros((256, 1), np.float32)

        def look(times):
            for _ in range(times):
                envs.views()
                envs._core.observations()

        envs.step(action)
        look(1000)
        gc.collect()
        before = resident()
        look(10000)
        gc.collect()
        # An array of (256, 5) float32 that was left each time would be 51 MB, a Python object of 100 bytes each time 9 MB.
        self.assertLess(resident() - before, 2 << 20)
        references = sys.getrefcount(envs._core)
        views = [envs.views() for _ in range(100)]
        self.assertEqual(sys.getrefcount(envs._core), references)
        del views

    def test_environments_that_are_made_and_dropped_leave_nothing(self):
        def make(times):
            for seed in range(times):
                envs = cohort.make_vec("cartpole-balance", 16, threads=2)
                envs.reset(seed=seed)
                envs.step(np.zeros((16, 1), np.float32))

        make(10)
        gc.collect()
        before, threads = resident(), len(os.listdir("/proc/self/task"))
        make(50)
        gc.collect()
        self.assertLess(resident() - before, 8 << 20)
        self.assertEqual(len(os.listdir("/proc/self/task")), threads)


class Processes(unittest.TestCase):
    def test_import_starts_no_thread_and_loads_neither_gymnasium_nor_torch(self):
        done = run("""
            import os, sys, cohort, cohort._core
            print(len(os.listdir("/proc/self/task")), [m for m in ("gymnasium", "torch") if m in sys.modules], "libtorch" in open("/proc/self/maps").read())
        """)
        self.assertEqual(done.stdout.strip(), "1 [] False", done.stderr)

    def test_control_c_ends_a_long_call_and_the_environments_go_on(self):
        done = run("""
            import os, signal, threading, cohort, numpy as np
            envs = cohort.make_vec("HalfCheetah-v5", 256, threads=1)
            envs.reset(seed=0)
            actions = np.zeros((20000, 256, 6), np.float32)  # many seconds
            def press():
                while not envs.episode_steps().any(): pass
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=press).start()
            try:
                envs.rollout(actions)
                print("went to the end")
            except KeyboardInterrupt:
                print("interrupted", 0 < envs.episode_steps()[0] < 20000)
            envs.step(actions[0])
            print("goes on")
        """)
        self.assertEqual(done.stdout.split("\n")[:2], ["interrupted True", "goes on"], done.stderr)

    def test_a_fork_after_import_may_make_environments_and_may_not_step_those_of_its_parent(self):
        done = run("""
            import os, sys, cohort, numpy as np
            mine = cohort.make_vec("cartpole-balance", 8, threads=2)
            mine.reset(seed=0)
            action = np.zeros((8, 1), np.float32)
            child = os.fork()
            if child == 0:
                try:
                    mine.step(action)
                    os._exit(1)
                except cohort.Error as error:
                    if "forked" not in str(error): os._exit(2)
                own = cohort.make_vec("cartpole-balance", 8, threads=2)
                own.reset(seed=0)
                expected = own.step(action)[0]
                mine.close()
                del mine, own
                os._exit(0 if np.isfinite(expected).all() else 3)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), np.isfinite(mine.step(action)[0]).all())
        """)
        self.assertEqual(done.stdout.strip(), "0 True", done.stderr)

    def test_an_exception_in_a_step_comes_through_with_its_text(self):
        library = os.environ.get("COHORT_THROWING_TASK")
        if not library:
            self.skipTest("COHORT_THROWING_TASK names no library of a task that throws")
        done = run("""
            import cohort, numpy as np
            envs = cohort.make_vec("throws-in-step", 2, threads=2)
            envs.reset(seed=0)
            envs.step(np.zeros((2, 1), np.float32))
            for _ in range(2):
                try:
                    envs.step(np.zeros((2, 1), np.float32))
                except cohort.Error as error:
                    print(error)
        """, env={**os.environ, "COHORT_TASKS": library})
        self.assertEqual(done.stdout.strip().split("\n"), ["the second step fails", "the second step fails"], done.stderr)

    def test_another_pytorch_is_named_with_the_wanted_one_and_a_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "torch").mkdir()
            for version, said in (("2.99.0", "is built for PyTorch 2[.][0-9]+, and .*torch is 2[.]99[.]0: pip install 'torch==2[.]"),
                                  ("", "is of an unknown version")):  # fmt: skip
                pathlib.Path(folder, "torch", "__init__.py").write_text("raise SystemExit('it was loaded')")
                pathlib.Path(folder, "torch", "version.py").write_text(f"__version__ = '{version}'\n" if version else "")
                done = run("""
                    import sys
                    sys.path.insert(0, sys.argv[1])
                    import cohort
                    try:
                        cohort.policy
                    except ImportError as error:
                        print(error)
                """, argument=folder)
                self.assertRegex(done.stdout, said, done.stderr)


class Scenes(unittest.TestCase):
    """cohort.gs."""

    def ball(self):
        import cohort.gs as gs

        gs.destroy()
        gs.init(backend=gs.cpu)
        scene = gs.Scene(rigid_options=gs.options.RigidOptions(threads=1))
        ball = scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0, 0, 5)))
        scene.build(n_envs=256)
        scene.step()
        return scene, ball

    @unittest.skipUnless(importlib.util.find_spec("torch"), "cohort.gs needs torch")
    def test_a_view_outlives_its_scene(self):
        scene, ball = self.ball()
        view, copy = scene._core.view("qpos"), ball.get_qpos().clone()
        del scene, ball
        gc.collect()
        others = self.ball()  # would take memory that had been given back
        others[0].step()
        np.testing.assert_array_equal(view, copy.numpy())

    @unittest.skipUnless(importlib.util.find_spec("torch"), "cohort.gs needs torch")
    def test_ten_thousand_tensors_leave_nothing(self):
        scene, ball = self.ball()

        def look(times):
            for _ in range(times):
                ball.get_qpos()
                scene._core.view("qvel")

        look(1000)
        gc.collect()
        before = resident()
        look(10000)
        gc.collect()
        # (256, 7) float32 left each time would be 72 MB.
        self.assertLess(resident() - before, 2 << 20)


if __name__ == "__main__":
    unittest.main()
