"""A task's environments as rsl_rl's `VecEnv` (rsl-rl-lib 5).

    env = cohort.rsl_rl.VecEnv("quadruped-velocity", num_envs=1024, seed=1)
    runner = OnPolicyRunner(env, train_cfg, log_dir, device="cpu")     # obs_groups: {"actor": ["policy"], "critic": ["critic"]}
    runner.learn(num_learning_iterations=300, init_at_random_ep_len=True)

`episode_length_buf` (n) int64 holds control steps since each episode began, and may be written: an environment is cut off
(a time-out) as soon as its number reaches `max_episode_length`, whatever the task's own clock says. The runner writes random
ages at the start, so that episodes do not all end together. What is written changes when an episode ends and nothing else:
up to there it is the function of its seed and its actions that it always is. A terminal state of the task stays one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from rsl_rl.env import VecEnv as _VecEnv
from tensordict import TensorDict

from cohort import vector

__all__ = ["VecEnv"]


class VecEnv(_VecEnv):
    """n environments of a task. Observations are groups of a TensorDict: `policy` (n, P) float32, all numbers but those that
    critic_only names, and `critic` (n, C), all of them. device: where rsl_rl's tensors lie; the engine computes on
    sim_device. Other words are those of `cohort.make_vec`; learning is True unless it is given.
    """

    def __init__(
        self, task: str, num_envs: int, *, seed: int = 0, device: Any = "cpu", sim_device: Any = "cpu",
        critic_only: Sequence[str] = (), **settings: Any,
    ) -> None:
        self._envs = vector.make_vec(task, num_envs, seed=seed, autoreset="disabled", device=sim_device, **{"learning": True, **settings})
        core, spec = self._envs._core, self._envs.task
        names = [field["name"] for field in spec["observations"]]
        for name in critic_only:
            if name not in names:
                raise ValueError(f"critic_only: {spec['name']} observes no {name!r}; it observes {', '.join(names)}")
        self._core = core
        self._seen = np.concatenate([np.arange(b, e) for name, b, e, _ in self._envs._fields if name not in critic_only])
        self._sees_all = len(self._seen) == self._envs._numbers
        self.num_envs = num_envs
        self.num_actions = len(spec["action_names"])
        self.max_episode_length = int(spec["horizon"])
        self.device = torch.device(device)
        self.cfg = {"task": spec["name"], "seed": seed, **spec["description"]}
        self._terms = list(spec["reward_terms"])
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long, device=self.device)
        self._envs.reset()

    @property
    def unwrapped(self) -> vector.VectorEnv:
        return self._envs

    def get_observations(self) -> TensorDict:
        if self._core.device >= 0:  # they stay where they are computed
            parts = [torch.from_dlpack(tensor).reshape(self.num_envs, -1) for tensor in self._envs.tensors().values()]
            rows = torch.cat(parts, 1)
        else:
            rows = torch.from_numpy(self._core.observations())
        seen = rows if self._sees_all else rows[:, torch.from_numpy(self._seen).to(rows.device)]
        groups = {"policy": seen, "critic": rows}
        return TensorDict(groups, batch_size=[self.num_envs]).to(self.device)

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """actions (n, A) float32, which are read where they lie if the environments are computed there. Returns observations of the episodes
        that go on or begin, rewards (n) float32, dones (n) int64, and extras: `time_outs` (n) bool, `log`.
        """
        core = self._core
        vector._take_step(core, actions)
        self.episode_length_buf += 1
        terminated = core.terminated()
        old = (self.episode_length_buf >= self.max_episode_length).cpu().numpy() | core.truncated()
        over = terminated | old
        rewards = torch.from_numpy(core.rewards()).to(self.device)
        log: dict[str, float] = {"/success": float(core.success().mean())}
        terms = core.reward_terms()
        if terms.shape[1] == len(self._terms):
            log.update({f"/reward/{name}": float(mean) for name, mean in zip(self._terms, terms.mean(0))})
        dones = torch.from_numpy(over).to(self.device)
        if over.any():
            core.begin_next(np.flatnonzero(over).astype(np.int32))
            self.episode_length_buf[dones] = 0
        extras = {"time_outs": torch.from_numpy(old & ~terminated).to(self.device), "log": log}
        return self.get_observations(), rewards, dones.long(), extras

    def close(self) -> None:
        self._envs.close()
