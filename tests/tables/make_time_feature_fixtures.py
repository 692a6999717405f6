"""Writes time_feature_fixtures.json: the calendar features of Informer's own package, for time_features_test.cpp.

    python make_time_feature_fixtures.py INFORMER time_feature_fixtures.json

INFORMER is a checkout of github.com/zhouhaoyi/Informer2020. Needs pandas 1.x (the package uses DatetimeIndex.week).
"""
import json
import sys

import pandas as pd

sys.path.insert(0, sys.argv[1])
from utils.timefeatures import time_features  # noqa: E402

DATES = [
    "2016-07-01 00:00:00",  # the first row of ETTh1
    "2018-06-26 19:00:00",  # the last one
    "2016-02-29 12:34:56",
    "2016-12-31 23:59:59",  # day 366
    "2017-12-31 23:59:59",  # day 365
    "2000-02-29 06:15:00",
    "2100-02-28 18:44:59",
    "2100-03-01 00:00:00",  # no leap year
    "2015-12-31 05:30:30",  # ISO week 53
    "2016-01-03 14:45:01",  # a Sunday in ISO week 53 of the year before
    "2016-01-04 00:14:59",  # the Monday of ISO week 1
    "2018-12-31 09:15:00",  # ISO week 1 of the year after
    "2020-12-28 22:29:59",  # ISO week 53
    "2021-01-01 01:01:01",
    "1970-01-01 00:00:00",
    "1969-12-31 23:59:59",
    "1900-01-01 13:00:07",
]
DATES += [str(d) for d in pd.date_range("2019-01-05 03:07:11", periods=24, freq="17D5H13min29S")]

CASES = [(0, f) for f in ("y", "m", "w", "d", "b", "h", "t")]
CASES += [(1, f) for f in ("q", "m", "w", "d", "b", "h", "t", "s", "15min", "2h")]

cases = []
for timeenc, freq in CASES:
    frame = pd.DataFrame({"date": pd.to_datetime(DATES)})
    rows = time_features(frame, timeenc=timeenc, freq=freq).tolist()
    cases.append({"timeenc": timeenc, "freq": freq, "rows": rows})

with open(sys.argv[2], "w") as out:
    out.write('{"dates": ' + json.dumps(DATES) + ',\n"cases": [\n')
    out.write(",\n".join(json.dumps(case) for case in cases))
    out.write("\n]}\n")
