"""Trained policies that act on NumPy's arrays.

    policy = cohort.policy.load("outputs/reach/latest")
    envs = cohort.make_vec("reach", 16, observations="dict")
    observations, _ = envs.reset(seed=0)
    policy.reset(seeds=range(16))
    while ...:
        observations, rewards, terminations, truncations, infos = envs.step(policy(observations))
        policy.reset_where(terminations | truncations)

Any run or checkpoint of Cohort, an ONNX file, or the address of a policy server. Actions are those of `cohort evaluate`, to
the bit, where `seeds` are those of the episodes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cohort import _parts, _ranks

_parts.need_torch("cohort.policy")
try:
    from cohort import _policy
except ImportError as error:
    raise ImportError(f"cohort.policy loads PyTorch's library, and the system says: {error}. PyTorch's build for CUDA needs nvidia-cuda-runtime "
                      "and nvidia-cuda-cupti also without a GPU: pip install them, or PyTorch's build for CPUs") from error  # fmt: skip

__all__ = ["Policy", "load"]

_WORDS = ("observations.", "observation.", "observation/", "observations/", "obs/", "obs.")


def _bare(name: str, picture: bool) -> str:
    """eef_pos of "observation/eef_pos", front of "observation.images.front" and "observation/front_image"."""
    for word in _WORDS:
        if name.startswith(word):
            name = name[len(word):]
            break
    if picture:
        for word in ("images.", "images/", "images_"):
            name = name.removeprefix(word)
        name = name.removesuffix("_image")
    return name


class Policy:
    """What `load` returns. `spec` says what it sees (`observations`: name, shape, picture), action_width, chunk, frames."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self.spec: dict[str, Any] = core.spec()
        self._opened: Any = None
        self._seeds: list[int] = []
        self._instruction = ""

    def reset(self, *, seeds: int | Iterable[int] | None = None, n: int | None = None, instruction: str = "") -> None:
        """Episodes begin: what was seen is forgotten. seeds: of each environment's episode, which key what is drawn at random
        in it; a number: that and the following ones, of n environments. instruction: what a policy that takes one is told.
        """
        first = 0 if seeds is None else seeds
        self._seeds = [int(first) + i for i in range(n or 1)] if isinstance(first, (int, np.integer)) else [int(s) for s in first]
        if len(set(self._seeds)) != len(self._seeds):
            raise ValueError("two environments have one seed: what is drawn in them would be the same")
        self._instruction = instruction
        self._begun = False

    def reset_where(self, mask: Any, *, seeds: Sequence[int] | None = None) -> None:
        """Episodes begin in the environments that mask (n) bool names; without seeds new ones follow the last."""
        chosen = [int(i) for i in np.flatnonzero(np.asarray(mask))]
        if not chosen:
            return
        following = max(self._seeds) + 1
        drawn = [following + i for i in range(len(chosen))] if seeds is None else [int(s) for s in seeds]
        for env, seed in zip(chosen, drawn, strict=True):
            self._seeds[env] = seed
        if self._begun:
            self._core.begin(chosen, drawn, self._instruction)

    def __call__(self, observations: Any) -> np.ndarray:
        return self.act(observations)

    def act(self, observations: Any, *, action_width: int | None = None, control_period: float = 0.0) -> np.ndarray:
        """The next actions (n, A) float32; of a single observation without a first axis: (A).

        observations: a dict by name, numbers (n, ...) and pictures (n, height, width, 3) uint8, names as `spec` or the task has
        them; or an array (n, O) of all numbers in the order of `spec`. Each call is one control step. action_width,
        control_period (s): at the first call, of a policy that does not know them.
        """
        numbers, pictures, names, single = self._laid_out(observations)
        if self._opened is None:
            width = self.spec["action_width"] or action_width or 0
            if width < 1:
                raise ValueError("this policy does not say how many numbers an action has: act(..., action_width=)")
            period = control_period or (1 / self.spec["control_frequency"] if self.spec["control_frequency"] else 0.0)
            self._core.open(names, width, period)
            self._opened = [name for name, _ in names]
        if not self._seeds or not self._begun_of(len(numbers)):
            self._begin(len(numbers))
        actions = self._core.act(numbers, pictures)
        return actions[0] if single else actions

    def _begun_of(self, n: int) -> bool:
        return getattr(self, "_begun", False) and len(self._seeds) == n

    def _begin(self, n: int) -> None:
        if len(self._seeds) != n:
            if self._seeds and getattr(self, "_begun", False) or len(self._seeds) > 1:
                raise ValueError(f"{n} observations, and reset() began {len(self._seeds)} environments")
            first = self._seeds[0] if self._seeds else 0
            self._seeds = [first + i for i in range(n)]
        self._core.begin(list(range(n)), self._seeds, self._instruction)
        self._begun = True

    def _laid_out(self, observations: Any) -> tuple[np.ndarray, list[np.ndarray], list[tuple[str, list[int]]], bool]:
        """Numbers (n, W), pictures, (name, shape) of each, and whether there was no first axis."""
        seen = self.spec["observations"]
        if not isinstance(observations, Mapping):
            rows = np.ascontiguousarray(observations, np.float32)
            single = rows.ndim == 1
            rows = rows[None] if single else rows
            if any(o["picture"] for o in seen):
                raise ValueError("this policy sees pictures: observations must be a dict by name")
            width = sum(int(np.prod(o["shape"])) for o in seen)
            if rows.ndim != 2 or seen and rows.shape[1] != width:
                raise ValueError(f"observations of shape {rows.shape}: (n, {width}) is needed, {', '.join(o['name'] for o in seen)} side by side")
            return rows, [], [(o["name"], list(o["shape"])) for o in seen] or [("observations", [rows.shape[1]])], single
        given = {name: np.asarray(value) for name, value in observations.items()}
        if not seen:
            unseen = set(self.spec["unseen"])
            seen = [{"name": name, "picture": value.dtype == np.uint8 and value.ndim >= 3, "shape": None} for name, value in given.items() if name not in unseen]
        columns, pictures, names, single, n = [], [], [], False, None
        for o in seen:
            value = self._find(given, o)
            if o["picture"]:
                single = value.ndim == 3
                value = np.ascontiguousarray(value[None] if single else value, np.uint8)
                pictures.append(value)
                names.append((o["name"], [-1, -1, 3]))
            else:
                rank = len(o["shape"]) if o["shape"] is not None else value.ndim - 1
                single = value.ndim == rank and o["shape"] is not None and rank > 0
                value = np.asarray(value[None] if single else value, np.float32)
                columns.append(value.reshape(len(value), -1))
                names.append((o["name"], [columns[-1].shape[1]]))
            n = len(value) if n is None else n
            if len(value) != n:
                raise ValueError(f"{o['name']} has {len(value)} rows, others {n}")
        rows = np.ascontiguousarray(np.concatenate(columns, 1)) if columns else np.zeros((n or 0, 0), np.float32)
        return rows, pictures, names, single

    @staticmethod
    def _find(given: Mapping[str, np.ndarray], o: Mapping[str, Any]) -> np.ndarray:
        if o["name"] in given:
            return given[o["name"]]
        wanted = _bare(o["name"], o["picture"])
        for name, value in given.items():
            if _bare(name, o["picture"]) == wanted:
                return value
        raise KeyError(f"this policy sees {o['name']!r}, and the observations have only {', '.join(given)}")


def load(
    where: str | os.PathLike[str], *, device: Any = "cpu", seed: int = 0, exact: bool = True, averaged: bool = True, exec_horizon: int = 0,
    data_set: str = "", **settings: Any,
) -> Policy:
    """The policy of a run, a folder of checkpoints, a checkpoint, an ONNX file, or at ws://HOST:PORT.

    device: cpu or cuda:0; cuda is the rank's own under a launcher. seed: keys what it draws. exact: an environment's actions are the same bits whichever others act with
    it; False is several times quicker for one robot. averaged: the weights' moving average, where there is one. exec_horizon:
    actions of an answer that are played, 0: as it was trained. data_set: whose statistics actions are given back by. Other words
    are settings that need no other weights, e.g. **{"model.rdt.lang_embed": FILE}. Raises cohort.Error where there is none.
    """
    words = [f"{key}={value}" for key, value in settings.items()]
    return Policy(_policy.Policy(os.fspath(where), device=_ranks.device(device), seed=seed, exact=exact, averaged=averaged, exec_horizon=exec_horizon,
                                 data_set=data_set, overrides=words))
