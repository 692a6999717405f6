"""What `gs.init` settles for the process."""

from __future__ import annotations

import torch

from ._errors import GenesisException
from .constants import backend as _backend


class State:
    initialized = False
    backend: _backend | None = None
    device: torch.device = torch.device("cpu")
    seed = 0


def need_init() -> None:
    if not State.initialized:
        raise GenesisException("gs.init() comes first: e.g. gs.init(backend=gs.cpu)")
