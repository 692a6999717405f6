"""The safetensors package writes a file for us, and judges one that we wrote."""
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file


def sample():
    torch.manual_seed(5)
    tensors = {
        "net.weight": torch.randn(3, 4),
        "net.bias": torch.randn(5).to(torch.bfloat16),
        "half": torch.randn(2, 3).half(),
        "double": torch.randn(3, dtype=torch.float64),
        "long": torch.arange(7) * -3,
        "int": torch.arange(3, dtype=torch.int32),
        "short": torch.arange(3, dtype=torch.int16),
        "byte": torch.arange(9, dtype=torch.uint8),
        "char": torch.arange(3, dtype=torch.int8) - 1,
        "flag": torch.tensor([True, False, True]),
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "quote\"back\\slash-\u00e9\u4e2d": torch.ones(1),
    }
    return tensors


def main():
    command, path = sys.argv[1:]
    if command == "write":
        save_file(sample(), path, metadata={"format": "pt"})
        return
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"format": "pt"}, file.metadata()
    ours = load_file(path)
    expected = sample()
    assert ours.keys() == expected.keys(), ours.keys() ^ expected.keys()
    for name, tensor in expected.items():
        assert ours[name].dtype == tensor.dtype and torch.equal(ours[name], tensor), name


main()
