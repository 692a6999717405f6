"""The simulation benchmarks, as bench/sim/suite.json declares them.

    PYTHON bench/sim/run.py step|start|memory|scaling|genesis --models FOLDER [--cohort build/release/bin/cohort]
        [--mujoco-python PYTHON]
        [--genesis-python PYTHON] [--genesis-assets FOLDER] [--only MODEL] [--lanes avx2]

--models: a folder with the models of the wheels gymnasium, mujoco-mjx and mujoco-warp, each unpacked under its name.
step:    processor time of a step against the faster of mj_step and MuJoCo's own batch (sim_step_bench, found beside cohort),
         with the floor and the goals.
start:   seconds from starting the process to its end after one step of all environments (model file, compiling,
         allocation, one step, leaving), and the same from a compiled .cohort file; of these, seconds of CPU time, which
         is what a machine with nothing else to do takes.
memory:  bytes of an environment by part, beside MuJoCo's mjData. Needs a Python with mujoco (--mujoco-python).
scaling: steps per second over numbers of environments on one core, and over threads: the numbers by turns in every round,
         the ratio is to the first of the same round.
genesis: steps per second against Genesis on the same core, in alternated processes; Genesis' start apart. Needs a Python
         with genesis-world and a torch for CPUs.
Everything on one thread runs on core 0. Print machine, date, versions and load; quote ratios of alternated runs only.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


def on_core_0(command):
    return ["taskset", "-c", "0", *command]


def run(command):
    """Seconds of a run and what it printed; the command must succeed."""
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds, done.stdout + done.stderr


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Suite:
    def __init__(self, arguments):
        self.arguments = arguments
        with open(HERE / "suite.json") as file:
            self.data = json.load(file)

    def cases(self, section):
        names = self.data[section]["models"]
        return [name for name in names if not self.arguments.only or name == self.arguments.only]

    def model(self, name):
        path = self.data["models"][name]
        if path.startswith("tests/"):
            return str(ROOT / path)
        if path.startswith("genesis/assets/"):
            if not self.arguments.genesis_assets:
                return None
            return str(pathlib.Path(self.arguments.genesis_assets) / path.removeprefix("genesis/assets/"))
        return str(pathlib.Path(self.arguments.models) / path)


def step(suite):
    settings = suite.data["step"]
    turn = suite.arguments.turn or settings["turn"]
    program = str(pathlib.Path(suite.arguments.cohort).with_name("sim_step_bench"))
    print(f"# floor {settings['floor']} on every model, geometric mean {settings['mean']}; medians of {settings['rounds']} rounds of {settings['steps']} steps of "
          f"{settings['n_envs']} environments, or as said; an engine takes {turn} steps before it is the next one's turn; "
          f"lanes: {suite.arguments.lanes}")
    print(f"{'model':<16} {'contacts':<8} {'ratio':>6} {'wanted':>9} {'':<7} {'us per step: mj_step, mjb_step, ours':<36} "
          "contacts ours / MuJoCo's, iterations ours / MuJoCo's, memory of an environment")
    below, ratios = [], []
    for case in settings["cases"]:
        name, contacts = case["model"], case.get("contacts", "all")
        model = suite.model(name)
        if suite.arguments.only not in (None, name):
            continue
        if model is None:
            print(f"{name:<16} {contacts:<8} not run: no --genesis-assets")
            continue
        sizes = {key: case.get(key, settings[key]) for key in ("n_envs", "rounds", "steps")}
        text = run(on_core_0([program, "--envs", str(sizes["n_envs"]), "--rounds", str(sizes["rounds"]), "--steps",
                              str(sizes["steps"]), "--turn", str(turn), "--contacts", contacts, "--row-space",
                              str(case.get("row_space", -1)), "--lanes", suite.arguments.lanes, model]))[1]
        found = re.search(r"^(?!#)\S+ +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)x +(.*)$", text, re.MULTILINE)
        if not found:
            sys.exit(f"{name}: the batched engine does not run it:\n{text}")
        ratio, wanted = float(found[4]), case.get("goal", settings["floor"])
        ratios.append(ratio)
        reached = "" if ratio >= wanted else "missed"
        if ratio < settings["floor"]:
            reached = "BELOW"
            below.append(name)
        wish = f"{'goal' if 'goal' in case else 'floor'} {wanted}"
        times = " ".join(f"{float(found[i]):>9.3f}" for i in (1, 2, 3))
        setting = f"; --row-space {case['row_space']}" if "row_space" in case else ""
        if sizes["n_envs"] != settings["n_envs"]:
            setting += f"; {sizes['n_envs']} environments"
        print(f"{name:<16} {contacts:<8} {ratio:>5.1f}x {wish:>9} {reached:<7} {times:<36} {found[5]}{setting}",
              flush=True)
    print(f"# geometric mean {statistics.geometric_mean(ratios):.1f}; below the floor: {', '.join(below) or 'none'}")


def start(suite):
    settings = suite.data["start"]
    print(f"# seconds to the end of a process that makes one step of {settings['n_envs']} environments; medians of "
          f"{settings['runs']} (least, most); goal {settings['goal_seconds']} s")
    print(f"{'model':<18} {'from its file, of these CPU':>32} {'from a .cohort file, CPU':>32}")
    for name in suite.cases("start"):
        model = suite.model(name)
        if model is None:
            print(f"{name:<18} not run: no --genesis-assets")
            continue
        with tempfile.TemporaryDirectory() as folder:
            compiled = os.path.join(folder, "model.cohort")
            run([suite.arguments.cohort, "model", model, "--compile", compiled])
            options = ["--n-envs", str(settings["n_envs"]), "--steps", "1", "--control", "zero"]
            cells = {"file": ([], []), "compiled": ([], [])}
            for _ in range(settings["runs"]):
                for kind, path in (("file", model), ("compiled", compiled)):
                    before = cpu_seconds()
                    cells[kind][0].append(run(on_core_0([suite.arguments.cohort, "simulate", path, *options]))[0])
                    cells[kind][1].append(cpu_seconds() - before)
        text = [f"{statistics.median(wall):8.3f} ({min(wall):.3f}, {max(wall):.3f}) {statistics.median(cpu):6.3f}"
                for wall, cpu in cells.values()]
        print(f"{name:<18} {text[0]:>32} {text[1]:>32}", flush=True)


MJDATA = """
import mujoco, sys
for path in sys.argv[1:]:
    m = mujoco.MjModel.from_xml_path(path)
    d = mujoco.MjData(m)
    for _ in range(100):
        mujoco.mj_step(m, d)
    print("mjdata", m.nv, d.nbuffer, d.narena, d.maxuse_arena, mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_INTEGRATION.value))
"""


def memory(suite):
    names = [name for name in suite.cases("memory") if suite.model(name)]
    text = run([suite.arguments.mujoco_python, "-c", MJDATA, *(suite.model(name) for name in names)])[1]
    peers = [[int(word) for word in line.split()[1:]] for line in text.splitlines() if line.startswith("mjdata ")]
    print("# bytes of an environment; mjData: its buffer and the arena that it reserves, and the part of the arena in use at "
          "most in a hundred steps; mjBatch: MuJoCo's own batch keeps a state row of doubles")
    print(f"{'model':<18} {'dofs':>4} {'ours':>7} {'by part':<42} {'mjData':>10} {'ratio':>6} {'in use':>8} {'ratio':>6} "
          f"{'mjBatch':>7} {'ratio':>5}")
    for name, (nv, buffer, arena, used, state) in zip(names, peers):
        found = re.search(r"memory: (\d+) bytes per environment \((.*)\)", run([suite.arguments.cohort, "model",
                                                                                suite.model(name)])[1])
        if not found:
            sys.exit(f"`cohort model` says nothing of memory for {name}: the batched engine does not run it")
        ours = int(found[1])
        print(f"{name:<18} {nv:>4} {ours:>7} {found[2]:<42} {buffer + arena:>10} {(buffer + arena) / ours:>6.0f} "
              f"{buffer + used:>8} {(buffer + used) / ours:>6.0f} {8 * state:>7} {8 * state / ours:>5.1f}", flush=True)


def scaling(suite):
    settings = suite.data["scaling"]

    def step(model, n, threads):
        command = [suite.arguments.cohort, "simulate", model, "--n-envs", str(n), "--steps", str(settings["steps"]),
                   "--threads", str(threads)]
        text = run(on_core_0(command) if threads == 1 else command)[1]
        found = re.search(r"([\d.]+) steps/s in physics .* s\), ([\d.]+) contacts and ([\d.]+)", text)
        return tuple(float(found[i]) for i in (1, 2, 3))

    print(f"# {settings['steps']} steps from the start, medians of {settings['rounds']} rounds; random controls in range, "
          "self-collision as in the file")
    print(f"{'model':<18} {'threads':>7} {'envs':>6} {'steps/s':>10} {'ratio':>6} {'contacts':>9} {'iterations':>10}")
    for name in suite.cases("scaling"):
        cases = [(n, 1) for n in settings["envs"]]
        cases += [(settings["threads_envs"], threads) for threads in settings["threads"] if threads > 1]
        rates = {case: [] for case in cases}
        rest = {}
        for _ in range(settings["rounds"]):
            for case in cases:
                rate, contacts, iterations = step(suite.model(name), *case)
                rates[case].append(rate)
                rest[case] = (contacts, iterations)
        for n, threads in cases:
            base = (cases[0] if threads == 1 else (n, 1))
            ratio = statistics.median(a / b for a, b in zip(rates[n, threads], rates[base]))
            print(f"{name:<18} {threads:>7} {n:>6} {statistics.median(rates[n, threads]):>10.0f} {ratio:>6.2f} "
                  f"{rest[n, threads][0]:>9.2f} {rest[n, threads][1]:>10.2f}", flush=True)
    print("# the ratio of several threads is to one thread with as many environments")


def genesis(suite):
    settings = suite.data["genesis"]
    if not suite.arguments.genesis_python or not suite.arguments.genesis_assets:
        sys.exit("genesis: --genesis-python and --genesis-assets say where it is installed")
    n, steps = settings["n_envs"], settings["steps"]
    print(f"# {n} environments, Newton; timestep, iterations and tolerance as in each model's file; self-collision; random "
          f"controls in range; one core; {settings['pairs']} pairs, medians")
    print(f"{'model':<14} {'Genesis us':>10} {'ours us':>9} {'ratio':>7}   {'contacts G':>10} {'ours':>6}   "
          f"{'Genesis start s (import, build, first step)':>44} {'ours':>6}")
    for name in suite.cases("genesis"):
        model, of_model = suite.model(name), settings["models"][name]
        theirs_command = on_core_0([
            suite.arguments.genesis_python, str(HERE / "genesis_step.py"), model, "--n-envs", str(n), "--steps", str(steps),
            *(word for key, value in of_model.items() for word in (f"--{key}", str(value)))])
        ours_command = on_core_0([
            suite.arguments.cohort, "simulate", model, "--n-envs", str(n), "--steps", str(steps), "--timestep",
            str(of_model["timestep"])])
        theirs, ours, ours_contacts, ours_start = [], [], [], []
        for _ in range(settings["pairs"]):
            peer = json.loads(run(theirs_command)[1].strip().splitlines()[-1])
            if not peer["finite"]:
                print(f"# {name}: Genesis' velocities are not finite at the end")
            theirs.append(peer)
            text = run(ours_command)[1]
            found = re.search(r"([\d.]+) steps/s in physics .* s\), ([\d.]+) contacts", text)
            ours.append(1e6 / float(found[1]))
            ours_contacts.append(float(found[2]))
            ours_start.append(float(re.search(r"ready after ([\d.]+) s", text)[1]))
        median = statistics.median
        peer = median(t["microseconds"] for t in theirs)
        ratio = median(t["microseconds"] / o for t, o in zip(theirs, ours))
        begin = [median(t[key] for t in theirs) for key in ("import_seconds", "build_seconds", "first_step_seconds")]
        print(f"{name:<14} {peer:>10.2f} {median(ours):>9.3f} {ratio:>6.1f}x   "
              f"{median(t['contacts'] for t in theirs):>10.2f} {median(ours_contacts):>6.2f}   "
              f"{begin[0]:>16.1f}, {begin[1]:>11.1f}, {begin[2]:>12.1f} {median(ours_start):>6.2f}", flush=True)
    print(f"# Genesis {theirs[0]['genesis']}, torch {theirs[0]['torch']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=["step", "start", "memory", "scaling", "genesis"])
    parser.add_argument("--lanes", default="auto", help="step: auto, scalar, avx2 or avx512")
    parser.add_argument("--turn", type=int, help="step: steps that an engine takes before the next one's turn")
    parser.add_argument("--models", required=True)
    parser.add_argument("--cohort", default=str(ROOT / "build/release/bin/cohort"))
    parser.add_argument("--mujoco-python", default=sys.executable)
    parser.add_argument("--genesis-python")
    parser.add_argument("--genesis-assets")
    parser.add_argument("--only")
    arguments = parser.parse_args()
    version = subprocess.run([arguments.cohort, "--version"], capture_output=True, text=True).stdout.strip()
    print(f"# {machine()}; {datetime.datetime.now().isoformat(timespec='minutes')}; {version}; load "
          f"{os.getloadavg()[0]:.2f} when started")
    suite = Suite(arguments)
    {"step": step, "start": start, "memory": memory, "scaling": scaling, "genesis": genesis}[arguments.section](suite)


if __name__ == "__main__":
    main()
