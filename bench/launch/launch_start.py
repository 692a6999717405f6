"""Time from the command to its end for two trivial ranks: `cohort launch` against torchrun, in alternated pairs.

    .deps/python/bin/python bench/launch/launch_start.py [--cohort build/release/bin/cohort] [--pairs 10]

Peak memory is the launcher's own (the largest resident set of it and its children, as wait4 reports it).
"""
import argparse
import datetime
import os
import platform
import statistics
import subprocess
import sys
import time


def run(command):
    """Seconds and peak memory (MiB) of one run; the command must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return seconds, usage.ru_maxrss / 1024


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser.add_argument("--cohort", default=os.path.normpath(os.path.join(root, "build/release/bin/cohort")))
    parser.add_argument("--pairs", type=int, default=10)
    arguments = parser.parse_args()
    ours = [arguments.cohort, "launch", "--nproc_per_node=2", "--", "/bin/true"]
    theirs = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python", "/bin/true"]
    version = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    print(f"machine   {machine()}")
    print(f"date      {datetime.datetime.now().isoformat(timespec='minutes')}")
    print(f"versions  {subprocess.run([arguments.cohort, '--version'], capture_output=True, text=True).stdout.strip()}, "
          f"torch {version.stdout.strip()}, Python {platform.python_version()}")
    print(f"load      {os.getloadavg()[0]:.2f} when started")
    run(ours), run(theirs)  # page cache
    times, memory = {"cohort": [], "torchrun": []}, {"cohort": [], "torchrun": []}
    for pair in range(arguments.pairs):
        order = [("cohort", ours), ("torchrun", theirs)]
        for name, command in order if pair % 2 == 0 else reversed(order):
            seconds, mebibytes = run(command)
            times[name].append(seconds)
            memory[name].append(mebibytes)
    for name in times:
        print(f"{name:<9} median {statistics.median(times[name]) * 1000:8.1f} ms  "
              f"(min {min(times[name]) * 1000:.1f}, max {max(times[name]) * 1000:.1f})  peak {max(memory[name]):.0f} MiB")
    print(f"ratio     {statistics.median(times['cohort']) / statistics.median(times['torchrun']):.4f} "
          f"(cohort / torchrun over {arguments.pairs} pairs; goal at most 0.05)")


if __name__ == "__main__":
    main()
