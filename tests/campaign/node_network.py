"""Nodes in network namespaces of this machine, each with a cable to one switch that can be cut or slowed down.

    with NodeNetwork(3) as network:                  # needs root, ip and tc (iproute2)
        process = subprocess.Popen(network.on(1, ["cohort", "launch", ...]))
        network.cut(1)
        network.slow(2, "5mbit")
"""
import itertools
import os
import shutil
import subprocess

_numbers = itertools.count()


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def obstacle():
    """Why there can be none here; "": there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not shutil.which("ip") or not shutil.which("tc"):
        return "ip and tc are missing (Debian: iproute2)"
    try:
        with NodeNetwork(1):
            return ""
    except (subprocess.CalledProcessError, OSError) as problem:
        return f"network namespaces are not permitted: {getattr(problem, 'stderr', b'') or problem}"


class NodeNetwork:
    """Addresses are 10.77.0.1, 10.77.0.2, ...; nothing outside reaches them."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.tag = f"cohort{os.getpid()}x{next(_numbers)}"
        self.switch = f"{self.tag}s"
        self.made = []

    def name(self, node):
        return f"{self.tag}n{node}"

    @staticmethod
    def address(node):
        return f"10.77.0.{node + 1}"

    def __enter__(self):
        try:
            self._add(self.switch)
            _ip("-n", self.switch, "link", "add", "switch", "type", "bridge")
            _ip("-n", self.switch, "link", "set", "switch", "up")
            for node in range(self.nodes):
                self._add(self.name(node))
                _ip("-n", self.switch, "link", "add", f"cable{node}", "type", "veth", "peer", "name", "eth0",
                    "netns", self.name(node))
                _ip("-n", self.switch, "link", "set", f"cable{node}", "master", "switch", "up")
                _ip("-n", self.name(node), "addr", "add", f"{self.address(node)}/24", "dev", "eth0")
                _ip("-n", self.name(node), "link", "set", "eth0", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        self.made.clear()

    def _add(self, name):
        _ip("netns", "add", name)
        self.made.append(name)
        _ip("-n", name, "link", "set", "lo", "up")

    def on(self, node, command):
        """The command that runs `command` there; the process keeps its number."""
        return ["ip", "netns", "exec", self.name(node), *command]

    def cut(self, node):
        """At the switch: the node's own interface stays, and nobody is told that anything ended."""
        _ip("-n", self.switch, "link", "set", f"cable{node}", "down")

    def slow(self, node, rate):
        for namespace, device in ((self.switch, f"cable{node}"), (self.name(node), "eth0")):
            subprocess.run(["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst",
                            "32kb", "latency", "100ms"], check=True, capture_output=True)
