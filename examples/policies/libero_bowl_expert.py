#!/usr/bin/env python3
"""An expert for LIBERO's put_the_bowl_on_the_plate, as a policy server (openpi's protocol) that sees where bowl and plate are.

    python examples/policies/libero_bowl_expert.py [PORT]        # numpy, websockets, openpi-client; 8000
    cohort collect put_the_bowl_on_the_plate --policy ws://127.0.0.1:8000 start=perturbed --out outputs/data

The open hand goes above the bowl's rim, comes down, closes on it, lifts, carries the bowl above the plate and puts it down. What it
does is a function of what it sees alone: lengths in m, in the world; actions as robosuite's OSC_POSE takes them.
"""
import asyncio
import sys

import numpy as np
import websockets.asyncio.server
from openpi_client import msgpack_numpy

RIM = np.array([0.0, 0.05, 0.042])  # from the bowl's origin to where its rim is taken
REACH, GAIN = 0.05, 1.6  # what an action of 1 is; of what is missing
CLOSED, CARRY, NEAR = 0.012, 0.12, 0.02  # fingers' gap on the rim; height of carrying; hand at the rim
SEEN = {"akita_black_bowl_1_pos": 3, "akita_black_bowl_1_quat": 4, "plate_1_pos": 3, "robot0_eef_pos": 3, "robot0_gripper_qpos": 2}


def upward(q):
    """The z axis of a frame, by its quaternion x y z w."""
    x, y, z, w = q
    return np.array([2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)])


def act(seen):
    bowl, tilt, plate, hand, fingers = (np.asarray(seen[name], float) for name in SEEN)
    rim = bowl + [RIM[0], RIM[1], 0] + RIM[2] * upward(tilt)
    off = hand - rim
    aside, gap = np.linalg.norm(off[:2]), fingers[0] - fingers[1]
    action = np.zeros(7)
    action[6] = -1
    target = rim.copy()
    if aside < NEAR and abs(off[2]) < NEAR and (gap < 0.06 or (aside < 0.01 and off[2] < 0.008)):
        action[6] = 1
        if gap < CLOSED:
            missing, lift = plate[:2] - bowl[:2], bowl[2] - plate[2]
            away = np.linalg.norm(missing)
            target = hand.copy()
            if away < 0.012:
                target += [*missing, -0.03]
                action[6] = 1 if lift > 0.012 else -1
            else:
                target[2] += CARRY - lift
                if lift > 0.08 or away < 0.04:
                    target[:2] += missing
        else:
            target[:2] = hand[:2]
    elif aside > 0.03 and off[2] < 0.06:
        target = np.array([*hand[:2], rim[2] + 0.1])  # low, and not where it should be: up first
    else:
        target[2] += 0.08 * np.clip((aside - 0.01) / 0.02, 0, 1)
    action[:3] = np.clip(GAIN * (target - hand) / REACH, -1, 1)
    return action.astype(np.float32)


async def handler(websocket):
    # `cohort` sends what is named here, and draws no pictures.
    await websocket.send(msgpack_numpy.packb({
        "server": "cohort example", "policy": "expert of bowl and plate",
        "observations": {name: {"shape": [width], "dtype": "float32"} for name, width in SEEN.items()},
        "actions": {"width": 7, "execute": 1}}))
    async for message in websocket:
        seen = msgpack_numpy.unpackb(message)
        if seen.get("reset") is True and not set(SEEN) <= set(seen):
            await websocket.send(msgpack_numpy.packb({"reset": True}))
        else:
            await websocket.send(msgpack_numpy.packb({"actions": act(seen)[None]}))


async def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    async with websockets.asyncio.server.serve(handler, "127.0.0.1", port, compression=None, max_size=None) as server:
        await server.serve_forever()


asyncio.run(main())
