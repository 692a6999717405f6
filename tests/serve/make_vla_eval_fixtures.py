"""Messages as vla-eval 0.8.0 packs them (CPython 3.11), for tests/serve/vla_eval_test.cpp:
    pip install vla-eval==0.8.0; python tests/serve/make_vla_eval_fixtures.py
"""
import json
import pathlib

import numpy as np
from vla_eval.benchmarks.libero.benchmark import _quat_to_axisangle_robosuite
from vla_eval.protocol.messages import Message, MessageType, make_hello_payload, pack_message
from vla_eval.protocol.numpy_codec import set_image_format
from vla_eval.rotation import quat_to_axisangle

out = pathlib.Path(__file__).parent / "fixtures" / "vla_eval"
out.mkdir(parents=True, exist_ok=True)
# Pixel (y, x) of colour c: 60 y + 10 x + c.
picture = np.array([[[60 * y + 10 * x + c for c in range(3)] for x in range(4)] for y in range(3)], np.uint8)
jpeg = np.full((8, 8, 3), 128, np.uint8)


def write(name, kind, payload, seq, images="png"):
    set_image_format(images)
    (out / name).write_bytes(pack_message(Message(kind, payload, seq, timestamp=1.5)))


write("hello", MessageType.HELLO, make_hello_payload(benchmark="libero"), 1)
write("episode_start", MessageType.EPISODE_START, {"task": {"name": "close the drawer", "suite": "libero_90", "task_id": 1}}, 2)
for images in ("png", "raw", "jpeg"):
    write(f"observation_{images}", MessageType.OBSERVATION,
          {"images": {"top": jpeg if images == "jpeg" else picture}, "task_description": "close the drawer", "x": np.array([0.5]),
           "states": np.arange(8, dtype=np.float64)}, 3, images)
write("episode_end", MessageType.EPISODE_END, {"metrics": {"success": True}, "steps": 4, "elapsed_sec": 1.0}, 4)
write("action", MessageType.ACTION, {"actions": np.array([0.25, -1, 1], np.float32)}, 3)

# Quaternions x y z w, with robosuite's sign and with w made positive (quat_no_antipodal).
draw = np.random.default_rng(1)
quaternions = [[0, 0, 0, 1], [1, 0, 0, 0], *(q / np.linalg.norm(q) for q in draw.normal(size=(8, 4)))]
rows = [{"xyzw": list(map(float, q)), "as-is": _quat_to_axisangle_robosuite(np.array(q, float)).tolist(),
         "positive": quat_to_axisangle(np.array(q, float)).tolist()} for q in quaternions]
(out / "orientations.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
