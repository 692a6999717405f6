"""Rotations and poses, of torch tensors and of NumPy arrays alike. Quaternions are (w, x, y, z); what comes in may have any
leading dimensions that broadcast, and comes out as what it came in.

Euler angles: `rpy=False` turns about the body's own x, then y, then z axis (R = Rx Ry Rz); `rpy=True` about the world's x, then
y, then z (R = Rz Ry Rx: roll, pitch, yaw). Formulas: Diebel, "Representing attitude" (2006), sections 5.6, 6 and 8.
"""

from __future__ import annotations

import math

import numpy as np
import torch

__all__ = [
    "R_to_quat", "R_to_xyz", "T_to_trans_quat", "axis_angle_to_quat", "identity_quat", "inv_quat", "inv_transform_by_quat",
    "inv_transform_by_trans_quat", "inv_transform_pos_quat_by_trans_quat", "normalize", "pos_lookat_up_to_T", "quat_to_R",
    "quat_to_rotvec", "quat_to_xyz", "rotvec_to_quat", "slerp", "trans_quat_to_T", "transform_by_quat", "transform_by_trans_quat",
    "transform_pos_quat_by_trans_quat", "transform_quat_by_quat", "xyz_to_quat", "zero_pos",
]  # fmt: skip


def _library(*values):
    """torch or numpy, whichever all of these are of."""
    if all(isinstance(v, torch.Tensor) for v in values):
        return torch
    if all(isinstance(v, np.ndarray) for v in values):
        return np
    raise TypeError(f"all torch tensors or all NumPy arrays, not {', '.join(type(v).__name__ for v in values)}")


def _stack(lib, parts):
    parts = torch.broadcast_tensors(*parts) if lib is torch else np.broadcast_arrays(*parts)
    return torch.stack(parts, dim=-1) if lib is torch else np.stack(parts, axis=-1)


def _norm(lib, x):
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True) if lib is torch else np.linalg.norm(x, axis=-1, keepdims=True)


def _cross(lib, a, b):
    return _stack(lib, (
        a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1],
        a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2],
        a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0],
    ))  # fmt: skip


def normalize(x, eps: float = 1e-12):
    """x of unit length along its last dimension; zero where it is shorter than eps."""
    lib = _library(x)
    return x / (_norm(lib, x).clamp_min(eps) if lib is torch else np.maximum(_norm(lib, x), eps))


def inv_quat(quat):
    """(..., 4) the inverse of unit quaternions."""
    lib = _library(quat)
    return _stack(lib, (quat[..., 0], -quat[..., 1], -quat[..., 2], -quat[..., 3]))


def transform_quat_by_quat(v, u):
    """(..., 4) the rotation v followed by u, u v, of unit length."""
    lib = _library(v, u)
    w1, x1, y1, z1 = (u[..., i] for i in range(4))
    w2, x2, y2, z2 = (v[..., i] for i in range(4))
    return normalize(_stack(lib, (
        w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
        w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
        w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
        w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
    )))  # fmt: skip


def transform_by_quat(v, quat):
    """(..., 3) vectors turned by (..., 4) quaternions, whose length does not matter."""
    lib = _library(v, quat)
    w, u = quat[..., :1], quat[..., 1:]
    turned = _cross(lib, u, _cross(lib, u, v) + w * v)
    return v + 2 * turned / (quat * quat).sum(-1)[..., None]


def inv_transform_by_quat(v, quat):
    return transform_by_quat(v, inv_quat(quat))


def transform_by_trans_quat(pos, trans, quat):
    """(..., 3) points of a frame at `trans`, `quat`, in the world."""
    return transform_by_quat(pos, quat) + trans


def inv_transform_by_trans_quat(pos, trans, quat):
    return inv_transform_by_quat(pos - trans, quat)


def transform_pos_quat_by_trans_quat(pos, quat, t_trans, t_quat):
    """A pose of a frame at `t_trans`, `t_quat`, in the world: (positions, quaternions)."""
    return transform_by_trans_quat(pos, t_trans, t_quat), transform_quat_by_quat(quat, t_quat)


def inv_transform_pos_quat_by_trans_quat(pos, quat, t_trans, t_quat):
    return inv_transform_by_trans_quat(pos, t_trans, t_quat), transform_quat_by_quat(quat, inv_quat(t_quat))


def quat_to_R(quat):
    """(..., 3, 3) rotation matrices."""
    lib = _library(quat)
    w, x, y, z = (normalize(quat)[..., i] for i in range(4))
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    rows = [_stack(lib, row) for row in rows]
    return torch.stack(rows, dim=-2) if lib is torch else np.stack(rows, axis=-2)


def R_to_quat(R):
    """(..., 4) of rotation matrices; w is not negative. The eigenvector of Bar-Itzhack's matrix with the greatest value."""
    lib = _library(R)
    xx, xy, xz = R[..., 0, 0], R[..., 0, 1], R[..., 0, 2]
    yx, yy, yz = R[..., 1, 0], R[..., 1, 1], R[..., 1, 2]
    zx, zy, zz = R[..., 2, 0], R[..., 2, 1], R[..., 2, 2]
    # Each row is the quaternion times four of its own components: the one of the greatest component is taken.
    rows = (
        (1 + xx + yy + zz, zy - yz, xz - zx, yx - xy),
        (zy - yz, 1 + xx - yy - zz, xy + yx, xz + zx),
        (xz - zx, xy + yx, 1 - xx + yy - zz, yz + zy),
        (yx - xy, xz + zx, yz + zy, 1 - xx - yy + zz),
    )
    rows = [_stack(lib, row) for row in rows]
    table = torch.stack(rows, dim=-2) if lib is torch else np.stack(rows, axis=-2)
    sizes = _norm(lib, table)[..., 0]
    if lib is torch:
        best = sizes.argmax(-1)[..., None, None].expand(*sizes.shape[:-1], 1, 4)
        quat = normalize(torch.gather(table, -2, best)[..., 0, :])
        return torch.where(quat[..., :1] < 0, -quat, quat)
    best = sizes.argmax(-1)[..., None, None]
    quat = normalize(np.take_along_axis(table, best, axis=-2)[..., 0, :])
    return np.where(quat[..., :1] < 0, -quat, quat)


def _axis_quat(lib, angle, axis: int):
    half = angle / 2
    zero = half * 0
    parts = [lib.cos(half), zero, zero, zero]
    parts[1 + axis] = lib.sin(half)
    return _stack(lib, parts)


def xyz_to_quat(xyz, rpy: bool = False, degrees: bool = False):
    """(..., 4) of Euler angles (..., 3), rad or degrees."""
    lib = _library(xyz)
    if degrees:
        xyz = xyz * (math.pi / 180)
    x, y, z = (_axis_quat(lib, xyz[..., i], i) for i in range(3))
    order = (x, y, z) if rpy else (z, y, x)  # what is applied first stands first
    return transform_quat_by_quat(transform_quat_by_quat(order[0], order[1]), order[2])


def R_to_xyz(R, rpy: bool = False, degrees: bool = False):
    """(..., 3) Euler angles of rotation matrices; where the second is a right angle the first is 0."""
    lib = _library(R)
    atan2 = torch.atan2 if lib is torch else np.arctan2
    if rpy:
        cos_y = lib.hypot(R[..., 2, 1], R[..., 2, 2])
        regular = (atan2(R[..., 2, 1], R[..., 2, 2]), atan2(R[..., 1, 0], R[..., 0, 0]))
        y = atan2(-R[..., 2, 0], cos_y)
        z_locked = atan2(-R[..., 0, 1], R[..., 1, 1])
    else:
        cos_y = lib.hypot(R[..., 1, 2], R[..., 2, 2])
        regular = (atan2(-R[..., 1, 2], R[..., 2, 2]), atan2(-R[..., 0, 1], R[..., 0, 0]))
        y = atan2(R[..., 0, 2], cos_y)
        z_locked = atan2(R[..., 1, 0], R[..., 1, 1])
    locked = cos_y < 1e-6
    xyz = _stack(lib, (lib.where(locked, y * 0, regular[0]), y, lib.where(locked, z_locked, regular[1])))
    return xyz * (180 / math.pi) if degrees else xyz


def quat_to_xyz(quat, rpy: bool = False, degrees: bool = False):
    """(..., 3) Euler angles of quaternions, rad or degrees."""
    return R_to_xyz(quat_to_R(quat), rpy, degrees)


def rotvec_to_quat(rotvec):
    """(..., 4) of rotation vectors (..., 3), rad."""
    lib = _library(rotvec)
    half = _norm(lib, rotvec) / 2
    # sin(h) / (2 h): numpy's and torch's sinc is that of pi h.
    axis = rotvec * (lib.sinc(half / math.pi) / 2)
    return torch.cat((torch.cos(half), axis), dim=-1) if lib is torch else np.concatenate((np.cos(half), axis), axis=-1)


def quat_to_rotvec(quat):
    """(..., 3) rad, no longer than pi."""
    lib = _library(quat)
    quat = lib.where(quat[..., :1] < 0, -quat, quat)
    sine = _norm(lib, quat[..., 1:])
    angle = 2 * (torch.atan2(sine, quat[..., :1]) if lib is torch else np.arctan2(sine, quat[..., :1]))
    small = sine < 1e-9
    return quat[..., 1:] * lib.where(small, 2 + 0 * angle, angle / lib.where(small, 1 + 0 * sine, sine))


def axis_angle_to_quat(angle, axis):
    """(..., 4) of angles (...), rad, about axes (..., 3)."""
    _library(angle, axis)
    return rotvec_to_quat(normalize(axis) * angle[..., None])


def slerp(q0, q1, t):
    """(..., 4) on the shorter way from q0 to q1; t (...) from 0 to 1."""
    lib = _library(q0, q1)
    t = lib.as_tensor(t, dtype=q0.dtype, device=q0.device) if lib is torch else np.asarray(t)
    step = quat_to_rotvec(transform_quat_by_quat(inv_quat(q0), q1))  # q1 inv(q0): in the world
    return transform_quat_by_quat(q0, rotvec_to_quat(step * t[..., None]))


def trans_quat_to_T(trans, quat):
    """(..., 4, 4) homogeneous matrices."""
    lib = _library(trans, quat)
    R = quat_to_R(quat)
    shape = (*R.shape[:-2], 4, 4)
    T = torch.zeros(shape, dtype=R.dtype, device=R.device) if lib is torch else np.zeros(shape, dtype=R.dtype)
    T[..., :3, :3] = R
    T[..., :3, 3] = trans
    T[..., 3, 3] = 1
    return T


def T_to_trans_quat(T):
    return T[..., :3, 3], R_to_quat(T[..., :3, :3])


def pos_lookat_up_to_T(pos, lookat, up):
    """The pose of a camera at `pos`: (..., 4, 4) whose columns are its right, its up, and what lies behind it."""
    lib = _library(pos, lookat, up)
    back = normalize(pos - lookat)
    right = _cross(lib, up, back)
    # Straight up or down: any direction across will do.
    other = back * 0
    other[..., 0] += 1
    right = lib.where(_norm(lib, right) < 1e-6, _cross(lib, _cross(lib, back, other), back), right)
    right = normalize(right)
    columns = (right, _cross(lib, back, right), back)
    R = torch.stack(columns, dim=-1) if lib is torch else np.stack(columns, axis=-1)
    return trans_quat_to_T(pos, R_to_quat(R))


def zero_pos():
    return np.zeros(3)


def identity_quat():
    return np.array([1.0, 0.0, 0.0, 0.0])
