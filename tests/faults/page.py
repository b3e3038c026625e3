#!/usr/bin/env python3
"""The tables of docs/reference/faults.md, from what oriel_fault_matrix --results wrote: page.py RESULTS... [--write]

Without --write: exits with 1 where the page lacks something that came, which a sample can find out, too.

    page.py --check NM LIBRARY

The page has a row for every function of Vulkan that the library loads and every call of the system that runtime/os makes."""

import collections
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/faults.md"
PHASES = ["describe", "load", "load again", "create", "prefill", "decode", "chat", "reply", "recall", "embed", "convert",
          "save", "restore", "fork", "trim", "resume", "reset", "recover", "destroy"]
# By number of the status; L: the device is lost.
WORDS = {"0": "on", "2": "IO", "6": "memory", "7": "none", "8": "driver", "8L": "lost", "9L": "lost", "X": "CRASH"}
HEADINGS = {"v": "## Vulkan", "f": "## The operating system"}


def read(paths):
    """{kind: {row: {phase: set of words, or a number of calls}}}"""
    tables = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(set)))
    for path in paths:
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            what, kind, phase, site, value = line.split("\t")[:5]
            if kind == "l" or (kind == "v" and phase == "load"):  # which asks the driver for what "load again" does
                continue
            table = tables["v" if kind in "vm" else "f"]
            cell = table[site][phase]
            if what == "fault" and kind != "m":
                cell.add(WORDS[value])
            elif kind == "m":
                cell.add("none")
    # Functions that cannot fail are shown with their calls only.
    for kind, rows in tables.items():
        for row, cells in list(rows.items()):
            failed = any(words - {"none"} for words in cells.values()) or (kind == "f")
            for phase in [phase for phase, words in cells.items() if failed and not words]:
                del cells[phase]
            if not cells:
                del rows[row]
    return tables


def rows_of_vulkan():
    text = (ROOT / "platform/vulkan/loader.h").read_text(encoding="utf-8")
    return re.findall(r"^  X\((vk\w+)\)", text, re.M)


def order(kind, row):
    names = rows_of_vulkan()
    return (names.index(row) if kind == "v" else 0 if row == "allocate" else 1, row)


def cell(words):
    return ", ".join(sorted(words, key=list(dict.fromkeys(WORDS.values())).index)) if words else "·"


def table(kind, rows):
    phases = [phase for phase in PHASES if any(phase in cells for cells in rows.values())]
    lines = ["| | " + " | ".join(phases) + " |", "|---" * (len(phases) + 1) + "|"]
    for row in sorted(rows, key=lambda row: order(kind, row)):
        cells = [cell(rows[row][phase]) if phase in rows[row] else "" for phase in phases]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return lines


def written(text, tables):
    """The page with these tables in place of its old ones."""
    out, heading, done = [], None, set()
    for line in text.splitlines():
        heading = line if line.startswith("#") else heading
        kind = next((kind for kind, name in HEADINGS.items() if name == heading), None)
        if kind and line.startswith("|"):
            if kind not in done:
                out += table(kind, tables[kind])
                done.add(kind)
            continue
        out.append(line)
    assert done == set(HEADINGS), done
    return "\n".join(out) + "\n"


def tables_of(text):
    """Parses the page into the same form as read()."""
    tables, kind, phases = {}, None, None
    for line in text.splitlines():
        if line.startswith("#"):
            kind, phases = next((kind for kind, name in HEADINGS.items() if name == line), None), None
        elif kind and line.startswith("| "):
            cells = [part.strip() for part in line.strip("|").split("|")]
            if phases is None:
                phases = cells[1:]
                tables[kind] = {}
            else:
                tables[kind][cells[0]] = {phase: set() if words == "·" else set(words.split(", "))
                                          for phase, words in zip(phases, cells[1:]) if words}
    return tables


OS = {path.stem for path in (ROOT / "runtime" / "os").glob("*.cpp")}
# These functions have no failure to test: they work on data in the process, or report none.
# clock_gettime fails only for an unknown clock, pthread_join and dlclose only for a missing thread or library.
# A failing access returns the usual result of most machines: no such GPU.
# pthread_sigmask and sigset functions fail only for invalid signal numbers; sigwait waits for a valid signal.
# sched_setaffinity is called for the library's own threads; after a failure a thread runs on any core.
CANNOT_FAIL = {"__errno_location", "__sched_cpucount", "__sysconf", "access", "clock_gettime", "dirfd", "dl_iterate_phdr",
               "dlclose", "geteuid", "getenv", "getpid", "memcpy", "memmove", "memset", "pthread_attr_destroy",
               "pthread_join", "pthread_self", "pthread_sigmask", "sched_getcpu", "sched_setaffinity", "sched_yield",
               "sigaddset", "sigemptyset", "sigismember", "sigpending", "sigwait", "snprintf", "time"}
# No phase uses prepared weights and limits on heat. A file that cannot be mapped counts as missing, and nanosleep can only
# end early.
IN_NO_PHASE = {"mmap64", "munmap", "nanosleep"}


def calls_of_the_system():
    """Undefined symbols in the objects of runtime/os, except C++ symbols."""
    used, ours = set(), False
    for line in subprocess.run([sys.argv[2], "-u", sys.argv[3]], capture_output=True, text=True, check=True).stdout.splitlines():
        begin = re.match(r"(\w+)\.cpp\.o:$", line)
        if begin:
            ours = begin.group(1) in OS
        name = re.match(r"\s+[Uw] (\w+)", line)
        if name and ours:
            used.add(name.group(1))
    return {name for name in used if not re.match(r"_Z|str|_GLOBAL|__(stack_chk|asan|ubsan|tsan)", name)}


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tables = tables_of(PAGE.read_text(encoding="utf-8"))

    def test_every_function_of_vulkan_has_a_row(self):
        self.assertEqual(rows_of_vulkan(), list(self.tables["v"]))
        self.assertGreater(len(rows_of_vulkan()), 50)

    def test_every_call_of_the_system_has_a_row(self):
        used = calls_of_the_system() - CANNOT_FAIL - IN_NO_PHASE
        rows = {row.split()[0] for row in self.tables["f"]}
        self.assertGreater(len(used), 30)
        self.assertEqual(set(), used - rows, "calls of runtime/os that are not failed: tests/faults/file_faults.cpp")

    def test_every_cell_has_words_that_are_explained(self):
        text = PAGE.read_text(encoding="utf-8")
        for table in self.tables.values():
            for row, cells in table.items():
                for phase, words in cells.items():
                    self.assertIn(phase, PHASES)
                    self.assertLessEqual(words, set(WORDS.values()) - {"CRASH"}, f"{row}, {phase}")
        for word in set(WORDS.values()) - {"CRASH"}:
            self.assertIn(f"`{word}`", text)
        self.assertTrue(all(heading in text for heading in HEADINGS.values()))


def main():
    if sys.argv[1] == "--check":
        return unittest.main(argv=sys.argv[:1], verbosity=2)
    paths = [name for name in sys.argv[1:] if name != "--write"]
    tables = read(paths)
    text = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        PAGE.write_text(written(text, tables), encoding="utf-8")
        return 0
    known, lacks = tables_of(text), []
    for kind, rows in tables.items():
        for row, cells in rows.items():
            for phase, words in cells.items():
                more = words - known[kind].get(row, {}).get(phase, set())
                if more or phase not in known[kind].get(row, {}):
                    lacks.append(f"{row} in {phase}: {', '.join(more) or 'called'}")
    print("\n".join(f"docs/reference/faults.md lacks {each}" for each in lacks))
    return 1 if lacks else 0


if __name__ == "__main__":
    sys.exit(main())
