"""Cohort in a wheel: the programs, what starts them, and the Python layer over the same libraries.

    envs = cohort.make_vec("HalfCheetah-v5", num_envs=64)     # gymnasium's VectorEnv of any task
    policy = cohort.policy.load("outputs/HalfCheetah-v5/latest")

The programs in `cohort/bin` need no Python; `cohort` and `python -m cohort` become the one that is asked for. What the layer
needs (NumPy, gymnasium, torch) is imported when it is first used.
"""

from __future__ import annotations

import importlib as _importlib
from importlib import metadata as _metadata
from pathlib import Path
from typing import Any as _Any

__all__ = ["Error", "__version__", "make", "make_vec", "prefix", "program", "tasks"]

# Names that come with a module of the layer, and modules.
_FROM = {"Error": "_core", "make": "vector", "make_vec": "vector"}
_MODULES = ("data", "dlpack", "gs", "lerobot", "policy", "rsl_rl", "sb3", "vector")

try:
    __version__ = _metadata.version("cohort")
except _metadata.PackageNotFoundError:  # the folder lies on the path without its dist-info
    __version__ = "unknown"


def __getattr__(name: str) -> _Any:
    if name in _FROM:
        return getattr(_importlib.import_module(f"cohort.{_FROM[name]}"), name)
    if name in _MODULES:
        return _importlib.import_module(f"cohort.{name}")
    raise AttributeError(f"module 'cohort' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])


def tasks() -> list[str]:
    """Names of the registered tasks, those of COHORT_TASKS among them."""
    return _importlib.import_module("cohort._core").task_names()


def prefix() -> Path:
    """The folder with bin, lib, include and share, as `cmake --install` lays them out (for CMAKE_PREFIX_PATH)."""
    return Path(__file__).absolute().parent


def program(name: str = "cohort") -> Path:
    """The path of a program of the wheel, e.g. `cohort` or `cohort-train`.

    Raises FileNotFoundError where the wheel has none of that name.
    """
    path = prefix() / "bin" / name
    if not path.is_file():
        raise FileNotFoundError(f"there is no program {path}: install the wheel that scripts/wheel builds, not its sources alone")
    return path
