"""What a rank says in the page that it shares with its agent (src/rank/page.h), read while it runs and after."""
import mmap
import os
import pathlib
import struct

PHASE, PART, STEP = 4, 40, 48  # offsets in rank::Page::Layout
PHASES = ["silent", "start", "training", "data", "validation", "checkpoint", "rejoining", "end"]
PARTS = ["between", "forward", "backward", "reduced", "optimizer", "average"]
MAGIC = 0x43524B31


class RankPage:
    def __init__(self, pid):
        self.pid = pid
        words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        number = next(word[len(b"COHORT_RANK_PAGE="):] for word in words if word.startswith(b"COHORT_RANK_PAGE="))
        fd = os.open(f"/proc/{pid}/fd/{int(number)}", os.O_RDONLY)
        try:
            self.page = mmap.mmap(fd, 4096, prot=mmap.PROT_READ)
        finally:
            os.close(fd)
        if struct.unpack_from("<I", self.page, 0)[0] != MAGIC:
            raise OSError(f"process {pid} has no page of a rank")

    def phase(self):
        return PHASES[self.page[PHASE]]

    def part(self):
        return PARTS[self.page[PART]]

    def step(self):
        return struct.unpack_from("<q", self.page, STEP)[0]

    def is_at(self, place):
        """`place`: a part of a step, or "checkpoint", "rejoining"."""
        return self.page[PART] == PARTS.index(place) if place in PARTS else self.page[PHASE] == PHASES.index(place)
