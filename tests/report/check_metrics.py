"""Reads metrics.jsonl with pandas and with the json module, and prints what they agree on."""
import json
import math
import sys

import pandas

frame = pandas.read_json(sys.argv[1], lines=True, precise_float=True)
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert list(frame["step"]) == [row["step"] for row in rows]
for i, row in enumerate(rows):
    for name, value in row.items():
        if name in ("time", "not_finite"):
            continue
        seen = frame[name][i]
        assert (math.isnan(seen) and value is None) or seen == value, (name, seen, value)
        print(f"{row['step']} {name} {value!r}")
