#!/usr/bin/env python3
"""Seconds to the same return, ours against EnvPool and rsl-rl-lib: the same task, network and settings of PPO on both sides, one
seed of each after the other.

    bench/rl/peer_venv /tmp/rl_peer                                       # once
    bench/rl/compare.py --cohort build/release/cohort --python /tmp/rl_peer/bin/python --seeds 5 --out bench/results/FOLDER

Time counts from the start of the process until the mean return of the last hundred episodes is above the task's target. The
rates are control steps of all environments by the seconds of simulating, acting (forward passes, noise, what is kept) and
learning. Expect on two cores for 5 seeds: HalfCheetah-v5 about 5 minutes of ours and 20 of theirs, Ant-v5 10 and 60.
"""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# The return that both sides must reach, and after how many control steps a side gives up.
TASKS = {"HalfCheetah-v5": {"target": 2000, "steps": 6_000_000}, "Ant-v5": {"target": 1500, "steps": 10_000_000}}
COMMON = {"n_envs": 64, "steps": 64, "hidden": [64, 64], "activation": "elu", "epochs": 5, "minibatches": 4, "clip": 0.2,
          "lr": 1e-3, "schedule": "adaptive", "gamma": 0.99, "lam": 0.95, "entropy": 0.0, "init_std": 1.0}


def watch(command, rows, target):
    """Runs a side until its return is reached. rows(): iterations that are new. Gives seconds (None: never) and all rows."""
    begin, found, seconds = time.time(), [], None
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        for row in rows(process, begin):
            found.append(row)
            if row["return"] is not None and row["return"] >= target:
                seconds = row["time"]
                break
        process.terminate()
        process.communicate()
        if not found:
            errors.seek(0)
            sys.exit(f"{' '.join(command)} failed:\n{errors.read()}")
    return seconds, found


def theirs(python, task, seed, settings):
    here = pathlib.Path(__file__).parent / "peer.py"

    def rows(process, begin):
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line) | {"time": time.time() - begin}

    return watch([python, str(here), task, str(seed), json.dumps(settings)], rows, settings["target"])


def ours(cohort, task, seed, settings, folder):
    hidden = json.dumps(settings["hidden"])
    command = [cohort, "train", "ppo", f"task={task}", f"seed={seed}", f"output_dir={folder}", f"name={task}-{seed}",
               f"n_envs={settings['n_envs']}", f"num_steps_per_env={settings['steps']}",
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

    return watch(command, rows, settings["target"])


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
    parser.add_argument("--target", type=float, help="another return, for a quick try")
    parser.add_argument("--steps", type=int, help="control steps after which a side gives up")
    parser.add_argument("--out", help="folder for compare.csv and settings.json")
    options = parser.parse_args()
    table = []
    for task in options.tasks:
        limits = TASKS[task]
        settings = COMMON | {"threads": options.threads, "target": options.target or limits["target"],
                             "torch_threads": options.torch_threads or options.threads}
        settings["iterations"] = (options.steps or limits["steps"]) // (settings["n_envs"] * settings["steps"])
        for seed in range(1, options.seeds + 1):
            sides = []
            if options.python:
                sides.append(("EnvPool + rsl-rl-lib", theirs(options.python, task, seed, settings)))
            with tempfile.TemporaryDirectory() as folder:
                sides.append(("cohort", ours(options.cohort, task, seed, settings, folder)))
            for side, (seconds, rows) in sides:
                table.append({"task": task, "side": side, "seed": seed, "seconds": seconds, "steps": rows[-1]["steps"],
                              "return": rows[-1]["return"], **{k + "_steps_per_s": v for k, v in rates(rows).items()}})
                print(json.dumps(table[-1]), flush=True)
        if options.out:
            folder = pathlib.Path(options.out)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"settings-{task}.json").write_text(json.dumps(settings, indent=2) + "\n")
    for task in options.tasks:
        medians = {}
        for side in ("EnvPool + rsl-rl-lib", "cohort"):
            own = [row for row in table if row["task"] == task and row["side"] == side]
            if not own:
                continue
            seconds = [row["seconds"] if row["seconds"] is not None else float("inf") for row in own]
            medians[side] = statistics.median(seconds)
            parts = ", ".join(f"{part} {statistics.median(row[part + '_steps_per_s'] for row in own):.0f}"
                              for part in ("simulating", "acting", "learning"))
            print(f"{task}: {side}: median {medians[side]:.1f} s of {len(own)} seeds; control steps/s: {parts}")
        if len(medians) == 2:
            print(f"{task}: ratio {medians['EnvPool + rsl-rl-lib'] / medians['cohort']:.2f}")
    if options.out:
        with open(pathlib.Path(options.out) / "compare.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, table[0])
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
