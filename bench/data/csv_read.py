"""The Python peer of csv_read: pandas' C engine and pyarrow.csv.

Answers "ready VERSIONS", then for each line "pandas|pyarrow THREADS DATE_COLUMN|- PATH" with "SECONDS ROWS SUM", the sum being that
of column c0.
"""
import sys
import time

import numpy
import pandas
import pyarrow
import pyarrow.csv


def main():
    print(f"ready pandas {pandas.__version__}, pyarrow {pyarrow.__version__}, numpy {numpy.__version__}", flush=True)
    for line in sys.stdin:
        reader, threads, date, path = line.rstrip("\n").split(" ", 3)
        begin = time.perf_counter()
        if reader == "pandas":
            table = pandas.read_csv(path, engine="c", parse_dates=[date] if date != "-" else None)
            seconds = time.perf_counter() - begin
            column = table["c0"].to_numpy()
        else:
            pyarrow.set_cpu_count(int(threads))
            options = pyarrow.csv.ReadOptions(use_threads=int(threads) > 1)
            table = pyarrow.csv.read_csv(path, read_options=options)
            seconds = time.perf_counter() - begin
            column = table["c0"].to_numpy()
        print(seconds, len(column), f"{column.sum():.6f}", flush=True)
        del table, column


if __name__ == "__main__":
    main()
