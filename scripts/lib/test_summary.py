"""Prints the skipped tests by their reasons, what the failed ones said last, and the totals of a CTest JUnit report.

    python3 scripts/lib/test_summary.py build/test-report.xml

Exit code 0 only if no test failed and at least one passed.
"""
import sys
import xml.etree.ElementTree as ElementTree


def skip_reason(case):
    """The message after GoogleTest's `file:line: Skipped`, else the last line."""
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines()]
    for line, after in zip(lines, lines[1:]):
        if line.endswith(": Skipped") and after:
            return after
    told = [line for line in lines if line]
    return told[-1] if told else "no reason given"


def last_lines(case, most=25):
    """The lines of the output with the failure. CTest gives no output for a test that did not start."""
    return [line for line in (case.findtext("system-out") or "").splitlines() if line.strip()][-most:]


def main():
    passed, failed, skipped = 0, [], {}
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        status, skip = case.get("status"), case.find("skipped")
        # A test that could not be started is `notrun` as well, but with another message.
        said_skip = skip is not None and skip.get("message", "").startswith("SKIP_")
        if status == "run":
            passed += 1
        elif status == "disabled" or said_skip:
            reason = skip_reason(case) if said_skip else "long tests: scripts/test.sh --all"
            skipped.setdefault(reason, []).append(case.get("name"))
        else:
            failed.append(case)
    all_skipped = sum(map(len, skipped.values()))
    if skipped:
        print(f"{all_skipped} skipped:")
        for reason, names in skipped.items():
            print(f"  {reason}:")
            for name in names:
                print(f"    {name}")
    for case in failed:
        print(f"failed: {case.get('name')}, after {float(case.get('time') or 0):.0f} s")
        for line in last_lines(case):
            print(f"  {line}")
    print(f"{passed} passed, {len(failed)} failed" + (f", {all_skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
