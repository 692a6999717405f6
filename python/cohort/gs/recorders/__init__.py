"""What is written after each step: videos, tables, arrays."""

from __future__ import annotations

import csv

import numpy as np

from .._arrays import host
from .._core_import import _core
from .._errors import GenesisException, refuse
from .._options import Options

__all__ = ["CSVFile", "NPZFile", "Recorder", "VideoFile"]


class _RecorderOptions(Options):
    """hz: how often, None: after each step."""

    filename: str = ""
    hz: float | None = None
    _without_effect = frozenset({"buffer_size", "buffer_full_wait_time", "save_every_write", "name", "codec", "bitrate", "codec_options"})


class VideoFile(_RecorderOptions):
    """.mp4 of (h, w, 3) uint8 pictures. fps: None: as they come in time."""

    fps: float | None = None


class CSVFile(_RecorderOptions):
    """A row of all values for each time."""

    header: tuple | None = None


class NPZFile(_RecorderOptions):
    """Arrays (times, ...); `data` where data_func gives no dictionary."""


class Recorder:
    """What Scene.start_recording returns."""

    def __init__(self, scene, data_func, options) -> None:
        if not isinstance(options, _RecorderOptions):
            raise GenesisException(f"rec_options is {type(options).__name__}: one of gs.recorders.{', gs.recorders.'.join(__all__[:2] + ['VideoFile'])}")
        if not options.filename:
            raise GenesisException(f"recorders.{type(options).__name__}: its filename")
        self._scene, self._data_func, self._options = scene, data_func, options
        self._every = 1 if options.hz is None else max(1, round(1 / (options.hz * scene.dt)))
        self._kept: list = []
        self._count = 0

    def _stepped(self) -> None:
        self._count += 1
        if self._count % self._every:
            return
        data = self._data_func()
        self._kept.append({k: np.array(host(v)) for k, v in data.items()} if isinstance(data, dict) else np.array(host(data)))

    def stop(self) -> None:
        """Writes the file."""
        kept, self._kept = self._kept, []
        if not kept:
            return
        options = self._options
        if isinstance(options, VideoFile):
            frames = np.stack(kept)
            if frames.ndim == 5:
                frames = frames[:, 0]
            if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != np.uint8:
                raise GenesisException(f"recorders.VideoFile: pictures (h, w, 3) of uint8, not {frames.shape[1:]} of {frames.dtype}")
            _core.write_video(str(options.filename), np.ascontiguousarray(frames), float(options.fps or 1 / (self._every * self._scene.dt)))
            return
        rows = [d if isinstance(d, dict) else {"data": d} for d in kept]
        if isinstance(options, NPZFile):
            np.savez(options.filename, **{k: np.stack([r[k] for r in rows]) for k in rows[0]})
            return
        with open(options.filename, "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            names = options.header or [k if v.size == 1 else f"{k}_{i}" for k, v in rows[0].items() for i in range(v.size)]
            table.writerow(names)
            for row in rows:
                table.writerow([x for v in row.values() for x in v.ravel().tolist()])


def __getattr__(name: str):
    if name[:1].isupper():
        raise refuse(f"recorders.{name}", "Recorders write files: VideoFile, NPZFile, CSVFile; `cohort watch` draws curves.")
    raise AttributeError(name)
