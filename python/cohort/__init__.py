"""Cohort in a wheel: the programs, and what starts them.

The programs in `cohort/bin` need no Python; `cohort` and `python -m cohort` become the one that is asked for.
"""

from importlib import metadata as _metadata
from pathlib import Path

__all__ = ["__version__", "program", "prefix"]

try:
    __version__ = _metadata.version("cohort")
except _metadata.PackageNotFoundError:  # the folder lies on the path without its dist-info
    __version__ = "unknown"


def prefix() -> Path:
    """The folder with bin, lib, include and share, as `cmake --install` lays them out (for CMAKE_PREFIX_PATH)."""
    return Path(__file__).resolve().parent


def program(name: str = "cohort") -> Path:
    """The path of a program of the wheel, e.g. `cohort` or `cohort-train`.

    Raises FileNotFoundError where the wheel has none of that name.
    """
    path = prefix() / "bin" / name
    if not path.is_file():
        raise FileNotFoundError(f"there is no program {path}: install the wheel that scripts/wheel builds, not its sources alone")
    return path
