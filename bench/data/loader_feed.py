"""The Python peer of loader_feed: a Dataset of windows cut from NumPy arrays, as Informer2020's Dataset_ETT_hour cuts them, under
torch.utils.data.DataLoader with persistent workers.

    loader_feed.py ROWS COLUMNS SEQ_LEN LABEL_LEN PRED_LEN BATCH PREFETCH

Answers "ready VERSIONS", then for each line "WORKERS" with "SECONDS SUM" of one shuffled epoch. The arrays are float32 already, which
spares this side the conversion that the reference makes in its training loop.
"""
import sys
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, rows, columns, seq_len, label_len, pred_len):
        row = numpy.arange(rows)[:, None]
        column = numpy.arange(columns)[None, :]
        self.data = (((row * 7919 + column * 104729) % 1009) / 8).astype(numpy.float32)
        hour = numpy.arange(rows)
        self.stamp = numpy.stack([hour % 24 / 23 - 0.5, hour // 24 % 7 / 6 - 0.5, hour // 24 % 31 / 30 - 0.5,
                                  hour // 24 % 366 / 365 - 0.5], 1).astype(numpy.float32)
        self.seq_len, self.label_len, self.pred_len = seq_len, label_len, pred_len

    def __getitem__(self, index):
        s_end = index + self.seq_len
        r_begin = s_end - self.label_len
        r_end = r_begin + self.label_len + self.pred_len
        return self.data[index:s_end], self.data[r_begin:r_end], self.stamp[index:s_end], self.stamp[r_begin:r_end]

    def __len__(self):
        return len(self.data) - self.seq_len - self.pred_len + 1


def main():
    rows, columns, seq_len, label_len, pred_len, batch, prefetch = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    windows = Windows(rows, columns, seq_len, label_len, pred_len)
    loaders = {}
    print(f"ready torch {torch.__version__}, numpy {numpy.__version__}", flush=True)
    for line in sys.stdin:
        workers = int(line)
        if workers not in loaders:
            loaders.clear()  # ends the workers of the number before
            options = {"persistent_workers": True, "prefetch_factor": prefetch} if workers > 0 else {}
            loaders[workers] = DataLoader(windows, batch_size=batch, shuffle=True, num_workers=workers, **options)
        begin = time.perf_counter()
        total = 0.0
        for x, y, x_mark, y_mark in loaders[workers]:
            total += x[:, 0, 0].double().sum().item()
        print(time.perf_counter() - begin, total, flush=True)


if __name__ == "__main__":
    main()
