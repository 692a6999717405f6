#!/usr/bin/env python3
"""How well a walking robot follows its commands while it learns: curves of runs that are there, one for each seed.

    bench/rl/tracking_curves.py OUT.csv RUN [RUN ...]

The runs are of tasks with the metrics `linear_tracking` and `angular_tracking` (examples/tasks/g1.yaml). OUT.csv: a row for every
ten iterations of a run: seed, iteration, control steps, seconds of training, and means of the ten: return, length of
episodes, both trackings (empty where a run has none). OUT.png: the trackings by control steps, where gnuplot is there.
"""
import csv
import json
import pathlib
import subprocess
import sys

COLUMNS = {"return": "rl/mean_return", "length": "rl/mean_episode_length", "linear": "rl/metric/linear_tracking",
           "angular": "rl/metric/angular_tracking"}


def rows_of(run):
    seed = json.loads((run / "config.json").read_text())["seed"]
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    seconds = 0
    for i, line in enumerate(lines):
        seconds += line["speed/compute_s"]
        if (i + 1) % 10 == 0:
            ten = lines[i - 9:i + 1]
            means = [f"{sum(one[key] for one in ten) / 10:.4g}" if key in ten[0] else "" for key in COLUMNS.values()]
            yield [seed, line["step"], int(line["rl/control_steps"]), round(seconds), *means]


def draw(table, seeds):
    colours = {"7": "#08519c", "8": "#d94801"}
    lines = [f"'{table}' using ($1=={seed}?$3/1e6:1/0):{column} with lines lw 1.5 dt {1 + place} lc rgb '{colours[column]}' "
             f"title '{name}, seed {seed}'"
             for column, name in (("7", "linear"), ("8", "angular")) for place, seed in enumerate(seeds)]
    script = f"""
set terminal pngcairo size 900,420 font 'DejaVu Sans,11'
set output '{table.with_suffix('.png')}'
set datafile separator ','
set key right bottom
set xlabel 'control steps (millions)'
set ylabel 'tracking, of at most 1'
set yrange [0:1]
set grid
plot {', '.join(lines)}
"""
    try:
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
    except FileNotFoundError:
        print("no gnuplot: the chart is left out (apt-get install gnuplot-nox)")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    table = pathlib.Path(sys.argv[1])
    rows = [row for run in sys.argv[2:] for row in rows_of(pathlib.Path(run))]
    with open(table, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["seed", "iteration", "control_steps", "seconds", *COLUMNS])
        writer.writerows(rows)
    draw(table, sorted({row[0] for row in rows if row[-1]}))


main()
