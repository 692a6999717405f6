"""Recorded episodes as a torch `Dataset` of windows.

    windows = cohort.data.open("data/push", window=(2, 16))
    windows[0]["action"]                                            # (16, A) float32
    for batch in windows.batches(batch_size=64, seed=1): ...
    torch.utils.data.DataLoader(windows, batch_size=64, shuffle=True)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from cohort import _core, _ranks

__all__ = ["Windows", "open"]


class Windows(torch.utils.data.Dataset):
    """Windows by index; what `open` returns. A sample is a dict of tensors: `action` (actions, A) float32, `action_mask` (actions)
    bool, False where padded, `proprio` (frames, P), `observation_mask` (frames), `image/NAME` (frames, height, width, 3)
    uint8, `instruction` an index into `instructions`.
    """

    def __init__(self, core: Any, threads: int) -> None:
        self._core = core
        self._threads = threads
        #: Keys what is drawn anew in every epoch: augmentation, goals.
        self.epoch = 0
        #: {name: (type, shape of a sample)}
        self.fields: dict[str, tuple[str, tuple[int, ...]]] = {name: (kind, tuple(shape)) for name, kind, shape in core.fields()}
        self.instructions: list[str] = core.instructions()

    def __len__(self) -> int:
        return len(self._core)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def read(self, indices: Any) -> dict[str, torch.Tensor]:
        """A batch: tensors (n, ...) of windows `indices`, read by several threads without Python's lock, no copy made."""
        rows = self._core.read(np.ascontiguousarray(indices, np.int64), self.epoch, self._threads)
        return {name: torch.from_numpy(values) for name, values in rows.items()}

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"window {index} of {len(self)}")
        return {name: values[0] for name, values in self.read([index]).items()}

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, torch.Tensor]]:
        """What torch's DataLoader asks for a batch: read at once."""
        batch = self.read(indices)
        return [{name: values[i] for name, values in batch.items()} for i in range(len(indices))]

    def batches(self, batch_size: int, *, seed: int | None = 0, drop_last: bool = False) -> Iterator[dict[str, torch.Tensor]]:
        """The windows once, in an order drawn by seed and epoch; None: in their own."""
        order = np.arange(len(self)) if seed is None else np.random.default_rng([seed, self.epoch]).permutation(len(self))
        for begin in range(0, len(order), batch_size):
            chosen = order[begin : begin + batch_size]
            if len(chosen) == batch_size or not drop_last:
                yield self.read(chosen)

    def address(self, index: int) -> tuple[int, int, int]:
        """(set, episode, step) of a window."""
        return self._core.address(index, self.epoch)

    def __repr__(self) -> str:
        return f"cohort.data.Windows({len(self)} windows: {', '.join(self.fields)})"


def open(  # noqa: A001
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, window: tuple[int, int] = (1, 1), actions: Sequence[str] | None = None,
    proprio: Sequence[str] | None = None, images: Sequence[str] | None = None, threads: int | None = None, **settings: Any,
) -> Windows:
    """Windows over one data set or several: LeRobot and RLDS folders, HDF5 files.

    window: (frames that are observed, actions from the last of them on). actions, proprio, images: fields, or components such as
    "action[0:3]"; None: the field `action` or `actions`, all observed numbers, no pictures. Numbers are the data's own unless
    action_normalization says otherwise. Other words are those of `cohort train`'s section data: stride=2, splits=["train[:95%]"],
    image_transforms=["resize(96, 96)"]. Raises cohort.Error naming file and field.
    """
    paths = [os.fspath(p) for p in ([path] if isinstance(path, (str, os.PathLike)) else path)]
    if actions is None or proprio is None:
        known = [(name, kind) for name, kind, _ in _core.fields_of_set(paths[0])]
        if actions is None:
            actions = [name for name, kind in known if kind == "number" and name in ("action", "actions")]
            if not actions:
                raise ValueError(f"{paths[0]} has no field action: actions=[...] of {', '.join(n for n, k in known if k == 'number')}")
        if proprio is None:
            proprio = [name for name, kind in known if kind == "number" and name.startswith(("obs/", "observation"))]
    words = {"observation_steps": window[0], "action_steps": window[1], "actions": list(actions), "proprio": list(proprio),
             "images": list(images or ()), "statistics_cache": "never", **settings}
    core = _core.Windows(paths, [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in words.items()])
    return Windows(core, _ranks.threads(threads))
