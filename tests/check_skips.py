"""Fails when a test was skipped that the committed list does not expect, and prints every skip with its reason.

Use: python check_skips.py JUNIT.xml expected_skips.txt
The list holds one line per expected skip: a regular expression for the whole test name, then the reason.
"""
import re
import sys
import xml.etree.ElementTree as ET


def main() -> int:
    report, listed = sys.argv[1:3]
    expected = []
    for line in open(listed, encoding="utf-8"):
        line = line.strip()
        if line and not line.startswith("#"):
            pattern, _, reason = line.partition(" ")
            expected.append((re.compile(pattern), reason.strip()))
    unexpected = 0
    for case in ET.parse(report).getroot().iter("testcase"):
        if case.get("status") not in ("notrun", "skipped") and case.find("skipped") is None:
            continue
        name = case.get("name")
        output = case.findtext("system-out") or ""
        said = re.findall(r"Skipped\n(.*)", output)
        reasons = [reason for pattern, reason in expected if pattern.fullmatch(name)]
        print(f"skipped: {name}: {(said or reasons or ['no reason given'])[0].strip()}")
        if not reasons:
            unexpected += 1
            print(f"  not expected: make it run, or list it in {listed} with a reason")
    return 1 if unexpected else 0


sys.exit(main())
