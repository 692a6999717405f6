#!/usr/bin/env python3
"""Two builds of Cohort side by side: which of what people run has become slower.

    bench/pairs.py OLD_BUILD build/release [--only sim|tasks|ppo|informer] [--rounds 3] [--models FOLDER] [--csv table.csv]

OLD_BUILD: the build folder of another commit (git worktree add ../old COMMIT; there scripts/build release). Both take turns, on
one thread, and processor time is what counts, so that other programs on the machine matter little. A line is the median of the
rounds' ratios, new by old: above 1.05 is worth a look.
--models: Gymnasium's model files; else those of `.deps`.
--csv: a table for Informer; without it that is left out.
"""
import argparse
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
GYMNASIUM = ["half_cheetah", "ant", "hopper", "walker2d_v5", "humanoid"]
OWN = ["walker", "pile", "arm_plain", "mixed", "hills", "terrain", "biped", "rubble", "tendons"]
TASKS = [("pick-and-place", "expert", 128), ("open-drawer", "expert", 64), ("reach", "expert", 128),
         ("HalfCheetah-v5", "random", 256), ("Humanoid-v5", "random", 64), ("quadruped-velocity", "random", 256),
         ("cartpole-swingup", "random", 1024)]
TRAININGS = [("HalfCheetah-v5", ["max_iterations=40"]), ("Ant-v5", ["max_iterations=20"]),
             ("quadruped-velocity", ["max_iterations=10", "n_envs=1024"]),
             ("cartpole-swingup", ["max_iterations=40", "n_envs=512"])]


def run(command):
    """What it printed, and the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.stdout, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def step(build, model):
    """Microseconds of a step of one of 64 environments."""
    text, _ = run([build / "bin/sim_step_bench", "--envs", "64", "--rounds", "3", "--steps", "200", "--turn", "200", model])
    for line in text.splitlines():
        words = line.split()
        if line.startswith(pathlib.Path(model).name) and len(words) > 3 and re.fullmatch(r"[\d.]+", words[3]):
            return float(words[3])
    return None  # refused: another solver, or a part that this build does not have


def control_step(build, task, actor, n_envs):
    """Microseconds of the processors for a control step."""
    text, _ = run([build / "bench/task_steps", "--task", task, "--actor", actor, "--n-envs", str(n_envs), "--seconds", "1.5"])
    return float(re.search(r"([\d.]+) us of the processors", text).group(1))


def training(build, words):
    """Seconds of processor time from start to end."""
    with tempfile.TemporaryDirectory() as folder:
        return run([build / "bin/cohort", "train", *words, f"output_dir={folder}", "name=run", "charts=false",
                    "tensorboard=false"])[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--only", choices=["sim", "tasks", "ppo", "informer"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--csv", type=pathlib.Path)
    args = parser.parse_args()
    models = args.models or next(ROOT.glob(".deps/python/lib/python3*/site-packages/gymnasium/envs/mujoco/assets"))

    measures = []
    for name in GYMNASIUM:
        measures.append(("sim", f"{name}, a step, us", lambda b, m=models / f"{name}.xml": step(b, m)))
    for name in OWN:
        measures.append(("sim", f"{name}, a step, us", lambda b, m=ROOT / f"tests/sim/models/{name}.xml": step(b, m)))
    for task in TASKS:
        measures.append(("tasks", f"{task[0]}, a control step, us", lambda b, t=task: control_step(b, *t)))
    for task, words in TRAININGS:
        measures.append(("ppo", f"ppo {task} {' '.join(words)}, s", lambda b, w=["ppo", f"task={task}", *words, "threads=1",
                                                                                 "learner_threads=1"]: training(b, w)))
    if args.csv:
        measures.append(("informer", "informer, 15 steps, s",
                         lambda b: training(b, ["informer", args.csv.resolve(), "devices=cpu", "train.steps=15"])))
    print(f"{'':<48} {'old':>8} {'new':>8} {'new by old':>10}")
    builds = [args.old.resolve(), args.new.resolve()]
    for section, name, measure in measures:
        if args.only and section != args.only:
            continue
        pairs = [[measure(build) for build in builds] for _ in range(args.rounds)]
        if None in pairs[0]:
            print(f"{name:<48} not in both")
            continue
        old, new = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
        print(f"{name:<48} {old:>8.3f} {new:>8.3f} {statistics.median(n / o for o, n in pairs):>10.3f}", flush=True)


if __name__ == "__main__":
    main()
