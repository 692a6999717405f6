"""The Python peer of training_parts: torch.optim.AdamW(fused=True) and a synchronous save with the safetensors package.

    training_parts.py THREADS FOLDER SHAPES_JSON

Answers "ready TORCH_VERSION", then for each line "adamw", "clip" or "save" with the seconds that it took.
"""
import json
import os
import sys
import time

import torch
from safetensors.torch import save_file


def main():
    threads, folder, shapes = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        what = line.strip()
        begin = time.perf_counter()
        if what == "adamw":
            optimizer.step()
        elif what == "clip":
            torch.nn.utils.clip_grad_norm_(parameters, 1e9)
        else:
            model = {f"p{i}": p.detach() for i, p in enumerate(parameters)}
            state = {}
            for i, p in enumerate(parameters):
                for key, value in optimizer.state[p].items():
                    state[f"p{i}.{key}"] = value
            for name, tensors in (("model", model), ("optimizer", state)):
                path = f"{folder}/{name}.safetensors"
                save_file(tensors, path)
                descriptor = os.open(path, os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)
        print(time.perf_counter() - begin, flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
