"""Writes mjlab_terms.json: what mjlab's own functions make of states of src/tasks/library/quadruped.xml, for
tests/tasks/mjlab_terms_test.cpp.

    python tests/tasks/make_mjlab_terms.py        # with mjlab 1.6.0 and what it needs, CPython 3.11, on the CPU

States, actions, commands and contact forces are random; the functions get them by the attributes that they read.
"""
import json
import math
import os
from types import SimpleNamespace

import torch
from mjlab.envs.mdp import metrics, observations, rewards, terminations
from mjlab.tasks.cartpole import cartpole_env_cfg as cartpole
from mjlab.tasks.manipulation.mdp import commands as lifting, observations as lift_observations, rewards as lift
from mjlab.tasks.velocity.mdp import observations as velocity_observations
from mjlab.sensor import TerrainHeightSensor
from mjlab.tasks.velocity.mdp import rewards as velocity, terminations as velocity_terminations
from mjlab.utils.lab_api import math as lab

ENVS, STEPS, DT = 16, 6, 0.02
STANCE = [0.0, 0.8, -1.5] * 4
LOWER = [-0.8, -0.9, -2.7] * 4
UPPER = [0.8, 2.6, -0.5] * 4
SOFT = 0.9

torch.manual_seed(5)


def uniform(low, high, *shape):
    return low + (high - low) * torch.rand(*shape)


class Sensor(SimpleNamespace):
    def compute_first_contact(self, dt):
        return self.first_contact


class Scene(dict):
    """Entities and sensors by name; what lies around them is set on it."""


class Heights(TerrainHeightSensor):
    """What mjlab's terms read of the sensor below each foot."""

    data = None
    num_frames = 4

    def __init__(self, heights):
        self.data = SimpleNamespace(heights=heights)


SITE = [0.01, -0.02, -0.2]  # m, of each foot's site in the frame of its shin


def state():
    qpos = torch.zeros(ENVS, 19)
    qpos[:, :3] = uniform(-1, 1, ENVS, 3)
    quat = torch.randn(ENVS, 4) * torch.tensor([1.0, 0.3, 0.3, 0.6]) + torch.tensor([1.0, 0, 0, 0])
    qpos[:, 3:7] = quat / quat.norm(dim=1, keepdim=True)
    qpos[:, 7:] = torch.tensor(STANCE) + uniform(-0.9, 0.9, ENVS, 12)
    return {
        "qpos": qpos,
        "qvel": uniform(-2, 2, ENVS, 18),
        "qfrc_actuator": uniform(-20, 20, ENVS, 18),
        "action": uniform(-1, 1, ENVS, 12),
        "command": uniform(-1, 1, ENVS, 3) * (torch.rand(ENVS, 1) > 0.3),
        "foot_force": torch.randn(ENVS, 4, 3) * 30 * (torch.rand(ENVS, 4, 1) > 0.5),
    }


def shins():
    """Poses and velocities of the links that the feet's sites are on; drawn apart, so that the states stay as they were."""
    quat = torch.nn.functional.normalize(torch.randn(ENVS, 4, 4), dim=-1)
    return {
        "shin_pos": uniform(-0.2, 0.6, ENVS, 4, 3),
        "shin_quat": quat,
        "shin_twist": uniform(-1, 1, ENVS, 4, 6),
    }


def main():
    states = [state() for _ in range(STEPS)]
    for s in states:
        s.update(shins())
    for s in states:
        s["cube_pos"] = uniform(-0.5, 0.5, ENVS, 3)
    for s in states:
        s["angular_momentum"] = uniform(-2, 2, ENVS, 3)
    swing = None
    expected = []
    air = torch.zeros(ENVS, 4)
    touched = None
    actions = [torch.zeros(ENVS, 12)] * 3
    for t, s in enumerate(states):
        quat, qvel = s["qpos"][:, 3:7], s["qvel"]
        touches = s["foot_force"].norm(dim=-1) > 0
        if t > 0:
            air = torch.where(touches, torch.zeros_like(air), air + DT)
            actions = [s["action"], actions[0], actions[1]]
        landed = touches & ~touched if touched is not None else torch.zeros_like(touches)
        touched = touches
        soft = torch.tensor([LOWER, UPPER]).T
        middle, half = soft.mean(dim=1), (soft[:, 1] - soft[:, 0]) / 2
        limits = torch.stack([middle - SOFT * half, middle + SOFT * half], dim=1).expand(ENVS, 12, 2)
        down = torch.tensor([0.0, 0.0, -1.0]).expand(ENVS, 3)
        data = SimpleNamespace(
            joint_pos=s["qpos"][:, 7:],
            joint_vel=qvel[:, 6:],
            default_joint_pos=torch.tensor(STANCE).expand(ENVS, 12),
            default_joint_vel=torch.zeros(ENVS, 12),
            actuator_force=s["qfrc_actuator"][:, 6:],
            qfrc_actuator=s["qfrc_actuator"][:, 6:],
            soft_joint_pos_limits=limits,
            root_link_lin_vel_b=lab.quat_apply_inverse(quat, qvel[:, :3]),
            root_link_ang_vel_b=qvel[:, 3:6],
            root_link_quat_w=quat,
            root_link_pos_w=s["qpos"][:, :3],
            body_link_ang_vel_w=lab.quat_apply(quat, qvel[:, 3:6])[:, None],
            gravity_vec_w=down,
            projected_gravity_b=lab.quat_apply_inverse(quat, down),
        )
        arm = lab.quat_apply(s["shin_quat"], torch.tensor(SITE).expand(ENVS, 4, 3))
        site_pos = s["shin_pos"] + arm
        data.site_lin_vel_w = s["shin_twist"][..., :3] + torch.linalg.cross(s["shin_twist"][..., 3:], arm)
        data.site_pos_w, data.site_quat_w = site_pos, s["shin_quat"]
        data.site_vel_w = torch.cat([data.site_lin_vel_w, s["shin_twist"][..., 3:]], dim=-1)
        joints = [f"j{i}" for i in range(12)]
        asset = SimpleNamespace(data=data, find_joints=lambda names: (list(range(12)), joints))
        every = SimpleNamespace(
            name="robot", joint_ids=slice(None), actuator_ids=slice(None), body_ids=[0], site_ids=slice(None),
            joint_names=(".*",),
        )
        feet = Sensor(
            data=SimpleNamespace(
                found=touches.float(), force=s["foot_force"], current_air_time=air, force_history=None
            ),
            first_contact=landed,
        )
        goal = lifting.LiftingCommand.__new__(lifting.LiftingCommand)  # its managers' work aside
        goal.target_pos = s["command"]
        env = SimpleNamespace(
            num_envs=ENVS,
            device="cpu",
            step_dt=DT,
            extras={"log": {}},
            scene={
                "robot": asset,
                "feet": feet,
                "heights": Heights(site_pos[..., 2]),
                "cube": SimpleNamespace(data=SimpleNamespace(root_link_pos_w=s["cube_pos"])),
            },
            command_manager=SimpleNamespace(get_command=lambda name: s["command"], get_term=lambda name: goal),
            action_manager=SimpleNamespace(action=actions[0], prev_action=actions[1], prev_prev_action=actions[2]),
        )
        asset_cfg = {"asset_cfg": every}

        def made(kind, **params):
            """A term that is a class, as its manager makes and calls it."""
            return kind(SimpleNamespace(params=params), env)(env, **params)

        values = {
            "base_lin_vel": observations.base_lin_vel(env, every),
            "base_ang_vel": observations.base_ang_vel(env, every),
            "projected_gravity": observations.projected_gravity(env, every),
            "joint_pos_rel": observations.joint_pos_rel(env, asset_cfg=every),
            "joint_vel_rel": observations.joint_vel_rel(env, asset_cfg=every),
            "last_action": observations.last_action(env),
            "generated_commands": observations.generated_commands(env, "twist"),
            "foot_air_time": velocity_observations.foot_air_time(env, "feet"),
            "foot_contact": velocity_observations.foot_contact(env, "feet"),
            "foot_contact_forces": velocity_observations.foot_contact_forces(env, "feet"),
            "track_linear_velocity": velocity.track_linear_velocity(env, 0.5, "twist", every),
            "track_angular_velocity": velocity.track_angular_velocity(env, math.sqrt(0.5), "twist", every),
            "flat_orientation_l2": rewards.flat_orientation_l2(env, every),
            "body_angular_velocity_penalty": velocity.body_angular_velocity_penalty(env, every),
            "joint_torques_l2": rewards.joint_torques_l2(env, every),
            "joint_vel_l2": rewards.joint_vel_l2(env, every),
            "action_rate_l2": rewards.action_rate_l2(env),
            "action_acc_l2": rewards.action_acc_l2(env),
            "joint_pos_limits": rewards.joint_pos_limits(env, every),
            "posture": made(rewards.posture, std={".*": 0.4}, asset_cfg=every),
            "electrical_power_cost": made(rewards.electrical_power_cost, asset_cfg=every),
            "feet_air_time": velocity.feet_air_time(env, "feet", 0.01, 0.05, "twist", 0.5),
            "soft_landing": velocity.soft_landing(env, "feet", "twist", 0.05),
            "bad_orientation": terminations.bad_orientation(env, 0.8, every).float(),
            "root_height_below_minimum": terminations.root_height_below_minimum(env, 0.1, every).float(),
        }
        values["foot_height"] = velocity_observations.foot_height(env, "heights")
        values["feet_clearance"] = velocity.feet_clearance(env, 0.1, "heights", "twist", 0.3, every)
        values["feet_slip"] = velocity.feet_slip(env, "feet", "twist", 0.3, every)
        if swing is None:  # it remembers
            swing = velocity.feet_swing_height(SimpleNamespace(params={"height_sensor_name": "heights"}), env)
        values["feet_swing_height"] = swing(env, "feet", "heights", 0.1, "twist", 0.3)
        upright = SimpleNamespace(_asset_cfg=every)
        values["upright"] = velocity.upright.__call__(upright, env, std=0.45, asset_cfg=SimpleNamespace(name="robot", body_ids=[]))
        foot = SimpleNamespace(name="robot", site_ids=[0])
        hip, knee = SimpleNamespace(name="robot", joint_ids=[1]), SimpleNamespace(name="robot", joint_ids=[2])
        values["ee_to_object_distance"] = lift_observations.ee_to_object_distance(env, "cube", foot)
        values["object_to_goal_distance"] = lift_observations.object_to_goal_distance(env, "cube", "twist", foot)
        values["ee_velocity"] = lift_observations.ee_velocity(env, foot)
        values["target_position"] = lift_observations.target_position(env, "twist", foot)
        values["staged_position_reward"] = lift.staged_position_reward(env, "twist", "cube", 0.5, 0.7, foot)
        values["bring_object_reward"] = lift.bring_object_reward(env, "twist", "cube", 0.6)
        values["joint_velocity_hinge_penalty"] = lift.joint_velocity_hinge_penalty(env, 0.5, every)
        values["pole_angle_cos_sin"] = cartpole.pole_angle_cos_sin(env, hip)
        one = SimpleNamespace(scene=env.scene, action_manager=SimpleNamespace(action=actions[0][:, :1]))
        values["cartpole_smooth_reward"] = cartpole.cartpole_smooth_reward(one, knee, hip)
        ground = SimpleNamespace(size=(0.5, 0.5), border_width=0.4)
        around = Scene({**env.scene, "root_angmom": SimpleNamespace(data=s["angular_momentum"])})
        around.env_origins = states[0]["qpos"][:, :3]
        around.terrain = SimpleNamespace(
            cfg=SimpleNamespace(terrain_type="generator", terrain_generator=ground), terrain_origins=torch.zeros(2, 2, 3)
        )
        there = SimpleNamespace(**{**vars(env), "scene": around}, episode_length_buf=torch.full((ENVS,), t))
        values["angular_momentum_penalty"] = velocity.angular_momentum_penalty(there, "root_angmom")
        values["mean_action_acc"] = metrics.mean_action_acc(env)
        values["out_of_terrain_bounds"] = velocity_terminations.out_of_terrain_bounds(there, 0.3, every).float()
        values["terrain_edge_reached"] = velocity_terminations.terrain_edge_reached(there, 0.95, every).float()
        params = dict(
            asset_cfg=every,
            command_name="twist",
            std_standing={".*": 0.1},
            std_walking={".*": 0.3},
            std_running={".*": 0.6},
            walking_threshold=0.3,
            running_threshold=1.2,
        )
        values["variable_posture"] = made(velocity.variable_posture, **params)
        expected.append({k: v.reshape(ENVS, -1).tolist() for k, v in values.items()})

    def rounded(x):
        return [rounded(y) for y in x] if isinstance(x, list) else float(f"{x:.9g}")

    out = {
        "source": "mjlab 1.6.0 on the CPU, by tests/tasks/make_mjlab_terms.py",
        "states": [{k: rounded(v.reshape(ENVS, -1).tolist()) for k, v in s.items()} for s in states],
        "expected": [{k: rounded(v) for k, v in e.items()} for e in expected],
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mjlab_terms.json")
    with open(path, "w") as file:
        json.dump(out, file, separators=(",", ":"))
    print(path, os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()
