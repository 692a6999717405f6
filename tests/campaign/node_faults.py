"""Faults of nodes: their agents, the host of their meeting, their cables (faults.py says what a fault is)."""
import os
import signal
import time

from disturbed_job import (AGAIN, PLACES, RESTARTS, expect_codes, first_step_after_recovery, free_port, next_step,
                           reach_a_step, signal_at, start)
from node_network import NodeNetwork
from training import Failure


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
    return lose_the_host(trainings, run, ranks, draw, endpoints=f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}")


def lose_the_host(trainings, run, ranks, draw, **how_the_others_meet):
    layout = {2: [1, 1], 3: [1, 1, 1], 4: [2, 2]}[ranks]
    start(trainings, run, layout, least=1, **how_the_others_meet)
    reach_a_step(trainings, run, draw)
    begin = time.monotonic()
    run.agents[0].kill()
    seconds = next_step(run, begin)
    expect_codes(run, [{-9}] + [{0}] * (len(layout) - 1))
    run.expect_memory()
    return {"seconds": seconds, "layout": layout, "difference": run.expect_same_weights(ranks)}


def state_file(trainings, run):
    return f"--rdzv-conf=state_file={trainings.folder}/{run.name}.terms"


def expect_the_end_in_the_file(trainings, run):
    """A node that was cut off and finds the file later must not go on."""
    terms = sorted(trainings.folder.glob(f"{run.name}.terms.*"), key=lambda path: int(path.suffix[1:]))
    if not terms or '"ended":0' not in terms[-1].read_text():
        raise Failure(f"the last of {terms} does not say that the job has ended well")


def host_lost_with_a_file(trainings, run, ranks, draw):
    """As host_lost, but nobody was told of a second endpoint: whoever claims the next term hosts it."""
    found = lose_the_host(trainings, run, ranks, draw, flags=[state_file(trainings, run)])
    expect_the_end_in_the_file(trainings, run)
    return found


def host_without_power(trainings, run, ranks, draw):
    """Two nodes, of which the host of their meeting is gone without a word: its cable is cut before its processes die."""
    layout = [1, 1] if ranks < 4 else [2, 2]
    with NodeNetwork(2) as network:
        start(trainings, run, layout, least=1, network=network, flags=[state_file(trainings, run)])
        pids = reach_a_step(trainings, run, draw)
        begin = time.monotonic()
        network.cut(0)
        run.agents[0].kill()
        for rank in range(layout[0]):
            os.kill(pids[rank], signal.SIGKILL)
        seconds = next_step(run, begin)
        expect_codes(run, [{-9}, {0}])
        run.expect_memory()
        expect_the_end_in_the_file(trainings, run)
        return {"seconds": seconds, "layout": layout, "difference": run.expect_same_weights(sum(layout))}


def host_lost_without_another(trainings, run, ranks, draw):
    layout = {2: [1, 1], 3: [1, 1, 1], 4: [2, 2]}[ranks]
    start(trainings, run, layout, least=1)
    reach_a_step(trainings, run, draw)
    run.agents[0].kill()
    expect_codes(run, [{-9}] + [{1}] * (len(layout) - 1))
    if "--rdzv-endpoint=A:PORT,B:PORT" not in run.said(1):
        raise Failure("the agent that is left does not say what would have helped")
    return {"layout": layout, "diagnosis": "names a second endpoint"}


def of_a_numbered_nodes_rank(trainings, run, ranks, draw):
    """Nodes whose numbers and store are given (static rendezvous) recover from memory as others do."""
    layout = {2: [1, 1], 3: [1, 1, 1], 4: [2, 2]}[ranks]
    run.reduction = "gloo"
    port = free_port()
    for node in range(len(layout)):
        run.start(trainings.command(
            run.name, [f"--nnodes={len(layout)}", f"--node-rank={node}", f"--nproc_per_node={layout[0]}",
                       "--master-addr=127.0.0.1", f"--master-port={port}", *RESTARTS],
            ["parallel.ddp.cpu_reduction=gloo"], run.out))
    pids = reach_a_step(trainings, run, draw)
    victim = draw.randrange(ranks)
    where, begin = signal_at(pids[victim], draw.choice(PLACES[:-1]), signal.SIGKILL)
    seconds = first_step_after_recovery(run, begin, pids, {victim})
    expect_codes(run, [{0}] * len(layout))
    run.expect_memory()
    run.expect_same_bits(ranks)
    return {"seconds": seconds, "layout": layout, "rank": victim, "where": where}


def cable_cut(trainings, run, ranks, draw):
    """No connection is reset: the agents' beat has to notice."""
    layout = {2: [1, 1], 3: [1, 1, 1], 4: [2, 2]}[ranks]
    with NodeNetwork(len(layout)) as network:
        start(trainings, run, layout, least=1, network=network)
        reach_a_step(trainings, run, draw)
        lost = draw.randrange(1, len(layout))
        begin = time.monotonic()
        network.cut(lost)
        seconds = next_step(run, begin)  # the kernel would notice after a quarter of an hour
        expect_codes(run, [{1} if node == lost else {0} for node in range(len(layout))])
        if "has been silent for" not in run.said(lost):
            raise Failure("the node that was cut off does not say so")
        run.expect_memory()
        return {"seconds": seconds, "layout": layout, "difference": run.expect_same_weights(ranks)}


def two_nodes_cut(trainings, run, ranks, draw):
    """They lose sight of each other, and both see the file: one goes on, the other ends and says why."""
    layout = [1, 1] if ranks < 4 else [2, 2]
    with NodeNetwork(2) as network:
        start(trainings, run, layout, least=1, network=network, flags=[state_file(trainings, run)])
        reach_a_step(trainings, run, draw)
        begin = time.monotonic()
        network.cut(draw.randrange(2))
        seconds = next_step(run, begin)
        expect_codes(run, [{0}, {0, 1}])  # 0: the job had ended when the other looked at the file
        if "has been silent for" not in run.said(1) or f"store at {network.address(1)}" in run.said(1):
            raise Failure("the other node goes on, too, or does not say why it does not")
        expect_the_end_in_the_file(trainings, run)
        run.expect_memory()
        return {"seconds": seconds, "layout": layout, "difference": run.expect_same_weights(sum(layout))}


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
