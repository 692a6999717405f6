"""The Python peer of bench_parallel: the same models, weights, batches and optimizer under PyTorch's DistributedDataParallel.

    python peer.py MODEL BATCH STEPS        (with torchrun's variables for several ranks)
"""
import os
import resource
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

COLUMNS, STEPS, AHEAD, WIDTH, HEADS = 7, 96, 24, 512, 8
WARM_UP = 3


def numbers(seed, shape):
    with np.errstate(over="ignore"):
        i = np.arange(int(np.prod(shape)), dtype=np.uint64)
        z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + i * np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(31)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(29)
    return torch.from_numpy(((z >> np.uint64(40)).astype(np.float32) / np.float32(16777216.0) - np.float32(0.5)).reshape(shape))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)

    def forward(self, x):
        b, l, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, l, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        attended = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(attended.transpose(1, 2).reshape(b, l, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(COLUMNS, WIDTH)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(3))
        self.head = nn.Linear(WIDTH, COLUMNS)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.narrow(1, STEPS - AHEAD, AHEAD))


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for i in range(5):
            layers += [nn.Conv1d(COLUMNS if i == 0 else 64, 64, 3, padding=1), nn.GELU()]
        self.body = nn.Sequential(*layers, nn.Conv1d(64, COLUMNS, 1))

    def forward(self, x):
        return self.body(x.transpose(1, 2)).transpose(1, 2).narrow(1, STEPS - AHEAD, AHEAD)


class Informer(nn.Module):
    """The reference package's, from the checkout that INFORMER_REFERENCE names, at its default size."""

    LABEL = 48

    def __init__(self):
        super().__init__()
        sys.path.insert(0, os.environ["INFORMER_REFERENCE"])
        from models.model import Informer as Reference
        self.body = Reference(COLUMNS, COLUMNS, COLUMNS, STEPS, self.LABEL, AHEAD, device=torch.device("cpu"))

    def forward(self, x, y, x_mark, y_mark):
        known = torch.cat([y[:, :self.LABEL], torch.zeros(len(y), AHEAD, COLUMNS)], 1)
        return self.body(x, x_mark, known, y_mark)


MODELS = {"informer": Informer, "encoder": Encoder, "convolution": Convolution}


def batch_of(name, seed, size):
    """The inputs of a model, and its target."""
    x = numbers(seed, (size, STEPS, COLUMNS))
    if name != "informer":
        return (x,), numbers(seed + 5000, (size, AHEAD, COLUMNS))
    rows = Informer.LABEL + AHEAD
    y = numbers(seed + 5000, (size, rows, COLUMNS))
    return (x, y, numbers(seed + 10000, (size, STEPS, 4)), numbers(seed + 15000, (size, rows, 4))), y[:, Informer.LABEL:]


def fill(model):
    with torch.no_grad():
        for i, (key, p) in enumerate(model.named_parameters()):
            if p.dim() > 1:
                p.copy_(numbers(i + 1, tuple(p.shape)) * 0.1)
            if key.endswith("bias"):
                p.zero_()


def main():
    name, size, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = MODELS[name]()
    if name != "informer":
        fill(model)
    wrapped = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if world > 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = []
    for i in range(8):
        batches.append(batch_of(name, 1000 + 16 * i + rank, size))
    for step in range(-WARM_UP, steps):
        if step == 0:
            if world > 1:
                dist.barrier()
            start = time.perf_counter()
        inputs, target = batches[(step + WARM_UP) % 8]
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(wrapped(*inputs), target)
        loss.backward()
        optimizer.step()
        value = loss.item()
    if world > 1:
        dist.barrier()
    seconds = time.perf_counter() - start
    if rank == 0:
        print(f"{steps * size * world / seconds:.3f} {value:.7g} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
    if world > 1:
        dist.destroy_process_group()


main()
