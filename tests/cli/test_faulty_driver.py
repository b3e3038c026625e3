#!/usr/bin/env python3
"""A driver that computes wrong numbers, or ends the process, costs speed and not the app:
test_faulty_driver.py ORIEL_BINARY TEST_DATA_DIR, with faulty_loader.c in the folder ORIEL_TEST_FAULTY_LOADER
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import DATA, ORIEL, PATIENCE, check, environment, oriel, run_tests, scratch

# Small, and of a type of weights that all ways to multiply know.
RUN = ["run", DATA / "models" / "llama-q8_0.gguf", "--prompt", "Hello", "--tokens", "8", "--greedy",
       "--memory", "64MiB", "--kv", "f16", "--raw", "--verbose", "--json"]
VULKAN = ["--device", "vulkan"]
CACHE = scratch / "cache" / "oriel"


def real_loader():
    ctypes.CDLL("libvulkan.so.1")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if "libvulkan.so.1" in line)


LOADER = real_loader()


def faulty(**faults):
    return environment(LD_LIBRARY_PATH=os.environ["ORIEL_TEST_FAULTY_LOADER"], ORIEL_TEST_LOADER=LOADER, **faults)


def run(*args, fresh=False, **faults):
    if fresh:
        shutil.rmtree(CACHE, ignore_errors=True)
        (scratch / "died").unlink(missing_ok=True)
    return oriel(*RUN, *VULKAN, *args, env=faulty(**faults))


def same(result):
    return result.code == 0 and result.json["token_ids"] == HONEST


def lines_with(result, *words):
    return [line for line in result.err.decode().splitlines() if all(word in line for word in words)]


HONEST = oriel(*RUN, "--device", "cpu").json["token_ids"]


def features():
    listed = oriel("devices", "--json").json["devices"][0]
    return listed["features"], listed


def test_an_honest_driver_is_tested_once():
    first = run(fresh=True)
    check("honest: runs", same(first), first)
    check("honest: tested", len(lines_with(first, "tested the kernels")) == 1, first)
    second = run()
    check("honest: not tested again", same(second) and not lines_with(second, "tested the kernels"), second)
    check("honest: always", len(lines_with(run("--device-test", "always"), "tested the kernels")) == 1)
    # Files that cannot be written change nothing.
    file = next(CACHE.glob("oriel-*-*.verdict"))
    for path in (file, file.with_suffix(".contact"), CACHE / "oriel-vulkan.contact"):
        path.unlink(missing_ok=True)
        path.mkdir()  # which even root cannot write to
    blocked = run()
    check("unwritable: runs", same(blocked), blocked)
    never = run("--device-test", "never", fresh=True)
    check("honest: never", same(never) and not lines_with(never, "tested the kernels"), never)
    listed = features()[1]
    check("honest: nothing is known", listed["kernels_right"] + listed["kernels_wrong"] == 0, listed)


def verdicts_that_are_not_whole_count_for_nothing():
    file = next(CACHE.glob("oriel-*-*.verdict"))
    good = file.read_bytes()
    for at in (20, len(good) - 1):  # every byte: test_drivers.cpp
        for damaged in (good[:at], good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]):
            file.write_bytes(damaged)
            listed = features()[1]
            check(f"verdict: damaged at {at}, of {len(damaged)} bytes", listed["verdict"] == "", listed)
    again = run()
    check("verdict: found out anew", same(again) and len(lines_with(again, "tested the kernels")) == 1, again)
    check("verdict: the driver is honest now", features()[1]["verdict"] == "")


def test_wrong_kernels_are_put_aside():
    has = " ".join(features()[0])
    kinds = [("subgroup", "subgroup arithmetic", "subgroup"), ("texel", "long texel buffers", "texel_buffers")]
    for kind, feature, name in kinds:
        if feature not in has:
            print(f"skipped {kind}: the device has no {feature}")
            continue
        first = run(fresh=True, ORIEL_TEST_LIE=kind)
        check(f"{kind}: the text is right", same(first), first)
        check(f"{kind}: says so", len(lines_with(first, "computes wrong numbers", name + " is turned off")) == 1, first)
        second = run(ORIEL_TEST_LIE=kind)
        check(f"{kind}: kept", same(second) and not lines_with(second, "tested the kernels")
              and len(lines_with(second, name + " off")) == 1, second)
        listed = features()[1]
        check(f"{kind}: listed", name + " off" in listed["verdict"] and listed["kernels_wrong"] != 0
              and feature not in " ".join(listed["features"]), listed)
        wants = run("--enable-feature", name, ORIEL_TEST_LIE=kind)
        check(f"{kind}: one's own wish goes first", wants.code == 0 and wants.json["token_ids"] != HONEST, wants)
        if kind == "subgroup":
            verdicts_that_are_not_whole_count_for_nothing()
        else:
            oriel("doctor", "--forget-drivers")
            listed = features()[1]
            check(f"{kind}: forgotten", listed["verdict"] == "", listed)


def choose(kind):
    """The number of types of weights for which the device has kernels of that kind. These are used from now on."""
    shutil.rmtree(CACHE, ignore_errors=True)
    chosen = subprocess.run([os.environ["ORIEL_TEST_CHOOSE_KERNELS"], kind, str(CACHE)], stdout=subprocess.PIPE,
                            check=True, env=environment())
    return int(chosen.stdout)


def test_ways_to_multiply_that_lie_are_put_aside():
    for kind, name in (("dot", "integer_dot"), ("half", "float16"), ("matrix", "cooperative_matrix")):
        if choose(kind) == 0:
            print(f"skipped {kind}: the device has no such kernels")
            continue
        lied = run("--device-test", "never", ORIEL_TEST_LIE=kind)
        check(f"{kind}: they are used and lie", lied.code == 0 and lied.json["token_ids"] != HONEST, lied)
        first = run(ORIEL_TEST_LIE=kind)
        check(f"{kind}: the text is right", same(first), first)
        check(f"{kind}: says so", len(lines_with(first, "computes wrong numbers", name + " is turned off")) == 1, first)
        second = run(ORIEL_TEST_LIE=kind)
        check(f"{kind}: kept", same(second) and len(lines_with(second, name + " off")) == 1, second)
        listed = features()[1]
        check(f"{kind}: listed", name + " off" in listed["verdict"] and listed["kernels_wrong"] != 0, listed)
    chosen = choose("dot") + choose("half") != 0
    stepped = run(ORIEL_TEST_LIE="half,dot,matrix,subgroup,texel")
    check("all that is optional: plain kernels are right", same(stepped), stepped)
    check("all that is optional: one after the other",
          len(lines_with(stepped, "computes wrong numbers", "is turned off")) >= 2 + chosen, stepped)
    shutil.rmtree(CACHE, ignore_errors=True)
    down = oriel(*RUN, "--device", "auto", env=faulty(ORIEL_TEST_LIE="half,dot,matrix,subgroup,texel,plain"))
    check("plain kernels, too: the CPU answers", same(down) and lines_with(down, "no usable Vulkan device"), down)


LOAD_TWICE = """
import ctypes
def load():
    library = ctypes.CDLL("libvulkan.so.1")
    function = library.vkGetInstanceProcAddr
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
    function(None, b"vkCreateInstance")
    return library._handle, ctypes.cast(function, ctypes.c_void_p).value
handle, first = load()
ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle))
print(first == load()[1])
"""


def test_the_loader_that_lies_stays():
    """A process makes one device after the other (the self-test, a recovery): none is honest."""
    done = subprocess.run([sys.executable, "-c", LOAD_TWICE], stdout=subprocess.PIPE, env=faulty(), check=True)
    check("the loader that lies is found again", done.stdout == b"True\n", done.stdout)


def test_a_device_that_is_wrong_in_everything_is_not_used():
    for args in ([], ["--no-cache", "--device-test", "always"]):
        shutil.rmtree(CACHE, ignore_errors=True)
        every = oriel(*RUN, *VULKAN, *args, env=faulty(ORIEL_TEST_LIE="plain,subgroup,texel,half,dot,matrix"))
        check(f"plain {args}: an error", every.code == 1 and every.out == b"", every)
        check(f"plain {args}: the line says why", len(lines_with(every, "no usable Vulkan device", "failed on")) == 1, every)
    kept = run(ORIEL_TEST_LIE="plain,subgroup,texel,half,dot,matrix")
    check("plain: found again without a cache", kept.code == 1, kept)


def test_a_driver_that_died_is_not_asked_for_the_same():
    once = str(scratch / "died")
    for place, words in (("vkCreateDevice", "making the device"), ("vkCreateComputePipelines:subgroup", "subgroup off"),
                         ("vkCreateComputePipelines", ""), ("vkQueueSubmit", "its first work"),
                         ("vkCreateInstance", "started Vulkan")):
        first = run(fresh=True, ORIEL_TEST_DIE=place, ORIEL_TEST_ONCE=once)
        check(f"{place}: dies", first.code < 0, first)
        second = oriel(*RUN, "--device", "auto", env=faulty(ORIEL_TEST_DIE=place, ORIEL_TEST_ONCE=once))
        check(f"{place}: the next start works", same(second), second)
        third = run(ORIEL_TEST_DIE=place, ORIEL_TEST_ONCE=once)
        told = [line for line in third.err.decode().splitlines() if "ended a process" in line]
        check(f"{place}: says so in one line", bool(told) and words in told[0], third)
        check(f"{place}: works, or is refused", same(third) or (third.code == 1 and not third.out), third)
        check(f"{place}: no marker stays", not list(CACHE.glob("*.contact")), list(CACHE.iterdir()))
        if place not in ("vkCreateComputePipelines:subgroup", "vkCreateInstance"):
            continue  # their entries are in the same file as the first
        oriel("doctor", "--forget-drivers")
        last = run(ORIEL_TEST_DIE=place, ORIEL_TEST_ONCE=once)
        check(f"{place}: forgotten", same(last) and b"ended a process" not in last.err, last)


def test_a_driver_that_always_dies_is_given_up():
    for place in ("vkCreateDevice", "vkCreateComputePipelines", "vkQueueSubmit", "vkCreateInstance"):
        shutil.rmtree(CACHE, ignore_errors=True)
        codes = [run(ORIEL_TEST_DIE=place).code for _ in range(3)]
        check(f"always {place}: at most twice", codes[0] < 0 and codes[2] == 1, codes)


def test_what_a_killed_process_leaves_goes_by_itself():
    shutil.rmtree(CACHE, ignore_errors=True)
    began = scratch / "died"
    began.unlink(missing_ok=True)
    env = faulty(ORIEL_TEST_DIE="vkCreateDevice", ORIEL_TEST_ONCE=str(began), ORIEL_TEST_HANG="1")
    held = subprocess.Popen([str(ORIEL)] + [str(a) for a in RUN + VULKAN], env=env, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    for _ in range(600 * PATIENCE):
        if began.exists():
            break
        time.sleep(0.1)
    beside = run()
    check("killed: another process beside it is not disturbed", same(beside)
          and b"ended a process" not in beside.err, beside)
    held.send_signal(signal.SIGKILL)
    held.wait()
    after = [b"ended a process" in run().err for _ in range(4)]
    check("killed: three careful starts, then as before", after == [True, True, True, False], after)


if __name__ == "__main__":
    tests = dict(globals())
    if os.environ.get("ORIEL_TEST_DEVICE") == "swiftshader":  # of the host alone otherwise
        tests = {name: what for name, what in tests.items()
                 if not name.startswith("test_") or "wrong" in name or "always_dies" in name}
    sys.exit(run_tests(tests))
