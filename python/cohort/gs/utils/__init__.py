"""Functions beside a scene: `geom`, rotations and poses of tensors and arrays."""

from . import geom

__all__ = ["geom"]
