#!/usr/bin/env python3
"""Limits of other devices, imitated on this one: test_limits.py ORIEL_BINARY TEST_DATA_DIR, with the fault layer
(tests/faults/layer) in VK_ADD_LAYER_PATH
"""

import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import BUNDLED, SMALL, check, environment, oriel, run_tests, scratch

RUN = ["run", SMALL, "--prompt", "Hello there", "--tokens", "24", "--greedy", "--raw", "--memory", "64MiB", "--kv", "f16",
       "--verbose", "--json", "--device", "vulkan", "--device-test", "never"]
LARGE_WINDOW = "400000"
SAMPLED = [word for word in RUN if word != "--greedy"] + ["--temperature", "1.5", "--seed", "7"]  # reads all logits


def run(orders, args=RUN):
    """The result and the layer's complaints."""
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


def test_default_memory():
    """Without --memory a card's budget counts: four fifths of the memory that its driver reports as free."""
    asked = [word for word in RUN if word not in ("--memory", "64MiB", "--verbose")]
    plan = ["plan", SMALL, "--device", "vulkan", "--json"]
    for budget in (40000000, 50000000):
        result, _ = run(f"kind=2 budget={budget}", plan)
        check(f"default of {budget}: is four fifths", result.code == 0 and
              result.json["memory_bytes"] == budget // 100 * 80, result)
        check(f"default of {budget}: holds the plan", result.json["total_bytes"] <= budget // 100 * 80, result)
        result, _ = run(f"kind=2 budget={budget}", asked)
        check(f"default of {budget}: runs", result.code == 0, result)


def test_large_caches():
    """A cache of more than a driver gives in one piece, in pieces of 1 GiB."""
    with_window = ["run", BUNDLED, "--prompt", "Hello there", "--tokens", "8", "--greedy", "--raw", "--memory", "3GiB",
                   "--kv", "f16", "--window", LARGE_WINDOW, "--verbose", "--json", "--device", "vulkan", "--device-test",
                   "never"]
    cache = oriel("plan", BUNDLED, "--memory", "3GiB", "--kv", "f16", "--window", LARGE_WINDOW, "--json").json["kv_bytes"]
    check("large cache: is more than 1 GiB", cache > 1 << 30, cache)
    result, complaints = run("allocation=1073741824", with_window)
    small = ["1020" if word == LARGE_WINDOW else word for word in with_window]
    check("large cache: the text is right", result.code == 0 and not complaints and
          result.json["token_ids"] == oriel(*small).json["token_ids"], (complaints, result))


def test_times_of_ops():
    model = ["bench", SMALL, "--ops", "--memory", "64MiB", "--depth", "40", "--device", "vulkan"]
    result, complaints = run("", [*model, "--json"])
    check("ops: runs", result.code == 0 and not complaints, (complaints, result))
    ops = result.json["ops"]
    lists = {"decode": [], "prefill": [], "head": []}
    for op in ops:
        lists[op["list"]].append(op)
    for name, those in lists.items():
        check(f"ops: {name} has products", any(op["op"].startswith("matmul ") for op in those), those)
        check(f"ops: {name} is whole", abs(sum(op["share"] for op in those) - 1) < 1e-6, those)
    check("ops: take time", all(op["ms"] > 0 and op["count"] > 0 for op in ops), ops)
    check("ops: are dispatched and have an estimate",
          all(op["dispatches"] >= op["count"] and op["expected_ms"] > 0 for op in ops), ops)
    layers = [op["count"] for op in lists["decode"] if op["op"] == "attention"]
    check("ops: an attention a layer", layers == [2], ops)
    result, _ = run("", model)
    check("ops: as a table", result.code == 0 and b"list     op " in result.out and b"attention" in result.out, result)
    result, _ = run("families=f ticks=0", model)
    check("ops: a driver without timestamps is told", result.code != 0 and b"no timestamps" in result.err, result)
    result = oriel(*model[:-1], "cpu")
    check("ops: so is the CPU", result.code != 0 and b"Vulkan" in result.err, result)


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
