"""Reads a LeRobot set with the package lerobot and holds every item against the set's tables, its statistics against those
that lerobot computes, and frames of its videos against the same pictures stored as such in another set:

    python read_lerobot.py SET [SET_WITH_PICTURES]
"""
import ctypes
import glob
import io
import pathlib
import sys
import sysconfig
import warnings

# What torchcodec's library needs and does not look for where its wheel lies.
for library in ("libnppc", "libnppicc"):
    for path in glob.glob(f"{sysconfig.get_path('purelib')}/nvidia/cu13/lib/{library}.so.*"):
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
warnings.simplefilter("ignore")
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from lerobot.datasets.compute_stats import aggregate_stats, compute_episode_stats
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.datasets.utils import dataset_to_policy_features
from PIL import Image

# Of 255, mean over a frame: lossy coding at crf 30, colour at half the resolution; of pictures of some size.
VIDEO_TOLERANCE, VIDEO_SIDE = 6.0, 64

root = pathlib.Path(sys.argv[1])
data = LeRobotDataset("local/set", root=root)
pictures = LeRobotDataset("local/pictures", root=sys.argv[2]) if len(sys.argv) > 2 else None
table = pa.concat_tables([pq.read_table(path) for path in sorted((root / "data").glob("*/*.parquet"))])
columns = {name: table[name].to_pylist() for name in table.column_names}
assert len(data) == table.num_rows == data.meta.total_frames, (len(data), table.num_rows)
assert not pictures or len(pictures) == len(data)
worst = 0.0
for i in range(len(data)):
    item, other = data[i], pictures[i] if pictures else None
    assert item["task"] == data.meta.tasks.iloc[columns["task_index"][i]].name
    for name, feature in data.features.items():
        found = item[name]
        if feature["dtype"] == "string":
            assert found == columns[name][i], name
        elif feature["dtype"] == "video":
            assert tuple(found.shape) == (3, *feature["shape"][:2]), (name, found.shape)
            if other is not None and min(found.shape[1:]) >= VIDEO_SIDE:
                worst = max(worst, (found - other[name]).abs().mean().item() * 255)
        elif feature["dtype"] == "image":
            wanted = np.asarray(Image.open(io.BytesIO(columns[name][i]["bytes"])))
            wanted = torch.from_numpy(np.atleast_3d(wanted).transpose(2, 0, 1).copy())
            assert torch.equal((found * 255).round().to(torch.uint8), wanted), name
        else:
            wanted = np.array(columns[name][i], feature["dtype"])
            assert np.array_equal(found.numpy().astype(feature["dtype"]), wanted, equal_nan=wanted.dtype.kind == "f"), name
assert worst <= VIDEO_TOLERANCE, worst

# Statistics of every episode, and of all.
episodes = pd.concat([pd.read_parquet(path) for path in sorted((root / "meta/episodes").glob("*/*.parquet"))])
numbers = {n: f for n, f in data.features.items() if f["dtype"] not in ("image", "video", "string")}
by_episode = []
for e in range(len(episodes)):
    row = episodes.iloc[e]
    rows = slice(row["dataset_from_index"], row["dataset_to_index"])
    values = {n: np.array(columns[n][rows], f["dtype"]).astype(np.float64) for n, f in numbers.items()}
    # lerobot takes a deviation as the difference of two sums of squares: not of numbers such as 2^53.
    values = {n: v for n, v in values.items() if np.isfinite(v).all() and np.abs(v).max() < 1e6}
    computed = compute_episode_stats(values, {n: numbers[n] for n in values})
    by_episode.append(computed)
    for name, wanted in computed.items():
        spread = np.ptp(values[name].reshape(-1, values[name].shape[-1] if values[name].ndim > 1 else 1), axis=0)
        for key, value in wanted.items():
            found = np.asarray(row[f"stats/{name}/{key}"], np.float64)
            assert found.shape == value.shape, (name, key, found.shape, value.shape)
            # A value at the edge of two of the histogram's bins may fall into either.
            bound = 1e-6 * (1 + np.abs(value)) + (spread / 5000 if key.startswith("q") else 0)
            assert (np.abs(found - value) <= bound).all(), (name, key, found, value)
for name, wanted in aggregate_stats(by_episode).items():
    if not all(name in episode for episode in by_episode):
        continue
    for key, value in wanted.items():
        assert np.allclose(data.meta.stats[name][key], value, rtol=1e-5, atol=1e-5 + 1e-3 * np.ptp(value)), (name, key)
for name in data.meta.camera_keys:
    assert data.meta.stats[name]["mean"].shape == (3, 1, 1), name

# Chunks of actions with the marks of what lies beyond the episode, in batches: what a policy's training takes.
chunk = LeRobotDataset("local/set", root=root, delta_timestamps={"action": [k / data.fps for k in range(4)]})
seen = 0
for batch in torch.utils.data.DataLoader(chunk, batch_size=8):
    for b in range(len(batch["index"])):
        i = int(batch["index"][b])
        end = episodes.iloc[int(batch["episode_index"][b])]["dataset_to_index"]
        for k in range(4):
            assert bool(batch["action_is_pad"][b, k]) == (i + k >= end)
            wanted = torch.tensor(columns["action"][min(i + k, end - 1)])
            assert torch.equal(batch["action"][b, k], wanted.to(batch["action"].dtype))
        seen += 1
assert seen == len(data)

# LeRobot's ACT, made small, learns from the set: normalised by its statistics, from states and the first camera.
if data.meta.video_keys:
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.act.modeling_act import ACTPolicy
    from lerobot.policies.act.processor_act import make_act_pre_post_processors

    features = dataset_to_policy_features(data.features)
    torch.manual_seed(0)
    config = ACTConfig(
        input_features={name: features[name] for name in ("observation.state", data.meta.video_keys[0])},
        output_features={"action": features["action"]}, chunk_size=4, n_action_steps=4, dim_model=32, n_heads=2,
        dim_feedforward=64, n_encoder_layers=1, n_vae_encoder_layers=1, pretrained_backbone_weights=None, device="cpu")
    policy = ACTPolicy(config).train()
    prepare, _ = make_act_pre_post_processors(config, dataset_stats=data.meta.stats)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
    batch, losses = prepare(next(iter(torch.utils.data.DataLoader(chunk, batch_size=8)))), []
    for _ in range(8):
        loss, _ = policy.forward(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.isfinite(losses).all() and losses[-1] < losses[0], losses
print(f"{data.num_episodes} episodes, {len(data)} steps, {len(data.features)} features; videos differ by {worst:.2f} of 255")
