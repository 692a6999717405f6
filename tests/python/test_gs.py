"""cohort.gs: the kinds of calls that Genesis' reinforcement learning and multi-GPU examples make."""

import ast
import importlib.util
import os
import pathlib
import tempfile
import unittest

import numpy as np
import torch

import cohort.gs as gs
from cohort.gs.utils import geom

NEEDS = ("torch",)
ROOT = pathlib.Path(__file__).resolve().parents[2]
ARM = """<mujoco><compiler angle="radian"/><worldbody><body name="base">{bodies}</body></worldbody>
  <actuator><general name="a1" joint="j1" gainprm="300" biasprm="0 -300 -30" biastype="affine" forcerange="-80 80"/></actuator></mujoco>"""


def arm() -> str:
    """Seven hinges, each 0.2 m above the last; the first has a servo of the file's."""
    text = ""
    for i in range(7, 0, -1):
        axis = "0 0 1" if i % 2 else "0 1 0"
        text = (f'<body name="l{i}" pos="0 0 0.2"><joint name="j{i}" axis="{axis}" range="-2.6 2.6"/>'
                f'<geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.2" mass="0.5" contype="0" conaffinity="0"/>{text}</body>')  # fmt: skip
    return ARM.format(bodies='<geom size="0.05"/>' + text)


def dog_env(n: int):
    spec = importlib.util.spec_from_file_location("dog_env", ROOT / "examples/genesis/dog_env.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DogEnv(n)


class Genesis(unittest.TestCase):
    def setUp(self):
        gs.destroy()
        gs.init(backend=gs.cpu, seed=1)

    def scene(self, **rigid):
        return gs.Scene(sim_options=gs.options.SimOptions(dt=0.01), rigid_options=gs.options.RigidOptions(threads=1, **rigid))

    def test_a_walking_task_steps_64_environments_with_masks_and_resets(self):
        env = dog_env(64)
        ended = 0
        for _ in range(60):
            observations, rewards, done, extras = env.step(torch.rand(64, 12) * 2 - 1)
            ended += int(done.sum())
        self.assertEqual(tuple(observations.shape), (64, 42))
        self.assertTrue(torch.isfinite(observations).all() and torch.isfinite(rewards).all())
        mask = torch.zeros(64, dtype=gs.tc_bool)
        mask[::2] = True
        before = env.robot.get_qpos()
        env.robot.set_qpos(env.start, envs_idx=mask)
        after = env.robot.get_qpos()
        self.assertTrue(torch.equal(after[1::2], before[1::2]))
        self.assertTrue(torch.allclose(after[::2], env.start.expand(32, -1)))
        self.assertEqual(float(env.robot.get_dofs_velocity()[::2].abs().max()), 0.0)
        # Values of all environments with a mask: those of the masked are taken.
        pos = torch.arange(64.0)[:, None] * torch.ones(3)
        env.robot.set_pos(pos, envs_idx=mask)
        self.assertTrue(torch.equal(env.robot.get_pos()[::2], pos[::2]))
        self.assertFalse(env.scene.rigid_solver.get_error_envs_mask().any())

    def test_free_fall_is_that_of_the_formula_without_a_dimension_for_environments(self):
        scene = self.scene()
        ball = scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0, 0, 5)), gs.materials.Rigid(rho=500))
        scene.build()
        for _ in range(50):
            scene.step()
        self.assertEqual(tuple(ball.get_pos().shape), (3,))
        self.assertAlmostEqual(float(ball.get_vel()[2]), -9.81 * 0.5, places=4)
        self.assertAlmostEqual(float(ball.get_pos()[2]), 5 - 9.81 * 0.01**2 * 50 * 51 / 2, places=3)
        self.assertAlmostEqual(ball.get_mass(), 500 * 4 / 3 * np.pi * 0.001, places=4)
        scene.reset()
        self.assertAlmostEqual(float(ball.get_pos()[2]), 5, places=6)

    def test_servos_take_gains_and_ranges_and_rest_until_they_are_controlled(self):
        scene = self.scene(gravity=(0, 0, 0))
        robot = scene.add_entity(gs.morphs.MJCF(file=arm()))
        scene.build(n_envs=3)
        self.assertEqual(robot.n_dofs, 7)
        self.assertAlmostEqual(float(robot.get_dofs_kp([0])[0, 0]), 300, places=3)
        dof = [robot.get_joint("j2").dofs_idx_local[0]]
        robot.set_dofs_position([0.3], dof)
        for _ in range(5):
            scene.step()
        self.assertAlmostEqual(float(robot.get_dofs_position(dof)[0, 0]), 0.3, places=3)
        robot.set_dofs_kp([50.0], dof)
        robot.set_dofs_kv([5.0], dof)
        robot.set_dofs_force_range([-4.0], [4.0], dof)
        robot.control_dofs_position([0.8], slice(1, 2), envs_idx=[0, 2])
        self.assertTrue(np.allclose(robot.get_dofs_control_force(dof)[:, 0], [4, 0, 4], atol=1e-4))
        robot.control_dofs_force([1.5], dof, envs_idx=1)
        self.assertAlmostEqual(float(robot.get_dofs_control_force(dof)[1, 0]), 1.5, places=5)
        scene.step()
        self.assertGreater(float(robot.get_dofs_velocity(dof).min()), 0)

    def test_inverse_kinematics_reaches_and_the_jacobian_predicts_motion(self):
        scene = self.scene()
        robot = scene.add_entity(gs.morphs.MJCF(file=arm()))
        scene.build(n_envs=4)
        hand = robot.get_link("l7")
        q = torch.linspace(-0.9, 0.9, 7).expand(4, -1) * torch.tensor([[1.0], [0.8], [-0.7], [0.4]])
        robot.set_qpos(q)
        pos, quat = hand.get_pos(), hand.get_quat()
        robot.set_qpos(torch.full((7,), 0.1))
        found, error = robot.inverse_kinematics(hand, pos=pos, quat=quat, return_error=True)
        robot.set_qpos(found)
        self.assertLess(float((hand.get_pos() - pos).norm(dim=-1).max()), 1e-3)
        self.assertLess(float(error.abs().max()), 1e-2)
        jacobian, start = robot.get_jacobian(hand), hand.get_pos()
        self.assertEqual(tuple(jacobian.shape), (4, 6, 7))
        step = torch.full((7,), 1e-3)
        robot.set_qpos(found + step)
        self.assertTrue(torch.allclose(hand.get_pos() - start, (jacobian[:, :3] @ step), atol=2e-5))

    def test_contacts_and_sensors_carry_the_weight(self):
        scene = self.scene()
        plane = scene.add_entity(gs.morphs.Plane())
        box = scene.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0, 0, 0.1)))
        at = dict(entity_idx=box.idx, link_idx_local=box.base_link.idx_local)
        imu = scene.add_sensor(gs.sensors.IMU(**at))
        force, touch = scene.add_sensor(gs.sensors.ContactForce(**at)), scene.add_sensor(gs.sensors.Contact(**at))
        scene.build(n_envs=2)
        for _ in range(100):
            scene.step()
        weight = float(box.get_mass()[0]) * 9.81
        self.assertAlmostEqual(float(box.get_links_net_contact_force()[1, 0, 2]) / weight, 1, places=2)
        self.assertAlmostEqual(float(force.read()[0, 2]) / weight, 1, places=2)
        self.assertTrue(touch.read().all())
        self.assertAlmostEqual(float(imu.read().lin_acc[0, 2]), 9.81, places=1)
        contacts = box.get_contacts(with_entity=plane)
        self.assertTrue(contacts["valid_mask"].all())
        self.assertAlmostEqual(float(contacts["force_b"][0, :, 2].abs().sum()) / weight, 1, places=2)

    def test_cameras_draw_each_environment_and_record(self):
        scene = gs.Scene(vis_options=gs.options.VisOptions(env_separate_rigid=True), show_viewer=False)
        scene.add_entity(gs.morphs.Plane())
        box = scene.add_entity(gs.morphs.Box(size=(0.3, 0.3, 0.3), fixed=True), surface=gs.surfaces.Rough(color=(1.0, 0.0, 0.0)))
        camera = scene.add_camera(res=(48, 32), pos=(2, 0, 1), lookat=(0, 0, 0.1), fov=40)
        eye = scene.add_sensor(gs.options.sensors.RasterizerCameraOptions(res=(24, 16), pos=(2, 0, 1), lookat=(0, 0, 0.1), fov=40))
        with tempfile.TemporaryDirectory() as folder:
            scene.start_recording(lambda: box.get_pos(), gs.recorders.NPZFile(filename=f"{folder}/box.npz"))
            scene.build(n_envs=2)
            box.set_pos(torch.tensor([[0.0, 0.0, 0.15], [0.0, 0.0, -5.0]]))
            scene.step()
            scene.stop_recording()
            self.assertEqual(np.load(f"{folder}/box.npz")["data"].shape, (1, 2, 3))
        rgb, depth, segmentation, _ = camera.render(depth=True, segmentation=True)
        self.assertEqual((rgb.shape, depth.shape), ((2, 32, 48, 3), (2, 32, 48)))
        red = (rgb[..., 0].astype(int) - rgb[..., 1]) > 60
        self.assertGreater(red[0].sum(), 20)
        self.assertEqual(red[1].sum(), 0)
        self.assertEqual(tuple(eye.read().rgb.shape), (2, 16, 24, 3))
        camera.set_pose(pos=(2, 0, 1), lookat=(4, 0, 1))
        self.assertEqual(((camera.render()[0][..., 0].astype(int) - camera.render()[0][..., 1]) > 60).sum(), 0)

    def test_what_is_not_rigid_and_what_is_unknown_is_refused_by_name(self):
        for ask in (lambda: gs.materials.MPM, lambda: gs.morphs.Drone, lambda: gs.options.SPHOptions, lambda: gs.sensors.Raycaster):
            with self.assertRaisesRegex(gs.GenesisException, "rigid bodies"):
                ask()
        with self.assertRaisesRegex(gs.GenesisException, "is `substeps` meant"):
            gs.options.SimOptions(substep=2)
        scene = self.scene()
        robot = scene.add_entity(gs.morphs.MJCF(file=arm()))
        with self.assertRaisesRegex(gs.GenesisException, "no joint `elbow`"):
            robot.get_joint("elbow")
        with self.assertRaisesRegex(gs.GenesisException, "build"):
            robot.get_qpos()

    def test_rotations_are_those_of_their_definitions(self):
        rng = np.random.default_rng(0)
        xyz = rng.uniform(-1.4, 1.4, (20, 3))
        for rpy in (False, True):
            quat = geom.xyz_to_quat(xyz, rpy=rpy)
            self.assertTrue(np.allclose(geom.quat_to_xyz(quat, rpy=rpy), xyz, atol=1e-9))
            tensor = geom.xyz_to_quat(torch.from_numpy(xyz), rpy=rpy)
            self.assertTrue(np.allclose(tensor.numpy(), quat))
        v, q, u = rng.normal(size=(20, 3)), geom.normalize(rng.normal(size=(20, 4))), geom.normalize(rng.normal(size=(20, 4)))
        self.assertTrue(np.allclose(geom.transform_by_quat(v, q), np.einsum("nij,nj->ni", geom.quat_to_R(q), v)))
        both = geom.transform_quat_by_quat(q, u)  # q first
        self.assertTrue(np.allclose(geom.transform_by_quat(v, both), geom.transform_by_quat(geom.transform_by_quat(v, q), u)))
        back = geom.R_to_quat(geom.quat_to_R(q))
        self.assertTrue(np.allclose(np.abs((back * q).sum(-1)), 1))
        self.assertTrue(np.allclose(geom.slerp(q, u, np.ones(20)) * np.sign((geom.slerp(q, u, np.ones(20)) * u).sum(-1))[:, None], u))

    @unittest.skipUnless(os.environ.get("GENESIS_EXAMPLES") and importlib.util.find_spec("tensordict"),
                         "GENESIS_EXAMPLES names no folder with Genesis' examples, or there is no tensordict")  # fmt: skip
    def test_genesis_own_walking_example_runs_with_the_import_changed(self):
        folder = pathlib.Path(os.environ["GENESIS_EXAMPLES"]) / "locomotion"
        text = (folder / "go2_env.py").read_text()
        names = {"__name__": "go2_env"}
        exec(text.replace("import genesis as gs", "import cohort.gs as gs").replace("from genesis.", "from cohort.gs."), names)
        tree = ast.parse((folder / "go2_train.py").read_text())
        settings = [f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == "get_cfgs"]
        exec(compile(ast.Module(settings, []), "go2_train", "exec"), names)
        env = names["Go2Env"](8, *names["get_cfgs"]())
        for _ in range(20):
            observations, rewards, _, _ = env.step(torch.zeros(8, 12))
        self.assertTrue(torch.isfinite(observations["policy"]).all() and torch.isfinite(rewards).all())
        self.assertGreater(float(env.base_pos[:, 2].min()), 0.15)


if __name__ == "__main__":
    unittest.main()
