"""The base of what is configured by keywords: a class names what it knows with its defaults, and what it takes without effect."""

from __future__ import annotations

from ._errors import GenesisException, say_once, unknown


class Options:
    """Keywords become attributes. A class's annotations with values are what it has; `_without_effect` are names that Genesis'
    class has too and that change nothing here: the first that is given is said in the log."""

    _without_effect: frozenset[str] = frozenset()

    @classmethod
    def _defaults(cls) -> dict:
        found: dict = {}
        for base in reversed(cls.__mro__):
            for name in base.__dict__.get("__annotations__", {}):
                if not name.startswith("_"):
                    found[name] = base.__dict__.get(name)
        return found

    def __init__(self, **given) -> None:
        defaults = self._defaults()
        for name, value in defaults.items():
            setattr(self, name, value)
        for name, value in given.items():
            if name in defaults:
                setattr(self, name, value)
            elif name in self._without_effect:
                if value not in (None, False):
                    say_once(f"{type(self).__name__}.{name} has no effect in cohort.gs")
            else:
                raise unknown(f"gs {type(self).__name__}", name, defaults)
        self._check()

    def _check(self) -> None:
        """Of a class: refuses values that make no sense."""

    def __repr__(self) -> str:
        changed = {n: getattr(self, n) for n, d in self._defaults().items() if getattr(self, n) is not d}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in changed.items())})"


def numbers(what: str, value, count: int) -> tuple[float, ...]:
    """A sequence of that many numbers as floats."""
    try:
        values = tuple(float(v) for v in value)
    except TypeError:
        values = ()
    if len(values) != count:
        raise GenesisException(f"{what} is {value!r}: {count} numbers")
    return values
