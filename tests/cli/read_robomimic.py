"""Reads a recording with h5py and robomimic's own loader, and holds one against the other."""
import sys

import h5py
import json
import numpy as np
import robomimic.utils.obs_utils as obs_utils
from robomimic.utils.dataset import SequenceDataset

path = sys.argv[1]
with h5py.File(path, "r") as file:
    env = json.loads(file["data"].attrs["env_args"])
    assert env["env_name"] == "reach" and "engine" in env["env_kwargs"], env
    demos = sorted(file["data"], key=lambda name: int(name[5:]))
    lengths = [file["data"][demo].attrs["num_samples"] for demo in demos]
    assert file["data"].attrs["total"] == sum(lengths)
    keys = list(file["data/demo_0/obs"])
    first = {key: file["data/demo_0/obs"][key][()] for key in keys}
    actions = file["data/demo_0/actions"][()]
    for demo in demos:
        dones = file["data"][demo]["dones"][()]
        assert dones[-1] == 1 and dones[:-1].sum() == 0, dones
obs_utils.initialize_obs_utils_with_obs_specs({"obs": {"low_dim": keys, "rgb": []}})
data = SequenceDataset(
    path, obs_keys=keys, dataset_keys=["actions", "rewards", "dones"], frame_stack=1, seq_length=4,
    hdf5_cache_mode="all", load_next_obs=False)
assert len(data) == sum(lengths), (len(data), lengths)
sample = data[2]
np.testing.assert_array_equal(sample["actions"], actions[2:6])
for key in keys:
    np.testing.assert_array_equal(sample["obs"][key], first[key][2:6])
print(f"{len(demos)} demos")
