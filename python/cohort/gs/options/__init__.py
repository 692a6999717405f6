"""Options of a scene. Those of solvers that are not rigid are refused by name when they are asked for."""

from __future__ import annotations

from .._errors import GenesisException, refuse
from .._options import Options, numbers
from ..constants import constraint_solver as _solver
from ..constants import friction_cone as _cone
from ..constants import integrator as _integrator

__all__ = ["ProfilingOptions", "RigidOptions", "SimOptions", "ViewerOptions", "VisOptions"]


class SimOptions(Options):
    """dt: s, of a `scene.step()`; substeps: physics steps in it; gravity: m/s^2."""

    dt: float = 1e-2
    substeps: int = 1
    gravity: tuple = (0.0, 0.0, -9.81)
    requires_grad: bool = False
    _without_effect = frozenset({"substeps_local", "floor_height", "use_hydroelastic_contact"})

    def _check(self) -> None:
        if self.requires_grad:
            raise GenesisException("SimOptions.requires_grad: cohort.gs has no gradients through physics; train with gs and torch's "
                                   "autograd of the policy alone")  # fmt: skip
        if not self.dt > 0 or self.substeps < 1:
            raise GenesisException(f"SimOptions: dt is {self.dt} s and substeps {self.substeps}: both above zero")
        self.gravity = numbers("SimOptions.gravity", self.gravity, 3)


class RigidOptions(Options):
    """Of the rigid solver. engine, threads and contact_capacity are Cohort's own: `batched` (float, many environments at once; the
    features of docs/reference/simulation.md) or `mujoco` (MuJoCo itself, double); cores; contacts of an environment, 0: all that
    there can be."""

    dt: float | None = None
    gravity: tuple | None = None
    enable_collision: bool = True
    enable_self_collision: bool = True
    enable_joint_limit: bool = True
    integrator: _integrator = _integrator.approximate_implicitfast
    constraint_solver: _solver = _solver.Newton
    friction_cone: _cone = _cone.pyramidal
    iterations: int | None = None
    tolerance: float | None = None
    ls_iterations: int | None = None
    ls_tolerance: float | None = None
    noslip_iterations: int | None = None
    noslip_tolerance: float | None = None
    impratio: float | None = None
    constraint_timeconst: float | None = None
    max_contacts: int | None = None
    engine: str = "batched"
    threads: int | None = None
    contact_capacity: int = 0
    _without_effect = frozenset({
        "max_collision_pairs", "multiplier_collision_broad_phase", "batch_links_info", "batch_joints_info", "batch_dofs_info",
        "enable_neutral_collision", "enable_adjacent_collision", "enable_torsional_friction", "enable_rolling_friction",
        "sparse_solve", "use_gjk_collision",
        "use_contact_island", "use_hibernation", "hibernation_thresh_vel", "hibernation_thresh_acc", "max_dynamic_constraints",
        "box_box_detection", "enable_multi_contact", "enable_mujoco_compatibility", "contact_resolution", "enable_contact_patch",
        "contact_pruning_tolerance", "max_iters_solver", "IK_max_targets", "ccd_algorithm", "prefer_parallel_linesearch",
        "use_batch_camera", "disable_constraint", "contact_resolve_time",
    })  # fmt: skip

    def _check(self) -> None:
        if self.gravity is not None:
            self.gravity = numbers("RigidOptions.gravity", self.gravity, 3)
        if not self.enable_joint_limit:
            raise GenesisException("RigidOptions.enable_joint_limit=False: the limits are the file's; take `range` out of it")


class VisOptions(Options):
    """rendered_envs_idx: what cameras show, None: all; env_separate_rigid: a picture of each environment instead of one of all."""

    rendered_envs_idx: list | None = None
    env_separate_rigid: bool = False
    shadow: bool = True
    plane_reflection: bool = False
    _without_effect = frozenset({
        "show_world_frame", "world_frame_size", "show_link_frame", "link_frame_size", "show_cameras", "background_color",
        "ambient_light", "visualize_mpm_boundary", "visualize_sph_boundary", "visualize_pbd_boundary", "segmentation_level",
        "render_particle_as", "particle_size_scale", "contact_force_scale", "n_support_neighbors", "n_rendered_envs", "lights",
    })  # fmt: skip


class ViewerOptions(Options):
    """There is no window: cameras draw pictures and videos, `cohort watch` shows a task's robots."""

    camera_pos: tuple = (3.5, 0.5, 2.5)
    camera_lookat: tuple = (0.0, 0.0, 0.5)
    camera_fov: float = 40
    max_FPS: int | None = 60
    _without_effect = frozenset({"res", "run_in_thread", "refresh_rate", "camera_up", "enable_interaction", "realtime_factor",
                                 "disable_keyboard_shortcuts", "enable_help_text", "enable_gui"})  # fmt: skip


class ProfilingOptions(Options):
    show_FPS: bool = False
    FPS_tracker_alpha: float = 0.95


def __getattr__(name: str):
    if name.endswith("Options") and not name.startswith("_"):
        raise refuse(f"options.{name}", "There are SimOptions, RigidOptions, VisOptions, ViewerOptions and ProfilingOptions.")
    raise AttributeError(name)


from . import sensors  # noqa: E402, F401
