#!/usr/bin/env python3
"""Writes tests/models/fixtures/diffusion/shallow.json: robomimic's ShallowConv (0.3.0) and SpatialSoftmax behind it, output
and gradients in float64. Weights and pictures by the formula of reference.py.

    make_shallow_fixture.py OUT_FOLDER
"""
import json
import sys
from pathlib import Path
from unittest.mock import MagicMock

import torch

for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.functional", "torchvision.models", "matplotlib", "matplotlib.pyplot"):
    sys.modules.setdefault(name, MagicMock())  # robomimic asks for it, but neither of these two uses it
from robomimic.models.base_nets import ShallowConv, SpatialSoftmax  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "policies" / "diffusion"))
import reference  # noqa: E402


def main():
    net = ShallowConv().nets
    pool = SpatialSoftmax(input_shape=[32, 24, 16], num_kp=8)
    for module in (net, pool):
        reference.fill(module).double()
    x = (reference.tensor("image", 2, 3, 48, 32).double() + 1) / 2
    maps = net(x)
    points = pool(maps)
    (maps * reference.tensor("target", *maps.shape).double()).sum().backward(retain_graph=True)
    out = {"shape": list(maps.shape), "output": reference.output_facts(maps),
           "gradients": reference.gradient_facts(net.named_parameters()), "points": reference.output_facts(points)}
    Path(sys.argv[1], "shallow.json").write_text(json.dumps(out, indent=1) + "\n")


main()
