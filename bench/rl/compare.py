#!/usr/bin/env python3
"""Seconds to the same return, ours against EnvPool and rsl-rl-lib: the same task, network and settings of PPO on both sides, one
seed of each after the other.

    bench/rl/peer_venv /tmp/rl_peer                                       # once
    bench/rl/compare.py --cohort build/release/cohort --python /tmp/rl_peer/bin/python --seeds 5 --out bench/results/FOLDER

Time counts from the start of the process until the mean return of the last hundred episodes is above each of the task's targets;
a side ends at the last of them, or gives up after the task's number of control steps. The rates are control steps of all
environments by the seconds of simulating, acting (forward passes, noise, what is kept) and learning. OUT gets TASK.csv (a line
for each side and seed), TASK-curves.csv (a line for every tenth iteration) and TASK-settings.json. Expect on two cores for 5 seeds:
HalfCheetah-v5 5 minutes of ours and 25 of theirs, Ant-v5 2 and 17.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# The returns to which seconds are counted, and after how many control steps a side gives up.
TASKS = {"HalfCheetah-v5": {"targets": [500, 1000, 1500, 2000], "steps": 6_000_000},
         "Ant-v5": {"targets": [200, 400, 600], "steps": 1_000_000}}
COMMON = {"n_envs": 64, "num_steps": 64, "hidden": [64, 64], "activation": "elu", "epochs": 5, "minibatches": 4, "clip": 0.2,
          "lr": 1e-3, "schedule": "adaptive", "gamma": 0.99, "lam": 0.95, "entropy": 0.0, "init_std": 1.0}


def watch(command, rows, target):
    """Runs a side until its return is reached. rows(): iterations that are new. Gives all of them."""
    begin, found = time.time(), []
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        for row in rows(process, begin):
            found.append(row)
            if row["return"] is not None and row["return"] >= target:
                break
        process.terminate()
        process.communicate()
        if not found:
            errors.seek(0)
            sys.exit(f"{' '.join(command)} failed:\n{errors.read()}")
    return found


def theirs(python, task, seed, settings):
    here = pathlib.Path(__file__).parent / "peer.py"

    def rows(process, begin):
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line) | {"time": time.time() - begin}

    return watch([python, str(here), task, str(seed), json.dumps(settings)], rows, max(settings["targets"]))


def ours(cohort, task, seed, settings, folder):
    hidden = json.dumps(settings["hidden"])
    command = [cohort, "train", "ppo", f"task={task}", f"seed={seed}", f"output_dir={folder}", f"name={task}-{seed}",
               f"n_envs={settings['n_envs']}", f"num_steps_per_env={settings['num_steps']}",
               f"max_iterations={settings['iterations']}", f"threads={settings['threads']}",
               f"learner_threads={settings['threads']}", "tensorboard=false", "charts=false", "save_interval=1000000",
               "reward_scale=1", "init_at_random_ep_len=false", f"policy.actor_hidden_dims={hidden}",
               f"policy.critic_hidden_dims={hidden}", f"policy.activation={settings['activation']}",
               f"policy.init_noise_std={settings['init_std']}", f"algorithm.num_learning_epochs={settings['epochs']}",
               f"algorithm.num_mini_batches={settings['minibatches']}", f"algorithm.clip_param={settings['clip']}",
               f"algorithm.learning_rate={settings['lr']}", f"algorithm.schedule={settings['schedule']}",
               f"algorithm.gamma={settings['gamma']}", f"algorithm.lam={settings['lam']}",
               f"algorithm.entropy_coef={settings['entropy']}", "algorithm.use_clipped_value_loss=true"]

    def rows(process, begin):
        file, place = pathlib.Path(folder) / f"{task}-{seed}" / "latest" / "metrics.jsonl", 0
        while True:
            ended = process.poll() is not None
            if file.exists():
                lines = file.read_text().splitlines(keepends=True)
                for line in lines[place:]:
                    if not line.endswith("\n"):
                        break
                    place += 1
                    row = json.loads(line)
                    if "speed/learning_s" not in row:
                        continue
                    yield {"steps": int(row["rl/control_steps"]), "return": row.get("rl/mean_return"),
                           "simulating_s": row["speed/simulating_s"], "learning_s": row["speed/learning_s"],
                           "acting_s": row["speed/collecting_s"] - row["speed/simulating_s"],
                           "time": row["time"] - begin}
            if ended:
                return
            time.sleep(0.02)

    return watch(command, rows, max(settings["targets"]))


def seconds_to(target, rows):
    """None: never."""
    return next((row["time"] for row in rows if row["return"] is not None and row["return"] >= target), None)


def median_seconds(rows, target):
    """Of all seeds, one that never got there counting as forever."""
    return statistics.median(math.inf if row[f"seconds_to_{target}"] is None else row[f"seconds_to_{target}"] for row in rows)


def rates(rows):
    steps = rows[-1]["steps"]
    return {part: steps / max(1e-9, sum(row[f"{part}_s"] for row in rows)) for part in ("simulating", "acting", "learning")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohort", default="build/release/cohort")
    parser.add_argument("--python", help="of peer_venv; without it ours alone is measured")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--torch-threads", type=int, help="of theirs, where one is quicker than --threads (a loaded machine)")
    parser.add_argument("--targets", type=float, nargs="+", help="other returns, for a quick try")
    parser.add_argument("--steps", type=int, help="control steps after which a side gives up")
    parser.add_argument("--out", help="folder for compare.csv and settings.json")
    options = parser.parse_args()
    table, sides = [], (["EnvPool + rsl-rl-lib"] if options.python else []) + ["cohort"]
    folder = pathlib.Path(options.out) if options.out else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    for task in options.tasks:
        settings = COMMON | TASKS[task] | {"threads": options.threads, "torch_threads": options.torch_threads or options.threads}
        if options.targets:
            settings["targets"] = options.targets
        settings["iterations"] = (options.steps or settings["steps"]) // (settings["n_envs"] * settings["num_steps"])
        curves = []
        for seed in range(1, options.seeds + 1):
            for side in sides:
                if side == "cohort":
                    with tempfile.TemporaryDirectory() as runs:
                        rows = ours(options.cohort, task, seed, settings, runs)
                else:
                    rows = theirs(options.python, task, seed, settings)
                table.append({"task": task, "side": side, "seed": seed, "steps": rows[-1]["steps"], "return": rows[-1]["return"],
                              **{f"seconds_to_{target}": seconds_to(target, rows) for target in settings["targets"]},
                              **{k + "_steps_per_s": v for k, v in rates(rows).items()}})
                curves += [{"side": side, "seed": seed, "steps": row["steps"], "seconds": round(row["time"], 2),
                            "return": "" if row["return"] is None else round(row["return"], 1)} for row in rows[::10]]
                print(json.dumps(table[-1]), flush=True)
        of_side = {side: [row for row in table if row["task"] == task and row["side"] == side] for side in sides}
        for side, rows in of_side.items():
            parts = ", ".join(f"{part} {statistics.median(row[part + '_steps_per_s'] for row in rows):.0f}"
                              for part in ("simulating", "acting", "learning"))
            print(f"{task}: {side}: {len(rows)} seeds; control steps/s: {parts}")
        for target in settings["targets"]:
            medians = {side: median_seconds(rows, target) for side, rows in of_side.items()}
            print(f"{task}: return {target}: " + ", ".join(f"{side} {seconds:.1f} s" for side, seconds in medians.items()))
        if folder:
            (folder / f"{task}-settings.json").write_text(json.dumps(settings, indent=2) + "\n")
            write(folder / f"{task}-curves.csv", curves)
            write(folder / f"{task}.csv", [row for row in table if row["task"] == task])


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
