"""Writes forecast_window_fixtures.json: windows of Informer's own data sets, for forecast_windows_test.cpp.

    python make_forecast_window_fixtures.py INFORMER ETTh1.csv forecast_window_fixtures.json

INFORMER is a checkout of github.com/zhouhaoyi/Informer2020. Needs PyTorch and pandas 1.x. ETTh1's values are not copied:
of its windows only sums are stored, plain and weighted by position.
"""
import json
import os
import sys
import tempfile

import numpy as np
import pandas as pd

sys.path.insert(0, sys.argv[1])
from data.data_loader import Dataset_Custom, Dataset_ETT_hour  # noqa: E402

PARTS = ("train", "val", "test")


def sums(array):
    """The plain sum, and one in which element k weighs (k + 1) * golden ratio modulo 1: it sees every change of order."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    weights = np.mod((np.arange(flat.size) + 1) * 0.6180339887498949, 1.0)
    return [float(flat.sum()), float((flat * weights).sum())]


def ett_case(path, size, features, timeenc, target="OT"):
    case = {"size": size, "features": features, "timeenc": timeenc, "target": target, "parts": []}
    for flag in PARTS:
        dataset = Dataset_ETT_hour(os.path.dirname(path), flag, size, features, os.path.basename(path), target,
                                   timeenc=timeenc, freq="h")
        windows = []
        for index in (0, 1, len(dataset) // 2, len(dataset) - 1):
            x, y, x_mark, y_mark = dataset[index]
            windows.append({"index": index, "shapes": [list(a.shape) for a in (x, y, x_mark, y_mark)],
                            "sums": [sums(a) for a in (x, y, x_mark, y_mark)]})
        case["parts"].append({"length": len(dataset), "windows": windows})
        case["mean"] = dataset.scaler.mean.tolist()
        case["std"] = dataset.scaler.std.tolist()
    return case


def custom_table():
    """A table of its own, with the target between the other columns."""
    n = 61
    k = np.arange(n)
    return pd.DataFrame({
        "date": [str(d) for d in pd.date_range("2019-12-20 21:45:00", periods=n, freq="15min")],
        "left": np.round(np.sin(0.7 * k) * 3 + 0.1 * k, 4),
        "load": np.round(np.cos(0.31 * k * k) + 20, 4),
        "right": np.round(np.mod(k * 7.3, 11) - 40, 4),
    })


def custom_case(folder, size, features, timeenc):
    case = {"size": size, "features": features, "timeenc": timeenc, "parts": []}
    for flag in PARTS:
        dataset = Dataset_Custom(folder, flag, size, features, "custom.csv", "load", timeenc=timeenc, freq="t")
        windows = []
        for index in sorted({0, len(dataset) - 1}):
            fields = [np.asarray(a, dtype=np.float64).ravel().tolist() for a in dataset[index]]
            windows.append({"index": index, "fields": fields})
        case["parts"].append({"length": len(dataset), "windows": windows})
    return case


ett = [ett_case(sys.argv[2], *a) for a in (([48, 48, 24], "M", 1), ([96, 48, 24], "M", 0), ([720, 168, 24], "S", 1),
                                           ([96, 48, 720], "MS", 1), ([24, 12, 6], "S", 0, "MUFL"))]
with tempfile.TemporaryDirectory() as folder:
    table = custom_table()
    table.to_csv(os.path.join(folder, "custom.csv"), index=False)
    custom = [custom_case(folder, *a) for a in (([6, 3, 2], "M", 1), ([5, 5, 3], "MS", 0), ([4, 0, 1], "S", 1))]

with open(sys.argv[3], "w") as out:
    out.write('{"ett": [\n' + ",\n".join(json.dumps(c) for c in ett))
    out.write('\n],\n"custom_table": ' + json.dumps(table.to_dict(orient="list")))
    out.write(',\n"custom": [\n' + ",\n".join(json.dumps(c) for c in custom) + "\n]}\n")
