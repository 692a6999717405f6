#!/usr/bin/env python3
"""Holds a file of write_torch_file() against torch.load: torch_zip_parity.py STATE.pt ALONE.pt STATE.safetensors"""
import sys

import torch
from safetensors.torch import load_file

state, alone, expected = sys.argv[1:]
read = torch.load(state, weights_only=True)
theirs = load_file(expected)
assert read.pop("instruction") == "\u00f6ffne", read
assert list(read) == sorted(theirs), list(read)
for name, tensor in read.items():
    assert tensor.dtype == theirs[name].dtype and torch.equal(tensor, theirs[name]), name
only = torch.load(alone, weights_only=True)
assert torch.equal(only, theirs["a"]), only
assert torch.equal(torch.load(alone, weights_only=True, mmap=True), theirs["a"])
