"""Height fields from names, as Isaac Gym's terrain_utils and Genesis have them (the shapes and parameters; the random numbers are
our own)."""

from __future__ import annotations

import numpy as np

from ._arrays import host
from ._errors import GenesisException


def _slope(shape, slope, scale):
    return np.linspace(0, 1, shape[0], endpoint=False)[:, None] * np.ones(shape[1])[None] * slope * shape[0] * scale[0]


def _pyramid(shape, slope, platform, scale):
    x, y = (1 - np.abs(2 * np.arange(n) / (n - 1) - 1) for n in shape)
    height = np.minimum(x[:, None], y[None]) * slope * shape[0] * scale[0] / 2
    edge = int(platform / scale[0] / 2)
    top = height[max(shape[0] // 2 - edge, 0), shape[1] // 2]
    return np.clip(height, min(top, 0), max(top, 0))


def _stairs(shape, width, step, scale):
    n = max(int(width / scale[0]), 1)
    return np.repeat((1 + np.arange(shape[0]) // n)[:, None] * step, shape[1], axis=1)


def _pyramid_stairs(shape, width, step, platform, scale):
    n, edge = max(int(width / scale[0]), 1), int(platform / scale[0])
    x, y = (np.minimum(np.arange(s), s - 1 - np.arange(s)) for s in shape)
    rings = np.minimum(x[:, None], y[None]) // n
    return np.minimum(rings, max((min(shape) - edge) // 2 // n, 0)) * step


def _uniform(shape, low, high, step, coarse, scale, random):
    levels = np.arange(low, high + step / 2, step)
    cells = [max(2, int(s * scale[0] / coarse)) for s in shape]
    grid = random.choice(levels, cells)
    x, y = (np.linspace(0, c - 1, s) for c, s in zip(cells, shape))
    rows = np.stack([np.interp(x, np.arange(cells[0]), grid[:, j]) for j in range(cells[1])], axis=1)
    return np.stack([np.interp(y, np.arange(cells[1]), rows[i]) for i in range(shape[0])])


def _obstacles(shape, most, least_size, most_size, count, platform, scale, random):
    out = np.zeros(shape)
    for _ in range(count):
        w, d = (int(random.uniform(least_size, most_size) / scale[0]) for _ in range(2))
        i, j = int(random.integers(0, max(shape[0] - w, 1))), int(random.integers(0, max(shape[1] - d, 1)))
        out[i : i + w, j : j + d] = random.choice([-most, -most / 2, most / 2, most])
    _flatten_middle(out, platform, scale, 0.0)
    return out


def _stones(shape, size, gap, most, platform, depth, scale, random):
    out = np.full(shape, depth)
    s, g = max(int(size / scale[0]), 1), max(int(gap / scale[0]), 1)
    for j in range(0, shape[1], s + g):
        for i in range(int(random.integers(0, s)) - s, shape[0], s + g):
            out[max(i, 0) : max(i + s, 0), j : j + s] = random.uniform(-most, most)
    _flatten_middle(out, platform, scale, 0.0)
    return out


def _flatten_middle(out, platform, scale, height):
    edge = int(platform / scale[0] / 2)
    i, j = out.shape[0] // 2, out.shape[1] // 2
    out[i - edge : i + edge, j - edge : j + edge] = height


# Of each, its parameters with Genesis' defaults (m), and what makes it.
_KINDS = {
    "flat_terrain": ({}, lambda s, p, c, r: np.zeros(s)),
    "random_uniform_terrain": (
        {"min_height": -0.1, "max_height": 0.1, "step": 0.1, "downsampled_scale": 0.5},
        lambda s, p, c, r: _uniform(s, p["min_height"], p["max_height"], p["step"], p["downsampled_scale"], c, r),
    ),
    "sloped_terrain": ({"slope": -0.5}, lambda s, p, c, r: _slope(s, p["slope"], c)),
    "pyramid_sloped_terrain": ({"slope": -0.1, "platform_size": 1.0}, lambda s, p, c, r: _pyramid(s, p["slope"], p["platform_size"], c)),
    "discrete_obstacles_terrain": (
        {"max_height": 0.05, "min_size": 1.0, "max_size": 5.0, "num_rects": 20, "platform_size": 1.0},
        lambda s, p, c, r: _obstacles(s, p["max_height"], p["min_size"], p["max_size"], p["num_rects"], p["platform_size"], c, r),
    ),
    "wave_terrain": (
        {"num_waves": 2.0, "amplitude": 0.1},
        lambda s, p, c, r: p["amplitude"] / 2
        * (np.cos(2 * np.pi * p["num_waves"] * np.arange(s[0]) / s[0])[:, None] + np.sin(2 * np.pi * p["num_waves"] * np.arange(s[1]) / s[1])[None]),
    ),
    "stairs_terrain": ({"step_width": 0.75, "step_height": -0.1}, lambda s, p, c, r: _stairs(s, p["step_width"], p["step_height"], c)),
    "pyramid_stairs_terrain": (
        {"step_width": 0.75, "step_height": -0.1, "platform_size": 1.0},
        lambda s, p, c, r: _pyramid_stairs(s, p["step_width"], p["step_height"], p["platform_size"], c),
    ),
    "stepping_stones_terrain": (
        {"stone_size": 1.0, "stone_distance": 0.25, "max_height": 0.2, "platform_size": 0.0, "depth": -10.0},
        lambda s, p, c, r: _stones(s, p["stone_size"], p["stone_distance"], p["max_height"], p["platform_size"], p["depth"], c, r),
    ),
}  # fmt: skip


def _made(name: str, shape, given: dict, scale, random) -> np.ndarray:
    if name not in _KINDS:
        raise GenesisException(f"morphs.Terrain has no subterrain `{name}` (it has: {', '.join(_KINDS)}); or give height_field")
    defaults, make = _KINDS[name]
    unknown = set(given) - set(defaults)
    if unknown:
        raise GenesisException(f"{name} has no parameter `{unknown.pop()}` (it has: {', '.join(defaults) or 'none'})")
    return make(shape, {**defaults, **given}, scale, random)


def height_field(morph, seed: int) -> tuple[np.ndarray, tuple[float, float], tuple[float, float, float]]:
    """(rows along y, columns along x) heights in m, float32; extent along x and y; where the corner lies."""
    scale = (float(morph.horizontal_scale), float(morph.vertical_scale))
    if morph.height_field is not None:
        field = np.asarray(host(morph.height_field), dtype=float) * scale[1]
        if field.ndim != 2 or min(field.shape) < 2:
            raise GenesisException(f"morphs.Terrain.height_field has shape {field.shape}: (n, m) heights, 2 or more each")
    else:
        counts, sizes = tuple(int(n) for n in morph.n_subterrains), tuple(float(s) for s in morph.subterrain_size)
        kinds = morph.subterrain_types
        kinds = [[kinds] * counts[1]] * counts[0] if isinstance(kinds, str) else kinds
        if len(kinds) != counts[0] or any(len(row) != counts[1] for row in kinds):
            raise GenesisException(f"morphs.Terrain.subterrain_types: one name, or {counts[0]} rows of {counts[1]}")
        random = np.random.default_rng(seed if morph.randomize else 0)
        shape = tuple(int(s / scale[0] + 1e-9) for s in sizes)
        parameters = morph.subterrain_parameters or {}
        rows = [np.concatenate([_made(k, shape, parameters.get(k, {}), scale, random) for k in row], axis=1) for row in kinds]
        field = np.concatenate(rows, axis=0)
        # The units of vertical_scale, as the height of each sample is a whole number of them.
        field = np.round(field / scale[1]) * scale[1]
    # A height field has a sample at each of its edges.
    size = ((field.shape[0] - 1) * scale[0], (field.shape[1] - 1) * scale[0])
    return np.ascontiguousarray(field.T, dtype=np.float32), size, tuple(morph.pos)
