"""print FILE: columns of numbers and texts as JSON, flat. Anything else: writes the table anew, in that way."""
import json
import math
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

change, path = sys.argv[1:]
# Column by column, so that lists come as they lie there.
table = pq.read_table(path)


def flat(values):
    for value in values:
        if isinstance(value, list):
            yield from flat(value)
        else:
            yield None if isinstance(value, float) and math.isnan(value) else value


def replace(name, values):
    global table
    table = table.set_column(table.column_names.index(name), name, values)


if change == "print":
    print(json.dumps({name: list(flat(table[name].to_pylist())) for name in table.column_names if "images" not in name}))
    sys.exit()
options = {
    "gzip": {"compression": "gzip"}, "brotli": {"compression": "brotli"}, "lz4": {"compression": "lz4"},
    "none": {"compression": "none", "data_page_size": 100}, "page-v2": {"data_page_version": "2.0", "data_page_size": 100},
    "split": {"use_dictionary": False, "use_byte_stream_split": ["observation.noisy", "timestamp"]},
    "delta": {"use_dictionary": False, "column_encoding": {"episode_index": "DELTA_BINARY_PACKED", "note": "DELTA_BYTE_ARRAY"}},
    "groups": {"row_group_size": 4},
}.get(change, {})
if change == "float64":
    replace("action", table["action"].cast(pa.list_(pa.float64(), 7)))
elif change.startswith("late="):
    replace("timestamp", pa.array(np.asarray(table["timestamp"]) + np.float32(change[5:]), pa.float32()))
elif change == "null":
    values = table["observation.noisy"].to_pylist()
    values[5] = None
    replace("observation.noisy", pa.array(values, pa.float32()))
elif change in ("ragged", "shifted"):
    values = table["observation.state"].to_pylist()
    values[5] = values[5][:1]
    if change == "shifted":
        values[7] = values[7] + [0.0]
    replace("observation.state", pa.array(values, pa.list_(pa.float32())))
pq.write_table(table, path, **options)
