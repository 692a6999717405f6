"""Runs the cases of one file of the Python layer's tests: run.py FILE [CASE]; exit code 77 where all of them were skipped.

What a file needs beside the layer is a line `NEEDS = ("gymnasium", ...)` in it: packages that this Python must have.
"""

import importlib
import importlib.util
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))


def needs(name: str) -> list[str]:
    """The packages that the file names, without running it."""
    import ast

    for node in ast.parse((Path(__file__).resolve().parent / f"{name}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "NEEDS":
            return list(ast.literal_eval(node.value))
    return []


def main() -> int:
    name = sys.argv[1]
    missing = [package for package in needs(name) if importlib.util.find_spec(package) is None]
    if missing:
        made, named = ("tests/data/lerobot_venv", "COHORT_LEROBOT_PYTHON") if "lerobot" in missing else ("tests/python/peer_venv", "COHORT_PEER_PYTHON")
        print(f"Skipped\nthis Python has no {', '.join(missing)}: {made} makes one that has, {named} names it")
        return 77
    module = importlib.import_module(name)
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromName(sys.argv[2], module) if len(sys.argv) > 2 else loader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.wasSuccessful() and result.testsRun and len(result.skipped) == result.testsRun:
        print("Skipped\n" + result.skipped[0][1])
        return 77
    return 0 if result.wasSuccessful() and result.testsRun else 1


sys.exit(main())
