"""Time from the command to the end of ranks that do nothing: `cohort launch` against torchrun, in alternated pairs.

    .deps/python/bin/python bench/launch/launch_start.py [--cohort build/release/bin/cohort] [--pairs 10] [--ranks 1,2,8,64]

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


def compare(arguments, ranks):
    commands = {
        "cohort": [arguments.cohort, "launch", f"--nproc_per_node={ranks}", "--cpu", "--", "/bin/true"],
        "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", "--no-python",
                     "/bin/true"],
    }
    seconds, memory = {name: [] for name in commands}, {name: [] for name in commands}
    for pair in range(-1, arguments.pairs):  # the first fills the page cache and does not count
        for name in commands if pair % 2 == 0 else reversed(commands):
            result = run(commands[name])
            if pair >= 0:
                seconds[name].append(result[0])
                memory[name].append(result[1])
    print(f"{ranks} ranks")
    for name, times in seconds.items():
        print(f"  {name:<9} median {statistics.median(times) * 1000:8.1f} ms  "
              f"(min {min(times) * 1000:.1f}, max {max(times) * 1000:.1f})  peak {max(memory[name]):.0f} MiB")
    ratio = statistics.median(seconds["cohort"]) / statistics.median(seconds["torchrun"])
    print(f"  ratio     {ratio:.4f} (cohort / torchrun over {arguments.pairs} pairs)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser.add_argument("--cohort", default=os.path.normpath(os.path.join(root, "build/release/bin/cohort")))
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--ranks", default="1,2,8,64")
    arguments = parser.parse_args()
    version = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    print(f"machine   {machine()}")
    print(f"date      {datetime.datetime.now().isoformat(timespec='minutes')}")
    print(f"versions  {subprocess.run([arguments.cohort, '--version'], capture_output=True, text=True).stdout.strip()}, "
          f"torch {version.stdout.strip()}, Python {platform.python_version()}")
    print(f"load      {os.getloadavg()[0]:.2f} when started")
    for ranks in arguments.ranks.split(","):
        compare(arguments, int(ranks))


if __name__ == "__main__":
    main()
