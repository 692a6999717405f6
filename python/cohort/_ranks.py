"""What a rank of a launcher (torchrun, `cohort launch`, srun, mpirun) uses of its machine."""

from __future__ import annotations

import os
from typing import Any

from cohort import _core

__all__ = ["device", "threads"]


def device(asked: Any) -> str:
    """`cuda` is the rank's own GPU, as the programs choose it: that of LOCAL_RANK, or the one that its mask leaves it.
    `gpu` is the same, and the processor where there is none. Anything else is itself."""
    name = str(asked)
    return _core.rank_device(name) if name in ("cuda", "gpu") else name


def threads(asked: int | None) -> int:
    """Cores: those that are asked for, else all of this process, shared among the ranks of a launcher on this machine."""
    if asked is not None:
        if asked < 1:
            raise ValueError(f"threads={asked}: at least one is needed; None takes all")
        return asked
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1") or 1)
    return max(1, _core.available_cores() // max(1, ranks))
