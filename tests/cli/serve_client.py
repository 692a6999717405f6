"""openpi-client's own client asks `cohort serve`, for tests/cli/serve_test.cpp: serve_client.py PORT.

Prints a line for each thing that it has seen to be so.
"""
import sys

import numpy as np
from openpi_client import websocket_client_policy

port = int(sys.argv[1])
client = websocket_client_policy.WebsocketClientPolicy("127.0.0.1", port)
says = client.get_server_metadata()
width, execute = says["actions"]["width"], says["actions"]["execute"]


def observation(value):
    return {
        name: np.full(what["shape"], int(100 * value) if what["dtype"] == "uint8" else value, what["dtype"])
        for name, what in says["observations"].items()
    } | {"prompt": "push the T"}


answer = client.infer(observation(0.25))
assert answer["actions"].shape == (execute, width) and answer["actions"].dtype == np.float32
assert np.isfinite(answer["actions"]).all() and answer["server_timing"]["infer_ms"] > 0
print("chunk of", execute, "of", width)

# Two clients at once, in turns: each gets what it would get alone.
other = websocket_client_policy.WebsocketClientPolicy("127.0.0.1", port)
alone = [answer["actions"], client.infer(observation(0.5))["actions"]]
third = websocket_client_policy.WebsocketClientPolicy("127.0.0.1", port)
for value, expected in zip((0.25, 0.5), alone):
    third.infer(observation(0.9 - value))
    assert np.array_equal(other.infer(observation(value))["actions"], expected)
print("two clients")

name = next(iter(says["observations"]))
try:
    other.infer({name: np.zeros(99, np.float32)})
    print("not refused")
except RuntimeError as error:
    assert name in str(error) and "(99)" in str(error), error
    print("refused:", str(error).splitlines()[1])
