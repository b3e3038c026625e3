#!/usr/bin/env python3
"""The whole program on real drivers of GPUs that are not here and compute nothing: test_noop_drivers.py ORIEL_BINARY
TEST_DATA_DIR, with oriel_whole_program in ORIEL_TEST_WHOLE_PROGRAM

Texts are not compared. The exit code is 77 if the drivers cannot be had (scripts/gpu_compilers.sh).
"""

import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import BUNDLED, DATA, ORIEL, PATIENCE, check, environment, run_tests, scratch

SOURCE = DATA.parent.parent
sys.path.insert(0, str(SOURCE / "tests" / "compilers"))
import gpu_compilers  # noqa: E402  # pylint: disable=wrong-import-position

GPUS = ["navi31", "adreno750", "ampere", "m1"]
ROOT = SOURCE / "build" / "compilers" / "root"
WHOLE_PROGRAM = os.environ["ORIEL_TEST_WHOLE_PROGRAM"]


def start(gpu, *words, cache="cache"):
    """`cache`: a folder without verdicts of other tests: a device that computes nothing is soon left without features."""
    command, selected = gpu_compilers.start(ROOT, gpu, [str(word) for word in words])
    env = environment(XDG_CACHE_HOME=str(scratch / cache),
                      **{key: value for key, value in selected.items() if os.environ.get(key) != value})
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300 * PATIENCE)


def test_everything_runs():
    for gpu in GPUS:
        folder = scratch / gpu
        folder.mkdir()
        done = start(gpu, WHOLE_PROGRAM, BUNDLED, folder)
        if check(f"{gpu}: load, prefill, decode, cancel, trim, resume, snapshot", done.returncode == 0, done.stderr[-500:]):
            found = json.loads(done.stdout)
            check(f"{gpu}: bytes as planned", found["device_bytes"] == found["planned_bytes"], found)
            # A goal of 200 that an idle machine meets by far; not checked, for others use the machine, too.
            print(f"        {gpu}: the host takes {found['us_a_token']} us a token")


def test_discrete_gpus_get_long_batches():
    for gpu, tokens in (("navi31", 512), ("ampere", 512), ("m1", 64), ("adreno750", 64)):
        done = start(gpu, ORIEL, "plan", BUNDLED, "--device", "vulkan", "--memory", "1GiB", "--json", cache="plans")
        planned = json.loads(done.stdout)["chunk_tokens"] if done.returncode == 0 else done.stderr
        check(f"{gpu}: batches of {tokens}", planned == tokens, planned)


def test_a_device_that_computes_nothing_is_refused():
    for gpu in GPUS:
        done = start(gpu, ORIEL, "run", BUNDLED, "--prompt", "Hello", "--tokens", "4", "--device", "vulkan",
                     "--device-test", "always", "--memory", "256MiB")
        check(f"{gpu}: refused", done.returncode != 0 and b"no usable Vulkan device" in done.stderr
              and b" failed on " in done.stderr, done.stderr[-500:])


def test_the_program_lists_them():
    for gpu in GPUS:
        done = start(gpu, ORIEL, "devices", "--json", cache="lists")
        listed = json.loads(done.stdout)["devices"][0]
        check(f"{gpu}: usable", listed["usable"] and listed["kind"] in ("discrete", "integrated"), listed)
        # NVK has one subgroup size and takes no requests for it.
        wanted = gpu in ("navi31", "ampere")
        has = any(feature.startswith("matrix units") for feature in listed["features"])
        check(f"{gpu}: {'matrix units' if wanted else 'no matrix units'}", has == wanted, listed)


if __name__ == "__main__":
    prepared = subprocess.run([str(SOURCE / "scripts" / "gpu_compilers.sh"), "--drivers"], stdout=subprocess.DEVNULL)
    if prepared.returncode == 77:
        print("skipped: the drivers could not be had")
        sys.exit(77)
    sys.exit(run_tests(globals()))
