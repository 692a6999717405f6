"""Holds LeRobot v3.0 sets that Cohort converted from HDF5 files against these, with pyarrow, pandas, Pillow and
h5py, and against what LeRobot's reader asks of a set:

    python read_lerobot_tables.py SET SOURCE.hdf5 FPS ...

huggingface/lerobot 0.4.4, src/lerobot/datasets: LeRobotDatasetMetadata.load_metadata reads info.json (its `features` with
tuples as shapes, codebase_version), stats.json, tasks.parquet by pandas with the task's text as index, and all of
meta/episodes; load_hf_dataset reads data/*/*.parquet as the types that utils.get_hf_features_from_features makes of the
features; __getitem__ takes the row, its episode_index, timestamp and task_index, and of every video the frame at
from_timestamp + timestamp within 1e-4 s. compute_stats.py says what stats are.
"""
import io
import json
import pathlib
import sys

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

def hold(root, source, fps):
    info = json.loads((root / "meta/info.json").read_text())
    stats = json.loads((root / "meta/stats.json").read_text())
    tasks = pd.read_parquet(root / "meta/tasks.parquet")
    episodes = pd.concat([pd.read_parquet(path) for path in sorted((root / "meta/episodes").glob("*/*.parquet"))])
    files = sorted((root / "data").glob("*/*.parquet"))
    table = pa.concat_tables([pq.read_table(path) for path in files])
    demos = h5py.File(source)["data"]
    names = sorted(demos, key=lambda name: int(name.split("_")[-1]))
    features = info["features"]

    assert info["codebase_version"] == "v3.0" and info["fps"] == fps, info
    assert info["data_path"] == "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
    assert (info["chunks_size"], info["data_files_size_in_mb"], info["video_files_size_in_mb"]) == (1000, 100, 200)
    assert info["total_episodes"] == len(episodes) == len(names) and info["splits"] == {"train": f"0:{len(names)}"}
    assert info["total_frames"] == table.num_rows and info["total_tasks"] == len(tasks)
    assert list(features)[-5:] == ["timestamp", "frame_index", "episode_index", "index", "task_index"]
    assert not [name for name in features if "/" in name]
    assert tasks.columns.tolist() == ["task_index"] and tasks["task_index"].tolist() == list(range(len(tasks)))

    # The types of the columns, and what datasets finds about them in the file.
    noted = json.loads(pq.read_schema(files[0]).metadata[b"huggingface"])["info"]["features"]
    for name, feature in features.items():
        shape, type = feature["shape"], table.schema.field(name).type if feature["dtype"] != "video" else None
        if feature["dtype"] == "image":
            assert type == pa.struct({"bytes": pa.binary(), "path": pa.string()}) and noted[name] == {"_type": "Image"}
        elif feature["dtype"] != "video":
            value = pa.string() if feature["dtype"] == "string" else pa.from_numpy_dtype(np.dtype(feature["dtype"]))
            assert type == (value if shape == [1] else pa.list_(value, shape[0])), (name, type)
            assert noted[name]["_type"] == ("Value" if shape == [1] else "Sequence"), noted[name]
    for path in files:  # a row group is an episode
        meta = pq.read_metadata(path)
        for group in range(meta.num_row_groups):
            assert len(set(pq.ParquetFile(path).read_row_group(group, ["episode_index"])[0].to_pylist())) == 1


    def column(name):
        return np.array(table[name].to_pylist(), dtype=features[name]["dtype"])


    def plain(nested):
        """Arrays of arrays, as pandas has lists in lists."""
        return np.array(json.loads(json.dumps(nested, default=list)), np.float64)


    def quantile(values, q):
        """compute_stats.RunningQuantileStats of one batch."""
        edges = np.linspace(values.min() - 1e-10, values.max() + 1e-10, 5001)
        counts = np.cumsum(np.histogram(values, bins=edges)[0])
        at = np.searchsorted(counts, q * len(values))
        if at == 0:
            return edges[0]
        return edges[at] + (q * len(values) - counts[at - 1]) / (counts[at] - counts[at - 1]) * (edges[at + 1] - edges[at])


    def hold_statistics(name, e, values):
        """values: (samples, elements), as compute_stats has them."""
        values = values.astype(np.float64)
        expected = {"min": values.min(0), "max": values.max(0), "mean": values.mean(0), "std": values.std(0)}
        for q in (0.01, 0.1, 0.5, 0.9, 0.99):
            expected[f"q{int(q * 100):02d}"] = np.array([quantile(values[:, i], q) for i in range(values.shape[1])])
        scale = 255 if features[name]["dtype"] in ("image", "video") else 1
        for key, wanted in expected.items():
            found = plain(episodes.iloc[e][f"stats/{name}/{key}"])
            assert found.shape == ((len(wanted), 1, 1) if scale == 255 else wanted.shape), (name, key, found.shape)
            bound = 1e-9 + 1e-9 * np.abs(wanted) + (np.ptp(values, 0) / 5000 if key.startswith("q") else 0)
            assert (np.abs(found.ravel() * scale - wanted) <= bound).all(), (name, key, found.ravel() * scale, wanted)


    first, compared = 0, 0
    for e, name in enumerate(names):
        demo, row = demos[name], episodes.iloc[e]
        steps = demo["actions"].shape[0]
        rows = slice(first, first + steps)
        assert (row["episode_index"], row["length"], row["dataset_from_index"], row["dataset_to_index"]) == (e, steps, first, first + steps)
        assert (row["data/chunk_index"], row["data/file_index"], row["meta/episodes/file_index"]) == (0, 0, 0)
        assert (column("timestamp")[rows] == (np.arange(steps) / fps).astype(np.float32)).all()
        assert (column("index")[rows] == np.arange(first, first + steps)).all()
        assert (column("frame_index")[rows] == np.arange(steps)).all() and (column("episode_index")[rows] == e).all()
        assert [tasks.iloc[int(t)].name for t in set(column("task_index")[rows])] == list(row["tasks"])
        for field, feature in features.items():
            group, _, rest = field.partition(".")
            path = {"action": "actions", "next.reward": "rewards", "next.done": "dones"}.get(field, field)
            if group == "observation":
                path = "obs/" + rest.removeprefix("images.")
                path = path + "_image" if path not in demo and path + "_image" in demo else path
            path = path if path in demo else path.replace(".", "/")
            if path not in demo:
                assert field in ("observation.state", *list(features)[-5:]), field
                continue
            wanted = demo[path][()]
            if feature["dtype"] == "video":
                assert feature["info"]["video.fps"] == fps and row[f"videos/{field}/from_timestamp"] == first / fps
                assert row[f"videos/{field}/to_timestamp"] == (first + steps) / fps
                hold_statistics(field, e, wanted.reshape(-1, 3))
                continue
            if feature["dtype"] == "image":
                found = [np.asarray(Image.open(io.BytesIO(p["bytes"]))) for p in table[field][rows].to_pylist()]
                assert [p["path"] for p in table[field][rows].to_pylist()] == [f"frame-{t:06d}.png" for t in range(steps)]
                assert (np.array(found) == wanted).all(), field
                hold_statistics(field, e, wanted.reshape(-1, 3))
            else:
                found = column(field)[rows]
                assert found.tobytes() == wanted.astype(found.dtype).tobytes(), field  # to the bit
                hold_statistics(field, e, found.reshape(-1, found.shape[1] if found.ndim > 1 else 1))
            compared += 1
        first += steps
    for name, feature in features.items():
        if feature["dtype"] == "string":
            continue
        counts = np.array([row[0] for row in episodes[f"stats/{name}/count"]], np.float64)
        means = np.array([plain(mean) for mean in episodes[f"stats/{name}/mean"]]).reshape(len(counts), -1)
        assert np.allclose(np.ravel(stats[name]["mean"]), (means * counts[:, None]).sum(0) / counts.sum(), rtol=1e-9, atol=1e-12), name
        assert stats[name]["count"] == [counts.sum()]
    print(f"{len(names)} episodes, {table.num_rows} steps, {compared} columns compared")


for at in range(1, len(sys.argv), 3):
    hold(pathlib.Path(sys.argv[at]), sys.argv[at + 1], float(sys.argv[at + 2]))
