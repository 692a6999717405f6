#!/usr/bin/env python3
"""Trainings under faults drawn at random by a seed, and what must hold after each.

  fault_campaign.py FOLDER_OF_COHORT [--faults N] [--seed S] [--ranks 2,3,4] [--steps N]

Faults: a rank is killed, is stopped (and hangs), is killed while checkpoints are written all the time, two are killed one
shortly after the other, the agent is killed (and the command given again). After each: the exit code is 0, the weights,
the optimizer and the average are those of an undisturbed run bit for bit, survivors kept their processes and no checkpoint
was read where memory was to help, no process is left, and no checkpoint is half. One line for each fault; the exit code is
1 when anything did not hold. A fault is repeated by --seed and --only NUMBER.
"""
import argparse
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

KINDS = ["kill", "stop", "kill_while_saving", "kill_two", "kill_agent"]
FILES = ["model.safetensors", "ema/model.safetensors", "optimizer.safetensors"]
PATIENCE = 300  # s for one training


class Failure(Exception):
    pass


class Campaign:
    def __init__(self, cohort, folder, steps):
        self.cohort, self.folder, self.steps = str(cohort), folder, steps
        rows = ["p,q,r"]
        rows += [f"{math.sin(i)},{math.cos(1.7 * i)},{math.sin(i) * math.cos(1.7 * i)}" for i in range(400)]
        (folder / "table.csv").write_text("\n".join(rows) + "\n")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "TORCHELASTIC", "SLURM"))}
        self.env["OMP_NUM_THREADS"] = "1"

    def command(self, name, ranks, flags=(), more=()):
        return [self.cohort, "launch", f"--nproc_per_node={ranks}", *flags, "train", "regressor",
                f"data.path={self.folder}/table.csv", "data.columns.n_targets=1", "train.batch_size=16", "train.log_every=1",
                "train.checkpoint.save_best=false", "train.ema.enabled=true", f"train.steps={self.steps}", "loader.workers=1",
                "charts=false", "tensorboard=false", "backend=cpu", f"output_dir={self.folder}/out", f"name={name}", *more]

    def run_folder(self, name):
        return self.folder / "out" / name / "latest"

    def text(self, name, file):
        path = self.run_folder(name) / file
        return path.read_text(errors="replace") if path.exists() else ""

    def step(self, name):
        lines = self.text(name, "metrics.jsonl").splitlines()
        found = re.search(r'"step":\s*(\d+)', lines[-1]) if lines else None
        return int(found.group(1)) if found else 0

    def wait_until(self, what, condition, job):
        end = time.monotonic() + PATIENCE
        while not condition():
            if job.poll() is not None:
                raise Failure(f"the job ended with {job.returncode} before {what}")
            if time.monotonic() > end:
                raise Failure(f"{what} did not come within {PATIENCE} s")
            time.sleep(0.005)

    def weights(self, name):
        last = self.run_folder(name) / "checkpoints" / f"checkpoint-{self.steps}"
        return {file: (last / file).read_bytes() for file in FILES}

    def reference(self, ranks):
        name = f"whole{ranks}"
        if not self.run_folder(name).exists():
            subprocess.run(self.command(name, ranks), env=self.env, check=True, capture_output=True, timeout=PATIENCE)
        return self.weights(name)

    def pids(self, name):
        found = re.findall(r"rank (\d+) on host \S+ \(pid (\d+)\)", self.text(name, "training.log"))
        return {int(rank): int(pid) for rank, pid in found}

    def left_over(self, name):
        """Processes of this run that are still there."""
        left = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if f"name={name}".encode() in words:
                left.append(int(entry.name))
        return left

    def run(self, number, kind, ranks, draw):
        """One training with one fault. Returns the seconds from the fault to the next step."""
        name = f"fault{number}"
        whole = self.reference(ranks)
        more = ["train.checkpoint.every=3"] if kind == "kill_while_saving" else []
        flags = ["--max-restarts=3", "--hang-timeout=3"]
        if kind == "kill_agent":
            more += ["resume=auto", "train.checkpoint.every=20"]
        command = self.command(name, ranks, flags, more)
        log = self.folder / f"{name}.err"
        with log.open("wb") as err:
            job = subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=err)
        try:
            at = draw.randrange(10, self.steps * 2 // 3)
            self.wait_until(f"step {at}", lambda: self.step(name) >= at, job)
            pids = self.pids(name)
            victims = draw.sample(sorted(pids), 2 if kind == "kill_two" and ranks > 2 else 1)
            time.sleep(draw.random() * 0.02)
            before, begin = self.step(name), time.monotonic()
            if kind == "kill_agent":
                os.kill(job.pid, signal.SIGKILL)
                job.wait()
                end = time.monotonic() + PATIENCE
                while self.left_over(name):
                    if time.monotonic() > end:
                        raise Failure(f"processes outlive the agent: {self.left_over(name)}")
                    time.sleep(0.01)
                with log.open("ab") as err:
                    job = subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=err)
            else:
                for victim in victims:
                    os.kill(pids[victim], signal.SIGSTOP if kind == "stop" else signal.SIGKILL)
                    time.sleep(draw.random() * 0.6 if len(victims) > 1 else 0)
                self.wait_until("the recovery", lambda: "ranks are there again after" in log.read_text(), job)
            self.wait_until("the next step", lambda: self.step(name) > before + 1, job)
            seconds = time.monotonic() - begin
            if kind != "kill_agent":
                for rank, pid in pids.items():
                    if rank not in victims and job.poll() is None and not pathlib.Path(f"/proc/{pid}").exists():
                        raise Failure(f"rank {rank}, which nobody touched, has lost its process")
            code = job.wait(timeout=PATIENCE)
        finally:
            if job.poll() is None:
                job.kill()
                job.wait()
        if code != 0:
            raise Failure(f"exit code {code}; see {log}")
        if kind != "kill_agent" and "resuming from" in self.text(name, "training.log"):
            raise Failure("a checkpoint was read although memory was to help")
        own = self.weights(name)
        for file, data in whole.items():
            if own[file] != data:
                raise Failure(f"{file} differs from that of the undisturbed run")
        if self.left_over(name):
            raise Failure(f"processes are left: {self.left_over(name)}")
        for checkpoint in (self.run_folder(name) / "checkpoints").iterdir():
            whole_one = checkpoint.name == "last" or re.fullmatch(r"(checkpoint-\d+|best)", checkpoint.name)
            if not whole_one and checkpoint.is_dir():
                raise Failure(f"a half checkpoint is left: {checkpoint.name}")
        return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cohort", type=pathlib.Path)
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", default="2,3,4")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--only", type=int, help="the number of one fault")
    options = parser.parse_args()
    ranks = [int(r) for r in options.ranks.split(",")]
    failed, times = 0, {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="cohort-campaign-") as folder:
        campaign = Campaign(options.cohort / "cohort", pathlib.Path(folder), options.steps)
        for number in range(options.faults):
            draw = random.Random(f"{options.seed}/{number}")
            kind, count = KINDS[number % len(KINDS)], draw.choice(ranks)
            if options.only is not None and number != options.only:
                continue
            try:
                seconds = campaign.run(number, kind, count, draw)
                times[kind].append(seconds)
                print(f"fault {number}: {kind} with {count} ranks: next step after {seconds:.2f} s, same bits", flush=True)
            except (Failure, subprocess.SubprocessError, OSError) as problem:
                failed += 1
                print(f"fault {number}: {kind} with {count} ranks: FAILED: {problem}", flush=True)
                print((pathlib.Path(folder) / f"fault{number}.err").read_text(errors="replace")[-4000:], flush=True)
    for kind, seconds in times.items():
        if seconds:
            seconds.sort()
            print(f"{kind}: {len(seconds)} faults, next step after {seconds[len(seconds) // 2]:.2f} s (median), "
                  f"{seconds[-1]:.2f} s (longest)")
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
