"""A small training under `cohort launch`, on one node or several, for tests that disturb it."""
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import time

import numpy

FILES = ["model.safetensors", "ema/model.safetensors", "optimizer.safetensors"]
PATIENCE = 240  # s for one thing to happen, on a machine however busy
SECRET = "a secret of this very campaign"


class Failure(Exception):
    pass


def tensors(data):
    """Of a safetensors file: name to float array."""
    size = int.from_bytes(data[:8], "little")
    types = {"F32": numpy.float32, "F64": numpy.float64}
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] not in types:
            continue
        begin, end = entry["data_offsets"]
        found[name] = numpy.frombuffer(data[8 + size + begin:8 + size + end], types[entry["dtype"]]).astype(float)
    return found


class Trainings:
    """Makes commands, and the undisturbed runs to compare with."""

    def __init__(self, cohort, folder, steps):
        self.cohort, self.folder, self.steps = str(cohort), pathlib.Path(folder), steps
        rows = ["p,q,r"]
        rows += [f"{math.sin(i)},{math.cos(1.7 * i)},{math.sin(i) * math.cos(1.7 * i)}" for i in range(480)]
        (self.folder / "table.csv").write_text("\n".join(rows) + "\n")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "TORCHELASTIC", "SLURM", "COHORT"))}
        self.env.update(OMP_NUM_THREADS="1", COHORT_JOB_SECRET=SECRET)
        self.whole = {}

    def command(self, name, flags, more=(), out=None):
        # What fewer ranks do otherwise is left out, so that only rounding is left: one layer has no BatchNorm, whose
        # statistics are of each rank's share; 384 of the rows are full batches of 2, 3 and 4 ranks; and a large eps
        # keeps Adam from blowing up the rounding of gradients that are nearly 0.
        return [self.cohort, "launch", *flags, "train", "regressor", f"data.path={self.folder}/table.csv",
                "data.columns.n_targets=1", "model.e_layers=1", "train.eps=0.01", "train.batch_size=16", "train.log_every=1", "train.checkpoint.save_best=false",
                "train.ema.enabled=true", f"train.steps={self.steps}", "loader.workers=1", "charts=false",
                "tensorboard=false", "backend=cpu", f"output_dir={out or self.folder / 'out'}", f"name={name}", *more]

    def reference(self, ranks, reduction):
        """`reduction`: how gradients are summed, in shared memory or through Gloo, whose sums differ in last bits."""
        if (ranks, reduction) not in self.whole:
            name = f"whole{ranks}{reduction}"
            subprocess.run(self.command(name, [f"--nproc_per_node={ranks}"], [f"parallel.ddp.cpu_reduction={reduction}"]),
                           env=self.env, check=True, capture_output=True, timeout=PATIENCE)
            self.whole[ranks, reduction] = Run(self, name).weights()
        return self.whole[ranks, reduction]


class Run:
    """One training by name, with its agents."""

    def __init__(self, trainings, name, out=None):
        self.trainings, self.name, self.agents, self.logs = trainings, name, [], []
        self.reduction = "auto"
        self.out = pathlib.Path(out or trainings.folder / "out")
        self.folder = self.out / name / "latest"

    def start(self, command, env=None):
        log = self.trainings.folder / f"{self.name}.{len(self.agents)}.err"
        with log.open("wb") as err:
            self.agents.append(subprocess.Popen(command, env={**self.trainings.env, **(env or {})},
                                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err))
        self.logs.append(log)
        return self.agents[-1]

    def said(self, agent=None):
        logs = self.logs if agent is None else [self.logs[agent]]
        return "".join(log.read_text(errors="replace") for log in logs)

    def text(self, file):
        path = self.folder / file
        return path.read_text(errors="replace") if path.exists() else ""

    def step(self):
        path = self.folder / "metrics.jsonl"
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 4000))
                found = re.findall(rb'"step":\s*(\d+)', file.read())
            return int(found[-1]) if found else 0
        except OSError:
            return 0

    def wait_until(self, what, condition, seconds=PATIENCE, pause=0.005):
        end = time.monotonic() + seconds
        while not condition():
            if all(agent.poll() is not None for agent in self.agents):
                raise Failure(f"the job ended with {[a.returncode for a in self.agents]} before {what}")
            if time.monotonic() > end:
                raise Failure(f"{what} did not come within {seconds} s")
            time.sleep(pause)

    def pids(self):
        """Rank to process, as they began."""
        return {int(r): int(p) for r, p in re.findall(r"rank (\d+) on host \S+ \(pid (\d+)\)", self.text("training.log"))}

    def codes(self, seconds=PATIENCE):
        end = time.monotonic() + seconds
        try:
            return [agent.wait(timeout=max(0.1, end - time.monotonic())) for agent in self.agents]
        except subprocess.TimeoutExpired:
            raise Failure(f"the job did not end within {seconds} s") from None

    def weights(self):
        last = self.folder / "checkpoints" / f"checkpoint-{self.trainings.steps}"
        return {file: (last / file).read_bytes() for file in FILES}

    def left_over(self):
        """Processes of this run that are still there."""
        left = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if f"name={self.name}".encode() in words:
                left.append(int(entry.name))
        return left

    def end(self):
        """Whatever happened: nothing of it stays."""
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
                agent.wait()
        for pid in self.left_over():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # What must hold.

    def expect_clean(self):
        end = time.monotonic() + PATIENCE
        while self.left_over():
            if time.monotonic() > end:
                raise Failure(f"processes are left: {self.left_over()}")
            time.sleep(0.02)
        folder = self.folder / "checkpoints"
        for checkpoint in folder.iterdir() if folder.exists() else []:
            if checkpoint.is_dir() and not re.fullmatch(r"last|best|checkpoint-\d+", checkpoint.name):
                raise Failure(f"a half checkpoint is left: {checkpoint.name}")

    def expect_same_bits(self, ranks):
        own = self.weights()
        for file, data in self.trainings.reference(ranks, self.reduction).items():
            if own[file] != data:
                raise Failure(f"{file} differs from that of the undisturbed run")

    def expect_same_weights(self, ranks, tolerance=1e-5):
        """Sums in another order: returns the largest difference of a weight."""
        own, worst = self.weights(), 0.0
        for file, data in self.trainings.reference(ranks, self.reduction).items():
            if file.startswith("optimizer"):
                continue
            theirs, ours = tensors(data), tensors(own[file])
            if theirs.keys() != ours.keys():
                raise Failure(f"{file} has other tensors than that of the undisturbed run")
            worst = max([worst] + [float(numpy.abs(theirs[name] - ours[name]).max()) for name in theirs])
        if not worst <= tolerance:
            raise Failure(f"weights differ by {worst:g} from those of the undisturbed run")
        return worst

    def expect_memory(self):
        if "resuming from" in self.text("training.log"):
            raise Failure("a checkpoint was read although memory was to help")
