"""From morphs to what the extension composes: text of shapes, paths and gains of files."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from . import morphs
from ._core_import import _core
from ._errors import GenesisException
from .utils.geom import inv_quat, transform_by_quat, transform_quat_by_quat

DEFAULT_RHO = 600.0  # kg/m^3, of shapes and meshes, as Genesis 1.4 has it
DEFAULT_KP, DEFAULT_KV = 100.0, 10.0  # of joints of a URDF, as Genesis has them
NO_LIMIT = 1e10  # N, N m: of an actuator whose force has no limit, which gives it one that can be set
LEAST_KP = 1.0  # an actuator is made with some stiffness and set to its own afterwards


def find_file(name: str) -> str:
    """A file by its path, or beside the assets of GENESIS_ASSETS or of an installed genesis-world."""
    text = os.fspath(name)
    if text.lstrip().startswith("<"):
        return ""
    tried = [Path(text)]
    if os.environ.get("GENESIS_ASSETS"):
        tried.append(Path(os.environ["GENESIS_ASSETS"]) / text)
    spec = importlib.util.find_spec("genesis")
    if spec is not None and spec.submodule_search_locations:
        tried.append(Path(next(iter(spec.submodule_search_locations))) / "assets" / text)
    for path in tried:
        if path.is_file():
            return str(path)
    raise GenesisException(f"there is no file {text} (looked for: {', '.join(str(p) for p in tried)}); a path that Genesis finds among "
                           "its own assets: set GENESIS_ASSETS to that folder")  # fmt: skip


def literal(name: str) -> str:
    """A pattern of sim/host/model_edits.h that matches this name alone."""
    return "".join("\\" + c if c in r".*+?()[]{}|^$\/" else c for c in name)


def _numbers(values) -> str:
    return " ".join(repr(float(v)) for v in values)


def shape_xml(morph, name: str, material, rgba) -> str:
    """MJCF of a primitive or a mesh: one body, free or, where it is fixed, one that may be put elsewhere."""
    asset = ""
    if isinstance(morph, morphs.Box):
        geom = f'type="box" size="{_numbers(s / 2 for s in morph.size)}"'
    elif isinstance(morph, morphs.Sphere):
        geom = f'type="sphere" size="{float(morph.radius)!r}"'
    elif isinstance(morph, (morphs.Cylinder, morphs.Capsule)):
        kind = "cylinder" if isinstance(morph, morphs.Cylinder) else "capsule"
        geom = f'type="{kind}" size="{_numbers((morph.radius, morph.height / 2))}"'
    else:
        path = find_file(morph.file)
        scale = np.broadcast_to(np.asarray(morph.scale, dtype=float), (3,))
        asset = f'<asset><mesh name="mesh" file={quoteattr(os.path.abspath(path))} scale="{_numbers(scale)}"/></asset>'
        geom = 'type="mesh" mesh="mesh"'
    touches = morph.collision
    masks = f'contype="{int(morph.contype) & 0x7FFFFFFF if touches else 0}" conaffinity="{int(morph.conaffinity) & 0x7FFFFFFF if touches else 0}"'
    friction = 1.0 if material.friction is None else material.friction
    rho = DEFAULT_RHO if material.rho is None else material.rho
    seen = "" if morph.visualization else 'group="3"'
    joint = "" if morph.fixed else f'<freejoint name="{name}_joint"/>'
    mocap = 'mocap="true"' if morph.fixed else ""
    lifted = f'gravcomp="{float(material.gravity_compensation)!r}"' if material.gravity_compensation else ""
    return (
        f'<mujoco model="{name}">{asset}<worldbody><body name="{name}_baselink" {mocap} {lifted}>{joint}'
        f'<geom name="{name}_geom" {geom} density="{float(rho)!r}" friction="{float(friction)!r} 0.005 0.0001" {masks} {seen} '
        f'rgba="{_numbers(rgba or (0.5, 0.5, 0.5, 1.0))}"/></body></worldbody></mujoco>'
    )


@dataclass
class Joint:
    name: str
    type: int  # 0 free, 1 ball, 2 slide, 3 hinge
    link: str
    limited: bool
    range: tuple[float, float]


@dataclass
class FileModel:
    """What a file holds: read once, before the scene is built."""

    kind: str
    file: str
    xml: str
    fixed: bool
    links: list[str] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    base_pos: np.ndarray = field(default_factory=lambda: np.zeros(3))
    base_quat: np.ndarray = field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0]))
    kp: dict[str, float] = field(default_factory=dict)
    kv: dict[str, float] = field(default_factory=dict)
    force: dict[str, tuple[float, float]] = field(default_factory=dict)
    armature: dict[str, float] = field(default_factory=dict)

    def driven(self) -> list[str]:
        """The joints that get an actuator: hinges and slides with a name."""
        return [j.name for j in self.joints if j.type >= 2 and j.name]


def without_bearer(parts: dict, name: str) -> dict:
    """A URDF's free base is borne by a body of the entity's own name, with which its root link coincides: the free joint is the root
    link's here."""
    links, joints = list(parts["links"]), list(parts["joints"])
    if len(links) > 1 and links[0][0] == name and links[1][2] == links[0][1] and any(j[2] == links[0][1] for j in joints):
        bearer, root = links[0][1], links[1][1]
        links = links[1:]
        joints = [(j[0] or f"{links[0][0]}_joint", j[1], root, *j[3:]) if j[2] == bearer else j for j in joints]
    return {**parts, "links": links, "joints": joints}


def read_model(kind: str, file: str, xml: str, fixed: bool, default_armature: float | None) -> FileModel:
    """Compiles a file alone and reads its links, joints and what its actuators' gains would be as servos of its joints."""
    core = _core.Scene(timestep=0.01, engine="mujoco")
    core.add_model(kind, file, xml, "entity", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), fixed=fixed, repair_inertia=kind == "urdf")
    core.build(1)
    parts = without_bearer(core.description(0), "entity")
    model = FileModel(kind, file, xml, fixed)
    model.links = [link[0] for link in parts["links"]]
    names = {link[1]: link[0] for link in parts["links"]}
    dof_joint: dict[int, str] = {}
    armature = core.parameter("dof_armature")[0] if core.sizes[1] else ()
    for name, kind_of, link, _, dof, limited, limits, _ in parts["joints"]:
        model.joints.append(Joint(name, kind_of, names[link], limited, tuple(limits)))
        if kind_of >= 2:
            dof_joint[dof] = name
            if armature[dof] == 0 and default_armature and name:
                model.armature[name] = float(default_armature)
    if parts["links"]:
        base = np.array([parts["links"][0][1]], dtype=np.int32)
        model.base_pos = core.links("pos", base)[0, 0].astype(float)
        model.base_quat = core.links("quat", base)[0, 0].astype(float)
    driven = model.driven()
    start = (DEFAULT_KP, DEFAULT_KV) if kind == "urdf" else (0.0, 0.0)
    for name in driven:
        model.kp[name], model.kv[name] = start
        model.force[name] = (-NO_LIMIT, NO_LIMIT)
    actuators = core.actuators()
    if actuators:
        gain, bias = (core.parameter(p)[0].reshape(-1, 10) for p in ("actuator_gain", "actuator_bias"))
        for i, (_, dof, _, gear, force, moves, _) in enumerate(actuators):
            # A tendon over several joints stands, as in Genesis, for a servo of each of them.
            for d in [dof] if dof >= 0 else moves:
                name = dof_joint.get(d)
                if name not in model.kp:
                    continue
                scale = gear * gear if dof >= 0 else 1.0
                if bias[i, 1] != 0 or bias[i, 2] != 0:
                    model.kp[name], model.kv[name] = float(-bias[i, 1] * scale), float(-bias[i, 2] * scale)
                if np.isfinite(force[0]) and np.isfinite(force[1]):
                    model.force[name] = tuple(sorted((float(gear * force[0]), float(gear * force[1]))))
    return model


def pose_of(morph, model: FileModel | None) -> tuple[tuple, tuple]:
    """Where the world frame of the entity's file goes, so that its base link is where the morph says."""
    if model is None:
        return morph.pos, morph.quat or (1.0, 0.0, 0.0, 0.0)
    if morph.pos is None and morph.quat is None:
        return (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    pos = model.base_pos if morph.pos is None else np.array(morph.pos)
    quat = model.base_quat if morph.quat is None else np.array(morph.quat)
    frame = transform_quat_by_quat(inv_quat(model.base_quat), quat)
    origin = pos - transform_by_quat(model.base_pos, frame)
    return tuple(float(x) for x in origin), tuple(float(x) for x in frame)
