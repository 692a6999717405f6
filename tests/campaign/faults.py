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

import node_network
from node_network import NodeNetwork
from rank_page import RankPage
from training import Failure

PLACES = ["forward", "backward", "reduced", "optimizer", "average", "checkpoint"]
RESTARTS = ["--max-restarts=4", "--hang-timeout=3"]
AGAIN = "ranks are there again after"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def layouts(ranks, draw):
    """Ranks over nodes: [2] is one node with two, [1, 1] two with one each."""
    choices = {2: [[2], [1, 1]], 3: [[3], [1, 1, 1]], 4: [[4], [2, 2]]}
    return draw.choice(choices[ranks])


def node_flags(run, layout, endpoints, least=None):
    least = least or len(layout)
    return [f"--nnodes={least}:{len(layout)}", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoints}",
            f"--rdzv-id={run.name}", f"--nproc_per_node={layout[0]}", "--last-call=3", *RESTARTS]


def start(trainings, run, layout, more=(), endpoints=None, least=None, network=None, env=None):
    """All agents of the layout; the first hosts the rendezvous."""
    # Nodes on this machine have its memory in common, which those of a cluster have not.
    run.reduction = "gloo" if len(layout) > 1 else "auto"
    more = [*more, f"parallel.ddp.cpu_reduction={run.reduction}"]
    if len(layout) == 1:
        run.start(trainings.command(run.name, [f"--nproc_per_node={layout[0]}", *RESTARTS], more, run.out), env)
        return
    port = free_port()
    if network:
        endpoints = endpoints or f"{network.address(0)}:29400"
    endpoints = endpoints or f"127.0.0.1:{port}"
    for node in range(len(layout)):
        command = trainings.command(run.name, node_flags(run, layout, endpoints, least), more, run.out)
        run.start(network.on(node, command) if network else command, env)
        if node == 0 or "," in endpoints:
            run.wait_until("an agent", lambda: "waits for the others" in run.said(node))
            time.sleep(0.3)


def reach_a_step(trainings, run, draw):
    at = draw.randrange(10, trainings.steps // 2)
    run.wait_until(f"step {at}", lambda: run.step() >= at)
    pids = run.pids()
    if not pids:
        raise Failure("the log does not name the ranks' processes")
    return pids


def signal_at(pid, place, number, seconds=20):
    """Sends it when the rank is there; returns where its page says that it was, and when."""
    page = RankPage(pid)
    end = time.monotonic() + seconds
    while not page.is_at(place):
        if time.monotonic() > end:
            raise Failure(f"process {pid} was not seen at '{place}' within {seconds} s")
    os.kill(pid, number)
    begin = time.monotonic()
    time.sleep(0.001)
    return f"{page.phase()}/{page.part()}", begin


def survivors_keep_their_processes(run, pids, victims):
    for rank, pid in pids.items():
        # Near the end of the training all ranks end before their agents do.
        if rank not in victims and run.step() < run.trainings.steps and not pathlib.Path(f"/proc/{pid}").exists():
            raise Failure(f"rank {rank}, which nobody touched, has lost its process")


def next_step(run, begin, seconds=60):
    """From `begin` to the next step that is not one of those under way: nothing is made for a moment before."""
    before, still = run.step(), time.monotonic()
    while time.monotonic() - still < 0.3 and time.monotonic() - begin < seconds:
        time.sleep(0.005)
        if (now := run.step()) != before:
            before, still = now, time.monotonic()
    run.wait_until("the next step", lambda: run.step() > before or run.step() == run.trainings.steps, seconds)
    return round(time.monotonic() - begin, 2)


def first_step_after_recovery(run, begin, pids, victims):
    run.wait_until("the recovery", lambda: AGAIN in run.said())
    before = run.step()
    survivors_keep_their_processes(run, pids, victims)
    run.wait_until("the next step", lambda: run.step() > before or run.step() == run.trainings.steps)
    return round(time.monotonic() - begin, 2)


def expect_codes(run, allowed):
    codes = run.codes()
    for code, right in zip(codes, allowed):
        if code not in right:
            raise Failure(f"exit codes {codes}, not {allowed}")


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
    return [p for p in found if b"train" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes()]


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


def node_lost(trainings, run, ranks, draw):
    """An agent that does not host the rendezvous: the others go on from memory, with fewer ranks."""
    layout = {2: [1, 1], 3: [1, 1, 1], 4: [2, 2]}[ranks]
    start(trainings, run, layout, least=1)
    reach_a_step(trainings, run, draw)
    begin = time.monotonic()
    lost = draw.randrange(1, len(layout))
    run.agents[lost].kill()
    seconds = next_step(run, begin)
    expect_codes(run, [{-9} if node == lost else {0} for node in range(len(layout))])
    run.expect_memory()
    return {"seconds": seconds, "layout": layout, "difference": run.expect_same_weights(ranks)}


def host_lost(trainings, run, ranks, draw):
    """The agent that hosts the rendezvous and the store: the others meet at the second endpoint."""
    layout = {2: [1, 1], 3: [1, 1, 1], 4: [2, 2]}[ranks]
    start(trainings, run, layout, endpoints=f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}", least=1)
    reach_a_step(trainings, run, draw)
    begin = time.monotonic()
    run.agents[0].kill()
    seconds = next_step(run, begin)
    expect_codes(run, [{-9}] + [{0}] * (len(layout) - 1))
    run.expect_memory()
    return {"seconds": seconds, "layout": layout, "difference": run.expect_same_weights(ranks)}


def host_lost_without_another(trainings, run, ranks, draw):
    layout = {2: [1, 1], 3: [1, 1, 1], 4: [2, 2]}[ranks]
    start(trainings, run, layout, least=1)
    reach_a_step(trainings, run, draw)
    run.agents[0].kill()
    expect_codes(run, [{-9}] + [{1}] * (len(layout) - 1))
    if "--rdzv-endpoint=A:PORT,B:PORT" not in run.said(1):
        raise Failure("the agent that is left does not say what would have helped")
    return {"layout": layout, "diagnosis": "names a second endpoint"}


def cable_cut(trainings, run, ranks, draw):
    """No connection is reset: the agents' beat has to notice."""
    layout = {2: [1, 1], 3: [1, 1, 1], 4: [2, 2]}[ranks]
    with NodeNetwork(len(layout)) as network:
        start(trainings, run, layout, least=1, network=network)
        reach_a_step(trainings, run, draw)
        lost = draw.randrange(1, len(layout))
        begin = time.monotonic()
        network.cut(lost)
        seconds = next_step(run, begin)
        if seconds > 15:
            raise Failure(f"{seconds} s from the cut to the next step")
        expect_codes(run, [{1} if node == lost else {0} for node in range(len(layout))])
        if "has been silent for" not in run.said(lost):
            raise Failure("the node that was cut off does not say so")
        run.expect_memory()
        return {"seconds": seconds, "layout": layout, "difference": run.expect_same_weights(ranks)}


def host_cut(trainings, run, ranks, draw):
    """Two of three nodes lose the host: they are more than half, and go on at the second endpoint; it ends."""
    layout = [1, 1, 1]
    with NodeNetwork(3) as network:
        start(trainings, run, layout, least=1, network=network,
              endpoints=f"{network.address(0)}:29400,{network.address(1)}:29400")
        reach_a_step(trainings, run, draw)
        begin = time.monotonic()
        network.cut(0)
        seconds = next_step(run, begin)
        expect_codes(run, [{1}, {0}, {0}])
        if "it cannot be told who is cut off" not in run.said(0):
            raise Failure("the host that was cut off does not say so")
        run.expect_memory()
        return {"seconds": seconds, "layout": layout, "difference": run.expect_same_weights(3)}


def slow_network(trainings, run, ranks, draw):
    layout = {2: [1, 1], 3: [1, 1, 1], 4: [2, 2]}[ranks]
    with NodeNetwork(len(layout)) as network:
        start(trainings, run, layout, network=network)
        reach_a_step(trainings, run, draw)
        rate = draw.choice(["5mbit", "10mbit", "20mbit"])
        network.slow(draw.randrange(len(layout)), rate)
        expect_codes(run, [{0}] * len(layout))
        if AGAIN in run.said() or "hangs" in run.said():
            raise Failure("a slow network was taken for a fault")
        run.expect_same_bits(ranks)
        return {"layout": layout, "rate": rate}


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
        "node lost": (node_lost, ""),
        "host lost": (host_lost, ""),
        "host lost without another": (host_lost_without_another, ""),
        "cable cut": (cable_cut, network),
        "host cut": (host_cut, network),
        "slow network": (slow_network, network),
        "full disk": (full_disk, root),
        "port taken": (port_taken, ""),
        "clock turned": (clock_turned, "" if faketime() else "libfaketime is missing (Debian: faketime)"),
    }
