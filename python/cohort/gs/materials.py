"""What entities are made of: rigid bodies alone."""

from __future__ import annotations

from ._errors import GenesisException, refuse
from ._options import Options

__all__ = ["Rigid"]


class Rigid(Options):
    """rho: density of shapes and meshes, kg/m^3; friction: sliding, None keeps a file's; gravity_compensation: share of the weight
    that is lifted, of shapes and meshes."""

    rho: float | None = None
    friction: float | None = None
    gravity_compensation: float = 0.0
    _without_effect = frozenset({
        "needs_coup", "coup_friction", "coup_softness", "coup_restitution", "sdf_cell_size", "sdf_min_res", "sdf_max_res", "coup_type",
        "coup_links", "enable_coup_collision", "coup_collision_links", "contact_resistance", "use_visual_raycasting",
    })  # fmt: skip

    def _check(self) -> None:
        for name in ("rho", "friction"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise GenesisException(f"materials.Rigid.{name} is {value}: above zero")


def __getattr__(name: str):
    if name[:1].isupper():
        raise refuse(f"materials.{name}", "The material is gs.materials.Rigid; soft bodies, cloth, sand and liquids need Genesis itself.")
    raise AttributeError(name)
