"""The exception of cohort.gs, and its log."""

from __future__ import annotations

import difflib
import logging

logger = logging.getLogger("cohort.gs")
_said: set[str] = set()


class GenesisException(Exception):
    """What cannot be done, and what can be done instead."""


def raise_exception(message: str = "Something went wrong."):
    raise GenesisException(message)


def say_once(message: str) -> None:
    """Logs a warning, the first time only."""
    if message not in _said:
        _said.add(message)
        logger.warning(message)


def unknown(what: str, name: str, known) -> GenesisException:
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    meant = f", is `{near[0]}` meant?" if near else ""
    return GenesisException(f"{what} has no `{name}`{meant} (it has: {', '.join(known)})")


def refuse(name: str, instead: str) -> GenesisException:
    return GenesisException(f"`gs.{name}` is not here: cohort.gs simulates rigid bodies. {instead}")
