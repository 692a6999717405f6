"""vla-eval's own client and server (0.8.0), for tests/serve/vla_eval_test.cpp.

vla_eval_peer.py client PORT: its runner's episode loop with a benchmark of its kind, against a server of sums.
vla_eval_peer.py server PORT: a model server that answers with two actions, -x / 2 each.
"""
import sys

import anyio
import numpy as np
from vla_eval.benchmarks.base import StepBenchmark, StepResult
from vla_eval.connection import Connection
from vla_eval.model_servers.predict import PredictModelServer
from vla_eval.model_servers.serve import serve
from vla_eval.runners.sync_runner import SyncEpisodeRunner
from vla_eval.specs import RAW

PIXEL = 200


class Line(StepBenchmark):
    """Shows x = 1, 2, ... and a picture, and keeps the actions."""

    def get_tasks(self):
        return [{"name": "go", "suite": "line"}]

    def reset(self, task):
        self.x, self.actions = 1.0, []
        return None

    def step(self, action):
        self.actions.append(np.asarray(action["actions"]).copy())
        self.x += 1
        return StepResult(obs=None, reward=0.0, done=len(self.actions) == 4, info={})

    def make_obs(self, raw_obs, task):
        return {"images": {"top": np.full((8, 8, 3), PIXEL, np.uint8)}, "task_description": task["name"], "x": np.array([self.x])}

    def check_done(self, step_result):
        return step_result.done

    def get_step_result(self, step_result):
        return {"success": True}

    def get_action_spec(self):
        return {"actions": RAW}

    def get_observation_spec(self):
        return {"x": RAW}


async def client(port):
    async with Connection(f"ws://127.0.0.1:{port}") as connection:
        assert connection.server_info["protocol_version"] == 1, connection.server_info
        for episode in (1, 2):
            bench = Line()
            result = await SyncEpisodeRunner().run_episode(bench, bench.get_tasks()[0], connection, max_steps=10)
            assert result["steps"] == 4, result
            # Chunks of two: the sum of what was seen at the chunks' first moments, 1 and 3, the row, the seed, the pixel.
            expected = [-(1 if i < 2 else 4) + i % 2 / 1000 + episode / 1e6 + PIXEL / 1e5 for i in range(4)]
            assert all(a.shape == (1,) and a.dtype == np.float32 for a in bench.actions), bench.actions
            np.testing.assert_allclose(np.concatenate(bench.actions), expected, rtol=1e-6)


class Back(PredictModelServer):
    def __init__(self):
        super().__init__(chunk_size=2)

    def predict(self, obs, ctx):
        assert obs["task_description"] == "come near zero", obs
        return {"actions": np.repeat(-0.5 * np.asarray(obs["x"])[None], 2, axis=0)}

    def get_action_spec(self):
        return {"actions": RAW}

    def get_observation_spec(self):
        return {"x": RAW}


if sys.argv[1] == "client":
    anyio.run(client, int(sys.argv[2]))
else:
    serve(Back(), host="127.0.0.1", port=int(sys.argv[2]))
