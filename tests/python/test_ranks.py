"""Under a launcher: what a rank takes of its machine, the same under torchrun as under `cohort launch`."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cohort
from cohort import _core, _ranks

NEEDS = ("gymnasium", "cloudpickle", "farama_notifications", "torch")
SCRIPT = """
import os, cohort, numpy as np
from cohort import _core, _ranks
rank = int(os.environ["LOCAL_RANK"])
envs = cohort.make_vec("cartpole-balance", 4, device="gpu", seed=100 * rank)
envs.reset()
paid = envs.rollout(np.zeros((10, 4, 1), np.float32))[0].sum()
try:
    own = _ranks.device("cuda")
except cohort.Error as error:
    own = "without cuda" if "backend cuda cannot be used" in str(error) else str(error)
line = f"rank {rank} of {os.environ['WORLD_SIZE']}: {_ranks.threads(None)} threads, {_ranks.device('gpu')}, {own}, reward {paid:.6f}"
open(os.path.join(os.environ["TOLD"], str(rank)), "w").write(line)
"""


class Ranks(unittest.TestCase):
    def under(self, launcher):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "script.py")
            script.write_text(SCRIPT)
            told = pathlib.Path(folder, "told")
            told.mkdir()
            environment = {**os.environ, "TOLD": str(told), "CUDA_VISIBLE_DEVICES": ""}  # as on a machine without a GPU
            done = subprocess.run([*launcher, str(script)], capture_output=True, text=True, timeout=300, env=environment)
            self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
            return [(told / str(rank)).read_text() for rank in range(2)]

    def test_torchrun_and_cohort_launch_give_a_rank_the_same(self):
        program = pathlib.Path(os.environ.get("COHORT_BIN", ""), "cohort")
        if not program.is_file():
            self.skipTest("COHORT_BIN names no folder with the program cohort")
        torchrun = self.under([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"])
        ours = self.under([str(program), "launch", "--nproc_per_node=2", "--", sys.executable])
        self.assertEqual(torchrun, ours)
        share = max(1, _core.available_cores() // 2)
        for rank, line in enumerate(ours):
            self.assertRegex(line, f"^rank {rank} of 2: {share} threads, cpu, without cuda, reward [0-9.]+$")
        self.assertNotEqual(ours[0].split()[-1], ours[1].split()[-1])  # other seeds

    def test_other_devices_are_what_they_are_called_and_a_wrong_rank_is_named(self):
        self.assertEqual([_ranks.device(d) for d in ("cpu", "cuda:3")], ["cpu", "cuda:3"])
        self.assertEqual(_ranks.threads(3), 3)
        with self.assertRaisesRegex(ValueError, "at least one"):
            _ranks.threads(0)
        before = os.environ.get("LOCAL_RANK")
        os.environ["LOCAL_RANK"] = "first"
        try:
            with self.assertRaisesRegex(cohort.Error, "LOCAL_RANK='first' is no rank"):
                _ranks.device("gpu")
        finally:
            del os.environ["LOCAL_RANK"]
            if before is not None:
                os.environ["LOCAL_RANK"] = before


if __name__ == "__main__":
    unittest.main()
