#!/usr/bin/env python3
"""Limits of other devices, imitated on this one: test_limits.py ORIEL_BINARY TEST_DATA_DIR, with the fault layer
(tests/faults/layer) in VK_ADD_LAYER_PATH
"""

import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import SMALL, check, environment, oriel, run_tests, scratch

RUN = ["run", SMALL, "--prompt", "Hello there", "--tokens", "24", "--greedy", "--raw", "--memory", "64MiB", "--kv", "f16",
       "--verbose", "--json", "--device", "vulkan", "--device-test", "never"]
SAMPLED = [word for word in RUN if word != "--greedy"] + ["--temperature", "1.5", "--seed", "7"]  # reads all logits


def run(orders, args=RUN):
    """The result and what the layer has to complain about."""
    report = scratch / "report"
    report.unlink(missing_ok=True)
    result = oriel(*args, env=environment(VK_INSTANCE_LAYERS="VK_LAYER_ORIEL_faults", ORIEL_FAULTS=orders,
                                          ORIEL_FAULTS_REPORT=str(report)))
    return result, report.read_text().splitlines() if report.exists() else []


def same(result, args=RUN):
    return result.code == 0 and result.json["token_ids"] == PLAIN[args is SAMPLED]


PLAIN = [oriel(*args).json["token_ids"] for args in (RUN, SAMPLED)]


def test_memory_types():
    # As Mesa's drivers have them: Valhall, Meteor Lake, PowerVR and V3D, a discrete card.
    for types in ("1,7", "7,b", "7", "1,7,f", "b"):
        for args in (RUN, SAMPLED):
            result, complaints = run(f"types={types} dirt=255", args)
            check(f"types {types}: the text is right", same(result, args) and not complaints, (complaints, result))


def test_rounded_buffers():
    result, complaints = run("padding=65536")
    check("padding: runs", same(result) and not complaints, (complaints, result))
    check("padding: says so", b"rounds the weights up by 65536 bytes" in result.err, result)
    result, _ = run("padding=1000000")
    check("padding: too much is refused", result.code != 0 and b"for a buffer planned with" in result.err, result)


def test_small_allocations():
    result, _ = run("allocation=100000")
    check("allocation: says what to do", result.code != 0 and b"give a smaller memory budget or window" in result.err,
          result)


def test_memory_budget():
    result, _ = run("budget=100000")
    check("budget: the text is right", same(result), result)
    check("budget: too small is said", b"MiB free and the plan takes" in result.err, result)
    result, _ = run("budget=4000000000")
    check("budget: enough is not", same(result) and b"MiB free" not in result.err, result)


def test_queue_families():
    # Flags of RADV: graphics with compute, compute alone, copies.
    for families, chosen in (("f,e,c", 1), ("f", 0), ("c,2,7", 1), ("1,f", 1)):
        result, lines = run(f"families={families}")
        check(f"families {families}: the text is right", same(result), result)
        check(f"families {families}: {chosen} is used", lines == [f"uses family {chosen}"], lines)
    result, _ = run("families=1,c")
    check("families: none computes", result.code != 0 and b"no compute queue" in result.err, result)


def test_subgroups():
    for lanes in (0, 3, 1):
        result, _ = run(f"subgroup={lanes}")
        check(f"subgroups of {lanes}: the text is right", result.code == 0, result)
        check(f"subgroups of {lanes}: not used", b"(shared)" in result.err, result)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
