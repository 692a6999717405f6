"""Throughput of training on 1 and 2 ranks and on 2 replicas of one process, beside PyTorch's DistributedDataParallel.

    python bench/parallel/run.py [--bench build/release/bench/bench_parallel] [--pairs N] [--quick] [--csv FOLDER]

Runs of ours and PyTorch's alternate; figures are medians over all pairs. One thread per rank or replica. The batch is per rank.
PyTorch itself is the Python that runs this file.
"""
import argparse
import csv
import datetime
import json
import os
import pathlib
import platform
import socket
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def cpu_model():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def reserve_port():
    """A bound socket: nobody else gets its port, but rank 0's store may listen there."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    return s


def run_job(command, ranks):
    """Starts the ranks and returns what rank 0 printed: samples/s, last loss, peak MB."""
    reserved = reserve_port()
    port = reserved.getsockname()[1]
    processes = []
    for rank in range(ranks):
        env = dict(os.environ, OMP_NUM_THREADS="1")
        if ranks > 1:
            env.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        processes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    outputs = [p.communicate()[0] for p in processes]
    reserved.close()
    if any(p.returncode for p in processes):
        sys.exit(f"failed: {' '.join(command)}")
    return [float(word) for word in outputs[0].split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=str(HERE.parents[1] / "build/release/bench/bench_parallel"))
    parser.add_argument("--only", help="one model of the suite")
    parser.add_argument("--suite", default=str(HERE / "suite.json"))
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--quick", action="store_true", help="one pair of a few steps: does it run?")
    parser.add_argument("--csv", help="also append a dated CSV file in this folder")
    args = parser.parse_args()
    suite = json.load(open(args.suite))
    pairs = 1 if args.quick else args.pairs or suite["pairs"]

    import torch
    print(f"machine: {cpu_model()}, {os.cpu_count()} cores; date: {datetime.date.today()}; torch {torch.__version__}; "
          f"Python {platform.python_version()}; {pairs} alternated pairs, medians")
    rows = []
    for case in suite["cases"]:
        if args.only and case["model"] != args.only:
            continue
        if case["model"] == "informer" and "INFORMER_REFERENCE" not in os.environ:
            print("\ninformer is left out: INFORMER_REFERENCE names no checkout of github.com/zhouhaoyi/Informer2020")
            continue
        model, batch, steps = case["model"], case["batch"], 2 if args.quick else case["steps"]
        ours = [args.bench, model, str(batch), str(steps)]
        theirs = [sys.executable, str(HERE / "peer.py"), model, str(batch), str(steps)]
        jobs = {
            "cohort, 1 rank": (ours, 1),
            "PyTorch, 1 rank": (theirs, 1),
            "cohort, 2 ranks": (ours, 2),
            "PyTorch, 2 ranks": (theirs, 2),
            "cohort, 2 replicas": (ours + ["2"], 1),
        }
        figures = {name: [] for name in jobs}
        losses, memory = {}, {name: [] for name in jobs}
        for _ in range(pairs):
            for name, (command, ranks) in jobs.items():
                speed, losses[name], peak = run_job(command, ranks)
                figures[name].append(speed)
                memory[name].append(peak)
        speed = {name: statistics.median(values) for name, values in figures.items()}
        print(f"\n{model}, batch {batch} per rank, {steps} steps")
        for name in jobs:
            print(f"  {name:20s} {speed[name]:10.1f} samples/s   peak {statistics.median(memory[name]):6.0f} MB   "
                  f"last loss {losses[name]:.6g}")
            rows.append([datetime.date.today(), cpu_model(), model, batch, name, f"{speed[name]:.1f}",
                         f"{statistics.median(memory[name]):.0f}", f"{losses[name]:.6g}"])
        for text, a, b in (("1 rank / PyTorch", "cohort, 1 rank", "PyTorch, 1 rank"),
                           ("2 ranks / PyTorch", "cohort, 2 ranks", "PyTorch, 2 ranks"),
                           ("2 ranks / 1 rank", "cohort, 2 ranks", "cohort, 1 rank"),
                           ("PyTorch 2 ranks / 1 rank", "PyTorch, 2 ranks", "PyTorch, 1 rank"),
                           ("2 replicas / 2 ranks", "cohort, 2 replicas", "cohort, 2 ranks")):
            print(f"  {text:26s} {speed[a] / speed[b]:.3f}")
        for a, b in (("cohort, 1 rank", "PyTorch, 1 rank"), ("cohort, 2 ranks", "PyTorch, 2 ranks")):
            # Informer's dropout and attention draw other numbers on either side.
            if model != "informer" and abs(losses[a] - losses[b]) > 1e-4 * abs(losses[b]):
                sys.exit(f"{a} and {b} did not train the same: losses {losses[a]} and {losses[b]}")
    if args.csv:
        path = pathlib.Path(args.csv) / f"parallel-{datetime.date.today()}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", newline="") as file:
            csv.writer(file).writerows(rows)
        print(f"\nwritten: {path}")


main()
