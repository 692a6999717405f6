"""A walking task in Genesis' words, on Cohort's engine: `python examples/genesis/dog_env.py` steps 64 robots with random actions."""

import pathlib

import cohort.gs as gs
import torch
from cohort.gs.utils.geom import inv_quat, quat_to_xyz, transform_by_quat

NAMES = [f"{leg}_{part}_joint" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")]
STAND = {"hip": 0.0, "thigh": 0.9, "calf": -1.8}


class DogEnv:
    def __init__(self, num_envs: int, episode_s: float = 4.0) -> None:
        self.num_envs, self.num_actions, self.dt = num_envs, 12, 0.02
        self.max_episode_length = round(episode_s / self.dt)
        self.scene = gs.Scene(
            sim_options=gs.options.SimOptions(dt=self.dt, substeps=4),
            rigid_options=gs.options.RigidOptions(enable_self_collision=False, max_collision_pairs=20),
            show_viewer=False,
        )
        self.scene.add_entity(gs.morphs.Plane())
        path = pathlib.Path(__file__).with_name("dog.xml")
        self.robot = self.scene.add_entity(gs.morphs.MJCF(file=str(path), pos=(0, 0, 0.34)), name="dog")
        self.scene.build(n_envs=num_envs)
        dofs = [self.robot.get_joint(name).dof_start for name in NAMES]
        self.motors = torch.tensor(dofs, dtype=gs.tc_int, device=gs.device)
        self.robot.set_dofs_kp([25.0] * 12, self.motors)
        self.robot.set_dofs_kv([0.6] * 12, self.motors)
        self.robot.set_dofs_force_range([-23.0] * 12, [23.0] * 12, self.motors)
        self.stand = torch.tensor([STAND[name.split("_")[1]] for name in NAMES], device=gs.device)
        base = torch.tensor([0, 0, 0.34, 1.0, 0, 0, 0], device=gs.device)
        self.start = torch.cat((base, self.stand))
        self.gravity = torch.tensor([0.0, 0.0, -1.0], device=gs.device)
        self.command = torch.tensor([0.5, 0.0, 0.0], device=gs.device)
        self.age = torch.zeros(num_envs, dtype=gs.tc_int, device=gs.device)
        self.reset()

    def reset(self, mask=None):
        self.robot.set_qpos(self.start, envs_idx=mask, zero_velocity=True)
        self.age[...] = 0 if mask is None else torch.where(mask, 0, self.age)
        return self.observe(torch.zeros(self.num_envs, 12, device=gs.device))

    def observe(self, actions):
        back = inv_quat(self.robot.get_quat())
        turn = transform_by_quat(self.robot.get_ang(), back)
        joints, speeds = self.robot.get_dofs_position(self.motors), self.robot.get_dofs_velocity(self.motors)
        return torch.cat((turn, transform_by_quat(self.gravity, back), joints - self.stand, 0.05 * speeds, actions), dim=-1)

    def step(self, actions):
        self.robot.control_dofs_position(0.25 * actions + self.stand, self.motors)
        self.scene.step()
        self.age += 1
        velocity = transform_by_quat(self.robot.get_vel(), inv_quat(self.robot.get_quat()))
        reward = self.dt * torch.exp(-4 * (velocity - self.command).square().sum(-1))
        tilt = quat_to_xyz(self.robot.get_quat(), rpy=True, degrees=True)[:, :2].abs().amax(-1)
        time_out = self.age >= self.max_episode_length
        done = time_out | (tilt > 30) | self.scene.rigid_solver.get_error_envs_mask()
        if done.any():
            self.reset(done)
        return self.observe(actions), reward, done, {"time_outs": time_out}


if __name__ == "__main__":
    gs.init(backend=gs.cpu, seed=1)
    env, episodes = DogEnv(64), 0
    for _ in range(300):
        observations, rewards, done, _ = env.step(torch.rand(64, 12, device=gs.device) * 2 - 1)
        episodes += int(done.sum())
    print(f"{300 * 64} steps of 64 robots, {episodes} episodes ended, observations {tuple(observations.shape)}")
