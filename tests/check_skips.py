"""Fails when a test was skipped that the committed list does not expect, and prints every skip with its reason.

Use: python check_skips.py JUNIT.xml expected_skips.txt
Beside JUNIT.xml, which CTest wrote, the folder cases/ holds what GoogleTest wrote of cases that share a process.
The list holds one line per expected skip: a regular expression for the whole test name, then the reason.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ET


def skips(report):
    """(name, reason or nothing) of every test that was skipped, and how many tests there were."""
    found, count = [], 0
    for case in ET.parse(report).getroot().iter("testcase"):
        count += 1
        if case.get("status") not in ("notrun", "skipped") and case.find("skipped") is None:
            continue
        said = re.findall(r"Skipped\n(.*)", case.findtext("system-out") or "")
        found.append((case.get("name"), said[0] if said else ""))
    for shard in sorted((report.parent / "cases").glob("*.xml")):
        prefix = "".join(part + "." for part in shard.name.split(".")[:-3])  # PREFIX.program.shard.xml
        for case in ET.parse(shard).getroot().iter("testcase"):
            if case.get("status") != "run":
                continue
            count += 1
            skipped = case.find("skipped")
            if skipped is not None:
                said = [line for line in skipped.get("message", "").splitlines() if line and not re.match(r".*:\d+$", line)]
                found.append((f"{prefix}{case.get('classname')}.{case.get('name')}", said[0] if said else ""))
    return found, count


def main() -> int:
    report, listed = sys.argv[1:3]
    expected = []
    for line in open(listed, encoding="utf-8"):
        line = line.strip()
        if line and not line.startswith("#"):
            pattern, _, reason = line.partition(" ")
            expected.append((re.compile(pattern), reason.strip()))
    unexpected = 0
    found, count = skips(pathlib.Path(report))
    for name, said in found:
        reasons = [reason for pattern, reason in expected if pattern.fullmatch(name)]
        print(f"skipped: {name}: {(said or (reasons or ['no reason given'])[0]).strip()}")
        if not reasons:
            unexpected += 1
            print(f"  not expected: make it run, or list it in {listed} with a reason")
    print(f"{count} tests and shards of tests ran, {len(found)} skipped")
    return 1 if unexpected else 0


sys.exit(main())
