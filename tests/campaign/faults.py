"""The faults of the campaign: each makes a job, disturbs it, and says what must hold afterwards.

A fault is a function of (trainings, run, ranks, draw), where draw is its own random.Random. It returns what is to be
reported: {"seconds": from the fault to the next step, ...}. It raises Failure where something does not hold.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import node_faults
import node_network
from disturbed_job import (AGAIN, PLACES, expect_codes, first_step_after_recovery, layouts, reach_a_step, signal_at, start)
from training import Failure


def of_a_rank(number, place):
    def fault(trainings, run, ranks, draw):
        layout = layouts(ranks, draw)
        more = ["train.checkpoint.every=3"] if place == "checkpoint" else []
        start(trainings, run, layout, more)
        pids = reach_a_step(trainings, run, draw)
        victim = draw.randrange(ranks) if place != "checkpoint" else 0
        where, begin = signal_at(pids[victim], place, number)
        seconds = first_step_after_recovery(run, begin, pids, {victim})
        expect_codes(run, [{0}] * len(layout))
        run.expect_memory()
        run.expect_same_bits(ranks)
        return {"seconds": seconds, "layout": layout, "rank": victim, "where": where}
    return fault


def while_recovering(trainings, run, ranks, draw):
    """Another rank dies while all wait for a new one."""
    layout = layouts(ranks, draw)
    start(trainings, run, layout)
    pids = reach_a_step(trainings, run, draw)
    first, second = draw.sample(range(ranks), 2) if ranks > 2 else (draw.randrange(2), None)
    begin = time.monotonic()
    os.kill(pids[first], signal.SIGKILL)
    if second is None:  # two ranks: the one that takes the place dies, too
        run.wait_until("the recovery", lambda: "recovery 1 of" in run.said())
        time.sleep(draw.random() * 0.4)
        agents = [a.pid for a in run.agents if a.poll() is None]
        new = [p for a in agents for p in children(a) if p not in pids.values()]
        if new:
            os.kill(new[0], signal.SIGKILL)
    else:
        signal_at(pids[second], "rejoining", signal.SIGKILL)
    seconds = first_step_after_recovery(run, begin, pids, {first, second})
    expect_codes(run, [{0}] * len(layout))
    run.expect_memory()
    run.expect_same_bits(ranks)
    return {"seconds": seconds, "layout": layout, "rank": [first, second]}


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        found += [int(p) for p in (task / "children").read_text().split()]
    # The agent's guard has the agent's command line.
    return [p for p in found if b"train" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes()
            and pathlib.Path(f"/proc/{p}/comm").read_text().strip() != "cohort-guard"]


def agent_killed(trainings, run, ranks, draw):
    """On one node: its ranks end with it, and the same command goes on from the checkpoint."""
    more = ["resume=auto", "train.checkpoint.every=20"]
    start(trainings, run, [ranks], more)
    reach_a_step(trainings, run, draw)
    begin, before = time.monotonic(), run.step()
    run.agents[0].kill()
    run.agents[0].wait()
    run.expect_clean()
    start(trainings, run, [ranks], more)
    run.agents.pop(0)
    run.wait_until("the next step", lambda: run.step() > before + 1)
    seconds = round(time.monotonic() - begin, 2)
    expect_codes(run, [{0}])
    run.expect_same_bits(ranks)
    return {"seconds": seconds, "layout": [ranks]}


def full_disk(trainings, run, ranks, draw):
    disk = trainings.folder / f"{run.name}.disk"
    disk.mkdir()
    size = draw.choice([160, 240, 320])
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(disk)], check=True, capture_output=True)
    try:
        run.out, run.folder = disk, disk / run.name / "latest"
        start(trainings, run, [ranks], ["train.checkpoint.every=2", "train.checkpoint.keep=1000"])
        code = run.codes()[0]
        if code == 0 or not re.search(r"No space left|disk is full|full disk", run.said()):
            raise Failure(f"exit code {code}, and no word of a full disk")
        run.expect_clean()
        return {"layout": [ranks], "diagnosis": "names the full disk", "size": f"{size} kB"}
    finally:
        run.end()
        subprocess.run(["umount", "-l", str(disk)], capture_output=True)
        shutil.rmtree(disk, ignore_errors=True)


def port_taken(trainings, run, ranks, draw):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run.start(trainings.command(run.name, [f"--nproc_per_node={ranks}", f"--master-port={port}"]))
        code = run.codes()[0]
        if code == 0 or str(port) not in run.said() or "free" not in run.said():
            raise Failure(f"exit code {code}; the port and a free one are not named")
        return {"layout": [ranks], "diagnosis": "names the port and a free one"}


def faketime():
    found = list(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return str(found[0]) if found else ""


def clock_turned(trainings, run, ranks, draw):
    """The wall clock of all processes jumps by hours, forth or back."""
    clock = trainings.folder / f"{run.name}.clock"
    clock.write_text("+0\n")
    layout = layouts(ranks, draw)
    start(trainings, run, layout, env={"LD_PRELOAD": faketime(), "FAKETIME_TIMESTAMP_FILE": str(clock),
                                       "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                                       "DONT_FAKE_MONOTONIC": "1"})
    reach_a_step(trainings, run, draw)
    turned = draw.choice(["+2h", "-2h", "+40d", "-30s"])
    clock.write_text(turned + "\n")
    expect_codes(run, [{0}] * len(layout))
    if AGAIN in run.said() or "hangs" in run.said():
        raise Failure("a turned clock was taken for a fault")
    run.expect_same_bits(ranks)
    return {"layout": layout, "turned": turned}


def kinds():
    """Name to (fault, why it cannot be here; "": it can)."""
    network = node_network.obstacle()
    root = "" if os.geteuid() == 0 else "mounting a small disk needs root"
    found = {f"kill at {place}": (of_a_rank(signal.SIGKILL, place), "") for place in PLACES}
    found |= {f"stop at {place}": (of_a_rank(signal.SIGSTOP, place), "") for place in PLACES}
    return found | {
        "kill while recovering": (while_recovering, ""),
        "agent killed": (agent_killed, ""),
        "node lost": (node_faults.node_lost, ""),
        "host lost": (node_faults.host_lost, ""),
        "host lost with a file": (node_faults.host_lost_with_a_file, ""),
        "host lost without another": (node_faults.host_lost_without_another, ""),
        "host without power": (node_faults.host_without_power, network),
        "two nodes cut": (node_faults.two_nodes_cut, network),
        "numbered nodes": (node_faults.of_a_numbered_nodes_rank, ""),
        "cable cut": (node_faults.cable_cut, network),
        "host cut": (node_faults.host_cut, network),
        "slow network": (node_faults.slow_network, network),
        "full disk": (full_disk, root),
        "port taken": (port_taken, ""),
        "clock turned": (clock_turned, "" if faketime() else "libfaketime is missing (Debian: faketime)"),
    }
