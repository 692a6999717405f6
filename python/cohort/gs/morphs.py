"""Shapes and files of entities. Lengths in m, `euler` in degrees about the world's x, y, z, quaternions (w, x, y, z)."""

from __future__ import annotations

import numpy as np

from ._errors import GenesisException, refuse
from ._options import Options, numbers
from .utils.geom import xyz_to_quat

__all__ = ["MJCF", "URDF", "Box", "Capsule", "Cylinder", "Mesh", "Plane", "Sphere", "Terrain"]


class Morph(Options):
    pos: tuple = (0.0, 0.0, 0.0)
    euler: tuple | None = None
    quat: tuple | None = None
    visualization: bool = True
    collision: bool = True
    _without_effect = frozenset({"batch_fixed_verts", "enable_custom_vverts", "parent_idx"})

    def __init__(self, **given) -> None:
        for name in ("offset_pos", "offset_quat", "offset_euler"):
            if name in given:
                raise GenesisException(f"morphs.{type(self).__name__}.{name}: give the pose itself, with pos and quat")
        super().__init__(**given)

    def _check(self) -> None:
        name = f"morphs.{type(self).__name__}"
        if self.euler is not None and self.quat is not None:
            raise GenesisException(f"{name}: euler and quat are both given: one of them")
        if self.euler is not None:
            self.quat = tuple(xyz_to_quat(np.array(numbers(f"{name}.euler", self.euler, 3)), rpy=True, degrees=True))
        if self.pos is not None:
            self.pos = numbers(f"{name}.pos", self.pos, 3)
        if self.quat is not None:
            self.quat = numbers(f"{name}.quat", self.quat, 4)
        if not self.visualization and not self.collision:
            raise GenesisException(f"{name}: neither seen nor touched: leave it out")


class _Primitive(Morph):
    fixed: bool = False
    contype: int = 0xFFFF
    conaffinity: int = 0xFFFF
    _without_effect = Morph._without_effect | {"order", "mindihedral", "minratio", "nobisect", "quality", "maxvolume", "verbose", "force_retet"}


class Box(_Primitive):
    """size: edge lengths; or its corners, lower and upper."""

    size: tuple | None = None
    lower: tuple | None = None
    upper: tuple | None = None

    def _check(self) -> None:
        super()._check()
        if (self.lower is None) != (self.upper is None):
            raise GenesisException("morphs.Box: lower and upper belong together")
        if self.lower is not None:
            lower, upper = numbers("morphs.Box.lower", self.lower, 3), numbers("morphs.Box.upper", self.upper, 3)
            self.pos = tuple((a + b) / 2 for a, b in zip(lower, upper))
            self.size = tuple(b - a for a, b in zip(lower, upper))
        if self.size is None:
            raise GenesisException("morphs.Box: its size, or lower and upper")
        self.size = numbers("morphs.Box.size", self.size, 3)


class Sphere(_Primitive):
    radius: float = 0.5


class Cylinder(_Primitive):
    radius: float = 0.5
    height: float = 1.0


class Capsule(_Primitive):
    """height: of the cylindrical part. Cohort's own."""

    radius: float = 0.1
    height: float = 0.5


class Plane(_Primitive):
    """Without end, part of the world. normal instead of a quaternion."""

    fixed: bool = True
    normal: tuple | None = None
    _without_effect = _Primitive._without_effect | {"plane_size", "tile_size"}

    def _check(self) -> None:
        super()._check()
        if self.normal is not None:
            n = np.array(numbers("morphs.Plane.normal", self.normal, 3))
            n = n / np.linalg.norm(n)
            axis = np.cross([0.0, 0.0, 1.0], n)
            q = np.array([1.0 + n[2], *axis]) if n[2] > -1 + 1e-12 else np.array([0.0, 1.0, 0.0, 0.0])
            self.quat = tuple(q / np.linalg.norm(q))


_FILE = Morph._without_effect | {
    "decimate", "decimate_face_num", "decimate_aggressiveness", "watertighten", "convexify", "decompose_object_error_threshold",
    "decompose_robot_error_threshold", "coacd_options", "recompute_inertia", "align", "file_meshes_are_zup", "parse_glb_with_zup",
    "decompose_nonconvex", "requires_jac_and_IK", "group_by_material", "merge_submeshes_for_collision", "is_free",
}  # fmt: skip


class Mesh(_Primitive):
    """file: OBJ, STL or MSH; collides as its convex hull. scale: one number or three."""

    file: str = ""
    scale: float = 1.0
    _without_effect = _Primitive._without_effect | _FILE


class MJCF(Morph):
    """A MuJoCo file, or its text. pos and quat: of its base link, None: where the file puts it. default_armature: of hinges and
    slides for which the file says none (kg, kg m^2)."""

    file: str = ""
    pos: tuple | None = None
    scale: float = 1.0
    default_armature: float | None = 0.1
    _without_effect = _FILE | {"exclude_ground_plane"}


class URDF(Morph):
    """A URDF file, or its text. fixed: its base is part of the world."""

    file: str = ""
    scale: float = 1.0
    fixed: bool = False
    merge_fixed_links: bool = True
    links_to_keep: tuple = ()
    default_armature: float | None = 0.1
    _without_effect = _FILE | {"prioritize_urdf_material"}


class Terrain(Morph):
    """height_field: (n, m) heights along x and y in units of vertical_scale (m), horizontal_scale (m) apart; or a grid of
    subterrains by their names: flat_terrain, random_uniform_terrain, sloped_terrain, pyramid_sloped_terrain, wave_terrain,
    stairs_terrain, pyramid_stairs_terrain, discrete_obstacles_terrain, stepping_stones_terrain. pos: of its corner."""

    height_field: object = None
    n_subterrains: tuple = (3, 3)
    subterrain_size: tuple = (12.0, 12.0)
    horizontal_scale: float = 0.25
    vertical_scale: float = 0.005
    subterrain_types: object = "flat_terrain"
    subterrain_parameters: dict | None = None
    randomize: bool = False
    _without_effect = Morph._without_effect | {"uv_scale", "name", "from_stored"}


def __getattr__(name: str):
    if name[:1].isupper():
        raise refuse(f"morphs.{name}", f"Morphs: {', '.join(__all__)}.")
    raise AttributeError(name)
