#!/usr/bin/env python3
"""Runs the program on malformed files, on files that change during reading, and next to stopped processes:

    hostile.py ORIEL ORIEL_HOSTILE_MODELS [--mutants N] [--first N] [--changes N] [--frozen all|some|none]
               [--seed N] [--jobs N]

Every command must end within 5 seconds, with success or one line, without a sanitizer report. Its memory is at most
twice the file's size plus the memory for a small valid file. Failures are kept in hostile-finds/. The last line is
`N passed, N failed`: a count of mutants, changes and commands next to a stopped process.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
from changes import Changes
from frozen import Frozen
from mutants import Mutants

speaking = threading.Lock()


def say(text):
    with speaking:
        print(text, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("oriel", type=os.path.abspath)
    parser.add_argument("models", type=os.path.abspath)
    parser.add_argument("--mutants", type=int, default=10000)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--frozen", choices=["all", "some", "none"], default="all")
    parser.add_argument("--seed", type=int, default=time.time_ns() & 0x7fffffff)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


def main():
    options = arguments()
    scratch = tempfile.mkdtemp(prefix="oriel-hostile-")
    passed = failed = 0
    try:
        common = (options.oriel, options.models, scratch, options.seed, say)
        if options.mutants:
            mutants = Mutants(*common)
            mutants.run(options.first, options.mutants, options.jobs)
            passed, failed = passed + mutants.passed, failed + mutants.failed
        if options.changes:
            changes = Changes(*common)
            changes.run(options.changes, options.jobs)
            passed, failed = passed + changes.passed, failed + changes.failed
        if options.frozen != "none":
            frozen = Frozen(*common)
            frozen.run(options.frozen == "all")
            passed, failed = passed + frozen.passed, failed + frozen.failed
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    say(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
