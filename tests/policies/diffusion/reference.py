"""What the fixture scripts share: the weights, inputs and noise that both sides make by the same formula."""
import math

import numpy as np
import torch


def fnv1a(text):
    h = 2166136261
    for byte in text.encode():
        h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
    return h


def uniform(name, count):
    """(count) float32 in [-1, 1), a function of the name: an integer hash of (name, index)."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint32) + np.uint32(fnv1a(name)) * np.uint32(2654435761)
        x ^= x >> np.uint32(16)
        x *= np.uint32(0x7FEB352D)
        x ^= x >> np.uint32(15)
        x *= np.uint32(0x846CA68B)
        x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float32) * np.float32(2.0 ** -23) - np.float32(1)


def tensor(name, *shape, scale=1.0):
    return torch.from_numpy(uniform(name, math.prod(shape))).reshape(shape) * np.float32(scale)


def fill(module):
    """Gives every parameter its formula: weights U(+-sqrt(3 / fan_in)), so that signals keep their size; vectors that are
    called weight (norms) 1 + U(+-0.1); all others U(+-0.1)."""
    with torch.no_grad():
        for name, p in module.named_parameters():
            name = plain(name)
            u = torch.from_numpy(uniform(name, p.numel())).reshape(p.shape)
            if p.dim() >= 2:
                fan_in = p.numel() // p.shape[0]
                p.copy_(u * np.float32(math.sqrt(3.0 / fan_in)))
            elif name.endswith("weight"):
                p.copy_(1 + np.float32(0.1) * u)
            else:
                p.copy_(np.float32(0.1) * u)
    return module


def plain(name):
    """Without the prefixes that DataParallel leaves."""
    return name.replace(".module.", ".").removeprefix("module.")


def gradient_facts(named_parameters):
    """name -> [norm, inner product with uniform("probe " + name), the first four entries]."""
    facts = {}
    for name, p in named_parameters:
        if p.numel() == 0:
            continue
        name = plain(name)
        g = p.grad.double().flatten()
        probe = torch.from_numpy(uniform("probe " + name, g.numel())).double()
        facts[name] = short([g.norm().item(), torch.dot(g, probe).item(), *g[:4].tolist()])
    return facts


def short(numbers):
    """Eight significant digits: more than float32 holds."""
    return [float(f"{n:.8g}") for n in numbers]


def output_facts(output):
    """Norm, inner product with uniform("probe output"), the first 60 entries."""
    o = output.detach().double().flatten()
    probe = torch.from_numpy(uniform("probe output", o.numel())).double()
    return short([o.norm().item(), torch.dot(o, probe).item(), *o[:60].tolist()])


def philox(counter, key):
    """Philox4x32-10 on arrays: counter (n, 4), key (k0, k1); returns (n, 4) uint32."""
    c = [counter[:, i].astype(np.uint64) for i in range(4)]
    k0, k1 = key
    mask = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & mask,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1).astype(np.uint32)


def stream(seed, purpose, sample, step, first, count):
    """The Philox words that a run draws for (seed, purpose, sample, step) at indices first ... first + count - 1."""
    counter = np.zeros((count, 4), dtype=np.uint64)
    counter[:, 0] = np.arange(first, first + count)
    counter[:, 2], counter[:, 3] = sample, step
    key = (seed & 0xFFFFFFFF, (seed >> 32) ^ (purpose * 0x9E3779B9 & 0xFFFFFFFF))
    return philox(counter, key)


def normal(words):
    """Box and Muller, as a run does it."""
    u1 = (words[:, 0].astype(np.float64) + 1) / 4294967296.0
    u2 = words[:, 1].astype(np.float64) / 4294967296.0
    return (np.sqrt(-2 * np.log(u1)) * np.cos(6.283185307179586 * u2)).astype(np.float32)


DIFFUSION, SAMPLING = 8, 9


def training_noise(seed, step, samples, draws, horizon, width, timesteps):
    """What one training step draws: timesteps (B), noise (draws, B, horizon, width)."""
    times, noises = [], []
    for sample in samples:
        times.append(int(stream(seed, DIFFUSION, sample, step, 0, 1)[0, 0]) * timesteps >> 32)
        noises.append(normal(stream(seed, DIFFUSION, sample, step, 1, draws * horizon * width)))
    noise = torch.from_numpy(np.stack(noises)).reshape(len(samples), draws, horizon, width).transpose(0, 1)
    return torch.tensor(times), noise.contiguous()
