#!/usr/bin/env python3
"""Writes pseudo_inertia.json: what mjlab 1.6.0's dr.pseudo_inertia makes of links' masses and inertias.

    python tests/tasks/make_pseudo_inertia_fixture.py FOLDER_OF_MJLAB > tests/tasks/pseudo_inertia.json

FOLDER_OF_MJLAB: the package `mjlab` of its wheel, unpacked. Of envs/mdp/dr/body.py the functions that compute are run as
they stand, in double; the simulator they belong to is not needed. Needs torch.
"""
import ast
import json
import sys
from pathlib import Path

import torch


def matrix_from_quat(q):
    w, x, y, z = q.unbind(-1)
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return torch.stack(rows, -1).reshape(*q.shape[:-1], 3, 3)


def functions(folder):
    tree = ast.parse((Path(folder) / "envs/mdp/dr/body.py").read_text())
    wanted = {"_cholesky_4x4", "_eigh_3x3_jacobi", "_reconstruct_pseudo_inertia_J", "_decompose_pseudo_inertia_J",
              "_build_perturbation_U", "_JACOBI_SWEEPS"}
    name = lambda n: n.name if isinstance(n, ast.FunctionDef) else n.targets[0].id if isinstance(n, ast.Assign) else ""
    tree.body = [n for n in tree.body if name(n) in wanted]
    # The axes are compared as the tensor that they make, so that the quaternion may stay a matrix.
    space = {"torch": torch, "matrix_from_quat": matrix_from_quat, "quat_from_matrix": lambda m: m}
    exec(compile(tree, "body.py", "exec"), space)
    return space


def main():
    f = functions(sys.argv[1])
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    cases = []
    for _ in range(12):
        mass = 0.2 + 5 * torch.rand(())
        com = 0.2 * (torch.rand(3) - 0.5)
        second = 0.001 + 0.05 * torch.rand(3)
        moments = mass * (second.sum() - second)
        quat = torch.randn(4)
        quat = quat / quat.norm()
        by = torch.cat([0.4 * (torch.rand(7) - 0.5), 0.1 * (torch.rand(3) - 0.5)])
        L = f["_cholesky_4x4"](f["_reconstruct_pseudo_inertia_J"](mass[None], com[None], moments[None], quat[None]))
        L = f["_build_perturbation_U"](*[b[None] for b in by]) @ L
        new_mass, new_com, new_moments, axes = f["_decompose_pseudo_inertia_J"](L @ L.mT)
        tensor = axes[0] @ torch.diag(new_moments[0]) @ axes[0].T
        cases.append({"mass": mass.item(), "com": com.tolist(), "moments": moments.tolist(), "quat": quat.tolist(),
                      "by": by.tolist(), "new_mass": new_mass.item(), "new_com": new_com[0].tolist(),
                      "new_inertia": tensor.reshape(-1).tolist()})
    print("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")


if __name__ == "__main__":
    main()
