#!/usr/bin/env python3
"""A machine whose Vulkan does not work still has its CPU:
test_broken_driver.py ORIEL_BINARY TEST_DATA_DIR, with the fault layer (tests/faults/layer) failing vkCreateInstance
"""

import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import SMALL, check, environment, fails, json_of, oriel, run_tests, scratch

RUN = ["run", SMALL, "--prompt", "x", "--tokens", "2", "--greedy", "--memory", "64MiB", "--kv", "f16",
       "--no-cache"]


def test_the_cpu_is_listed():
    listed = oriel("devices", "--json", "--verbose")
    check("devices: the CPU alone", listed.code == 0
          and [device["option"] for device in listed.json["devices"]] == ["cpu"], listed)
    check("devices: says what is wrong with Vulkan", b"Vulkan cannot be started" in listed.err, listed)


def test_without_a_device_named_the_cpu_does_it():
    auto = oriel(*RUN, "--json", "--device", "auto")
    check("auto: runs", auto.code == 0, auto)
    check("auto: on the CPU", auto.json["token_ids"] == json_of("cpu", *RUN, "--device", "cpu")["token_ids"],
          auto)


def test_vulkan_that_was_asked_for_is_an_error():
    fails("vulkan: an error", 1, *RUN, "--device", "vulkan")


def test_a_manifest_that_cannot_be_read_is_told_as_that():
    manifest = scratch / "bad.json"
    manifest.write_text("{garbage")
    env = environment(VK_DRIVER_FILES=str(manifest), VK_ICD_FILENAMES=str(manifest))
    for name in ("ORIEL_FAULTS", "VK_INSTANCE_LAYERS"):
        env.pop(name, None)
    result = fails("manifest: an error", 1, *RUN, "--device", "vulkan", env=env)
    check("manifest: says what to look at", b"memory" not in result.err and b"VK_DRIVER_FILES" in result.err, result)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
