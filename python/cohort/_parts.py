"""What the layer loads from other wheels, checked before the dynamic linker says it less clearly."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from cohort import _core

__all__ = ["need_torch"]


def need_torch(who: str) -> None:
    """Raises ImportError, with a remedy, unless the PyTorch of this environment is of the minor version whose library the layer
    was linked with."""
    wanted = _core.torch_minor
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise ImportError(f"{who} needs PyTorch {wanted}, which this environment lacks: pip install 'torch=={wanted}.*'")
    folder = Path(found.origin).parent
    about = folder / "version.py"
    text = about.read_text(encoding="utf-8") if about.is_file() else ""
    told = re.search(r"^__version__(?:: [^=\n]*)? = '([^'\n]*)'", text, re.MULTILINE)
    version = told[1] if told else "of an unknown version"
    if not version.startswith(wanted + "."):
        raise ImportError(f"{who} is built for PyTorch {wanted}, and {folder} is {version}: pip install 'torch=={wanted}.*', or a wheel of "
                          "Cohort that is built for that one")  # fmt: skip
