"""Names of choices, as Genesis has them."""

from __future__ import annotations

import enum


class backend(enum.IntEnum):
    """Where physics is computed. `gpu`: a CUDA device where there is one, else the processor."""

    cpu = 0
    gpu = 1
    cuda = 2
    amdgpu = 3
    metal = 4


class JOINT_TYPE(enum.IntEnum):
    FIXED = 0
    REVOLUTE = 1
    PRISMATIC = 2
    SPHERICAL = 3
    FREE = 4


class integrator(enum.IntEnum):
    Euler = 0
    implicitfast = 1
    approximate_implicitfast = 2  # here: implicitfast


class constraint_solver(enum.IntEnum):
    CG = 0
    Newton = 1


class friction_cone(enum.IntEnum):
    pyramidal = 0
    elliptic = 1
