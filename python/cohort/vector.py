"""A task's environments as gymnasium's `VectorEnv` and `Env`.

    envs = cohort.make_vec("HalfCheetah-v5", num_envs=64, seed=0)
    observations, infos = envs.reset()
    observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())

Shapes are written with n = num_envs, A = the width of an action, O = numbers of all observations together. Units of every
number: `envs.task["observations"]`, `envs.task["action_unit"]`, as `cohort tasks NAME` prints them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from cohort import _core, _ranks, dlpack

__all__ = ["Env", "VectorEnv", "make", "make_vec"]

_MODES = {
    "same_step": AutoresetMode.SAME_STEP,
    "next_step": AutoresetMode.NEXT_STEP,
    "disabled": AutoresetMode.DISABLED,
}
_SEED_BITS = 63


def _word(value: Any) -> str:
    """A setting's value as the command line takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def _settings(settings: Mapping[str, Any]) -> list[str]:
    """`terrain="rough"`, `rewards={"speed": {"weight": 2}}` as KEY=VALUE, sections joined by dots."""
    words: list[str] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            words += [f"{key}.{word}" for word in _settings(value)]
        else:
            words.append(f"{key}={_word(value)}")
    return words


class _Made:
    """What VectorEnv and Env share: the environments, their spaces, and how observations are laid out."""

    def _make(
        self, task: str, num_envs: int, autoreset: str, *, device: Any, threads: int | None, engine: str, observations: str | None,
        cameras: Sequence[str], renderer: str, image_size: tuple[int, int], learning: bool, settings: Mapping[str, Any],
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs={num_envs}: at least one is needed")
        if observations not in (None, "flat", "dict"):
            raise ValueError(f"observations={observations!r}: 'flat' (one array) or 'dict' (an array for each)")
        if cameras and observations == "flat":
            raise ValueError("pictures are no numbers of a flat observation: observations='dict' with cameras")
        self._core = _core.Environments(
            os.fspath(task), num_envs, autoreset=autoreset, device=_ranks.device(device), threads=_ranks.threads(threads), engine=engine,
            renderer=renderer, height=image_size[0], width=image_size[1], learning=learning,
            settings=_settings(settings),
        )
        #: What there is to know about the task: names, shapes and units of observations and actions, control_period in s,
        #: horizon in steps, reward terms, cameras, settings.
        self.task: dict[str, Any] = self._core.spec()
        self.task["description"] = json.loads(self.task["description"] or "{}")
        self._as_dict = observations == "dict" or bool(cameras)
        self._cameras = tuple(cameras)
        for camera in self._cameras:
            if camera not in self.task["cameras"]:
                raise ValueError(f"{self.task['name']} has no camera {camera!r}: there are {', '.join(self.task['cameras']) or 'none'}")
        self._image_size = image_size
        self._fields: list[tuple[str, int, int, tuple[int, ...]]] = []
        begin = 0
        for field in self.task["observations"]:
            end = begin + int(np.prod(field["shape"], dtype=np.int64))
            self._fields.append((field["name"], begin, end, tuple(field["shape"])))
            begin = end
        self._numbers = begin

    def _observation_space(self) -> spaces.Space:
        if not self._as_dict:
            return spaces.Box(-np.inf, np.inf, (self._numbers,), np.float32)
        parts: dict[str, spaces.Space] = {
            name: spaces.Box(-np.inf, np.inf, shape, np.float32) for name, _, _, shape in self._fields
        }
        for camera in self._cameras:
            parts[camera] = spaces.Box(0, 255, (*self._image_size, 3), np.uint8)
        return spaces.Dict(parts)

    def _action_space(self) -> spaces.Box:
        low = np.asarray(self.task["action_low"], np.float32)
        high = np.asarray(self.task["action_high"], np.float32)
        return spaces.Box(low, high, dtype=np.float32)

    def _split(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The fields of rows (k, O): views of them."""
        return {name: rows[:, begin:end].reshape(len(rows), *shape) for name, begin, end, shape in self._fields}

    def _observations(self) -> Any:
        rows = self._core.observations()
        if not self._as_dict:
            return rows
        parts = self._split(rows)
        for camera in self._cameras:
            parts[camera] = self._core.picture(camera)
        return parts

    def _metadata(self, modes: Mapping[str, Any]) -> dict[str, Any]:
        return {"render_modes": ["rgb_array"], "render_fps": round(1 / self.task["control_period"]), **modes}

    def _film_camera(self, render_mode: str | None, camera: str | None) -> str | None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode={render_mode!r}: None or 'rgb_array'; `cohort view` shows environments in a browser")
        if camera is not None and camera not in self.task["cameras"]:
            raise ValueError(f"{self.task['name']} has no camera {camera!r}: there are {', '.join(self.task['cameras']) or 'none'}")
        return camera or (self.task["cameras"][0] if self.task["cameras"] else None)


class VectorEnv(_Made, gymnasium.vector.VectorEnv):
    """Environments of one task; make them with `make_vec`.

    Arrays that `reset` and `step` return are the caller's: no later step changes them. `infos` holds `success` and `broken`
    (n) bool; with `reward_terms=True` `reward_terms` (n, terms), named by `task["reward_terms"]`; where episodes ended, with
    autoreset "same_step": `final_obs` (n) of the last observations, None where none ended, and `final_info`. Names with an
    underscore before them are masks (n) bool of who has an entry.
    """

    def __init__(
        self, task: str, num_envs: int = 1, *, seed: int | None = None, autoreset: str = "same_step", device: Any = "cpu",
        threads: int | None = None, engine: str = "", observations: str | None = None, cameras: Sequence[str] = (),
        renderer: str = "", image_size: tuple[int, int] = (128, 128), learning: bool = False, reward_terms: bool = False,
        render_mode: str | None = None, render_camera: str | None = None, render_size: tuple[int, int] = (256, 256),
        **task_settings: Any,
    ) -> None:
        if isinstance(autoreset, AutoresetMode):
            autoreset = autoreset.name.lower()
        if autoreset not in _MODES:
            raise ValueError(f"autoreset={autoreset!r}: one of {', '.join(_MODES)}")
        self._make(
            task, num_envs, autoreset, device=device, threads=threads, engine=engine, observations=observations, cameras=cameras,
            renderer=renderer, image_size=image_size, learning=learning, settings=task_settings,
        )
        self.num_envs = num_envs
        self.metadata = self._metadata({"autoreset_mode": _MODES[autoreset]})
        self.render_mode = render_mode
        self._camera = self._film_camera(render_mode, render_camera)
        self._render_size = render_size
        self._with_terms = reward_terms and bool(self.task["reward_terms"])
        self._same_step = autoreset == "same_step"
        self.single_observation_space = self._observation_space()
        self.single_action_space = self._action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seed = seed
        self._began = False
        self._everyone = np.ones(num_envs, np.bool_)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            return [int(seed) + i for i in range(self.num_envs)]
        seeds = [None if s is None else int(s) for s in seed]
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} environments")
        return seeds

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins episodes: environment i with seed + i (or with its own of a list), as `cohort evaluate` begins that of a seed.

        Without a seed the first reset takes that of `make_vec` or one that the system draws, later ones go on to every
        environment's next episode. `options={"reset_mask": (n) bool}` resets those alone.
        """
        mask = None if options is None else options.get("reset_mask")
        chosen = np.arange(self.num_envs, dtype=np.int32)
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
                raise ValueError(f"options['reset_mask']: ({self.num_envs},) of bool with one that is set, not {mask.dtype} {mask.shape}")
            chosen = np.flatnonzero(mask).astype(np.int32)
        if seed is None and not self._began:
            seed = self._seed if self._seed is not None else int.from_bytes(os.urandom(4), "little")
            if mask is not None:  # the others have no episode yet
                chosen = np.arange(self.num_envs, dtype=np.int32)
        if seed is not None:
            if isinstance(seed, (int, np.integer)):
                gymnasium.vector.VectorEnv.reset(self, seed=int(seed))
            seeds = self._seeds(seed)
            given = np.asarray([i for i in chosen if seeds[i] is not None], np.int32)
            self._core.begin(given, np.asarray([seeds[i] % (1 << _SEED_BITS) for i in given], np.uint64))
            chosen = np.asarray([i for i in chosen if seeds[i] is None], np.int32)
        if len(chosen):
            self._core.begin_next(chosen)
        self._began = True
        return self._observations(), {}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One control period. actions: (n, A) float32, read where they lie (other types are converted first).

        Returns observations (n, O) float32 (or a dict of (n, ...)), rewards (n) float32, terminations and truncations (n)
        bool, and infos. An action that is not finite breaks its environment, which terminates; no other notices.
        """
        if not self._began:
            raise RuntimeError("reset() comes before the first step()")
        core = self._core
        ended = _take_step(core, actions)
        infos: dict[str, Any] = {"success": core.success(), "_success": self._everyone, "broken": core.broken(), "_broken": self._everyone}
        if self._with_terms:
            infos["reward_terms"], infos["_reward_terms"] = core.reward_terms(), self._everyone
        if ended and self._same_step:
            self._add_final(infos)
        return self._observations(), core.rewards(), core.terminated(), core.truncated(), infos

    def _add_final(self, infos: dict[str, Any]) -> None:
        who, rows = self._core.ended(), self._core.final_observations()
        over = np.zeros(self.num_envs, np.bool_)
        over[who] = True
        final = np.full(self.num_envs, None, object)
        if self._as_dict:
            parts = self._split(rows)
            for k, env in enumerate(who):
                final[env] = {name: values[k] for name, values in parts.items()}
        else:
            for k, env in enumerate(who):
                final[env] = rows[k]
        infos["final_obs"], infos["_final_obs"] = final, over
        kept = {}
        for name in ("success", "broken", "reward_terms"):
            if name in infos:
                kept[name], kept["_" + name] = np.where(over.reshape(-1, *[1] * (infos[name].ndim - 1)), infos[name], 0).astype(infos[name].dtype), over
        infos["final_info"], infos["_final_info"] = kept, over

    def rollout(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A step for each of actions (steps, n, A): rewards float32, terminations and truncations bool, all (steps, n).

        Python does not run in between; Ctrl-C ends it after the present step.
        """
        if not self._began:
            raise RuntimeError("reset() comes before the first step()")
        return self._core.rollout(_as_actions(actions))

    def views(self) -> dict[str, np.ndarray]:
        """What the last step left, without a copy: each observation (n, ...), `rewards`, `terminations`, `truncations` (n).

        Every step writes them anew; observations are those after a reset of the same step. They stay valid when the
        environments are closed or gone.
        """
        shown = {name: self._core.field_view(i) for i, (name, *_) in enumerate(self._fields)}
        return {**shown, "rewards": self._core.reward_view(), "terminations": self._core.terminated_view(),
                "truncations": self._core.truncated_view()}

    def tensors(self) -> dict[str, dlpack.Tensor]:
        """Each observation (n, ...) float32 of the last step where it is computed, without a copy, for array libraries:
        `torch.from_dlpack(envs.tensors()["qpos"])`, `numpy.from_dlpack`, `jax.dlpack.from_dlpack`.

        In host memory they show what `views()` shows. Of a task that is computed on a CUDA device they lie there, and the
        library's stream waits until they are written (`__dlpack__(stream=...)`). Every step writes them anew: it waits for
        the stream on which its actions were made, so what reads them belongs on that one. They live as long as anybody
        holds them. They are for reading; a library without such a notion (torch) may write into them, and must not.
        """
        stream = self._core.device_stream
        return {name: dlpack.Tensor(self._core.field_tensor(i), stream) for i, (name, *_) in enumerate(self._fields)}

    def advance(self, actions: Any) -> bool:
        """`step()` without arrays: what it left is in `views()` and `tensors()`. Returns whether any episode ended."""
        if not self._began:
            raise RuntimeError("reset() comes before the first step()")
        return _take_step(self._core, actions)

    def episode_steps(self) -> np.ndarray:
        """(n) int64: control steps since each episode began."""
        return self._core.episode_steps()

    def render(self) -> tuple[np.ndarray, ...] | None:
        """With render_mode="rgb_array" a picture (height, width, 3) uint8 of every environment; else None."""
        if self.render_mode is None:
            return None
        if self._camera is None:
            raise _core.Error(f"{self.task['name']} has no camera that could show it")
        height, width = self._render_size
        return tuple(self._core.film(self._camera, i, height, width) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        self._core.close()

    def __del__(self) -> None:
        # gymnasium's would call close() on what may not have been made.
        if getattr(self, "_core", None) is not None:
            self._core.close()

    def __repr__(self) -> str:
        return f"cohort.VectorEnv({self.task['name']}, num_envs={self.num_envs})"


class Env(_Made, gymnasium.Env):
    """One environment of a task; make it with `make`."""

    def __init__(
        self, task: str, *, seed: int | None = None, device: Any = "cpu", engine: str = "", observations: str | None = None,
        cameras: Sequence[str] = (), renderer: str = "", image_size: tuple[int, int] = (128, 128), learning: bool = False,
        render_mode: str | None = None, render_camera: str | None = None, render_size: tuple[int, int] = (256, 256),
        **task_settings: Any,
    ) -> None:
        self._make(
            task, 1, "disabled", device=device, threads=1, engine=engine, observations=observations, cameras=cameras,
            renderer=renderer, image_size=image_size, learning=learning, settings=task_settings,
        )
        self.metadata = self._metadata({})
        self.render_mode = render_mode
        self._camera = self._film_camera(render_mode, render_camera)
        self._render_size = render_size
        self.observation_space = self._observation_space()
        self.action_space = self._action_space()
        self._seed = seed
        self._began = False

    def _first(self, batch: Any) -> Any:
        return {name: values[0] for name, values in batch.items()} if isinstance(batch, dict) else batch[0]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins the episode of this seed; without one the next episode."""
        super().reset(seed=seed)
        if seed is None and not self._began:
            seed = self._seed if self._seed is not None else int.from_bytes(os.urandom(4), "little")
        only = np.zeros(1, np.int32)
        if seed is None:
            self._core.begin_next(only)
        else:
            self._core.begin(only, np.asarray([seed], np.uint64))
        self._began = True
        return self._first(self._observations()), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One control period with action (A) float32."""
        if not self._began:
            raise RuntimeError("reset() comes before the first step()")
        core = self._core
        core.step(_as_actions(np.asarray(action)[None]))
        infos = {"success": bool(core.success()[0]), "broken": bool(core.broken()[0])}
        terms = core.reward_terms()
        if terms.shape[1] == len(self.task["reward_terms"]):
            infos.update({f"reward_{name}": float(value) for name, value in zip(self.task["reward_terms"], terms[0])})
        return (
            self._first(self._observations()), float(core.rewards()[0]), bool(core.terminated()[0]), bool(core.truncated()[0]), infos,
        )

    def render(self) -> np.ndarray | None:
        """With render_mode="rgb_array" a picture (height, width, 3) uint8; else None."""
        if self.render_mode is None:
            return None
        if self._camera is None:
            raise _core.Error(f"{self.task['name']} has no camera that could show it")
        return self._core.film(self._camera, 0, *self._render_size)

    def close(self) -> None:
        self._core.close()


def _as_actions(actions: Any) -> Any:
    """float32 in rows, without a copy where it is that already, of any library that speaks DLPack; what lies on a device
    comes to the host."""
    if isinstance(actions, np.ndarray) and actions.dtype == np.float32 and actions.flags.c_contiguous:
        return actions
    if hasattr(actions, "detach"):
        actions = actions.detach().cpu()
    elif not isinstance(actions, np.ndarray) and hasattr(actions, "__dlpack_device__"):
        if actions.__dlpack_device__()[0] == dlpack.CPU:
            actions = np.from_dlpack(actions)
        else:
            import torch

            actions = torch.from_dlpack(actions).cpu()
    return np.ascontiguousarray(actions, np.float32)


def _take_step(core: Any, actions: Any) -> bool:
    """One control period; whether any episode ended. Actions that lie where the environments are computed stay there."""
    if core.device >= 0 and dlpack.device_of(actions) == (dlpack.CUDA, core.device):
        if hasattr(actions, "detach"):
            actions = actions.detach().float().contiguous()
        # The library that made them lets this stream wait until they are written.
        return core.step_on_device(actions.__dlpack__(stream=core.device_stream))
    return core.step(_as_actions(actions))


def make_vec(task: str | os.PathLike[str], num_envs: int = 1, **settings: Any) -> VectorEnv:
    """num_envs environments of a task: a name that `cohort tasks` lists, or the path of a task file.

    seed: of the first reset, environment i has seed + i. autoreset: "same_step", gymnasium's "next_step", or "disabled".
    device: where the engine computes, "cpu" or "cuda:0"; "cuda" is the rank's own under a launcher; arrays lie in host memory. threads: cores, None for all (of a
    launcher's rank its share). engine: batched or mujoco, else the task's own. observations: "flat" or "dict"; cameras: names
    of pictures (image_size, drawn by renderer), which make it a dict. render_mode: "rgb_array", by render_camera.
    learning: a task file's curricula go on from episode to episode; else episodes are at their end, functions of their seeds.
    All other words are the task's settings, as `cohort tasks NAME` lists them: make_vec("quadruped-velocity", 64,
    terrain="rough"). Raises cohort.Error for an unknown task or setting, with the nearest.
    """
    return VectorEnv(task, num_envs, **settings)


def make(task: str | os.PathLike[str], **settings: Any) -> Env:
    """One environment of a task as gymnasium's Env: the words of `make_vec` but num_envs, autoreset and threads."""
    return Env(task, **settings)
