#!/usr/bin/env python3
"""Trains a task with its preset for many seeds, on the products of each library, and says how the last policy does.

    bench/rl/first_runs.py --task cartpole-balance --seeds 1-20,101-120 --libraries mkl,onednn --out runs.csv

A line of the table is a run: what `cohort train ppo task=TASK seed=S` leaves, played by `cohort evaluate` for a hundred
episodes of seeds that no training saw. Lines that are there are not run again. Words behind -- are settings of the
training. One process at a time, on --threads cores; no result depends on their number.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

COLUMNS = ["task", "library", "seed", "settings", "iterations", "train_return", "successes", "episodes", "eval_return",
           "steps"]
FIRST_SEED = 100000  # of the episodes that judge


def seeds_of(text):
    seeds = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def run(command, library):
    environment = {**os.environ, "COHORT_MATRIX_PRODUCTS": library}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}")


def one_run(args, library, seed, folder):
    run([args.cohort, "train", "ppo", f"task={args.task}", f"seed={seed}", f"output_dir={folder}", "name=run",
         "charts=false", "tensorboard=false", f"threads={args.threads}", f"learner_threads={args.threads}",
         *args.settings], library)
    trained = folder / "run" / "latest"
    run([args.cohort, "evaluate", "--task", args.task, "--policy", str(trained), "--episodes", str(args.episodes),
         "--n-envs", str(args.episodes), "--first-seed", str(FIRST_SEED), "--threads", str(args.threads), "--json",
         str(folder / "evaluation.json")], library)
    last = json.loads((trained / "metrics.jsonl").read_text().splitlines()[-1])
    policy = json.loads((folder / "evaluation.json").read_text())["policies"][0]
    return [args.task, library, seed, " ".join(args.settings), last["step"], round(last["rl/mean_return"], 2),
            policy["successes"], policy["episodes"], round(policy["mean_return"], 2), round(policy["mean_steps"], 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", required=True)
    parser.add_argument("--seeds", default="1-20,101-120", help="1-20,101-120")
    parser.add_argument("--libraries", default="mkl,onednn", help="COHORT_MATRIX_PRODUCTS, separated by commas")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="CSV, which grows")
    parser.add_argument("--cohort", default="build/release/bin/cohort")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("settings", nargs="*", help="of the training, behind --")
    args = parser.parse_args()
    done = set()
    if args.out.exists():
        with args.out.open() as table:
            done = {(r["task"], r["library"], r["seed"], r["settings"]) for r in csv.DictReader(table)}
    else:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(",".join(COLUMNS) + "\n")
    for library in args.libraries.split(","):
        for seed in seeds_of(args.seeds):
            if (args.task, library, str(seed), " ".join(args.settings)) in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                row = one_run(args, library, seed, pathlib.Path(folder))
            with args.out.open("a") as table:
                csv.writer(table, lineterminator="\n").writerow(row)
            print(*row, flush=True)


if __name__ == "__main__":
    main()
