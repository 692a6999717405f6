"""`cohort` and `python -m cohort`: checks what the dynamic linker would say less clearly, then becomes the program."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "bin" / "cohort"
# Written into the wheel when it is built: the oldest glibc whose symbols its files ask for.
FLOOR = Path(__file__).resolve().parent / "share" / "cohort" / "wheel" / "glibc"


def numbers(version: str) -> tuple[int, ...]:
    """`2.35` as (2, 35)."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def problem(program: Path = PROGRAM, floor: Path = FLOOR) -> str | None:
    """Why the program cannot run on this system, in one line with a remedy; None where it can."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return f"this wheel is for Linux on x86-64, and this is {sys.platform} on {platform.machine()}: build from source (README)"
    if not program.is_file():
        return f"there is no {program}: install the wheel that scripts/wheel builds, not its sources alone"
    wanted = floor.read_text(encoding="ascii").strip() if floor.is_file() else ""
    try:
        name, _, here = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        name, here = "", ""
    if wanted and name != "glibc":
        return f"this wheel needs glibc {wanted} or newer, and this system's C library is another: build from source (README)"
    if wanted and numbers(here) < numbers(wanted):
        return (
            f"this wheel needs glibc {wanted} or newer (Debian 12, Ubuntu 22.04), and this system has {here}: "
            "use a newer system or a container of one, or build from source (README)"
        )
    return None


def main() -> None:
    """Replaces this process by the program, so that signals and exit codes are its own."""
    reason = problem()
    if reason is not None:
        sys.stdout.flush()
        print(f"cohort: {reason}", file=sys.stderr)
        raise SystemExit(1)
    os.execv(PROGRAM, ["cohort", *sys.argv[1:]])


if __name__ == "__main__":
    main()
