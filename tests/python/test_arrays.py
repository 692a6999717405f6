"""Arrays between the layer and array libraries: who owns them, and that nothing is copied on the way."""

import gc
import inspect
import pathlib
import re
import tempfile
import unittest

import cohort
import numpy as np
from cohort import _core

NEEDS = ("gymnasium", "cloudpickle", "farama_notifications", "torch")


class Borrowed:
    """An array that only speaks DLPack, and counts how often it is asked."""

    def __init__(self, array):
        self.array, self.asked = array, 0

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **words):
        self.asked += 1
        return self.array.__dlpack__(**words)


class Owners(unittest.TestCase):
    """nanobind silently copies an array that is made without an owner, into one that owns its memory for NumPy: so none may."""

    def environments(self):
        envs = cohort.make_vec("reach", 2, threads=1, cameras=["wrist"], image_size=(16, 24), horizon=1)
        envs.reset(seed=0)
        envs.step(np.zeros((2, envs.single_action_space.shape[0]), np.float32))
        core = envs._core
        actions = np.zeros((3, 2, envs.single_action_space.shape[0]), np.float32)
        self.addCleanup(envs.close)
        return core, {
            "picture": lambda: core.picture("wrist"), "film": lambda: core.film("wrist", 0, 16, 24), "field_view": lambda: core.field_view(0),
            "field_tensor": lambda: np.from_dlpack(core.field_tensor(0)), "rollout": lambda: core.rollout(actions)[0],
        }  # fmt: skip

    def scene(self):
        import cohort.gs as gs

        gs.destroy()
        gs.init(backend=gs.cpu)
        scene = gs.Scene(rigid_options=gs.options.RigidOptions(threads=1))
        scene.add_entity(gs.morphs.Plane())
        ball = scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0, 0, 0.1)))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "arm.xml")
        path.write_text('<mujoco><worldbody><body name="a"><joint name="j"/><geom size=".1" contype="0"/></body></worldbody></mujoco>')
        arm = scene.add_entity(gs.morphs.MJCF(file=str(path)))
        imu = scene.add_sensor(gs.sensors.IMU(entity_idx=ball.idx, link_idx_local=0))
        camera = scene.add_camera(res=(24, 16))
        scene.build(n_envs=2)
        scene.step()
        camera.render()
        core, one, none = scene._core, np.zeros(1, np.int32), np.zeros(0, np.float32)
        link = np.array([ball.base_link.idx], np.int32)
        everyone = np.arange(2, dtype=np.int32)
        return core, {
            "view": lambda: core.view("qpos"), "qpos0": lambda: core.qpos0(), "dofs": lambda: core.dofs("pos", one), "links": lambda: core.links("pos", link),
            "jacobian": lambda: core.jacobian(int(link[0])), "parameter": lambda: core.parameter("dof_armature"), "sensor": lambda: core.sensor(imu._names[0]),
            "contacts": lambda: [a for a in core.contacts() if isinstance(a, np.ndarray)],
            "inverse_kinematics": lambda: core.inverse_kinematics(
                np.array([arm.links[-1].idx], np.int32), np.array([6], np.int32), everyone, np.zeros((1, 3), np.float32), np.zeros((2, 1, 3), np.float32),
                np.tile(np.array([1, 0, 0, 0], np.float32), (2, 1, 1)), none, [1], [1],
                [True] * 3, [True] * 3, 1, 1, 0.01, 1e-3, 1e-3, 0.5, True, 0),
            "render": lambda: [a for a in core.render(camera._handle, everyone, 24, 16, True, True, True, True, False) if a is not None],
        }  # fmt: skip

    def test_every_array_that_is_given_out_has_an_owner_that_it_keeps(self):
        seen = set()
        for make, kind in ((self.environments, _core.Environments), (self.scene, _core.Scene)):
            core, calls = make()
            for name, member in inspect.getmembers(kind):
                told = re.search(r"->\s*(.*)", (member.__doc__ or "").split("\n")[0])
                if name.startswith("_") or not (name in calls or told and re.search("ndarray|NDArray|ArrayLike", told[1])):
                    continue
                made = calls[name]() if name in calls else getattr(core, name)()
                arrays = [a for a in (made if isinstance(made, (list, tuple)) else [made]) if isinstance(a, np.ndarray)]
                self.assertTrue(arrays, f"{kind.__name__}.{name} gives no array")
                for array in arrays:
                    self.assertFalse(array.flags.owndata, f"{kind.__name__}.{name} gives a copy: its array was made without an owner")
                    self.assertIsNotNone(array.base)
                seen.add(name)
        self.assertLessEqual({"observations", "rewards", "ended", "final_observations", "field_view", "reward_view", "rollout", "picture", "view", "dofs",
                              "links", "jacobian", "render"}, seen)  # fmt: skip


class Dlpack(unittest.TestCase):
    def test_tensors_show_the_simulations_memory_to_every_library(self):
        import torch

        envs = cohort.make_vec("HalfCheetah-v5", 4, threads=1)
        envs.reset(seed=0)
        views, tensors = envs.views(), envs.tensors()
        self.assertEqual(list(tensors), [field["name"] for field in envs.task["observations"]])
        for name, tensor in tensors.items():
            self.assertEqual(tensor.__dlpack_device__(), (cohort.dlpack.CPU, 0))
            theirs, numpys = torch.from_dlpack(tensor), np.from_dlpack(tensor)
            self.assertEqual(theirs.data_ptr(), views[name].ctypes.data)
            self.assertEqual(numpys.ctypes.data, views[name].ctypes.data)
            self.assertFalse(numpys.flags.writeable)
            self.assertEqual((tuple(theirs.shape), theirs.dtype), (views[name].shape, torch.float32))
        shown = {name: torch.from_dlpack(tensor) for name, tensor in tensors.items()}
        observations, *_ = envs.step(np.full((4, 6), 0.3, np.float32))
        np.testing.assert_array_equal(np.concatenate([shown[n].numpy() for n in shown], 1), observations)
        # A view of NumPy's speaks it, too.
        self.assertEqual(np.from_dlpack(views["qpos"]).ctypes.data, views["qpos"].ctypes.data)

    def test_a_tensor_outlives_its_environments(self):
        import torch

        envs = cohort.make_vec("HalfCheetah-v5", 64, threads=1)
        envs.reset(seed=0)
        observations, *_ = envs.step(np.ones((64, 6), np.float32))
        shown = [torch.from_dlpack(tensor) for tensor in envs.tensors().values()]
        envs.close()
        del envs
        gc.collect()
        others = cohort.make_vec("HalfCheetah-v5", 64, threads=1)  # would take memory that had been given back
        others.reset(seed=9)
        np.testing.assert_array_equal(torch.cat(shown, 1).numpy(), observations)

    def test_actions_of_any_library_are_read_where_they_lie(self):
        import torch

        from cohort import vector

        numbers = np.random.default_rng(0).uniform(-1, 1, (4, 6)).astype(np.float32)
        tensor = torch.from_numpy(numbers.copy()).requires_grad_()
        self.assertEqual(vector._as_actions(numbers).ctypes.data, numbers.ctypes.data)
        self.assertEqual(vector._as_actions(tensor).ctypes.data, tensor.data_ptr())
        borrowed = Borrowed(numbers)
        self.assertEqual(vector._as_actions(borrowed).ctypes.data, numbers.ctypes.data)
        self.assertEqual(borrowed.asked, 1)
        results = []
        for actions in (numbers, tensor, Borrowed(numbers), numbers.tolist(), numbers.astype(np.float64), torch.from_numpy(numbers).T.contiguous().T):
            envs = cohort.make_vec("HalfCheetah-v5", 4, threads=1)
            envs.reset(seed=0)
            self.assertFalse(envs.advance(actions))
            results.append(np.concatenate([envs.views()[n] for n in ("qpos", "qvel")], 1))
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])

    def test_what_a_step_returned_is_shared_with_torch(self):
        import torch

        envs = cohort.make_vec("HalfCheetah-v5", 2, threads=1)
        observations, _ = envs.reset(seed=0)
        tensor = torch.from_dlpack(observations)
        self.assertEqual(tensor.data_ptr(), observations.ctypes.data)
        tensor[0, 0] = 7.0
        self.assertEqual(observations[0, 0], 7.0)  # the caller's own array

    def test_actions_on_a_device_that_computes_nothing_are_refused_with_where_they_belong(self):
        envs = cohort.make_vec("HalfCheetah-v5", 2, threads=1)
        self.assertEqual((envs._core.device, envs._core.device_stream), (-1, 0))
        with self.assertRaises(TypeError):  # host memory is no device's
            envs._core.step_on_device(np.zeros((2, 6), np.float32))


if __name__ == "__main__":
    unittest.main()
