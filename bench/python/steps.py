"""Steps a second of cohort.make_vec with NumPy actions on one core, beside gymnasium's SyncVectorEnv and EnvPool, in pairs.

  python steps.py [--task HalfCheetah-v5] [--num-envs 256] [--pairs 5] [--csv FILE]

Each pair measures both in turn, in user and system CPU time of this process, so that other work on the machine counts little. Actions
are random between the bounds and drawn before. `python_share` is what a step costs beyond `rollout`, in which Python does not
run.
"""

import argparse
import csv
import os
import resource
import statistics
import sys

import numpy as np

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--task", default="HalfCheetah-v5")
    words.add_argument("--num-envs", type=int, default=256)
    words.add_argument("--pairs", type=int, default=5)
    words.add_argument("--seconds", type=float, default=1.0, help="CPU time of a measurement, about")
    words.add_argument("--csv")
    words = words.parse_args()
    n = words.num_envs

    import cohort

    made = {"cohort": cohort.make_vec(words.task, n, threads=1, seed=0)}
    width = made["cohort"].single_action_space.shape[0]
    try:
        import gymnasium

        made["gymnasium SyncVectorEnv"] = gymnasium.make_vec(words.task, n, vectorization_mode="sync")
    except Exception as problem:  # noqa: BLE001
        print(f"without gymnasium's own: {problem}", file=sys.stderr)
    try:
        import envpool

        made["EnvPool"] = envpool.make_gymnasium(words.task, num_envs=n, num_threads=1, seed=0)
    except Exception as problem:  # noqa: BLE001
        print(f"without EnvPool: {problem}", file=sys.stderr)
    low, high = made["cohort"].single_action_space.low, made["cohort"].single_action_space.high
    drawn = np.random.default_rng(0).uniform(low, high, (64, n, width)).astype(np.float32)

    def steps(envs, count: int) -> float:
        begin = cpu()
        for t in range(count):
            envs.step(drawn[t % 64])
        return n * count / (cpu() - begin)

    for envs in made.values():
        envs.reset()
    counts = {name: max(2, int(words.seconds * steps(envs, 3) / n)) for name, envs in made.items()}
    rows = []
    for pair in range(words.pairs):
        row = {"task": words.task, "num_envs": n, "pair": pair, **{name: round(steps(envs, counts[name])) for name, envs in made.items()}}
        begin = cpu()
        count = max(1, counts["cohort"] // 64)
        for _ in range(count):
            made["cohort"].rollout(drawn)
        alone = n * 64 * count / (cpu() - begin)
        row["cohort rollout"] = round(alone)
        row["python_share"] = round(1 - row["cohort"] / alone, 4)
        rows.append(row)
        print(row, flush=True)
    for name in made:
        if name != "cohort":
            ratios = [row["cohort"] / row[name] for row in rows]
            print(f"{words.task}, {n} environments: cohort / {name}: median {statistics.median(ratios):.1f}, {min(ratios):.1f} to {max(ratios):.1f}")
    print(f"share of Python: median {statistics.median(row['python_share'] for row in rows):.3f}")
    if words.csv:
        new = not os.path.exists(words.csv)
        with open(words.csv, "a", newline="") as file:
            lines = csv.DictWriter(file, rows[0])
            if new:
                lines.writeheader()
            lines.writerows(rows)


if __name__ == "__main__":
    main()
