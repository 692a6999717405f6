"""Writes torch_exports.json: actors of rsl_rl's form (normaliser, memory, MLP) as PyTorch's exporter writes them for mjlab and
Isaac Lab, each with inputs and what onnxruntime makes of them.

  python make_torch_export_fixtures.py torch_exports.json     (torch 2.11.0, onnx 1.23.2, onnxruntime 1.32.0)
"""
import io
import json
import sys

import numpy as np
import onnxruntime
import torch

from make_operator_fixtures import described

HIDDEN, LAYERS = 6, 2


class Normaliser(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.randn(1, width))
        self.register_buffer("std", torch.rand(1, width) + 0.5)

    def forward(self, x):
        return (x - self.mean) / (self.std + 0.01)


class Actor(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.normaliser = kind, Normaliser(5)
        width = 5 if kind == "MLP" else HIDDEN
        self.rnn = None if kind == "MLP" else getattr(torch.nn, kind)(5, HIDDEN, LAYERS)
        self.actor = torch.nn.Sequential(torch.nn.Linear(width, 8), torch.nn.ELU(), torch.nn.Linear(8, 3))

    def forward(self, obs, *memory):
        x = self.normaliser(obs)
        if self.rnn is None:
            return self.actor(x)
        x, after = self.rnn(x.unsqueeze(0), memory if self.kind == "LSTM" else memory[0])
        after = after if self.kind == "LSTM" else (after,)
        return (self.actor(x.squeeze(0)), *after)


def case(kind, opset):
    torch.manual_seed(opset)
    stems = {"MLP": [], "GRU": ["h"], "LSTM": ["h", "c"]}[kind]
    values = [torch.randn(1, 5)] + [torch.randn(LAYERS, 1, HIDDEN) for _ in stems]
    inputs = ["obs"] + [stem + "_in" for stem in stems]
    outputs = ["actions"] + [stem + "_out" for stem in stems]
    file = io.BytesIO()
    torch.onnx.export(Actor(kind), tuple(values), file, opset_version=opset, input_names=inputs, output_names=outputs,
                      dynamo=False)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    results = session.run(outputs, {name: value.numpy() for name, value in zip(inputs, values)})
    return {"name": f"{kind} of opset {opset}", "model": file.getvalue().hex(),
            "inputs": [described(name, value.numpy()) for name, value in zip(inputs, values)],
            "outputs": [described(name, np.asarray(value)) for name, value in zip(outputs, results)]}


if __name__ == "__main__":
    made = [case(kind, opset) for kind in ["MLP", "GRU", "LSTM"] for opset in [11, 18]]
    with open(sys.argv[1], "w") as out:
        json.dump({"torch": torch.__version__, "onnxruntime": onnxruntime.__version__, "cases": made}, out,
                  separators=(",", ":"))
        out.write("\n")
