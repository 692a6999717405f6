"""A task's environments as stable-baselines3's `VecEnv`.

    model = stable_baselines3.PPO("MlpPolicy", cohort.sb3.VecEnv("HalfCheetah-v5", num_envs=64, seed=0))
    model.learn(1_000_000)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv as _VecEnv

from cohort import vector

__all__ = ["VecEnv"]


class VecEnv(_VecEnv):
    """n environments of a task; the words are those of `cohort.make_vec`; learning is True unless it
    is given. Where an episode ends, `infos[i]` has
    `terminal_observation` and `TimeLimit.truncated`, and the observation is the next episode's first.
    """

    def __init__(self, task: str, num_envs: int = 1, **settings: Any) -> None:
        if settings.pop("autoreset", "same_step") != "same_step":
            raise ValueError("autoreset: stable-baselines3 wants the next episode in the same step")
        self.envs = vector.make_vec(task, num_envs, **{"learning": True, **settings})
        self.render_mode = self.envs.render_mode
        self._actions: Any = None
        super().__init__(num_envs, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self) -> Any:
        seeds = self._seeds if any(s is not None for s in self._seeds) else None
        observations, _ = self.envs.reset(seed=seeds)
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminations, truncations, said = self.envs.step(self._actions)
        dones = terminations | truncations
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            infos[i] = {
                "terminal_observation": said["final_obs"][i], "TimeLimit.truncated": bool(truncations[i] and not terminations[i]),
                "is_success": bool(said["success"][i]),
            }
        return observations, rewards, dones, infos

    def get_images(self) -> Sequence[np.ndarray | None]:
        return self.envs.render() or [None] * self.num_envs

    def close(self) -> None:
        self.envs.close()

    def _chosen(self, indices: Any) -> list[int]:
        return list(self._get_indices(indices))

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        if len(self._chosen(indices)) != self.num_envs:
            raise ValueError(f"{attr_name}: the environments are one batch, and have their attributes together")
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        return [getattr(self.envs, method_name)(*method_args, **method_kwargs)] * len(self._chosen(indices))

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * len(self._chosen(indices))
