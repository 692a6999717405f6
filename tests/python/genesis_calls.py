"""The kinds of calls that Genesis' reinforcement learning and multi-GPU examples make, in its words, and what they give.

    python tests/python/genesis_calls.py tests/python/fixtures/genesis_calls.json      # with genesis-world 1.4.5, on the CPU

writes what Genesis gives; PythonLayer.GenesisWordsDriveRigidScenes compares what cohort.gs gives. {name: values}; the first word of
a name says how near they must be (test_gs.py).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

# A post that turns and an arm of three hinges and a slide, without contacts; its servos are set by the calls.
ARM = """<mujoco model="arm"><compiler angle="radian"/><option integrator="implicitfast"/>
<default><joint armature="0.05" damping="0.5"/><geom contype="0" conaffinity="0"/></default>
<worldbody><body name="base"><geom type="box" size=".1 .1 .05" mass="3"/>
 <body name="post" pos="0 0 .1"><joint name="turn" axis="0 0 1" range="-2.5 2.5"/><geom type="capsule" size=".04" fromto="0 0 0 0 0 .4" mass="1.5"/>
  <body name="upper" pos="0 0 .4"><joint name="lift" axis="0 1 0" range="-2 2"/><geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1"/>
   <body name="lower" pos=".4 0 0"><joint name="bend" axis="0 1 0" range="-2.4 2.4"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass=".8"/>
    <body name="hand" pos=".3 0 0"><joint name="reach" type="slide" axis="1 0 0" range="-.05 .1"/><geom type="box" size=".05 .03 .02" mass=".4"/></body>
   </body></body></body></body></worldbody></mujoco>"""


def numbers(value):
    """Of a tensor or an array, rounded to what is compared."""
    array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    return np.round(array.astype(float), 6).tolist()


def geometry(geom) -> dict:
    """genesis.utils.geom on fixed inputs."""
    rng = np.random.default_rng(0)
    v = torch.from_numpy(rng.normal(size=(6, 3)).astype(np.float32))
    q, u = (torch.from_numpy((x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)) for x in rng.normal(size=(2, 6, 4)))
    xyz = torch.from_numpy(rng.uniform(-1.3, 1.3, (6, 3)).astype(np.float32))
    return {
        "maths inv_quat": geom.inv_quat(q), "maths transform_by_quat": geom.transform_by_quat(v, q), "maths quat_to_R": geom.quat_to_R(q),
        "maths transform_quat_by_quat": geom.transform_quat_by_quat(q, u), "maths xyz_to_quat": geom.xyz_to_quat(xyz, rpy=True, degrees=False),
        "maths quat_to_xyz": geom.quat_to_xyz(geom.xyz_to_quat(xyz, rpy=True), rpy=True, degrees=True),
        "maths transform_by_trans_quat": geom.transform_by_trans_quat(v, xyz, q),
    }  # fmt: skip


def results(gs, geom) -> dict:
    gs.init(backend=gs.cpu, seed=1, logging_level="warning")
    got = geometry(geom)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arm.xml")
        path.write_text(ARM)
        got.update(arm(gs, str(path)))
    got.update(falling(gs))
    got.update(resting(gs))
    return {name: numbers(value) for name, value in got.items()}


def arm(gs, path: str) -> dict:
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01, substeps=2), show_viewer=False,
                     rigid_options=gs.options.RigidOptions(enable_collision=False, constraint_solver=gs.constraint_solver.Newton))  # fmt: skip
    robot = scene.add_entity(gs.morphs.MJCF(file=path))
    scene.build(n_envs=3, env_spacing=(1.0, 1.0))
    names = ("turn", "lift", "bend", "reach")
    dofs = [robot.get_joint(name).dofs_idx_local[0] for name in names]
    hand = robot.get_link("hand")
    got = {"exact n_dofs": robot.n_dofs, "exact dofs": dofs, "maths mass": robot.get_mass() if np.ndim(robot.get_mass()) == 0 else robot.get_mass()[0],
           "maths limits": torch.stack(robot.get_dofs_limit(dofs))}
    start = torch.tensor([[0.3, -0.4, 0.9, 0.02], [-1.2, 0.5, -0.7, 0.05], [0.0, 1.1, 0.4, -0.03]])
    robot.set_dofs_position(start, dofs)
    got["maths set_dofs_position"] = robot.get_dofs_position(dofs)
    got["maths get_qpos"] = robot.get_qpos()
    got["maths hand"] = torch.cat([hand.get_pos(), hand.get_quat()], 1)
    got["maths links"] = torch.stack([robot.get_link(n).get_pos() for n in ("post", "upper", "lower")], 1)
    got["maths jacobian"] = robot.get_jacobian(hand)
    robot.set_dofs_velocity(torch.tensor([[0.5, -0.2, 0.3, 0.1]]).expand(3, 4), dofs)
    got["maths velocity"] = torch.cat([robot.get_dofs_velocity(dofs), hand.get_vel(), hand.get_ang()], 1)
    # Inverse kinematics: what its answer reaches.
    robot.set_dofs_position(start, dofs)
    wanted = hand.get_pos() + torch.tensor([0.03, -0.04, 0.05])
    found = robot.inverse_kinematics(link=hand, pos=wanted)
    robot.set_qpos(found)
    got["reach ik"] = hand.get_pos() - wanted
    # Servos: gains, ranges, and where they bring the arm.
    robot.set_dofs_kp([200.0, 300.0, 200.0, 800.0], dofs)
    robot.set_dofs_kv([20.0, 30.0, 20.0, 80.0], dofs)
    robot.set_dofs_force_range([-60.0, -60.0, -40.0, -30.0], [60.0, 60.0, 40.0, 30.0], dofs)
    got["maths gains"] = torch.stack([robot.get_dofs_kp(dofs).reshape(-1, 4)[0], robot.get_dofs_kv(dofs).reshape(-1, 4)[0]])
    robot.set_dofs_position(start, dofs)
    robot.control_dofs_position(-start, dofs)
    got["force first"] = robot.get_dofs_control_force(dofs)  # cut off at the ranges
    # Without limits from here on: Genesis damps a servo that its range cuts off implicitly, MuJoCo does not.
    robot.set_dofs_force_range([-1e4] * 4, [1e4] * 4, dofs)
    rows = []
    for step in range(100):
        scene.step()
        if step in (9, 29, 99):
            rows.append(robot.get_dofs_position(dofs))
    got["motion position"] = torch.stack(rows)
    robot.control_dofs_velocity(torch.tensor([[0.4]]).expand(3, 1), dofs[:1])
    for _ in range(50):
        scene.step()
    got["motion velocity"] = robot.get_dofs_velocity(dofs[:1])
    # Of one environment by index, of some by a mask, and force.
    scene.reset()
    robot.set_qpos(start, zero_velocity=True)
    robot.control_dofs_force(torch.tensor([[2.0, 0.0, 0.0, 1.0]]).expand(3, 4), dofs)
    for _ in range(10):
        scene.step()
    got["motion force"] = robot.get_dofs_velocity(dofs)
    mask = torch.tensor([True, False, True])
    robot.set_qpos(torch.zeros(4), envs_idx=[1], zero_velocity=True)
    got["maths one environment"] = robot.get_qpos(envs_idx=[1])
    robot.set_dofs_position(torch.zeros(2, 4), dofs, envs_idx=torch.nonzero(mask).flatten())
    got["maths masked"] = robot.get_dofs_position(dofs)
    got["exact errors"] = scene.rigid_solver.get_error_envs_mask()
    gs.destroy()
    gs.init(backend=gs.cpu, seed=1, logging_level="warning")
    return got


def falling(gs) -> dict:
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01, gravity=(0.0, 0.0, -9.81)), show_viewer=False)
    ball = scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0.0, 0.0, 5.0)), material=gs.materials.Rigid(rho=500.0))
    scene.build(n_envs=2)
    ball.set_pos(torch.tensor([[0.0, 0.0, 5.0], [1.0, 2.0, 7.0]]))
    for _ in range(50):
        scene.step()
    got = {"fall pos": ball.get_pos(), "fall vel": ball.get_vel(), "maths quat": ball.get_quat()}
    gs.destroy()
    gs.init(backend=gs.cpu, seed=1, logging_level="warning")
    return got


def resting(gs) -> dict:
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01), show_viewer=False)
    scene.add_entity(gs.morphs.Plane())
    box = scene.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0.0, 0.0, 0.1)))
    imu = scene.add_sensor(gs.sensors.IMU(entity_idx=box.idx, link_idx_local=0))
    scene.build(n_envs=2)
    for _ in range(150):
        scene.step()
    force = box.get_links_net_contact_force()
    got = {"rest height": box.get_pos()[:, 2], "force contact": force.reshape(2, -1, 3)[:, -1, 2], "rest imu": imu.read().lin_acc}
    gs.destroy()
    return got


if __name__ == "__main__":
    import genesis
    from genesis.utils import geom as genesis_geom

    made = results(genesis, genesis_geom)
    Path(sys.argv[1]).write_text(json.dumps({"genesis-world": genesis.__version__, **made}, indent=1) + "\n")
