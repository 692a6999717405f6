"""The Python peer of robot_feed: windows of HDF5 demos read by h5py under torch.utils.data.DataLoader, and JPEGs decoded by torchvision.

    robot_feed.py WORK_FOLDER

First writes WORK_FOLDER/{plain,gzip,lzf}.hdf5 in robomimic's layout where they are not there: arrays as they are (LIBERO, robomimic),
packed by gzip or lzf with the chunks that h5py chooses, as robomimic's scripts write them. Answers "ready VERSIONS", then to
"windows FILE SEED" with "SECONDS COUNT SUM" of one shuffled epoch of batches, and to "jpeg FILE" with "SECONDS COUNT SUM" of one pass over
a file of JPEGs, each behind its length as 4 bytes.
"""
import os
import struct
import sys
import time

import h5py
import numpy
import torch
import torchvision
from torch.utils.data import DataLoader, Dataset

DEMOS, PACKED_DEMOS, STEPS, HEIGHT, WIDTH = 24, 4, 80, 84, 84
OBSERVATIONS = {"robot0_eef_pos": 3, "robot0_eef_quat": 4, "robot0_gripper_qpos": 2}
CAMERAS = ("agentview_image", "robot0_eye_in_hand_image")
SEEN, AHEAD, BATCH = 2, 16, 16


def write(path, compression):
    rng = numpy.random.default_rng(0)
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH].astype(numpy.float32)
    with h5py.File(path + ".part", "w") as f:
        data = f.create_group("data")
        for i in range(PACKED_DEMOS if compression else DEMOS):
            demo = data.create_group(f"demo_{i}")
            demo.attrs["num_samples"] = STEPS
            demo.create_dataset("actions", data=rng.uniform(-1, 1, (STEPS, 7)))
            demo.create_dataset("states", data=rng.normal(size=(STEPS, 32)))
            for name, width in OBSERVATIONS.items():
                demo.create_dataset("obs/" + name, data=rng.normal(size=(STEPS, width)))
            for c, camera in enumerate(CAMERAS):
                t = numpy.arange(STEPS, dtype=numpy.float32)[:, None, None, None]
                wave = 127 + 90 * numpy.sin(x[..., None] / (9 + c) + y[..., None] / 13 + t / 7 + numpy.arange(3) + i)
                frames = (wave + rng.normal(0, 2, wave.shape)).clip(0, 255).astype(numpy.uint8)
                demo.create_dataset("obs/" + camera, data=frames, compression=compression)
    os.replace(path + ".part", path)


class Windows(Dataset):
    """At step t: the frames and states of t - 1 and t, actions t to t + 15; the first step and the last action repeat."""

    def __init__(self, path):
        self.path, self.file = path, None
        with h5py.File(path) as f:
            self.places = [(name, t) for name in sorted(f["data"], key=lambda n: int(n[5:])) for t in range(f["data"][name].attrs["num_samples"])]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path)
        name, t = self.places[index]
        demo = self.file["data"][name]

        def seen(array):
            rows = array[max(t - SEEN + 1, 0):t + 1]
            return rows if t >= SEEN - 1 else numpy.concatenate([rows[:1]] * (SEEN - len(rows)) + [rows])

        actions = demo["actions"][t:t + AHEAD]
        if len(actions) < AHEAD:
            actions = numpy.concatenate([actions] + [actions[-1:]] * (AHEAD - len(actions)))
        sample = {"actions": actions.astype(numpy.float32)}
        for name in OBSERVATIONS:
            sample[name] = seen(demo["obs"][name]).astype(numpy.float32)
        for name in CAMERAS:
            sample[name] = seen(demo["obs"][name])
        return sample


def windows_pass(windows, seed):
    order = torch.randperm(len(windows), generator=torch.Generator().manual_seed(seed)).tolist()
    loader = DataLoader(windows, batch_size=BATCH, sampler=order)
    count = total = 0
    begin = time.perf_counter()
    for batch in loader:
        count += len(batch["actions"])
        total += batch["actions"][:, -1, 0].double().sum().item() + int(batch[CAMERAS[1]][:, 0, 5, 5, 1].sum())
    return time.perf_counter() - begin, count, total


def jpeg_pass(path):
    with open(path, "rb") as f:
        content = f.read()
    at, frames = 0, []
    while at < len(content):
        size, = struct.unpack_from("<I", content, at)
        frames.append(torch.frombuffer(bytearray(content[at + 4:at + 4 + size]), dtype=torch.uint8))
        at += 4 + size
    total = 0
    begin = time.perf_counter()
    for frame in frames:
        image = torchvision.io.decode_jpeg(frame, torchvision.io.ImageReadMode.RGB)
        total += int(image[0, 0, 0])
    return time.perf_counter() - begin, len(frames), total


def main():
    torch.set_num_threads(1)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, compression in (("plain", None), ("gzip", "gzip"), ("lzf", "lzf")):
        path = os.path.join(folder, name + ".hdf5")
        if not os.path.exists(path):
            write(path, compression)
    print(f"ready torch {torch.__version__}, torchvision {torchvision.__version__}, h5py {h5py.__version__}", flush=True)
    known = {}
    for line in sys.stdin:
        what, path, *rest = line.split()
        if what == "windows":
            if path not in known:
                known[path] = Windows(path)
            print(*windows_pass(known[path], int(rest[0])), flush=True)
        else:
            print(*jpeg_pass(path), flush=True)
    print("end", flush=True)


if __name__ == "__main__":
    main()
