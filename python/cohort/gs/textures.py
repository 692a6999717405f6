"""What colours a surface."""

from __future__ import annotations

from ._errors import refuse
from ._options import Options

__all__ = ["ColorTexture"]


class ColorTexture(Options):
    """color: red, green, blue and, where given, opacity, 0 to 1."""

    color: tuple = (1.0, 1.0, 1.0)


def __getattr__(name: str):
    if name[:1].isupper():
        raise refuse(f"textures.{name}", "A surface has a colour (textures.ColorTexture); pictures come with a model's file.")
    raise AttributeError(name)
