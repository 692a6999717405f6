"""A policy server as openpi's src/openpi/serving/websocket_policy_server.py is one, with openpi-client's packing, for
tests/cli/serve_test.cpp: serve_server.py PORT SHAPES, where SHAPES is a JSON map of the observations that must
arrive, and "width": the numbers of an action.

Its policy pushes along a fixed way; its chunks have 10 actions. Episodes (connections), requests and prompts go to standard output.
"""
import asyncio
import json
import sys

import numpy as np
import websockets.asyncio.server
from openpi_client import msgpack_numpy

shapes = json.loads(sys.argv[2])
width = shapes.pop("width")
chunk = np.stack([np.full(width, 0.2) * np.cos(i) for i in range(10)])


def say(text):
    print(text, flush=True)


async def handler(websocket):
    packer = msgpack_numpy.Packer()
    await websocket.send(packer.pack({"reset_pose": [0.0, 1.0]}))
    say("episode")
    try:
        while True:
            observation = msgpack_numpy.unpackb(await websocket.recv())
            for name, (dtype, shape) in shapes.items():
                found = observation[name]
                assert found.dtype == dtype and list(found.shape) == shape, (name, found.dtype, found.shape)
            assert set(observation) == set(shapes) | {"prompt"}, sorted(observation)
            say("asked: " + observation["prompt"])
            await websocket.send(packer.pack({"actions": chunk, "server_timing": {"infer_ms": 0.1}}))
    except websockets.ConnectionClosed:
        pass
    except Exception as error:
        await websocket.send(f"Traceback: {error!r}")
        await websocket.close(code=1011, reason="Internal server error. Traceback included in previous frame.")


async def main():
    async with websockets.asyncio.server.serve(handler, "127.0.0.1", int(sys.argv[1]), compression=None, max_size=None) as server:
        say("ready")
        await server.serve_forever()


asyncio.run(main())
