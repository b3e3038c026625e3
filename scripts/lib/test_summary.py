"""Prints the skipped tests with their reasons and the totals of a CTest JUnit report.

    python3 scripts/lib/test_summary.py build/test-report.xml

Exit code 0 only if no test failed and at least one passed.
"""
import sys
import xml.etree.ElementTree as ElementTree


def skip_reason(case):
    """What the test printed behind GoogleTest's `file:line: Skipped`, else its last line."""
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines()]
    for line, after in zip(lines, lines[1:]):
        if line.endswith(": Skipped") and after:
            return after
    told = [line for line in lines if line]
    return told[-1] if told else "no reason given"


def main():
    passed, failed, skipped = 0, 0, []
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        status, skip = case.get("status"), case.find("skipped")
        # A test that could not be started is `notrun` as well, but with another message.
        said_skip = skip is not None and skip.get("message", "").startswith("SKIP_")
        if status == "run":
            passed += 1
        elif status == "disabled" or said_skip:
            skipped.append((case.get("name"), skip_reason(case)))
        else:
            failed += 1
    if skipped:
        print(f"{len(skipped)} skipped:")
        for name, reason in skipped:
            print(f"  {name}: {reason}")
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
