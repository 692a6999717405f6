"""One rank of PyTorch's own DistributedDataParallel on the scenarios of parallel_worker.cpp.

    RANK=0 WORLD_SIZE=2 ... python ddp_reference.py SCENARIO,SCENARIO... FOLDER

Writes FOLDER/SCENARIO.RANK.losses (float64) and FOLDER/SCENARIO.RANK.state (float32: parameters, then buffers, in the order
of the state dict).
"""
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP

INPUTS, HIDDEN, OUTPUTS, BATCH = 12, 48, 2, 16


def numbers(seed, shape):
    """As numbers() in fixture_model.h."""
    with np.errstate(over="ignore"):
        i = np.arange(int(np.prod(shape)), dtype=np.uint64)
        z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + i * np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(31)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(29)
    values = (z >> np.uint64(40)).astype(np.float32) / np.float32(16777216.0) - np.float32(0.5)
    return torch.from_numpy(values.reshape(shape))


class FixtureNet(torch.nn.Module):
    def __init__(self, with_norm=False, with_extra=False):
        super().__init__()
        self.a = torch.nn.Linear(INPUTS, HIDDEN)
        self.norm = torch.nn.BatchNorm1d(HIDDEN) if with_norm else None
        self.b = torch.nn.Linear(HIDDEN, HIDDEN)
        self.extra = torch.nn.Linear(HIDDEN, HIDDEN) if with_extra else None
        self.c = torch.nn.Linear(HIDDEN, OUTPUTS)
        self.use_extra = True

    def forward(self, x):
        x = torch.tanh(self.a(x))
        if self.norm is not None:
            x = self.norm(x)
        x = torch.nn.functional.gelu(self.b(x))
        if self.extra is not None and self.use_extra:
            x = x + torch.nn.functional.gelu(self.extra(x))
        return self.c(x)


def batch(step, rank, count=BATCH):
    return (numbers(1000 + 8 * step + rank, (count, INPUTS)), numbers(50000 + 8 * step + rank, (count, OUTPUTS)))


def run(scenario, folder):
    rank = dist.get_rank()

    model = FixtureNet(with_norm=scenario == "norm", with_extra=scenario in ("find_unused", "static_graph"))
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(numbers(100 * rank + i + 1, tuple(p.shape)) * 0.5)
    options = {}
    if scenario == "find_unused":
        options["find_unused_parameters"] = True
    if scenario == "static_graph":
        options["static_graph"] = True
    if scenario == "bucket_view":
        options["gradient_as_bucket_view"] = True
    if scenario in ("small_buckets", "buckets_by_arrival"):
        options["bucket_cap_mb"] = 0.0005
    ddp = DDP(model, **options)
    if scenario == "fp16":
        ddp.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)
    if scenario == "bf16":
        ddp.register_comm_hook(dist.group.WORLD, default_hooks.bf16_compress_hook)

    if scenario == "adam":
        optimizer = torch.optim.Adam(ddp.parameters(), lr=1e-2)
    else:
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    losses = []

    def one_step(step):
        model.use_extra = scenario == "find_unused" and (step + rank) % 3 != 0
        optimizer.zero_grad()
        if scenario == "no_sync":
            for micro in range(3):
                x, y = batch(3 * step + micro, rank)
                if micro < 2:
                    with ddp.no_sync():
                        loss = torch.nn.functional.mse_loss(ddp(x), y)
                        (loss / 3).backward()
                else:
                    loss = torch.nn.functional.mse_loss(ddp(x), y)
                    (loss / 3).backward()
                losses.append(loss.item())
        else:
            x, y = batch(step, rank)
            loss = torch.nn.functional.mse_loss(ddp(x), y)
            loss.backward()
            losses.append(loss.item())
        optimizer.step()

    if scenario in ("join", "join_remaining"):
        with ddp.join(divide_by_initial_world_size=scenario == "join"):
            for step in range(6 + 3 * rank):
                one_step(step)
    else:
        for step in range(50):
            one_step(step)

    np.array(losses, dtype=np.float64).tofile(f"{folder}/{scenario}.{rank}.losses")
    state = list(model.parameters()) + [b for b in model.buffers() if b.is_floating_point()]
    np.concatenate([t.detach().numpy().ravel() for t in state]).astype(np.float32).tofile(f"{folder}/{scenario}.{rank}.state")


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for scenario in sys.argv[1].split(","):
        run(scenario, sys.argv[2])
    dist.barrier()
    dist.destroy_process_group()


main()
