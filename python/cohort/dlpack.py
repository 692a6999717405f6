"""Memory of the simulation for array libraries, by DLPack (https://data-apis.org/array-api/latest/design_topics/data_interchange.html).

    observations = torch.from_dlpack(envs.tensors()["qpos"])     # no copy, on a processor and on a CUDA device

NumPy's arrays of the layer (`envs.views()`) speak DLPack too; these do also on a device.
"""

from __future__ import annotations

from typing import Any

__all__ = ["CPU", "CUDA", "Tensor", "device_of"]

#: DLDeviceType of the standard.
CPU, CUDA = 1, 2

# The standard's numbers for a CUDA stream: none or 1 is the legacy default stream, -1 asks for no waiting.
_LEGACY_DEFAULT, _NO_WAITING = 1, -1


def device_of(array: Any) -> tuple[int, int] | None:
    """(type, index) of the device on which an array of any library lies; None where it does not say."""
    say = getattr(array, "__dlpack_device__", None)
    if say is None:
        return None
    kind, index = say()
    return int(kind), int(index)


class Tensor:
    """float32 memory of the simulation, which lives as long as this does, or what was made of it."""

    def __init__(self, array: Any, stream: int) -> None:
        self._array = array
        self._stream = stream  # cudaStream_t on which the memory is written; 0 in host memory

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None, **words: Any) -> Any:
        """The standard's: `stream` (the reader's) waits for what has been enqueued here before."""
        if self._stream and stream != _NO_WAITING:
            import torch

            device = torch.device("cuda", self.__dlpack_device__()[1])
            reader = torch.cuda.ExternalStream(stream or _LEGACY_DEFAULT, device=device)
            reader.wait_stream(torch.cuda.ExternalStream(self._stream, device=device))
        return self._array.__dlpack__(**words)
