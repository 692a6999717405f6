"""From SIGKILL of a rank to the next optimizer step: `cohort launch` (the others keep their memory) against torchrun.

    .deps/python/bin/python bench/launch/recovery_time.py [--cohort build/release/bin] [--megabytes 1,100,2000] [--times 3]

The state is weights, optimizer (two moments) and moving average: four times the weights. torchrun runs a DDP script of the same
model that saves its state in memory (/dev/shm) after every step, so that a restart loses nothing; that saving is not counted.
Both on two ranks with Gloo. Not every restart of torchrun's goes on (Gloo: "connection refused", or no step in a minute): what
did not is counted and tried again.
"""
import argparse
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SCRIPT = '''
import os, pathlib, sys, time, torch
import torch.distributed as dist
torch.manual_seed(0)
dist.init_process_group("gloo")
rank, width, folder = dist.get_rank(), int(sys.argv[1]), pathlib.Path(sys.argv[2])
model = torch.nn.Sequential(torch.nn.Linear(2, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(),
                            torch.nn.Linear(width, 1))
average = [p.detach().clone() for p in model.parameters()]
ddp = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
step, saved = 0, folder / f"state{rank}"
if saved.exists():
    state = torch.load(saved)
    model.load_state_dict(state["model"]); optimizer.load_state_dict(state["optimizer"]); step = state["step"]
    average = state["average"]
print(f"rank {rank} pid {os.getpid()}", flush=True)
while True:
    optimizer.zero_grad()
    ddp(torch.randn(16, 2)).square().mean().backward()
    optimizer.step()
    for a, p in zip(average, model.parameters()):
        a.lerp_(p.detach(), 0.001)
    step += 1
    with open(folder / f"steps{rank}", "a") as out:
        out.write(f"{time.monotonic()} {step}\\n")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "average": average},
               f"{saved}.new")
    os.replace(f"{saved}.new", saved)
'''


def width_for(megabytes):
    """Of the hidden layers, so that weights, moments and average take so much."""
    return max(16, int(math.sqrt(megabytes * 1e6 / 4 / 4)))


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the job made no steps")
        time.sleep(0.001)


def of_cohort(cohort, megabytes, folder):
    rows = "".join(f"{math.sin(i)},{math.cos(1.7 * i)},{math.sin(i) * math.cos(1.7 * i)}\n" for i in range(400))
    (folder / "table.csv").write_text("p,q,r\n" + rows)
    # An encoder's layer has about 12 d_model^2 weights where d_ff is four times d_model.
    d_model = max(16, int(math.sqrt(megabytes * 1e6 / 16 / 12)) // 16 * 16)
    command = [str(cohort / "cohort"), "launch", "--nproc_per_node=2", "--max-restarts=1", "train", "regressor",
               f"data.path={folder}/table.csv", "data.columns.n_targets=1", "train.batch_size=16", "train.log_every=1",
               "train.steps=1000000", "train.ema.enabled=true", "loader.workers=1", "charts=false", "tensorboard=false",
               "backend=cpu", f"output_dir={folder}/out", "name=bench", f"model.d_model={d_model}",
               f"model.d_ff={4 * d_model}", "model.e_layers=1", "train.checkpoint.save_best=false"]
    run = folder / "out" / "bench" / "latest"
    with (folder / "err").open("wb") as err:
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        def steps():
            if job.poll() is not None:
                sys.exit((folder / "err").read_text()[-3000:])
            path = run / "metrics.jsonl"
            return path.read_text().count('"step"') if path.exists() else 0
        wait_for(lambda: steps() > 5)
        log = (run / "training.log").read_text()
        size = re.search(r"([\d,.]+) parameters", log)
        pid = int(re.search(r"rank 1 on host \S+ \(pid (\d+)\)", log).group(1))
        os.kill(pid, signal.SIGKILL)
        begin = time.monotonic()
        wait_for(lambda: "there again" in (folder / "err").read_text())
        at = steps()
        wait_for(lambda: steps() > at)
        return time.monotonic() - begin, size.group(1) if size else "?"
    finally:
        job.terminate()
        job.wait()


def of_torchrun(megabytes, folder):
    script = folder / "ddp.py"
    script.write_text(SCRIPT)
    with (folder / "torchrun.out").open("wb") as out, (folder / "torchrun.err").open("wb") as err:
        job = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
                                "--max-restarts=1", "--monitor-interval=0.1", str(script), str(width_for(megabytes)),
                                str(folder)], stdout=out, stderr=err, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        def lines():
            if job.poll() is not None:
                raise RuntimeError(f"it ended with {job.returncode}: " + (folder / "torchrun.err").read_text()[:2000])
            return (folder / "steps0").read_text().splitlines() if (folder / "steps0").exists() else []
        wait_for(lambda: len(lines()) > 5)
        pid = int(re.search(r"rank 1 pid (\d+)", (folder / "torchrun.out").read_text()).group(1))
        os.kill(pid, signal.SIGKILL)
        begin = time.monotonic()
        time.sleep(0.2)  # a step that both had begun
        at = len(lines())
        wait_for(lambda: len(lines()) > at, 60)
        return float(lines()[at].split()[0]) - begin
    except (TimeoutError, RuntimeError) as error:
        print(f"torchrun did not go on: {error}", file=sys.stderr)
        return None
    finally:
        job.terminate()
        job.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohort", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--megabytes", default="1,100,2000")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    for megabytes in map(float, options.megabytes.split(",")):
        ours, theirs, stuck, size = [], [], 0, "?"
        for _ in range(options.times):
            with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
                seconds, size = of_cohort(options.cohort.resolve(), megabytes, pathlib.Path(folder))
                ours.append(seconds)
        while len(theirs) < options.times and stuck < 3 * options.times:
            with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
                seconds = of_torchrun(megabytes, pathlib.Path(folder))
            theirs += [seconds] if seconds is not None else []
            stuck += seconds is None
        print(f"{megabytes:g} MB of state ({size} parameters): cohort launch {statistics.median(ours):.2f} s, torchrun "
              f"{statistics.median(theirs or [math.nan]):.2f} s (medians of {options.times}; torchrun did not go on {stuck} "
              "times more)", flush=True)


if __name__ == "__main__":
    main()
