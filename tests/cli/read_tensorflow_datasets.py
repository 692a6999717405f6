"""Reads a recording with tensorflow-datasets, and holds it against what the recording says of itself.

    python read_tensorflow_datasets.py FOLDER/1.0.0
"""
import pathlib
import sys

import numpy as np
import tensorflow_datasets as tfds

folder = pathlib.Path(sys.argv[1])
builder = tfds.builder_from_directory(str(folder))
episodes = list(tfds.as_numpy(builder.as_dataset(split="train")))
assert len(episodes) == builder.info.splits["train"].num_examples, len(episodes)
seeds, total = [], 0
for episode in episodes:
    steps = list(episode["steps"])
    total += len(steps)
    seeds.append(int(episode["episode_metadata"]["seed"]))
    assert episode["episode_metadata"]["task"] == b"reach", episode["episode_metadata"]
    flags = np.array([[step["is_first"], step["is_last"]] for step in steps])
    assert flags[0, 0] and flags[-1, 1] and flags.sum() == 2, flags
    for step in steps:
        assert step["language_instruction"], step
        for name, feature in builder.info.features["steps"]["observation"].items():
            value = step["observation"][name]
            assert value.shape == feature.shape and value.dtype == feature.np_dtype, (name, value.shape, value.dtype)
            if value.dtype == np.uint8:
                assert value.std() > 0, f"{name} shows nothing"
            else:
                assert np.isfinite(value).all(), name
assert seeds == sorted(set(seeds)), seeds
print(f"{len(episodes)} episodes, {total} steps, seeds {seeds[0]} to {seeds[-1]}")
