"""Between tensors and the extension's arrays: choices of environments, dofs and links, and values for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ._errors import GenesisException
from ._state import State


@dataclass
class Choice:
    """Which of `count`: indices (int32), None for all; mask: one was given, whose values may come for all of them."""

    indices: np.ndarray | None
    mask: np.ndarray | None
    count: int

    @property
    def size(self) -> int:
        return self.count if self.indices is None else len(self.indices)


def host(values) -> np.ndarray:
    """Of a tensor of any device, an array or a list."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().numpy()
    if isinstance(values, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in values):
        return np.array([host(v) for v in values])
    return np.asarray(values)


def choose(wanted, count: int, what: str) -> Choice:
    """A choice by an integer, a slice, a list, an array, a tensor or a bool mask; None is all."""
    if wanted is None:
        return Choice(None, None, count)
    if isinstance(wanted, slice):
        return Choice(np.arange(count, dtype=np.int32)[wanted], None, count)
    if isinstance(wanted, range):
        wanted = list(wanted)
    array = host(wanted)
    if array.dtype == bool:
        if array.shape != (count,):
            raise GenesisException(f"a mask of shape {array.shape} for {count} {what}s: it has one entry for each")
        return Choice(np.flatnonzero(array).astype(np.int32), array, count)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise GenesisException(f"{what}s are chosen by integers or a bool mask, not by {array.dtype}")
    array = array.reshape(-1).astype(np.int32)
    if array.size and (array.min() < -count or array.max() >= count):
        raise GenesisException(f"{what} {array.max() if array.max() >= count else array.min()}: there are {count}, counted from 0")
    return Choice(np.where(array < 0, array + count, array).astype(np.int32), None, count)


def values_for(values, shape: tuple[int, ...], envs: Choice, what: str) -> np.ndarray:
    """float32 and contiguous, (environments, *shape), or `shape` for the same in all. Values for every environment may come with a
    mask of some."""
    array = np.asarray(host(values), dtype=np.float32)
    if array.ndim == len(shape) + 1 and envs.mask is not None and array.shape[0] == envs.count and envs.count != envs.size:
        array = array[envs.mask]
    if array.ndim <= len(shape):
        wanted = shape
    else:
        wanted = (envs.size, *shape)
    try:
        array = np.broadcast_to(array, wanted)
    except ValueError:
        per = ", ".join(str(n) for n in shape)
        raise GenesisException(f"{what} has shape {tuple(np.shape(host(values)))}: ({per}), or ({envs.size}, {per}) for the "
                               f"{envs.size} environments") from None  # fmt: skip
    return np.ascontiguousarray(array)


def tensor(array: np.ndarray) -> torch.Tensor:
    """On gs.device; on a processor the tensor shows the array's own memory."""
    made = torch.from_numpy(array)
    if made.dtype == torch.float64:
        made = made.to(torch.float32)
    return made if State.device.type == "cpu" else made.to(State.device)
