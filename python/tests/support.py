"""Helpers of the tests. ORIEL_LIBRARY names the shared library, ORIEL_PROGRAM the command line program."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
INCLUDE = ROOT / "runtime" / "include"
TINY = ROOT / "models" / "oriel-tiny" / "oriel-tiny-q8_0.gguf"
PROGRAM = os.environ.get("ORIEL_PROGRAM")
ON_CPU = {"device": "cpu", "memory": "16MB"}


def program(*arguments, stdin=""):
    """The JSON object that the program prints."""
    done = subprocess.run([PROGRAM, *map(str, arguments), "--json"], input=stdin, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise AssertionError(f"{arguments}: {done.stderr}")
    return json.loads(done.stdout)


needs_program = unittest.skipUnless(PROGRAM, "the program was not built (ORIEL_PROGRAM)")
