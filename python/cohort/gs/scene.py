"""`gs.Scene`: what is added before `build`, and stepped, reset and drawn afterwards."""

from __future__ import annotations

import os

import numpy as np
import torch

from cohort import _ranks

from . import materials, morphs, surfaces
from ._arrays import choose, tensor, values_for
from ._core_import import _core
from ._errors import GenesisException, logger, say_once
from ._state import State, need_init
from .constants import backend as _backend
from .constants import constraint_solver, friction_cone, integrator
from .entity import RigidEntity
from .options import ProfilingOptions, RigidOptions, SimOptions, ViewerOptions, VisOptions
from .recorders import Recorder
from .sensing import make_sensor
from .vis.camera import Camera

_SOFT = ("tool_options", "mpm_options", "sph_options", "fem_options", "sf_options", "pbd_options", "kinematic_options", "coupler_options")


def _threads() -> int:
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) > 0 else _ranks.threads(None)


class RigidSolver:
    """What Genesis' `scene.rigid_solver` is asked for: all entities at once."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @property
    def n_envs(self) -> int:
        return self._scene.n_envs

    @property
    def n_qs(self) -> int:
        return self._scene._core.sizes[0]

    @property
    def n_dofs(self) -> int:
        return self._scene._core.sizes[1]

    @property
    def n_links(self) -> int:
        return self._scene._core.sizes[3]

    @property
    def links(self) -> list:
        return [link for entity in self._scene.entities for link in entity.links]

    @property
    def joints(self) -> list:
        return [joint for entity in self._scene.entities for joint in entity.joints]

    @property
    def geoms(self) -> list:
        return [geom for entity in self._scene.entities for geom in entity.geoms]

    @property
    def entities(self) -> list:
        return self._scene.entities

    def _rows(self, field: str, items, envs_idx) -> torch.Tensor:
        self._scene._need_built()
        view = self._scene._view(field)
        envs, chosen = choose(envs_idx, self._scene._n, "environment"), choose(items, view.shape[1], "value")
        rows = view if envs.indices is None else view[envs.indices]
        return self._scene._out(np.array(rows if chosen.indices is None else rows[:, chosen.indices], dtype=np.float32))

    def get_qpos(self, qs_idx=None, envs_idx=None) -> torch.Tensor:
        """(n, coordinates of the scene)."""
        return self._rows("qpos", qs_idx, envs_idx)

    def get_dofs_velocity(self, dofs_idx=None, envs_idx=None) -> torch.Tensor:
        return self._rows("qvel", dofs_idx, envs_idx)

    def get_dofs_position(self, dofs_idx=None, envs_idx=None) -> torch.Tensor:
        scene = self._scene
        scene._need_built()
        dofs = choose(dofs_idx, self.n_dofs, "dof").indices
        dofs = np.arange(self.n_dofs, dtype=np.int32) if dofs is None else dofs
        return scene._out(scene._core.dofs("position", dofs, choose(envs_idx, scene._n, "environment").indices))

    def _links(self, what: str, links_idx, envs_idx) -> torch.Tensor:
        scene = self._scene
        scene._need_built()
        links = choose(links_idx, self.n_links, "link").indices
        links = np.arange(self.n_links, dtype=np.int32) if links is None else links
        return scene._out(scene._core.links(what, links, choose(envs_idx, scene._n, "environment").indices))

    def get_links_pos(self, links_idx=None, envs_idx=None) -> torch.Tensor:
        """(n, links, 3) m; link 0 is the world."""
        return self._links("pos", links_idx, envs_idx)

    def get_links_quat(self, links_idx=None, envs_idx=None) -> torch.Tensor:
        return self._links("quat", links_idx, envs_idx)

    def get_links_vel(self, links_idx=None, envs_idx=None) -> torch.Tensor:
        return self._links("vel", links_idx, envs_idx)

    def get_links_ang(self, links_idx=None, envs_idx=None) -> torch.Tensor:
        return self._links("ang", links_idx, envs_idx)

    def get_error_envs_mask(self) -> torch.Tensor:
        """(n) bool: environments that broke (a NaN, more contacts than there is room for) and stand still until they are set or
        reset; Scene.why_stopped says why."""
        self._scene._need_built()
        return tensor(np.array(self._scene._view("status")[:, 0] != 0))

    def apply_links_external_force(self, force, links_idx, envs_idx=None) -> None:
        """(n, links, 3) N at the links' centres of mass, in the world, for the next step."""
        self._scene._push(force, links_idx, envs_idx, 0)

    def apply_links_external_torque(self, torque, links_idx, envs_idx=None) -> None:
        """(n, links, 3) N m, likewise."""
        self._scene._push(torque, links_idx, envs_idx, 3)


class _Simulator:
    def __init__(self, scene: Scene) -> None:
        self.rigid_solver = scene.rigid_solver
        self._scene = scene

    @property
    def dt(self) -> float:
        return self._scene.dt


class Scene:
    """Many copies of one rigid scene."""

    def __init__(self, sim_options=None, rigid_options=None, vis_options=None, viewer_options=None, profiling_options=None, renderer=None,
                 show_viewer=None, show_FPS=None, **others) -> None:  # fmt: skip
        need_init()
        for name, value in others.items():
            if name not in _SOFT:
                raise GenesisException(f"gs.Scene has no `{name}`")
            if value is not None:
                raise GenesisException(f"gs.Scene({name}=...): cohort.gs simulates rigid bodies; soft ones, liquids and their coupling "
                                       "need Genesis itself")  # fmt: skip
        self.sim_options = sim_options or SimOptions()
        self.rigid_options = rigid_options or RigidOptions()
        self.vis_options = vis_options or VisOptions()
        self.viewer_options = viewer_options or ViewerOptions()
        self.profiling_options = profiling_options or ProfilingOptions()
        if show_viewer:
            say_once("there is no window (show_viewer): add a camera and record it")
        self.dt, self.substeps = self.sim_options.dt, self.sim_options.substeps
        own = self.rigid_options.dt
        if own is not None and abs(own - self.dt) > 1e-12:
            self.substeps = round(self.dt / own)
            if self.substeps < 1 or abs(self.substeps * own - self.dt) > 1e-9:
                raise GenesisException(f"RigidOptions.dt is {own} s, of which SimOptions.dt, {self.dt} s, is no multiple")
        self.seed = State.seed
        self.entities: list[RigidEntity] = []
        self.sensors: list = []
        self.cameras: list[Camera] = []
        self.is_built = False
        self.n_envs = 0
        self._n = 1
        self._core = None
        self._recorders: list[Recorder] = []
        self._pushed = False
        self.t = 0
        self._since_reset = 0  # steps since any environment was
        self.rigid_solver = RigidSolver(self)
        self.sim = _Simulator(self)

    def _need_built(self) -> None:
        if not self.is_built:
            raise GenesisException("the scene is not built: scene.build() comes first")

    def _need_not_built(self, what: str) -> None:
        if self.is_built:
            raise GenesisException(f"{what} comes before scene.build()")

    # ---- before the build

    def add_entity(self, morph, material=None, surface=None, visualize_contact=False, vis_mode=None, name=None) -> RigidEntity:
        self._need_not_built("add_entity")
        if not isinstance(morph, morphs.Morph):
            raise GenesisException(f"add_entity takes a gs.morphs...., not {type(morph).__name__}")
        if material is not None and not isinstance(material, materials.Rigid):
            raise GenesisException(f"material is {type(material).__name__}: gs.materials.Rigid()")
        name = name or f"{type(morph).__name__.lower()}_{len(self.entities)}"
        if "/" in name or any(e.name == name for e in self.entities):
            raise GenesisException(f"an entity cannot be named `{name}`: {'no slashes' if '/' in name else 'another is'}")
        entity = RigidEntity(self, len(self.entities), morph, material or materials.Rigid(), surface or surfaces.Default(), name)
        self.entities.append(entity)
        return entity

    def get_entity(self, name: str) -> RigidEntity:
        for entity in self.entities:
            if entity.name == name:
                return entity
        raise GenesisException(f"the scene has no entity `{name}` (it has: {', '.join(e.name for e in self.entities)})")

    def add_camera(self, model="pinhole", res=(320, 320), pos=(0.5, 2.5, 3.5), lookat=(0.5, 0.5, 0.5), up=(0.0, 0.0, 1.0), fov=30,
                   GUI=False, env_idx=None, **others) -> Camera:  # fmt: skip
        """fov: degrees, vertical. What lenses and light of Genesis' ray tracer would do has no effect."""
        if model != "pinhole":
            raise GenesisException(f"a camera of model `{model}`: pinhole")
        if GUI:
            say_once("there is no window (GUI): record the camera")
        unknown = set(others) - {"aperture", "focus_dist", "spp", "denoise", "near", "far", "debug"}
        if unknown:
            raise GenesisException(f"add_camera has no `{unknown.pop()}`")
        camera = Camera(self, len(self.cameras), res, pos, lookat, up, fov, env_idx)
        self.cameras.append(camera)
        return camera

    def add_sensor(self, sensor_options):
        self._need_not_built("add_sensor")
        sensor = make_sensor(self, sensor_options)
        self.sensors.append(sensor)
        return sensor

    def start_recording(self, data_func, rec_options) -> Recorder:
        """Calls data_func() after each step (rec_options.hz: so many times a second) and writes what it gives, until
        stop_recording()."""
        recorder = Recorder(self, data_func, rec_options)
        self._recorders.append(recorder)
        return recorder

    add_recorder = start_recording

    def stop_recording(self) -> None:
        for recorder in self._recorders:
            recorder.stop()
        self._recorders = []

    def build(self, n_envs=0, env_spacing=(0.0, 0.0), n_envs_per_row=None, center_envs_at_origin=True) -> None:
        """n_envs: 0 is one environment whose arrays have no dimension for it. env_spacing: m, how far apart a picture draws them."""
        self._need_not_built("build")
        rigid, sim = self.rigid_options, self.sim_options
        exclude = []
        if not rigid.enable_self_collision:
            for entity in self.entities:
                own = [f"{entity.name}/{link.name}" for link in entity.links]
                exclude += [(a, b) for i, a in enumerate(own) for b in own[i + 1 :]]
        names = {integrator.Euler: "Euler"}
        device = "cpu" if State.backend == _backend.cpu else str(State.device)
        core = _core.Scene(
            timestep=self.dt / self.substeps, substeps=self.substeps, gravity=rigid.gravity or sim.gravity,
            integrator=names.get(rigid.integrator, "implicitfast"),
            solver="CG" if rigid.constraint_solver == constraint_solver.CG else "Newton",
            cone="elliptic" if rigid.friction_cone == friction_cone.elliptic else "pyramidal", iterations=rigid.iterations,
            tolerance=rigid.tolerance, ls_iterations=rigid.ls_iterations, ls_tolerance=rigid.ls_tolerance,
            noslip_iterations=rigid.noslip_iterations, noslip_tolerance=rigid.noslip_tolerance, impratio=rigid.impratio,
            engine=rigid.engine, device=device, threads=rigid.threads or _threads(), seed=self.seed,
            contact_capacity=rigid.contact_capacity or rigid.max_contacts or 0, exclude=exclude,
        )  # fmt: skip
        for entity in self.entities:
            entity._add_to(core, rigid)
        core.build(max(int(n_envs), 1), tuple(float(x) for x in env_spacing))
        for warning in core.warnings:
            logger.info(warning)
        self._core, self.n_envs, self._n = core, int(n_envs), max(int(n_envs), 1)
        self._idle_dofs = np.ones((self._n, core.sizes[1]), dtype=bool)
        self._actuator_of_dof = {a[1]: i for i, a in enumerate(core.actuators()) if a[1] >= 0}
        self._friction0 = core.parameter("geom_friction", None, np.array([0], dtype=np.int32))[0].reshape(-1, 3)[:, 0] if core.sizes[4] else []
        core.set_picture(self.vis_options.shadow, self.vis_options.plane_reflection)
        self.is_built = True
        for entity in self.entities:
            entity._after_build()
        for sensor in self.sensors:
            sensor._built()

    # ---- afterwards

    def _view(self, field: str) -> np.ndarray:
        return self._core.view(field)

    def _idle(self, envs) -> np.ndarray:
        return self._idle_dofs if envs.indices is None else self._idle_dofs[envs.indices]

    def _out(self, array) -> torch.Tensor:
        """A tensor of (n, ...), without n where the scene has no environments."""
        made = array if isinstance(array, torch.Tensor) else tensor(array)
        return made if self.n_envs > 0 else made[0]

    def _reset_broken(self, envs) -> None:
        status = self._view("status")[:, 0]
        rows = np.flatnonzero(status) if envs.indices is None else envs.indices[status[envs.indices] != 0]
        if len(rows):
            self._restart(rows.astype(np.int32))

    def _restart(self, rows) -> None:
        self._core.reset(rows)
        self._since_reset = 0
        self._idle_dofs[slice(None) if rows is None else rows] = True
        for entity in self.entities:
            entity._let_go(rows)

    def _push(self, values, links_idx, envs_idx, first: int) -> None:
        self._need_built()
        envs, links = choose(envs_idx, self._n, "environment"), choose(links_idx, self._core.sizes[3], "link")
        rows = np.arange(self._n, dtype=np.int32) if envs.indices is None else envs.indices
        if not len(rows):
            return
        items = np.arange(links.count, dtype=np.int32) if links.indices is None else links.indices
        wrench = np.array(self._view("xfrc_applied")[rows], dtype=np.float32).reshape(len(rows), -1, 6)[:, items]
        wrench[..., first : first + 3] += values_for(values, (len(items), 3), envs, "force")
        self._core.set_links_force(np.ascontiguousarray(wrench), items, rows)
        self._pushed = True

    def step(self, update_visualizer=True, refresh_visualizer=True) -> None:
        """Advances every environment by dt."""
        self._need_built()
        self._core.step()
        self.t += 1
        self._since_reset += 1
        if self._since_reset >= 4096 and self._since_reset & (self._since_reset - 1) == 0:
            self._say_lost_positions()
        if self._pushed:
            links = np.arange(self._core.sizes[3], dtype=np.int32)
            self._core.set_links_force(np.zeros((len(links), 6), dtype=np.float32), links)
            self._pushed = False
        for sensor in self.sensors:
            sensor._stepped()
        for camera in self.cameras:
            camera._stepped()
        for recorder in self._recorders:
            recorder._stepped()

    def _say_lost_positions(self) -> None:
        lost = self._core.lost_positions(self._since_reset * self.substeps)
        if lost:
            say_once(f"{lost}. Start nearer to zero or take a longer dt; RigidOptions(engine='mujoco') computes in double precision")

    def reset(self, state=None, envs_idx=None) -> None:
        """The state that build() left, controls too; gains and other parameters stay."""
        self._need_built()
        if state is not None:
            raise GenesisException("reset(state): set what it holds with set_qpos and set_dofs_velocity")
        envs = choose(envs_idx, self._n, "environment")
        if envs.size:
            self._restart(envs.indices)
        if envs_idx is None:
            self.t = 0

    def why_stopped(self, env: int) -> str:
        """Of an environment that broke, why and what to do; "" of one that goes on. Cohort's own."""
        self._need_built()
        return self._core.why_stopped(int(env))

    def _contacts(self, entity, with_entity, exclude_self: bool) -> dict[str, torch.Tensor]:
        self._need_built()
        if with_entity is entity and exclude_self:
            raise GenesisException("get_contacts: with_entity is the entity itself, and exclude_self_contact is set")
        who, where = self._core.contacts()
        own = np.array([g[1] for g in entity._parts()["geoms"]], dtype=np.int32)
        a, b = np.isin(who[:, 1], own), np.isin(who[:, 2], own)
        keep = (a & b) if with_entity is entity else (a ^ b) if exclude_self else (a | b)
        if with_entity is not None and with_entity is not entity:
            other = np.array([g[1] for g in with_entity._parts()["geoms"]], dtype=np.int32)
            keep = keep & (np.isin(who[:, 1], other) | np.isin(who[:, 2], other))
        who, where = who[keep], where[keep]
        counts = np.bincount(who[:, 0], minlength=self._n)
        most = int(counts.max()) if len(who) else 0
        slot = np.arange(len(who)) - np.repeat(np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        place = (who[:, 0], slot)

        def padded(values, fill=0):
            out = np.full((self._n, most, *values.shape[1:]), fill, dtype=values.dtype)
            out[place] = values
            return self._out(out)

        found = {"geom_a": padded(who[:, 1], -1), "geom_b": padded(who[:, 2], -1), "link_a": padded(who[:, 3], -1),
                 "link_b": padded(who[:, 4], -1), "position": padded(where[:, 0:3]), "normal": padded(where[:, 3:6]),
                 "force_a": padded(-where[:, 6:9]), "force_b": padded(where[:, 6:9]), "penetration": padded(-where[:, 9])}  # fmt: skip
        if self.n_envs > 0:
            valid = np.zeros((self._n, most), dtype=bool)
            valid[place] = True
            found["valid_mask"] = tensor(valid)
        return found

    def __getattr__(self, name: str):
        if name.startswith("draw_debug") or name.startswith("clear_debug"):
            say_once(f"scene.{name} draws nothing here")
            return lambda *args, **kwargs: None
        if name in ("add_emitter", "add_force_field", "add_stage", "add_mesh_light", "add_light"):
            raise GenesisException(f"scene.{name} is not here: cohort.gs simulates rigid bodies, lights are the model file's")
        raise AttributeError(f"gs.Scene has no `{name}`")


__all__ = ["RigidSolver", "Scene"]
