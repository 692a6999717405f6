"""The extension, or an exception that says how to get it."""

from __future__ import annotations

try:
    from cohort import _core
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError(f"cohort.gs needs the extension cohort._core, which the wheel of scripts/wheel holds ({error})") from error

__all__ = ["_core"]
