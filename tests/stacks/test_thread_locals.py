"""Threads of the library have the room that they are given, however much thread-local data the app has:
test_thread_locals.py LIBRARY APP...

ORIEL_STACKS_ICD: the Vulkan driver's manifest; empty: the CPU.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
ICD = os.environ["ORIEL_STACKS_ICD"]
# Software GPUs compile for longer than they compute: a small model has as many kernels.
MODEL = (ROOT / "tests" / "data" / "models" / "llama-q4_0.gguf" if ICD else
         ROOT / "models" / "oriel-tiny" / "oriel-tiny-q8_0.gguf")
LIBRARY, *APPS = sys.argv[1:]
KIB = 1024
# Stack sizes of threads that compile kernels (pipelines.h) and that compute (pool.cpp).
LEAST = 8192 * KIB if ICD else 256 * KIB
PROCESSORS = len(os.sched_getaffinity(0))


def run(app):
    """The lines of the app by their first word."""
    environment = dict(os.environ, VK_ICD_FILENAMES=ICD, VK_DRIVER_FILES=ICD,
                       # Drivers are not built for them: only what Oriel does is looked at.
                       ASAN_OPTIONS="detect_leaks=0", TSAN_OPTIONS="report_bugs=0")
    command = [app, "vulkan" if ICD else "cpu", MODEL, "2", *([LIBRARY] if app.endswith("_opened") else [])]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    if ran.returncode != 0:
        raise AssertionError(f"{app} ended with {ran.returncode}: {ran.stdout}{ran.stderr}")
    return dict(line.split(" ", 1) for line in ran.stdout.splitlines())


class ThreadLocals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.first = run(APPS[0])

    def apps(self):
        for app in APPS:
            name = pathlib.Path(app).name
            # Drivers are shared libraries, which a static program does not open, and they are not made for sanitizers.
            if ICD and name.endswith(("_static", "_thread", "_address")):
                continue
            yield name, app

    def test_all_threads_run_and_the_reply_is_the_same(self):
        # If the caller has no other work, one more thread compiles the rest.
        least = min(PROCESSORS - 1, 3) if ICD else min(2, PROCESSORS) - 1
        want = (least, least + 1) if ICD else (least,)
        for name, app in self.apps():
            with self.subTest(app=name):
                ran = run(app)
                self.assertEqual(self.first["tokens"], ran["tokens"])
                self.assertEqual("0", ran["refused"])
                self.assertIn(int(ran["threads"]), want)
                used, room = map(int, re.fullmatch(r"(\d+) of (\d+)", ran["large" if ICD else "small"]).groups())
                if int(ran["threads"]) > 0:
                    self.assertGreaterEqual(room, LEAST)
                    self.assertLessEqual(used, LEAST / 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
