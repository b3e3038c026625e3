"""docs/reference/faults.md has a row for every function of Vulkan that the library loads and every call of the system that
runtime/os makes: test_page.py NM LIBRARY"""
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from page import HEADINGS, PAGE, PHASES, ROOT, WORDS, rows_of_vulkan, tables_of

NM, LIBRARY = sys.argv[1:3]
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
    for line in subprocess.run([NM, "-u", LIBRARY], capture_output=True, text=True, check=True).stdout.splitlines():
        begin = re.match(r"(\w+)\.cpp\.o:$", line)
        if begin:
            ours = begin.group(1) in OS
        name = re.match(r"\s+[Uw] (\w+)", line)
        if name and ours:
            used.add(name.group(1))
    return {name for name in used if not re.match(r"_Z|str|_GLOBAL|__(stack_chk|asan|ubsan|tsan)", name)}


class Page(unittest.TestCase):
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
