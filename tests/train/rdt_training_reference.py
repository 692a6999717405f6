#!/usr/bin/env python3
"""Trains RDT in plain PyTorch (tests/policies/rdt/plain_rdt.py) on what a C++ test wrote, and prints a loss per step.

    rdt_training_reference.py FOLDER     # with weights.safetensors, data.safetensors, sizes.json

torch.optim.AdamW and torch.nn.utils.clip_grad_norm_, one thread, float32.
"""
import json
import struct
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "policies" / "rdt"))
import plain_rdt  # noqa: E402

TYPES = {"F32": torch.float32, "I64": torch.int64, "U8": torch.uint8}


def read(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            part = bytearray(data[8 + size + begin:8 + size + end])
            tensors[name] = torch.frombuffer(part, dtype=TYPES[entry["dtype"]]).view(entry["shape"])
    return tensors


def main():
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    sizes, d = json.loads((folder / "sizes.json").read_text()), read(folder / "data.safetensors")
    rdt = plain_rdt.Rdt(**sizes["model"])
    rdt.load_state_dict(read(folder / "weights.safetensors"))
    optimizer = torch.optim.AdamW(rdt.parameters(), lr=sizes["lr"], betas=(0.9, 0.999), weight_decay=1e-2, eps=1e-8)
    for step in range(sizes["steps"]):
        loss = rdt.loss(d["actions"], d["noise"][step], d["timesteps"][step], d["language"], d["mask"].bool(), d["images"],
                        d["state"], d["state_mask"], d["frequency"])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(rdt.parameters(), 1.0)
        optimizer.step()
        print(f"{loss.item():.9g}")


main()
