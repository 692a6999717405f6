#!/usr/bin/env python3
"""Trainings under faults drawn at random by a seed, and what must hold after each (faults.py).

  fault_campaign.py FOLDER_OF_COHORT [--faults 300] [--seed 1] [--ranks 2,3,4] [--results FOLDER]

With the ranks restored, weights, optimizer and average are those of an undisturbed run bit for bit; with fewer, weights and
average to 1e-5; where a job cannot go on, it says what is wrong. Survivors keep their processes and no checkpoint is read
where memory is to help, no process is left, no checkpoint is half. One line for each fault and a table at the end; the exit
code is 1 when anything did not hold.

With --results, each fault is added to results.jsonl there, and the same command goes on where it ended; campaign.json has
the sums. One fault is repeated by --seed and --only NUMBER, one kind tried by --kind NAME.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import faults
from training import Failure, Run, Trainings

# What continuous integration runs, in this order: one of every sort that is quick.
QUICK = ["kill at backward", "kill at optimizer", "node lost", "host lost", "cable cut", "full disk", "port taken"]


def draw_fault(seed, number, kinds, ranks):
    draw = random.Random(f"{seed}/{number}")
    # In turn, so that every kind comes equally often.
    order = sorted(kinds)
    random.Random(f"{seed}/order/{number // len(order)}").shuffle(order)
    return order[number % len(order)], draw.choice(ranks), draw


def run_fault(trainings, number, name, fault, ranks, draw):
    run = Run(trainings, f"fault{number}")
    begin = time.monotonic()
    result = {"number": number, "kind": name, "ranks": ranks, "ok": True}
    try:
        result |= fault(trainings, run, ranks, draw)
        run.expect_clean()
    except (Failure, subprocess.SubprocessError, OSError, KeyError) as problem:
        result |= {"ok": False, "problem": str(problem), "output": run.said()[-20000:]}
    finally:
        run.end()
    return result | {"took": round(time.monotonic() - begin, 1)}


def describe(result):
    details = ", ".join(f"{key} {result[key]}" for key in
                        ("layout", "rank", "where", "seconds", "difference", "rate", "turned", "diagnosis") if key in result)
    state = "ok" if result["ok"] else f"FAILED: {result['problem']}\n{result['output']}"
    return f"fault {result['number']}: {result['kind']} with {result['ranks']} ranks ({details}): {state}"


def table(results, left_out):
    lines = [f"{'fault':28} {'times':>5} {'failed':>6} {'next step, median and longest (s)':>34}"]
    for kind in sorted({r["kind"] for r in results}):
        own = [r for r in results if r["kind"] == kind]
        seconds = sorted(r["seconds"] for r in own if "seconds" in r)
        times = f"{seconds[len(seconds) // 2]:.2f} {seconds[-1]:8.2f}" if seconds else "-"
        lines.append(f"{kind:28} {len(own):5} {sum(not r['ok'] for r in own):6} {times:>34}")
    lines += [f"{kind:28} not run: {why}" for kind, why in left_out.items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cohort", type=pathlib.Path)
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", default="2,3,4")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--only", type=int, help="the number of one fault")
    parser.add_argument("--kind", help="one kind, --faults times")
    parser.add_argument("--quick", action="store_true", help="one of each of a few kinds")
    parser.add_argument("--minutes", type=float, help="begin no further fault after so long")
    options = parser.parse_args()
    ranks = [int(r) for r in options.ranks.split(",")]
    everything = faults.kinds()
    left_out = {name: why for name, (_, why) in everything.items() if why}
    kinds = {name: fault for name, (fault, why) in everything.items() if not why}
    if options.kind:
        kinds = {options.kind: kinds[options.kind]}
    numbers = range(options.faults) if options.only is None else [options.only]
    plan = [(n, *draw_fault(options.seed, n, kinds, ranks)) for n in numbers]
    if options.quick:
        left_out = {name: why for name, why in left_out.items() if name in QUICK}
        names = [name for name in QUICK if name in kinds]
        plan = [(n, name, 3 if n % 2 else 2, random.Random(f"{options.seed}/{n}")) for n, name in enumerate(names)]
    results = []
    if options.results:
        options.results.mkdir(parents=True, exist_ok=True)
        file = options.results / "results.jsonl"
        if file.exists():
            results = [r for r in map(json.loads, file.read_text().splitlines())
                       if r["seed"] == options.seed and r["steps"] == options.steps]
    done = {r["number"] for r in results}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cohort-campaign-") as folder:
        trainings = Trainings(options.cohort.resolve() / "cohort", folder, options.steps)
        for number, kind, count, draw in plan:
            if number in done:
                continue
            if options.minutes and time.monotonic() - begin > 60 * options.minutes:
                break
            result = run_fault(trainings, number, kind, kinds[kind], count, draw)
            result |= {"seed": options.seed, "steps": options.steps}
            results.append(result)
            print(describe(result), flush=True)
            if options.results:
                with file.open("a") as out:
                    out.write(json.dumps(result) + "\n")
    print(table(results, left_out))
    failed = sum(not r["ok"] for r in results)
    print(f"{len(results)} faults, {failed} failed, seed {options.seed}")
    if options.results:
        summary = {"seed": options.seed, "steps": options.steps, "faults": len(results), "failed": failed,
                   "left_out": left_out,
                   "failed_numbers": [r["number"] for r in results if not r["ok"]],
                   "kinds": {kind: sum(r["kind"] == kind for r in results) for kind in sorted({r["kind"] for r in results})}}
        (options.results / "campaign.json").write_text(json.dumps(summary, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
