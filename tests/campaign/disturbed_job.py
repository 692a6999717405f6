"""What the faults of the campaign share: starting a job's agents, reaching a step, hitting a rank where it is, and what is
waited for afterwards."""
import os
import pathlib
import random
import socket
import time

from rank_page import RankPage
from training import PATIENCE, Failure

PLACES = ["forward", "backward", "reduced", "optimizer", "average", "checkpoint"]
RESTARTS = ["--max-restarts=4", "--hang-timeout=3"]
AGAIN = "ranks are there again after"


def free_port():
    """Below those that the kernel gives out by itself, so that nobody else is given it meanwhile."""
    kernels = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.Random().sample(range(13000, min(kernels, 29000)), 1000):
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("", port))
                other.bind(("", port + 1))  # agents of numbered nodes meet there
                return port
            except OSError:
                pass
    raise Failure("no free port was found")


def layouts(ranks, draw):
    """Ranks over nodes: [2] is one node with two, [1, 1] two with one each."""
    choices = {2: [[2], [1, 1]], 3: [[3], [1, 1, 1]], 4: [[4], [2, 2]]}
    return draw.choice(choices[ranks])


def node_flags(run, layout, endpoints, least=None):
    least = least or len(layout)
    return [f"--nnodes={least}:{len(layout)}", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoints}",
            f"--rdzv-id={run.name}", f"--nproc_per_node={layout[0]}", "--last-call=100", *RESTARTS]


def start(trainings, run, layout, more=(), endpoints=None, least=None, network=None, env=None, flags=()):
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
        command = trainings.command(run.name, [*node_flags(run, layout, endpoints, least), *flags], more, run.out)
        run.start(network.on(node, command) if network else command, env)
        if node == 0 or "," in endpoints:
            run.wait_until("an agent", lambda: "waits for the others" in run.said(node))


def reach_a_step(trainings, run, draw):
    at = draw.randrange(10, trainings.steps // 2)
    run.wait_until(f"step {at}", lambda: run.step() >= at)
    pids = run.pids()
    if not pids:
        raise Failure("the log does not name the ranks' processes")
    return pids


def signal_at(pid, place, number, seconds=PATIENCE):
    """Sends it when the rank is there; returns where its page says that it was, and when."""
    page = RankPage(pid)
    end = time.monotonic() + seconds
    while not page.is_at(place):
        if not pathlib.Path(f"/proc/{pid}").exists():
            raise Failure(f"process {pid} ended before it was seen at '{place}'")
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


def next_step(run, begin, seconds=PATIENCE):
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
