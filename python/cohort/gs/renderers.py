"""There is one renderer, Cohort's ray caster: what Genesis' classes choose has no effect."""

from __future__ import annotations

from ._errors import refuse
from ._options import Options

__all__ = ["BatchRenderer", "Rasterizer"]


class Rasterizer(Options):
    pass


class BatchRenderer(Options):
    _without_effect = frozenset({"use_rasterizer", "batch_render_res"})


def __getattr__(name: str):
    if name[:1].isupper():
        raise refuse(f"renderers.{name}", "Pictures are made by Cohort's ray caster: leave `renderer` out.")
    raise AttributeError(name)
