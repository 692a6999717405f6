#!/usr/bin/env python3
"""Curves of training: mean return by control steps, mean and spread over seeds, of tasks with their presets.

    bench/rl/curves.py --cohort build/release/cohort --out bench/results/FOLDER \\
        --tasks cartpole-balance cartpole-swingup HalfCheetah-v5 Hopper-v5 Ant-v5 quadruped-velocity

Writes for every task TASK.csv (control steps; mean, deviation, lowest and highest over the seeds; then each seed), TASK.json
(the settings as they were resolved, seconds of each seed, final returns) and TASK.png. Anything else behind the options goes to
`cohort train ppo`, e.g. max_iterations=200. `--ranks 2` shares the same environments over two processes. Expect on two cores for 5 seeds: cartpole-balance 1 minute, cartpole-swingup 3, a
task of Gymnasium's 5 to 30, quadruped-velocity 60.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def train(cohort, ranks, task, seed, settings, folder):
    """Control steps and mean returns of the iterations that have one; the settings; seconds."""
    begin = time.time()
    launch = ["launch", f"--nproc_per_node={ranks}"] if ranks > 1 else []
    command = [cohort, *launch, "train", "ppo", f"task={task}", f"seed={seed}", f"output_dir={folder}", "name=run",
               "tensorboard=false", "charts=false", *settings]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    run = pathlib.Path(folder) / "run" / "latest"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    curve = {int(row["rl/control_steps"]): row["rl/mean_return"] for row in rows if "rl/mean_return" in row}
    return curve, json.loads((run / "config.json").read_text()), time.time() - begin


def draw(folder, task, seeds):
    """Mean, and between lowest and highest a band."""
    script = f"""
set terminal pngcairo size 900,500 font 'DejaVu Sans,11'
set output '{folder}/{task}.png'
set datafile separator ','
set key left top
set xlabel 'control steps (millions)'
set ylabel 'mean return'
set title '{task}, {seeds} seeds'
set grid
plot '{folder}/{task}.csv' using ($1/1e6):4:5 every ::1 with filledcurves fc rgb '#c6dbef' title 'lowest to highest', \\
     '' using ($1/1e6):2 every ::1 with lines lw 2 lc rgb '#08519c' title 'mean'
"""
    try:
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
    except FileNotFoundError:
        print("no gnuplot: the chart is left out (apt-get install gnuplot-nox)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohort", default="build/release/cohort")
    parser.add_argument("--tasks", nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=1, help="that share the environments, a process each")
    parser.add_argument("--out", required=True)
    options, settings = parser.parse_known_args()
    folder = pathlib.Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    for task in options.tasks:
        curves, seconds = [], []
        for seed in range(1, options.seeds + 1):
            with tempfile.TemporaryDirectory() as runs:
                curve, configuration, took = train(options.cohort, options.ranks, task, seed, settings, runs)
            curves.append(curve)
            seconds.append(round(took, 1))
            last = curve[max(curve)] if curve else float("nan")
            print(f"{task}, seed {seed}: {took:.1f} s, mean return {last:.2f}", flush=True)
        common = sorted(set.intersection(*(set(curve) for curve in curves)))
        if not common:
            sys.exit(f"{task}: no iteration in which every seed had an episode that ended: train longer (max_iterations)")
        with open(folder / f"{task}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["control_steps", "mean", "deviation", "lowest", "highest",
                             *(f"seed_{k + 1}" for k in range(options.seeds))])
            for step in common:
                values = [curve[step] for curve in curves]
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                writer.writerow([step] + [f"{x:.6g}" for x in (statistics.mean(values), spread, min(values), max(values),
                                                              *values)])
        final = [curve[common[-1]] for curve in curves]
        text = {"configuration": configuration | {"seed": list(range(1, options.seeds + 1)), "output_dir": ""}, "seconds": seconds,
                "final_returns": final, "final_mean": statistics.mean(final)}
        (folder / f"{task}.json").write_text(json.dumps(text, indent=2) + "\n")
        draw(folder, task, options.seeds)


if __name__ == "__main__":
    main()
