"""Entities of a scene, their links and joints: handles; the scene owns everything.

Of n environments arrays are (n, ...); of a scene that was built without n_envs they have no such dimension. `envs_idx` is an index,
a list, a slice, an array, a tensor or a bool mask of all environments; `dofs_idx_local` and `links_idx_local` likewise. What is
returned is a tensor of its own on gs.device.
"""

from __future__ import annotations

import numpy as np
import torch

from . import morphs
from ._arrays import choose, host, tensor, values_for
from ._errors import GenesisException
from ._model import LEAST_KP, FileModel, Joint, find_file, literal, pose_of, read_model, shape_xml, without_bearer
from .constants import JOINT_TYPE
from .utils.geom import transform_by_quat

_TYPES = {0: JOINT_TYPE.FREE, 1: JOINT_TYPE.SPHERICAL, 2: JOINT_TYPE.PRISMATIC, 3: JOINT_TYPE.REVOLUTE}
_DOFS, _COORDINATES = {0: 6, 1: 3, 2: 1, 3: 1}, {0: 7, 1: 4, 2: 1, 3: 1}


class RigidLink:
    """A link of an entity."""

    def __init__(self, entity: RigidEntity, name: str, idx_local: int) -> None:
        self.entity, self.name, self.idx_local = entity, name, idx_local

    def __repr__(self) -> str:
        return f"<link {self.name} of {self.entity.name}>"

    @property
    def idx(self) -> int:
        """Of the scene, 0 is the world."""
        return int(self.entity._links()[self.idx_local])

    @property
    def joints(self) -> list[RigidJoint]:
        return [j for j in self.entity.joints if j.link is self]

    @property
    def is_fixed(self) -> bool:
        return bool(self.entity._parts()["links"][self.idx_local][5])

    def get_pos(self, envs_idx=None, *, relative=True) -> torch.Tensor:
        """(n, 3) m, in the world."""
        return self.entity._link("pos", self.idx_local, envs_idx)

    def get_quat(self, envs_idx=None, *, relative=True) -> torch.Tensor:
        return self.entity._link("quat", self.idx_local, envs_idx)

    def get_vel(self, envs_idx=None, *, relative=True) -> torch.Tensor:
        """(n, 3) m/s, of the link's origin."""
        return self.entity._link("vel", self.idx_local, envs_idx)

    def get_ang(self, envs_idx=None) -> torch.Tensor:
        """(n, 3) rad/s, in the world."""
        return self.entity._link("ang", self.idx_local, envs_idx)

    def get_mass(self, envs_idx=None) -> torch.Tensor:
        return self.entity.get_links_mass([self.idx_local], envs_idx)[..., 0]

    def set_mass(self, mass, envs_idx=None) -> None:
        self.entity.set_links_mass([mass] if np.ndim(mass) == 0 else mass, [self.idx_local], envs_idx)


class RigidJoint:
    """A joint of an entity; a base that is fixed has a fixed one."""

    def __init__(self, entity: RigidEntity, name: str, joint: Joint | None, link: RigidLink, idx_local: int, q: int, dof: int) -> None:
        self.entity, self.name, self.link, self.idx_local = entity, name, link, idx_local
        self.type = JOINT_TYPE.FIXED if joint is None else _TYPES[joint.type]
        self.n_dofs = 0 if joint is None else _DOFS[joint.type]
        self.n_qs = 0 if joint is None else _COORDINATES[joint.type]
        self._q, self._dof = q, dof
        self._limited, self._range = (joint.limited, joint.range) if joint is not None else (False, (0.0, 0.0))

    def __repr__(self) -> str:
        return f"<joint {self.name} of {self.entity.name}>"

    @property
    def dofs_idx_local(self) -> list[int]:
        return list(range(self._dof, self._dof + self.n_dofs))

    @property
    def dof_idx_local(self):
        """Of a joint with one dof that dof; of another its dofs."""
        return self._dof if self.n_dofs == 1 else self.dofs_idx_local

    @property
    def qs_idx_local(self) -> list[int]:
        return list(range(self._q, self._q + self.n_qs))

    @property
    def dof_start(self) -> int:
        return self.entity.dof_start + self._dof

    @property
    def dof_end(self) -> int:
        return self.dof_start + self.n_dofs

    @property
    def dofs_idx(self) -> list[int]:
        return list(range(self.dof_start, self.dof_end))

    @property
    def q_start(self) -> int:
        return self.entity.q_start + self._q

    @property
    def dofs_limit(self) -> np.ndarray:
        """(dofs, 2) rad or m; infinite where there is none."""
        one = self._range if self._limited else (-np.inf, np.inf)
        return np.tile(np.array(one, dtype=np.float32), (self.n_dofs, 1))


class RigidGeom:
    def __init__(self, entity, name: str, idx: int, link_idx: int) -> None:
        self.entity, self.name, self.idx, self.link_idx = entity, name, idx, link_idx


class RigidEntity:
    """What `scene.add_entity` returns."""

    def __init__(self, scene, idx: int, morph, material, surface, name: str) -> None:
        self.scene, self.idx, self.morph, self.material, self.surface, self.name = scene, idx, morph, material, surface, name
        rgba = surface.rgba() if surface is not None else None
        self._rgba = rgba
        self._model: FileModel | None = None
        if isinstance(morph, (morphs.MJCF, morphs.URDF)):
            kind = "urdf" if isinstance(morph, morphs.URDF) else "mjcf"
            if morph.scale != 1.0:
                raise GenesisException(f"morphs.{type(morph).__name__}.scale is {morph.scale}: a file's sizes are its own")
            path = find_file(morph.file)
            fixed = bool(getattr(morph, "fixed", False))
            self._model = read_model(kind, path, "" if path else str(morph.file), fixed, morph.default_armature)
        elif not isinstance(morph, (morphs.Plane, morphs.Terrain)):
            self._model = read_model("mjcf", "", shape_xml(morph, name, material, rgba), False, None)
        self._sensors: list[tuple[str, str, str]] = []
        self._index = -1
        self._found: dict | None = None
        self._make_handles()

    def __repr__(self) -> str:
        return f"<entity {self.name}: {self.n_links} links, {self.n_dofs} dofs>"

    # ---- parts

    def _make_handles(self) -> None:
        model = self._model
        self.links = [RigidLink(self, n, i) for i, n in enumerate(model.links)] if model else []
        self.joints: list[RigidJoint] = []
        q = dof = 0
        for link in self.links:
            own = [j for j in model.joints if j.link == link.name]
            # Only what holds a base is a joint of its own: other links that are fixed are parts of those that bear them.
            for joint in own or ([None] if link is self.links[0] else []):
                name = f"{link.name}_fixed" if joint is None else joint.name
                handle = RigidJoint(self, name, joint, link, len(self.joints), q, dof)
                self.joints.append(handle)
                q, dof = q + handle.n_qs, dof + handle.n_dofs
        self.n_qs, self.n_dofs = q, dof
        self._servos = [j for j in self.joints if j.type in (JOINT_TYPE.REVOLUTE, JOINT_TYPE.PRISMATIC) and j.name]
        self._driven = [j._dof for j in self._servos]

    @property
    def n_links(self) -> int:
        return len(self.links)

    @property
    def n_joints(self) -> int:
        return len(self.joints)

    @property
    def base_link(self) -> RigidLink:
        if not self.links:
            raise GenesisException(f"entity {self.name} is part of the world: it has no link")
        return self.links[0]

    @property
    def base_joint(self) -> RigidJoint:
        return self.joints[0]

    @property
    def base_link_idx(self) -> int:
        return self.base_link.idx

    def get_link(self, name=None, uid=None) -> RigidLink:
        return self._named(self.links, "link", name)

    def get_joint(self, name=None, uid=None) -> RigidJoint:
        return self._named(self.joints, "joint", name)

    def _named(self, parts, what: str, name: str):
        for part in parts:
            if part.name == name:
                return part
        raise GenesisException(f"entity {self.name} has no {what} `{name}` (it has: {', '.join(p.name for p in parts)})")

    def _parts(self) -> dict:
        self.scene._need_built()
        if self._found is None:
            self._found = without_bearer(self.scene._core.description(self._index), self.name)
            joints = self._found["joints"]
            self._first_q = min((j[3] for j in joints), default=0)
            self._first_dof = min((j[4] for j in joints), default=0)
            self._link_idx = np.array([link[1] for link in self._found["links"]], dtype=np.int32)
            self._mocap = self._found["links"][0][4] if self._found["links"] else -1
        return self._found

    def _links(self) -> np.ndarray:
        self._parts()
        return self._link_idx

    @property
    def link_start(self) -> int:
        return int(self._links()[0])

    @property
    def dof_start(self) -> int:
        """First dof in the scene."""
        self._parts()
        return self._first_dof

    @property
    def dof_end(self) -> int:
        return self.dof_start + self.n_dofs

    @property
    def q_start(self) -> int:
        self._parts()
        return self._first_q

    @property
    def q_end(self) -> int:
        return self.q_start + self.n_qs

    @property
    def geoms(self) -> list[RigidGeom]:
        return [RigidGeom(self, *g) for g in self._parts()["geoms"]]

    @property
    def n_geoms(self) -> int:
        return len(self._parts()["geoms"])

    @property
    def is_free(self) -> bool:
        return bool(self.joints) and self.joints[0].type == JOINT_TYPE.FREE

    # ---- before the build

    def _add_to(self, core, rigid) -> None:
        material, morph = self.material, self.morph
        collision = morph.collision and rigid.enable_collision
        if isinstance(morph, morphs.Plane):
            if not collision:
                raise GenesisException("a morphs.Plane without collision: leave it out")
            friction = 1.0 if material.friction is None else material.friction
            self._index = core.add_plane(self.name, morph.pos, morph.quat or (1.0, 0.0, 0.0, 0.0), friction,
                                         self._rgba or (0.6, 0.6, 0.6, 1.0))  # fmt: skip
            return
        if isinstance(morph, morphs.Terrain):
            from ._terrain import height_field

            heights, size, corner = height_field(morph, self.scene.seed)
            lowest, highest = float(heights.min()), float(heights.max())
            pos = (corner[0] + size[0] / 2, corner[1] + size[1] / 2, corner[2] + lowest)
            self._index = core.add_terrain(self.name, heights, size, max(highest - lowest, 1e-6), 1.0, pos,
                                           1.0 if material.friction is None else material.friction)  # fmt: skip
            self.heights = heights
            return
        model = self._model
        pos, quat = pose_of(morph, model if not model.xml or isinstance(morph, (morphs.MJCF, morphs.URDF)) else None)
        of_file = isinstance(morph, (morphs.MJCF, morphs.URDF))
        actuators = []
        for name in model.driven():
            low, high = model.force[name]
            actuators.append((literal(name), max(model.kp[name], LEAST_KP), model.kv[name], max(abs(low), abs(high))))
        timeconst = rigid.constraint_timeconst
        if of_file and material.gravity_compensation:
            raise GenesisException(f"materials.Rigid.gravity_compensation of {self.name}: write `gravcomp` into the file's bodies")
        self._index = core.add_model(
            model.kind, model.file, model.xml, self.name, pos, quat, fixed=model.fixed, actuators=actuators,
            armatures=[(literal(n), a) for n, a in model.armature.items()], sensors=self._sensors, remove_actuators=of_file,
            collision=collision, friction=material.friction if of_file else None,
            solref=(timeconst, 1.0) if timeconst is not None else None, rgba=self._rgba if of_file else None,
            repair_inertia=model.kind == "urdf",  # as Genesis reads URDF files of links without mass; a warning says which
        )  # fmt: skip

    def _after_build(self) -> None:
        """Gains as the file has them; no dof is driven until the first control."""
        if self._model is None:
            return
        self._parts()
        if len(self._found["links"]) != len(self.links):
            raise GenesisException(f"entity {self.name} has {len(self._found['links'])} links in the scene and {len(self.links)} alone")
        weak = [j for j in self._servos if self._model.kp[j.name] < LEAST_KP]
        if weak:
            self.set_dofs_kp([self._model.kp[j.name] for j in weak], [j._dof for j in weak])
        for j in self._servos:
            low, high = self._model.force[j.name]
            if low != -high:
                self.set_dofs_force_range([low], [high], [j._dof])
        self._let_go(None)

    def _let_go(self, envs) -> None:
        if self._driven:
            dofs = (np.array(self._driven) + self.dof_start).astype(np.int32)
            self.scene._core.set_dofs("control_force", np.zeros(len(dofs), dtype=np.float32), dofs, envs)

    # ---- state

    def _envs(self, envs_idx):
        self.scene._need_built()
        return choose(envs_idx, self.scene._n, "environment")

    def _dofs(self, dofs_idx_local) -> tuple[np.ndarray, int]:
        chosen = choose(dofs_idx_local, self.n_dofs, "dof")
        local = np.arange(self.n_dofs, dtype=np.int32) if chosen.indices is None else chosen.indices
        return (local + self.dof_start).astype(np.int32), len(local)

    def _out(self, array, envs_idx=None) -> torch.Tensor:
        return self.scene._out(array)

    def _links_of(self, links_idx_local) -> np.ndarray:
        chosen = choose(links_idx_local, self.n_links, "link")
        return self._links() if chosen.indices is None else self._links()[chosen.indices]

    def _link(self, what: str, local: int, envs_idx) -> torch.Tensor:
        links = self._links()[local : local + 1]
        return self._out(self.scene._core.links(what, links, self._envs(envs_idx).indices)[:, 0])

    def _base_rows(self, field: str, first: int, width: int, envs) -> np.ndarray:
        rows = self.scene._view(field)[:, first : first + width]
        return np.array(rows if envs.indices is None else rows[envs.indices], dtype=np.float32)

    def get_pos(self, envs_idx=None, *, relative=True) -> torch.Tensor:
        """(n, 3) m, of the base link."""
        if not self.links:
            pos = np.tile(np.array(self.morph.pos, dtype=np.float32), (self._envs(envs_idx).size, 1))
            return self._out(pos)
        envs, base = self._envs(envs_idx), self._parts() and self._mocap
        if self.is_free:
            return self._out(self._base_rows("qpos", self.q_start, 3, envs))
        if base >= 0:
            return self._out(self._base_rows("mocap_pos", 3 * base, 3, envs))
        return self._link("pos", 0, envs_idx)

    def get_quat(self, envs_idx=None, *, relative=True) -> torch.Tensor:
        """(n, 4) of the base link."""
        if not self.links:
            quat = np.array(self.morph.quat or (1.0, 0.0, 0.0, 0.0), dtype=np.float32)
            return self._out(np.tile(quat, (self._envs(envs_idx).size, 1)))
        envs, base = self._envs(envs_idx), self._parts() and self._mocap
        if self.is_free:
            return self._out(self._base_rows("qpos", self.q_start + 3, 4, envs))
        if base >= 0:
            return self._out(self._base_rows("mocap_quat", 4 * base, 4, envs))
        return self._link("quat", 0, envs_idx)

    def get_vel(self, envs_idx=None, *, relative=True) -> torch.Tensor:
        """(n, 3) m/s, of the base link's origin."""
        if self.is_free:
            return self._out(self._base_rows("qvel", self.dof_start, 3, self._envs(envs_idx)))
        return self._link("vel", 0, envs_idx) if self.links else self.get_pos(envs_idx) * 0

    def get_ang(self, envs_idx=None) -> torch.Tensor:
        """(n, 3) rad/s, of the base link, in the world."""
        if self.is_free:
            envs = self._envs(envs_idx)
            body = self._base_rows("qvel", self.dof_start + 3, 3, envs)
            return self._out(transform_by_quat(body, self._base_rows("qpos", self.q_start + 3, 4, envs)))
        return self._link("ang", 0, envs_idx) if self.links else self.get_pos(envs_idx) * 0

    def get_links_pos(self, links_idx_local=None, envs_idx=None, *, relative=True) -> torch.Tensor:
        """(n, links, 3) m."""
        return self._out(self.scene._core.links("pos", self._links_of(links_idx_local), self._envs(envs_idx).indices))

    def get_links_quat(self, links_idx_local=None, envs_idx=None, *, relative=True) -> torch.Tensor:
        return self._out(self.scene._core.links("quat", self._links_of(links_idx_local), self._envs(envs_idx).indices))

    def get_links_vel(self, links_idx_local=None, envs_idx=None, *, relative=True) -> torch.Tensor:
        return self._out(self.scene._core.links("vel", self._links_of(links_idx_local), self._envs(envs_idx).indices))

    def get_links_ang(self, links_idx_local=None, envs_idx=None) -> torch.Tensor:
        return self._out(self.scene._core.links("ang", self._links_of(links_idx_local), self._envs(envs_idx).indices))

    def get_qpos(self, qs_idx_local=None, envs_idx=None) -> torch.Tensor:
        """(n, coordinates): a free base's position and quaternion, then hinges (rad) and slides (m), in the order of the links."""
        envs = self._envs(envs_idx)
        chosen = choose(qs_idx_local, self.n_qs, "coordinate")
        q = self._base_rows("qpos", self.q_start, self.n_qs, envs)
        return self._out(q if chosen.indices is None else np.ascontiguousarray(q[:, chosen.indices]))

    def get_dofs_position(self, dofs_idx_local=None, envs_idx=None) -> torch.Tensor:
        """(n, dofs) rad, m; of a free base its position and rotation vector."""
        return self._out(self.scene._core.dofs("position", self._dofs(dofs_idx_local)[0], self._envs(envs_idx).indices))

    def get_dofs_velocity(self, dofs_idx_local=None, envs_idx=None) -> torch.Tensor:
        """(n, dofs) rad/s, m/s; of a free base its velocity in the world, then its angular velocity in its own frame."""
        return self._out(self.scene._core.dofs("velocity", self._dofs(dofs_idx_local)[0], self._envs(envs_idx).indices))

    def get_dofs_limit(self, dofs_idx_local=None, envs_idx=None) -> tuple[torch.Tensor, torch.Tensor]:
        """Lower and upper limits, (dofs) each; infinite where there is none."""
        limits = np.concatenate([j.dofs_limit for j in self.joints]) if self.n_dofs else np.zeros((0, 2), dtype=np.float32)
        chosen = choose(dofs_idx_local, self.n_dofs, "dof")
        limits = limits if chosen.indices is None else limits[chosen.indices]
        return tensor(np.ascontiguousarray(limits[:, 0])), tensor(np.ascontiguousarray(limits[:, 1]))

    def _wake(self, envs) -> None:
        """An environment that broke goes on from its default state before it is set."""
        self.scene._reset_broken(envs)

    def set_pos(self, pos, envs_idx=None, *, zero_velocity=True, relative=True, skip_forward=False) -> None:
        """(n, 3) or (3): of a free base, or of a shape or mesh that is fixed."""
        self._set_base(pos, 0, 3, envs_idx, zero_velocity, "pos")

    def set_quat(self, quat, envs_idx=None, *, zero_velocity=True, relative=True, skip_forward=False) -> None:
        self._set_base(quat, 3, 4, envs_idx, zero_velocity, "quat")

    def _set_base(self, values, first: int, width: int, envs_idx, zero_velocity: bool, what: str) -> None:
        envs = self._envs(envs_idx)
        self._parts()
        if not self.is_free and self._mocap < 0:
            raise GenesisException(f"entity {self.name} stands still: set_{what} moves free bases, and shapes and meshes that are fixed")
        if envs.size == 0:
            return
        self._wake(envs)
        array = values_for(values, (width,), envs, what)
        if self.is_free:
            columns = np.arange(self.q_start + first, self.q_start + first + width, dtype=np.int32)
            self.scene._core.set_qpos(array, columns, envs.indices)
            if zero_velocity:
                self.zero_all_dofs_velocity(envs_idx)
        else:
            self.scene._core.set_mocap(array, int(self._link_idx[0]), what == "quat", envs.indices)

    def set_qpos(self, qpos, qs_idx_local=None, envs_idx=None, *, zero_velocity=True, skip_forward=False) -> None:
        envs = self._envs(envs_idx)
        if envs.size == 0:
            return
        self._wake(envs)
        chosen = choose(qs_idx_local, self.n_qs, "coordinate")
        local = np.arange(self.n_qs, dtype=np.int32) if chosen.indices is None else chosen.indices
        array = values_for(qpos, (len(local),), envs, "qpos")
        self.scene._core.set_qpos(array, (local + self.q_start).astype(np.int32), envs.indices)
        if zero_velocity:
            self.zero_all_dofs_velocity(envs_idx)

    def _set(self, what: str, values, dofs_idx_local, envs_idx) -> None:
        envs = self._envs(envs_idx)
        dofs, n = self._dofs(dofs_idx_local)
        if envs.size == 0 or n == 0:
            return
        self.scene._core.set_dofs(what, values_for(values, (n,), envs, what), dofs, envs.indices)
        if what.startswith("control"):
            rows = np.arange(envs.count) if envs.indices is None else envs.indices
            self.scene._idle_dofs[np.ix_(rows, dofs)] = what != "control_position"

    def set_dofs_position(self, position, dofs_idx_local=None, envs_idx=None, *, zero_velocity=True) -> None:
        self._wake(self._envs(envs_idx))
        self._set("position", position, dofs_idx_local, envs_idx)
        if zero_velocity:
            self.zero_all_dofs_velocity(envs_idx)

    def set_dofs_velocity(self, velocity=None, dofs_idx_local=None, envs_idx=None, *, skip_forward=False) -> None:
        self._set("velocity", 0.0 if velocity is None else velocity, dofs_idx_local, envs_idx)

    def zero_all_dofs_velocity(self, envs_idx=None, *, skip_forward=False) -> None:
        self._set("velocity", 0.0, None, envs_idx)

    # ---- control

    def control_dofs_position(self, position, dofs_idx_local=None, envs_idx=None) -> None:
        """Targets (rad, m) of servos: force = kp (target - position) - kv velocity, within the force range."""
        self._set("control_position", position, dofs_idx_local, envs_idx)

    def control_dofs_velocity(self, velocity, dofs_idx_local=None, envs_idx=None) -> None:
        """Targets (rad/s, m/s): force = kv (target - velocity)."""
        self._set("control_velocity", velocity, dofs_idx_local, envs_idx)

    def control_dofs_force(self, force, dofs_idx_local=None, envs_idx=None) -> None:
        """Generalized forces (N, N m), until changed."""
        self._set("control_force", force, dofs_idx_local, envs_idx)

    def set_dofs_kp(self, kp, dofs_idx_local=None, envs_idx=None) -> None:
        self._set("kp", kp, dofs_idx_local, envs_idx)

    def set_dofs_kv(self, kv, dofs_idx_local=None, envs_idx=None) -> None:
        self._set("kv", kv, dofs_idx_local, envs_idx)

    def set_dofs_force_range(self, lower, upper, dofs_idx_local=None, envs_idx=None) -> None:
        envs = self._envs(envs_idx)
        dofs, n = self._dofs(dofs_idx_local)
        if envs.size and n:
            low, high = values_for(lower, (n,), envs, "lower"), values_for(upper, (n,), envs, "upper")
            if low.ndim != high.ndim:
                low, high = (np.ascontiguousarray(np.broadcast_to(x, (envs.size, n))) for x in (low, high))
            limit = np.float32(1e10)  # the extension takes finite numbers
            self.scene._core.set_force_range(np.clip(low, -limit, limit), np.clip(high, -limit, limit), dofs, envs.indices)

    def _gains(self, what: str, column: int, dofs_idx_local, envs_idx) -> torch.Tensor:
        envs = self._envs(envs_idx)
        dofs, _ = self._dofs(dofs_idx_local)
        width = 10 if what != "actuator_force_range" else 2
        values = self.scene._core.parameter(what, None, envs.indices).reshape(envs.size, -1, width)[..., column]
        of = self.scene._actuator_of_dof
        out = np.zeros((envs.size, len(dofs)), dtype=np.float32)
        for i, d in enumerate(dofs):
            if int(d) in of:
                out[:, i] = values[:, of[int(d)]]
        return self._out(out)

    def get_dofs_kp(self, dofs_idx_local=None, envs_idx=None) -> torch.Tensor:
        """(n, dofs); 0 of dofs without a servo."""
        return -self._gains("actuator_bias", 1, dofs_idx_local, envs_idx)

    def get_dofs_kv(self, dofs_idx_local=None, envs_idx=None) -> torch.Tensor:
        return -self._gains("actuator_bias", 2, dofs_idx_local, envs_idx)

    def get_dofs_force_range(self, dofs_idx_local=None, envs_idx=None) -> tuple[torch.Tensor, torch.Tensor]:
        return tuple(self._gains("actuator_force_range", k, dofs_idx_local, envs_idx) for k in (0, 1))

    def get_dofs_control_force(self, dofs_idx_local=None, envs_idx=None) -> torch.Tensor:
        """(n, dofs) N, N m: what the controls ask for in the present state, within the force range."""
        envs = self._envs(envs_idx)
        dofs, n = self._dofs(dofs_idx_local)
        q = host(self.get_dofs_position(dofs_idx_local, envs_idx)).reshape(envs.size, n)
        v = host(self.get_dofs_velocity(dofs_idx_local, envs_idx)).reshape(envs.size, n)
        core, of = self.scene._core, self.scene._actuator_of_dof
        rows = slice(None) if envs.indices is None else envs.indices
        ctrl, applied = self.scene._view("ctrl")[rows], self.scene._view("qfrc_applied")[rows]
        gain, bias, limits = (
            core.parameter(name, None, envs.indices).reshape(envs.size, -1, width)
            for name, width in (("actuator_gain", 10), ("actuator_bias", 10), ("actuator_force_range", 2))
        )
        idle = self.scene._idle(envs)
        out = np.array(applied[:, dofs], dtype=np.float32)
        for i, d in enumerate(dofs):
            a = of.get(int(d))
            if a is None:
                continue
            force = gain[:, a, 0] * ctrl[:, a] + bias[:, a, 1] * q[:, i] + bias[:, a, 2] * v[:, i]
            out[:, i] += np.where(idle[:, int(d)], 0, np.clip(force, limits[:, a, 0], limits[:, a, 1]))
        return self._out(out)

    def _parameter(self, name: str, items, width: int, envs_idx) -> torch.Tensor:
        envs = self._envs(envs_idx)
        columns = (np.repeat(items, width) * width + np.tile(np.arange(width), len(items))).astype(np.int32)
        values = self.scene._core.parameter(name, columns, envs.indices)
        return self._out(values.reshape(envs.size, len(items), width) if width > 1 else values)

    def _set_parameter(self, name: str, values, items, envs_idx) -> None:
        envs = self._envs(envs_idx)
        if envs.size and len(items):
            self.scene._core.set_parameter(name, values_for(values, (len(items),), envs, name), np.asarray(items, dtype=np.int32), envs.indices)

    def get_dofs_armature(self, dofs_idx_local=None, envs_idx=None) -> torch.Tensor:
        return self._parameter("dof_armature", self._dofs(dofs_idx_local)[0], 1, envs_idx)

    def set_dofs_armature(self, armature, dofs_idx_local=None, envs_idx=None) -> None:
        self._set_parameter("dof_armature", armature, self._dofs(dofs_idx_local)[0], envs_idx)

    def get_dofs_damping(self, dofs_idx_local=None, envs_idx=None) -> torch.Tensor:
        return self._parameter("dof_damping", self._dofs(dofs_idx_local)[0], 1, envs_idx)

    def set_dofs_damping(self, damping, dofs_idx_local=None, envs_idx=None) -> None:
        self._set_parameter("dof_damping", damping, self._dofs(dofs_idx_local)[0], envs_idx)

    def get_dofs_frictionloss(self, dofs_idx_local=None, envs_idx=None) -> torch.Tensor:
        return self._parameter("dof_frictionloss", self._dofs(dofs_idx_local)[0], 1, envs_idx)

    def set_dofs_frictionloss(self, frictionloss, dofs_idx_local=None, envs_idx=None) -> None:
        self._set_parameter("dof_frictionloss", frictionloss, self._dofs(dofs_idx_local)[0], envs_idx)

    def get_links_mass(self, links_idx_local=None, envs_idx=None) -> torch.Tensor:
        """(n, links) kg."""
        return self._parameter("link_mass", self._links_of(links_idx_local), 1, envs_idx)

    def set_links_mass(self, mass, links_idx_local=None, envs_idx=None) -> None:
        self._set_parameter("link_mass", mass, self._links_of(links_idx_local), envs_idx)

    def get_mass(self, envs_idx=None):
        """(n) kg of all links that can move (what is fixed to the world has no mass of its own); a number without environments."""
        moving = [link.idx_local for link in self.links if not link.is_fixed]
        total = self.get_links_mass(moving, envs_idx).sum(-1)
        return float(total) if self.scene.n_envs == 0 else total

    def set_friction(self, friction: float) -> None:
        """Sliding, of all its geoms in all environments."""
        self._set_parameter("geom_friction", float(friction), [3 * g[1] for g in self._parts()["geoms"]], None)

    def set_friction_ratio(self, friction_ratio, links_idx_local=None, envs_idx=None) -> None:
        """(n, links): factors of the sliding friction that the geoms of these links have in the model."""
        envs = self._envs(envs_idx)
        links = self._links_of(links_idx_local)
        ratio = np.broadcast_to(values_for(friction_ratio, (len(links),), envs, "friction_ratio"), (envs.size, len(links)))
        geoms = [(g[1], list(links).index(g[2])) for g in self._parts()["geoms"] if g[2] in links]
        if geoms and envs.size:
            own = np.array([self.scene._friction0[g] for g, _ in geoms], dtype=np.float32)
            values = np.ascontiguousarray(ratio[:, [k for _, k in geoms]] * own)
            self.scene._core.set_parameter("geom_friction", values, np.array([3 * g for g, _ in geoms], dtype=np.int32), envs.indices)

    # ---- kinematics

    def get_jacobian(self, link, local_point=None) -> torch.Tensor:
        """(n, 6, dofs): velocity (m/s), then angular velocity (rad/s), in the world, of a point of a link for a unit velocity of each
        dof; local_point: m, in the link's frame."""
        self._parts()
        jacobian = self.scene._core.jacobian(link.idx)[..., self.dof_start : self.dof_end]
        if local_point is not None:
            point = np.broadcast_to(np.asarray(host(local_point), dtype=np.float32), (self.scene._n, 3))
            quat = self.scene._core.links("quat", np.array([link.idx], dtype=np.int32))[:, 0]
            arm = transform_by_quat(point, quat)
            moved = np.cross(jacobian[:, 3:].transpose(0, 2, 1), arm[:, None]).transpose(0, 2, 1)
            jacobian = np.concatenate((jacobian[:, :3] + moved, jacobian[:, 3:]), axis=1)
        return self._out(np.ascontiguousarray(jacobian, dtype=np.float32))

    def inverse_kinematics(self, link, pos=None, quat=None, local_point=None, init_qpos=None, respect_joint_limit=True, max_samples=50,
                           max_solver_iters=20, damping=0.01, pos_tol=5e-4, rot_tol=5e-3, pos_mask=(True, True, True),
                           rot_mask=(True, True, True), max_step_size=0.5, seed=None, dofs_idx_local=None, return_error=False,
                           envs_idx=None):  # fmt: skip
        """(n, coordinates) that bring a link to a pose in the world; sim/host/inverse_kinematics.h. return_error: and (n, 6), what is left.
        Hinges and slides move, a free base stays."""
        q, error = self._solve([link], [pos], [quat], [local_point], init_qpos, respect_joint_limit, max_samples, max_solver_iters,
                               damping, pos_tol, rot_tol, pos_mask, rot_mask, max_step_size, seed, dofs_idx_local, envs_idx)  # fmt: skip
        return (self._out(q), self._out(np.ascontiguousarray(error[:, 0]))) if return_error else self._out(q)

    def inverse_kinematics_multilink(self, links, poss=None, quats=None, local_points=None, init_qpos=None, respect_joint_limit=True,
                                     max_samples=50, max_solver_iters=20, damping=0.01, pos_tol=5e-4, rot_tol=5e-3,
                                     pos_mask=(True, True, True), rot_mask=(True, True, True), max_step_size=0.5, seed=None,
                                     dofs_idx_local=None, return_error=False, envs_idx=None):  # fmt: skip
        """The same for several links at once; the errors are (n, links, 6)."""
        none = [None] * len(links)
        q, error = self._solve(list(links), list(poss or none), list(quats or none), list(local_points or none), init_qpos,
                               respect_joint_limit, max_samples, max_solver_iters, damping, pos_tol, rot_tol, pos_mask, rot_mask,
                               max_step_size, seed, dofs_idx_local, envs_idx)  # fmt: skip
        return (self._out(q), self._out(error)) if return_error else self._out(q)

    def _solve(self, links, poss, quats, points, init_qpos, limits, samples, iterations, damping, pos_tol, rot_tol, pos_mask, rot_mask,
               step, seed, dofs_idx_local, envs_idx):  # fmt: skip
        envs = self._envs(envs_idx)
        self._parts()
        if not links or len(poss) != len(links) or len(quats) != len(links) or len(points) != len(links):
            raise GenesisException(f"{len(links)} links, {len(poss)} positions and {len(quats)} quaternions: one of each for each link")
        if any(p is None and q is None for p, q in zip(poss, quats)):
            raise GenesisException("inverse kinematics: a position, a quaternion, or both")
        if dofs_idx_local is None:
            moving = [j._dof for j in self.joints if j.type in (JOINT_TYPE.REVOLUTE, JOINT_TYPE.PRISMATIC)]
            dofs = (np.array(moving, dtype=np.int32) + self.dof_start).astype(np.int32)
        else:
            dofs, _ = self._dofs(dofs_idx_local)
        rows = np.arange(envs.count, dtype=np.int32) if envs.indices is None else envs.indices
        n = len(rows)

        def stacked(given, width: int, what: str) -> np.ndarray:
            out = np.zeros((n, len(links), width), dtype=np.float32)
            out[..., 0] = width == 4
            for k, value in enumerate(given):
                if value is not None:
                    out[:, k] = values_for(value, (width,), envs, what)
            return out

        pos, quat = stacked(poss, 3, "pos"), stacked(quats, 4, "quat")
        quat /= np.maximum(np.linalg.norm(quat, axis=-1, keepdims=True), 1e-12)
        local = np.array([np.zeros(3) if p is None else np.asarray(host(p), dtype=float).reshape(3) for p in points], dtype=np.float32)
        init = np.zeros((0,), dtype=np.float32)
        if init_qpos is not None:
            init = np.array(self.scene._view("qpos")[rows], dtype=np.float32)
            init[:, self.q_start : self.q_end] = values_for(init_qpos, (self.n_qs,), envs, "init_qpos")
        q, error = self.scene._core.inverse_kinematics(
            np.array([link.idx for link in links], dtype=np.int32), dofs, rows, local, pos, quat, init,
            [int(p is not None) for p in poss], [int(p is not None) for p in quats],
            tuple(bool(m) for m in host(pos_mask)), tuple(bool(m) for m in host(rot_mask)), int(samples), int(iterations), float(damping),
            float(pos_tol), float(rot_tol), float(step), bool(limits), 0 if seed is None else int(seed),
        )  # fmt: skip
        return np.ascontiguousarray(q[:, self.q_start : self.q_end]), error

    # ---- contacts

    def get_contacts(self, with_entity=None, exclude_self_contact=False, is_padded=False) -> dict[str, torch.Tensor]:
        """Contacts of this entity in the present state: geom_a, geom_b, link_a, link_b (n, contacts), position, normal, force_a,
        force_b (n, contacts, 3) N in the world, penetration (n, contacts) m; of several environments valid_mask says which are."""
        return self.scene._contacts(self, with_entity, exclude_self_contact)

    def get_links_net_contact_force(self, envs_idx=None) -> torch.Tensor:
        """(n, links, 3) N, in the world."""
        return self._out(np.ascontiguousarray(self.scene._core.links_contact_force(self._envs(envs_idx).indices)[:, self._links()]))

    def detect_collision(self, env_idx=0) -> np.ndarray:
        """(contacts, 2) geoms of this entity that touch something, in one environment."""
        who, _ = self.scene._core.contacts(np.array([env_idx], dtype=np.int32))
        own = {g[1] for g in self._parts()["geoms"]}
        return np.array([pair for pair in who[:, 1:3].tolist() if own & set(pair)], dtype=np.int32).reshape(-1, 2)
