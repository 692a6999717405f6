"""Genesis' words for rigid scenes, on Cohort's engines: `import cohort.gs as gs` instead of `import genesis as gs`.

    gs.init(backend=gs.cpu, seed=1)
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.02, substeps=2))
    scene.add_entity(gs.morphs.Plane())
    robot = scene.add_entity(gs.morphs.MJCF(file="robot.xml"))
    scene.build(n_envs=64)
    robot.control_dofs_position(targets, dofs, envs_idx=mask)
    scene.step()

What is different from Genesis stands in docs/guide/genesis.md; what is not rigid is refused by name. Needs torch.
"""

from __future__ import annotations

import logging as _logging
import os as _os

import numpy as np
import torch

from . import constants, materials, morphs, options, recorders, renderers, sensors, surfaces, textures, utils
from ._core_import import _core
from ._errors import GenesisException, logger, raise_exception
from ._state import State as _State
from .constants import JOINT_TYPE, constraint_solver, friction_cone, integrator
from .entity import RigidEntity, RigidJoint, RigidLink
from .scene import RigidSolver, Scene
from .vis.camera import Camera

_backend = constants.backend
cpu, gpu, cuda, amdgpu, metal = _backend.cpu, _backend.gpu, _backend.cuda, _backend.amdgpu, _backend.metal
tc_float, tc_int, tc_bool = torch.float32, torch.int32, torch.bool
np_float, np_int, np_bool = np.float32, np.int32, np.bool_
EPS = 1e-15
Entity = RigidEntity

__all__ = [
    "EPS", "Camera", "Entity", "GenesisException", "JOINT_TYPE", "RigidEntity", "RigidJoint", "RigidLink", "RigidSolver", "Scene",
    "amdgpu", "constants", "constraint_solver", "cpu", "cuda", "destroy", "friction_cone", "gpu", "init", "integrator", "logger",
    "materials", "metal", "morphs", "np_bool", "np_float", "np_int", "options", "raise_exception", "recorders", "renderers", "sensors",
    "surfaces", "tc_bool", "tc_float", "tc_int", "textures", "utils",
]  # fmt: skip


def init(*, backend=None, precision="32", logging_level=None, debug=False, seed=None, eps=1e-15, theme="dark", logger_verbose_time=False,
         performance_mode=False, use_deterministic_algorithms=None) -> None:  # fmt: skip
    """Settles the device and the seed. backend: gs.cpu; gs.gpu and gs.cuda: a CUDA device, which gs.gpu and None do without where
    there is none. Results are the same for any number of threads; `precision` is 32 bits (RigidOptions.engine="mujoco" computes
    in 64)."""
    if _State.initialized:
        raise GenesisException("gs.init() was called already: gs.destroy() comes first")
    if str(precision) != "32":
        raise GenesisException(f'precision is {precision!r}: "32"; physics in double: RigidOptions(engine="mujoco")')
    backend = _backend.gpu if backend is None else _backend(backend)
    if backend in (_backend.amdgpu, _backend.metal):
        raise GenesisException(f"backend {backend.name}: gs.cpu or gs.cuda")
    there = torch.cuda.is_available()
    if backend == _backend.cuda and not there:
        raise GenesisException("backend cuda: this torch sees no CUDA device; gs.cpu, or gs.gpu for whichever there is")
    _State.backend = _backend.cuda if there and backend != _backend.cpu else _backend.cpu
    _State.device = torch.device("cpu")
    if _State.backend == _backend.cuda:  # of a launcher's rank its own
        own = _core.rank_device("cuda") if _os.environ.get("LOCAL_RANK") else f"cuda:{torch.cuda.current_device()}"
        _State.device = torch.device(own)
    _State.seed = 0 if seed is None else int(seed)
    _State.initialized = True
    if logging_level is not None:
        logger.setLevel(logging_level.upper() if isinstance(logging_level, str) else logging_level)
    elif debug:
        logger.setLevel(_logging.DEBUG)
    if seed is not None:
        torch.manual_seed(_State.seed)
        np.random.seed(_State.seed % 2**32)


def destroy() -> None:
    """Undoes init(); scenes go when nothing refers to them any more."""
    _State.initialized = False
    _State.backend = None
    _State.device = torch.device("cpu")


def __getattr__(name: str):
    if name == "device":
        return _State.device
    if name == "backend":
        return _State.backend
    if name == "_initialized":
        return _State.initialized
    raise AttributeError(f"cohort.gs has no `{name}`")
