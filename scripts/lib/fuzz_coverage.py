"""Lines that ran, by room of the library: fuzz_coverage.py LCOV_FILE [ROOM]

With a room's name: the lines of it that did not run, by file."""
import pathlib
import re
import sys

ROOMS = {
    "gguf": "runtime/gguf/",
    "text": r"runtime/text/(?!chat)",
    # The compiler makes the table of own_templates.cpp: no line of it runs.
    "chat formats": "runtime/text/chat(?!_formats)",
    "model": "runtime/model/",
    "snapshot": "runtime/(exec|api)/.*snapshot",
    "jinja": "runtime/jinja/",
    "chat": "runtime/chat/",
    "grammar": "runtime/grammar/",
    "json": "runtime/json/",
    "reply": "runtime/reply/",
    "calibration_file": "runtime/budget/calibration_file",
    "kv": "runtime/kv/",
    "prefix_file": "runtime/exec/prefix_file",
    "xz": "runtime/base/xz",
    "pipeline_cache": "platform/vulkan/pipeline_cache",
}


def lines_of(path):
    """{file: {line: count}}, every line once however many programs have it."""
    files, lines = {}, {}
    for entry in path.read_text().splitlines():
        if entry.startswith("SF:"):
            lines = files.setdefault(entry[3:], {})
        elif entry.startswith("DA:"):
            line, count = entry[3:].split(",")[:2]
            lines[int(line)] = max(lines.get(int(line), 0), int(count))
    return files


def ranges(numbers):
    spans = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def main():
    files = lines_of(pathlib.Path(sys.argv[1]))
    for room, pattern in ROOMS.items():
        if len(sys.argv) > 2 and sys.argv[2] != room:
            continue
        mine = {name: lines for name, lines in files.items() if re.search(pattern, name)}
        total = sum(len(lines) for lines in mine.values())
        ran = sum(1 for lines in mine.values() for count in lines.values() if count)
        if total:
            print(f"{room:17} {100 * ran / total:5.1f} %  of {total} lines")
        if len(sys.argv) > 2:
            for name, lines in sorted(mine.items()):
                missed = [line for line, count in lines.items() if not count]
                print(f"  {name}: {len(lines) - len(missed)} of {len(lines)}; not {ranges(missed)}")


if __name__ == "__main__":
    main()
