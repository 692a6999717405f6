#!/usr/bin/env python3
"""Writes files as torch.save() does, and the same tensors as safetensors: make_torch_fixtures.py tests/weights/fixtures"""
import collections
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file


def tensors():
    torch.manual_seed(3)
    table = torch.randn(4, 6)
    return collections.OrderedDict([
        ("net.weight", torch.nn.Parameter(torch.randn(3, 4))),
        ("net.bias", torch.randn(5).to(torch.bfloat16)),
        ("half", torch.randn(2, 3).half()),
        ("double", torch.randn(3, dtype=torch.float64)),
        ("long", torch.arange(7) * -300000),
        ("int", torch.arange(3, dtype=torch.int32)),
        ("short", torch.arange(3, dtype=torch.int16)),
        ("byte", torch.arange(9, dtype=torch.uint8)),
        ("char", torch.arange(3, dtype=torch.int8) - 1),
        ("flag", torch.tensor([True, False, True])),
        ("scalar", torch.tensor(2.5)),
        ("empty", torch.empty(0, 3)),
        ("transposed", table.t()),
        ("part", table[1:3, 2:5]),
        ("gr\u00f6\u00dfe", torch.ones(1)),
    ])


class Hostile:
    def __reduce__(self):
        import os
        return os.system, ("touch /tmp/a_pickle_was_run",)


def main():
    out = Path(sys.argv[1])
    state = tensors()
    state._metadata = {"": {"version": 1}}
    torch.save(state, out / "state.bin")
    save_file({k: v.detach().contiguous() for k, v in state.items()}, out / "state.safetensors")
    torch.save({"module": {"a": torch.arange(3.0), "b": {"c": torch.ones(2)}}, "step": 7, "lr": 1e-4, "names": ["x", None],
                "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}}}, out / "checkpoint.pt")
    torch.save(torch.arange(8.0).reshape(1, 2, 4), out / "embedding.pt")
    torch.save({"w": torch.ones(2), "x": Hostile()}, out / "hostile.pt")
    torch.save({"w": torch.ones(2)}, out / "old.pt", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    main()
