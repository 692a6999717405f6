"""Tasks for LeRobot: what its `EnvConfig.create_envs` and an environment hub's `env.py` return.

An `env.py` of a folder that `lerobot-eval --env.type=hub` reads needs two lines:

    from cohort.lerobot import make_env
    TASKS = ["reach"]

Both functions return {suite: {task number: VectorEnv}}. Observations are LeRobot's: `pixels` (a dict of pictures (n, height,
width, 3) uint8 by camera), `agent_pos` (n, P) float32, all numbers that a robot measures, `environment_state` (n, E) float32,
those that none does; autoreset is "same_step".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector.utils import batch_space

from cohort import vector

__all__ = ["LeRobotEnv", "create_envs", "make_env"]


class _One:
    """What LeRobot asks a single environment of `envs` for."""

    def __init__(self, together: LeRobotEnv, index: int) -> None:
        self._together, self._index = together, index
        self.task, self.task_description = together.task["name"], together.task_description
        self.metadata, self.render_mode = together.metadata, together.render_mode
        self._max_episode_steps = together._max_episode_steps

    @property
    def unwrapped(self) -> _One:
        return self

    def render(self) -> np.ndarray:
        """(height, width, 3) uint8."""
        together = self._together
        return together._core.film(together._camera, self._index, *together._render_size)


class LeRobotEnv(vector.VectorEnv, SyncVectorEnv):
    """`cohort.make_vec` with LeRobot's names of observations. It is a SyncVectorEnv for LeRobot's loops, which film those
    alone: its environments step in one call.
    """

    def __init__(self, task: str, num_envs: int = 1, *, cameras: Sequence[str] | None = None, **settings: Any) -> None:
        settings.setdefault("render_mode", "rgb_array")
        if cameras is None:
            with_all = vector.make_vec(task, 1, threads=1, **{k: v for k, v in settings.items() if k not in ("threads", "render_mode")})
            cameras = with_all.task["cameras"]
            with_all.close()
        super().__init__(task, num_envs, observations="dict", cameras=cameras, **settings)
        #: What LeRobot's rollout asks each environment for.
        self.task_description = self.task["instruction"]
        self._max_episode_steps = self.task["horizon"]
        #: One for each environment, as loops that were written for SyncVectorEnv ask them.
        self.envs = [_One(self, i) for i in range(num_envs)]

    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns that a robot measures, and the others."""
        told = {field["name"]: field["privileged"] for field in self.task["observations"]}
        columns = [[np.arange(begin, end) for name, begin, end, _ in self._fields if told[name] == privileged] for privileged in (False, True)]
        return tuple(np.concatenate(c) if c else np.zeros(0, np.int64) for c in columns)  # type: ignore[return-value]

    def _observation_space(self) -> spaces.Space:
        self._measured, self._hidden = self._parts()
        parts: dict[str, spaces.Space] = {}
        if self._cameras:
            parts["pixels"] = spaces.Dict({c: spaces.Box(0, 255, (*self._image_size, 3), np.uint8) for c in self._cameras})
        for name, columns in (("agent_pos", self._measured), ("environment_state", self._hidden)):
            if len(columns):
                parts[name] = spaces.Box(-np.inf, np.inf, (len(columns),), np.float32)
        return spaces.Dict(parts)

    def _split(self, rows: np.ndarray) -> dict[str, Any]:
        parts: dict[str, Any] = {}
        for name, columns in (("agent_pos", self._measured), ("environment_state", self._hidden)):
            if len(columns):
                parts[name] = rows[:, columns]
        return parts

    def _observations(self) -> Any:
        parts = self._split(self._core.observations())
        if self._cameras:
            parts["pixels"] = {camera: self._core.picture(camera) for camera in self._cameras}
        return parts

    def step(self, actions: Any) -> Any:
        """As `cohort.make_vec`'s, with `is_success` beside `success`, which LeRobot's rollout reads of an ended episode."""
        *results, infos = super().step(actions)
        for said in (infos, infos.get("final_info")):
            if said is not None:
                said["is_success"], said["_is_success"] = said["success"], said["_success"]
        return (*results, infos)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """gymnasium's SyncVectorEnv.call: an attribute, or what a method returns, of each environment."""
        if name == "render":
            return self.render() or ()
        if name == "task":
            return (self.task["name"],) * self.num_envs
        value = getattr(self, name)
        return (value(*args, **kwargs) if callable(value) else value,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        return self.call(name)


def create_envs(
    tasks: Sequence[str], n_envs: int, use_async_envs: bool = False, *, suite: str = "cohort", **settings: Any
) -> dict[str, dict[int, LeRobotEnv]]:
    """{suite: {i: n_envs environments of tasks[i]}}. use_async_envs changes nothing: a batch runs on its own threads."""
    del use_async_envs
    return {suite: {i: LeRobotEnv(task, n_envs, **settings) for i, task in enumerate(tasks)}}


def make_env(n_envs: int = 1, use_async_envs: bool = False, cfg: Any = None, **settings: Any) -> dict[str, dict[int, LeRobotEnv]]:
    """What LeRobot's hub loader calls. cfg: a mapping, or an object with attributes: `task` or `tasks`, and `settings`, the
    words of `cohort.make_vec`.
    """
    def of(name: str, otherwise: Any) -> Any:
        return cfg.get(name, otherwise) if isinstance(cfg, Mapping) else getattr(cfg, name, otherwise)

    named = of("tasks", None) or ([of("task", None)] if of("task", None) else None)
    if not named:
        raise ValueError("cfg names no task: give {'task': 'reach'} or {'tasks': ['reach', 'push']}; `cohort tasks` lists them")
    return create_envs(list(named), n_envs, use_async_envs, **{**dict(of("settings", None) or {}), **settings})
