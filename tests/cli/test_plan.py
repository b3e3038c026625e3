#!/usr/bin/env python3
"""`oriel plan` without a device or a file: test_plan.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import os
import re
import shutil
import struct
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from program import BUNDLED, DATA, SMALL, check, run_tests, scratch

# f16, K8V4, K4V4: published shapes, bytes of keys and values for one token.
PER_TOKEN = {
    "gpt2-124m": (36864, 14976, 10368), "gpt2-xl": (307200, 124800, 86400),
    "gpt3-175b": (4718592, 1916928, 1327104), "llama-2-7b": (524288, 212992, 147456),
    "llama-2-70b": (327680, 133120, 92160), "llama-3-70b": (327680, 133120, 92160),
    "llama-3-8b": (131072, 53248, 36864), "mistral-7b": (131072, 53248, 36864),
    "llama-3.2-1b": (32768, 13312, 9216), "llama-3.2-3b": (114688, 46592, 32256),
    "qwen2.5-0.5b": (12288, 4992, 3456), "qwen2.5-1.5b": (28672, 11648, 8064),
    "qwen2.5-7b": (57344, 23296, 16128), "qwen3-0.6b": (114688, 46592, 32256),
    "qwen3-1.7b": (114688, 46592, 32256), "qwen3-4b": (147456, 59904, 41472),
    "smollm2-135m": (23040, 9360, 6480), "smollm2-360m": (40960, 16640, 11520),
    "smollm2-1.7b": (196608, 79872, 55296), "tinyllama-1.1b": (22528, 9152, 6336),
    "phi-3.5-mini": (393216, 159744, 110592), "falcon-180b": (163840, 66560, 46080),
}
# f16, int8, int4: one vector a layer, with a scale of two bytes for every 32 values.
LATENT = {"deepseek-v3": (70272, 61 * 612, 61 * 324), "deepseek-v2-lite": (31104, 27 * 612, 27 * 324),
          "minicpm3-4b": (35712, 62 * 306, 62 * 162)}
# Growth a token, local layers, at 8192 tokens; f16.
LOCAL = {
    "gemma-2-2b": (53248, 218103808, 654311424), "gemma-3-270m": (3072, 7864320, 33030144),
    "gemma-3-1b": (4096, 11534336, 45088768), "gemma-3-4b": (20480, 121634816, 289406976),
    "gemma-3n-e2b": (8192, 16777216, 83886080), "gemma-3n-e4b": (8192, 16777216, 83886080),
    "gpt-oss-20b": (24576, 3145728, 204472320),
    "gemma-4-e2b": (6144, 6291456, 56623104), "gemma-4-e4b": (16384, 20971520, 155189248),
}
# Recurrent states: bytes per token in f16 and K8V4, and one version of all states: heads x 128 x 128 (or 64 x 128, or
# inner x state size) and three columns of the convolution's input, in float32, times layers.
STATES = {
    "qwen3.5-0.8b": (12288, 4992, 18 * 4 * (16 * 128 * 128 + 3 * 6144)),
    "qwen3.5-2b": (12288, 4992, 18 * 4 * (16 * 128 * 128 + 3 * 6144)),
    "qwen3.5-4b": (32768, 13312, 24 * 4 * (32 * 128 * 128 + 3 * 8192)),
    "granite-4.0-h-350m": (4096, 1664, 28 * 4 * (48 * 32 * 128 + 3 * (1536 + 256))),
    "granite-4.0-h-1b": (8192, 3328, 36 * 4 * (48 * 64 * 128 + 3 * (3072 + 256))),
    "granite-4.0-h-tiny": (8192, 3328, 36 * 4 * (48 * 64 * 128 + 3 * (3072 + 256))),
    "granite-4.0-h-micro": (8192, 3328, 36 * 4 * (64 * 64 * 128 + 3 * (4096 + 256))),
    "falcon-h1-0.5b": (18432, 7488, 36 * 4 * (1536 * 128 + 3 * (1536 + 256))),
    "falcon-h1-1.5b": (24576, 9984, 24 * 4 * (3072 * 256 + 3 * (3072 + 512))),
}
# Their weights are not described.
UNKNOWN = {"deepseek-v3", "gemma-3n-e2b", "gemma-3n-e4b", "gpt-oss-20b"}
PARTS = "weights_bytes kv_bytes activation_bytes staging_bytes host_bytes".split()


def oriel(*args, **options):
    return program.oriel("plan", *args, **options)


def plan_of(*args, code=0):
    done = oriel(*args, "--json")
    check(f"plan {' '.join(map(str, args))}", done.code == code and done.out.count(b"\n") == 1,
          done)
    return json.loads(done.out)


def test_bytes_per_token():
    for i, (name, row) in enumerate(PER_TOKEN.items()):  # in all three: test_list
        kv = ("f16", "k8v4", "k4v4")[i % 3]
        got = plan_of("--arch", name, "--kv", kv, "--memory", "1TiB")
        check(f"{name} {kv}", got["kv_bytes_per_token"] == row[i % 3] and got["kv_local_bytes"] == 0, got)
    for name, row in LATENT.items():
        for kv, want in zip(("f16", "k8v8", "k4v4"), row):
            got = plan_of("--arch", name, "--kv", kv, "--memory", "1TiB", code=3 if name in UNKNOWN else 0)
            check(f"{name} {kv}: latents", got["kv_bytes_per_token"] == want
                  and (got["weights_bytes"] is None) == (name in UNKNOWN), got)
    for name, (growth, local, at_8192) in LOCAL.items():
        got = plan_of("--arch", name, "--kv", "f16", "--window", 8192, "--memory", "1TiB",
                      code=3 if name in UNKNOWN else 0)
        check(f"{name}: growth and local part",
              (got["kv_growth_bytes_per_token"], got["kv_local_bytes"], got["kv_bytes_at"])
              == (growth, local, at_8192), got)


def test_states():
    shapes = {shape["name"]: shape for shape in json.loads(oriel("--list", "--json").out)["shapes"]}
    for name, (f16, k8v4, state) in STATES.items():
        for kv, growth in (("f16", f16), ("k8v4", k8v4)):
            plan = plan_of("--arch", name, "--kv", kv, "--window", 4092, "--memory", "8GiB")
            slots = plan["state_slots"]
            check(f"{name} in {kv}: grows, and keeps versions of its states",
                  (plan["kv_bytes_per_token"], plan["state_bytes"]) == (growth, slots * state)
                  and plan["kv_bytes"] >= 4096 * growth + slots * state, plan)
            check(f"{name} in {kv}: beside a window that was asked for checkpoints take what is left over",
                  plan["checkpoints"] == slots - 2 == 4, plan)
            if kv != "f16":
                continue  # in the formats of caches nothing of a state differs
            asked = plan_of("--arch", name, "--kv", kv, "--window", 4092, "--memory", "8GiB",
                            "--checkpoints", 7)
            check(f"{name} in {kv}: as many as are asked for",
                  (asked["checkpoints"], asked["state_bytes"]) == (7, 9 * state), asked)
            half = plan_of("--arch", name, "--kv", kv, "--window", 4092, "--memory", "8GiB", "--checkpoints", 0,
                           "--state", "f16")
            check(f"{name} in {kv}: states in f16", (half["state_format"], plan["state_format"]) == ("f16", "f32")
                  and 0.5 * 2 * state <= half["state_bytes"] < 0.55 * 2 * state, half)
        check(f"{name} in the list", shapes[name]["state_bytes"] == 2 * state, shapes[name])
    text = oriel("--arch", "qwen3.5-2b", "--memory", "2GiB", "--explain", "--checkpoints", 0).out.decode()
    check("a state in words", "18 layers keep a state of 19.3 MiB in 2 slots, 38.5 MiB" in text
          and "checkpoints none" in text, text)
    text = oriel("--arch", "qwen3.5-2b", "--memory", "2GiB", "--explain").out.decode()
    check("and its checkpoints", "18 layers keep a state of 19.3 MiB in 6 slots, 115.6 MiB" in text
          and "checkpoints 4 of the slots" in text, text)
    plan = plan_of("--arch", "lfm2-8b-a1b", "--memory", "8GiB")
    check("columns of convolutions are such a state", plan["state_bytes"] == 18 * 3 * 2048 * 4, plan)
    others = plan_of("--arch", "llama-3.2-1b", "--memory", "2GiB", "--checkpoints", 3)
    check("others have none", others["state_bytes"] == 0 and others["checkpoints"] == 0, others)


def test_a_table_on_file():
    table = 262144 * 35 * 256
    for weights, bits in (("q4_0", 4.5), ("q8_0", 8.5), ("f16", 16)):
        plan = plan_of("--arch", "gemma-4-e2b", "--weights", weights, "--memory", "16GiB")
        check(f"Gemma 4's table of inputs stays in the file, {weights}",
              plan["on_file_bytes"] == table * bits / 8 and plan["total_bytes"] == sum(plan[p] for p in PARTS), plan)
        check("all else is held", 2.27e9 * bits / 8 < plan["weights_bytes"] < 2.29e9 * bits / 8 * 1.01, plan)
    text = oriel("--arch", "gemma-4-e2b", "--memory", "2GiB").out.decode()
    check("in words", "1.2 GiB  read when tokens need it" in text, text)
    check("others stay nowhere", plan_of("--arch", "llama-3.2-1b", "--memory", "2GiB")["on_file_bytes"] == 0)
    check("nobody can say", plan_of("--arch", "gemma-3n-e2b", "--memory", "2GiB", code=3)["on_file_bytes"] is None)


def test_experts():
    plan = plan_of("--arch", "lfm2-8b-a1b", "--memory", "8GiB")
    check("all experts are held, a token reads 4 of 32", 4.5e9 < plan["weights_bytes"] < 4.8e9
          and plan["weights_read_bytes_per_token"] < 0.2 * plan["weights_bytes"], plan)
    shapes = {shape["name"]: shape for shape in json.loads(oriel("--list", "--json").out)["shapes"]}
    for name, count, used in (("lfm2-8b-a1b", 32, 4), ("granite-3.1-1b-a400m", 32, 8), ("olmoe-1b-7b", 64, 8),
                              ("qwen3-30b-a3b", 128, 8), ("llama-3.2-1b", 0, 0)):
        check(f"experts of {name}", (shapes[name]["n_experts"], shapes[name]["n_experts_used"]) == (count, used))
    # Slots never take what formats need.
    memory = 744255151
    tight = plan_of("--arch", "olmoe-1b-7b", "--memory", memory)
    check("formats do not fit beside the fewest slots only", tight["expert_slots"] == 8, tight)
    check("what does not fit needs more than was given", any(not choice["fits"] for choice in tight["choices"])
          and all(choice["fits"] or choice["minimum_bytes"] > memory for choice in tight["choices"]), tight)


def loss_of(plan):
    return plan["predicted"]["loss_nats"]


def test_experts_after_the_window():
    """Slots get the memory that formats and window leave. Plans that differ only in slots are reported as such."""
    shape = ("--arch", "olmoe-1b-7b", "--memory")
    least, most = 2**30, 2**34
    while least < most:
        middle = (least + most) // 2
        held = json.loads(oriel(*shape, middle, "--json").out)["expert_slots"] == 0
        least, most = (least, middle) if held else (middle + 1, most)
    below, held = plan_of(*shape, least - 1), plan_of(*shape, least)
    check("experts are held beside the same window", 60 <= below["expert_slots"] < 64 and held["expert_slots"] == 0
          and loss_of(held) == loss_of(below) and held["window_tokens"] == below["window_tokens"], [below, held])
    told = oriel(*shape, "3GiB", "--explain").out
    check("more experts are told as that", b" higher" not in told and b"the same loss, " in told
          and b" of 64 experts held" in told, told)
    short = [plan_of("--arch", "qwen3-30b-a3b", "--window", "8192", "--memory", f"{gib}GiB") for gib in range(3, 23, 2)]
    check("the loss never rises", all(loss_of(more) <= loss_of(less) for less, more in zip(short, short[1:])), short)


def test_no_driver_is_loaded_without_a_gpu():
    def opens_vulkan(*args, **variables):
        env = {k: v for k, v in program.environment(LD_DEBUG="files").items() if not k.startswith("VK_")}
        done = oriel(*args, env={**env, **variables})
        return done.code == 0 and b"libvulkan" in done.err

    shape = ("--arch", "smollm2-135m", "--memory", "1GiB")
    if any(map(os.path.exists, ("/dev/dri", "/dev/nvidiactl", "/dev/dxg"))) or not opens_vulkan(*shape, VK_DRIVER_FILES="none"):
        print("skipped: there may be a GPU, there is no Vulkan, or the C library does not tell what it opens")
        return
    check("a plan of a shape", not opens_vulkan(*shape))
    check("a plan of a file", not opens_vulkan(SMALL))
    check("the list of shapes, whatever may be there", not opens_vulkan("--list", VK_DRIVER_FILES="none"))


def test_more_or_less_precise():
    """By the formats' bits, for any window."""
    bits = {"K4V4": 8, "K8V4": 12, "K8V8": 16, "f16": 32}
    words = set()
    for args in (["12MB", "--sessions", "3", "--prefix-tokens", "12"], ["10.8MB"], ["10.3MB"], ["1GiB"]):
        told = oriel(BUNDLED, "--memory", *args, "--explain").out.decode()
        chosen = bits[re.search(r"> (\w+) .*chosen: ", told).group(1)]
        for name, tokens, word in re.findall(r"  (\w+) .*?(?:([\d,]+ \w+) tokens, )?(more|less) precise: .*worse", told):
            words.add(word)
            check(f"{args}: {name}", word == ("more" if bits[name] > chosen else "less"), told)
    check("of both kinds", words == {"more", "less"}, words)


def test_the_length_of_a_path():
    """A plan does not change when the model's folder moves."""
    folder = scratch / ("a folder of a long name " * 5).strip()
    deep = folder / ("another " * 20).strip() / "x"
    deep.mkdir(parents=True)
    experts, draft = DATA / "models/lfm2moe-q4_0.gguf", DATA / "drafts/gemma4-e-assistant-f16.gguf"
    target = DATA / "models/gemma4-e-q8_0.gguf"
    for name, source, others in (("m", SMALL, []), ("e", experts, ["--on-file", "all"]), ("d", target, [draft])):
        plans = []
        for place in (scratch / name, deep / name):
            shutil.copyfile(source, place)
            if others == [draft]:
                guesser = place.parent / "guesser"
                shutil.copyfile(draft, guesser)
                args = ["--draft-model", guesser]
            else:
                args = others
            plans.append(plan_of(place, "--memory", "64MiB", "--window", "100", *args))
        check(f"{source}: as many bytes", all(plans[0][part] == plans[1][part] for part in (*PARTS, "minimum_bytes")),
              plans)


def test_windows_by_layer_are_as_long_as_was_measured():
    """At most twice as long as a step of calibration: the output does not call its free memory full."""
    said = 0
    for memory in range(10130000, 10200000, 5000):
        told = oriel(BUNDLED, "--memory", memory, "--explain").out.decode()
        if "was measured for these layers" in told:
            said += 1
            total = re.search(r"bytes +([\d,]+) of", told).group(1).replace(",", "")
            check(f"memory is left in {memory}", int(total) < memory - 4096, told)
    check("a window that could be longer is not called the longest that fits", said > 0)


def test_out_of_range():
    for name, count in (("--sinks", "4194304"), ("--session-windows", "4194304")):
        done = oriel(BUNDLED, "--memory", "8GiB", "--sessions", "2", name, count)
        check(f"{name} {count} is wrong usage, and named", done.code == 2 and count.encode() in done.err
              and b"need more than" in done.err and done.err.count(b"\n") == 1, done)
    most = plan_of(SMALL, "--memory", str(2**64 - 1))
    check("half of all memory there could be is an alternative", len(most["alternatives"]) == 2, most)


def test_known_measurements():
    for kv, mib in (("f16", 64), ("k8v8", 34), ("k4v4", 18)):
        got = plan_of("--arch", "llama-3.2-1b", "--kv", kv, "--window", 2048, "--memory", "4GiB")
        check(f"Llama-3.2-1B at 2048 tokens in {kv}", got["kv_bytes_at"] == mib << 20, got)
    got = plan_of("--arch", "llama-3-70b", "--kv", "f16", "--window", 32768, "--memory", "1TiB")
    check("a 70B model needs 10.7 GB at 32K, not 170", got["kv_bytes_at"] == 10737418240, got)


def test_list():
    listed = oriel("--list", "--json")
    shapes = {shape["name"]: shape for shape in json.loads(listed.out)["shapes"]}
    check("--list names every shape", set(shapes) >= set(PER_TOKEN) | set(LATENT) | set(LOCAL), shapes)
    check("--list has the bytes", all(
        tuple(shapes[name]["kv_bytes_per_token"][kv] for kv in ("f16", "k8v4", "k4v4")) == row
        for name, row in PER_TOKEN.items()))
    text = oriel("--list")
    check("--list for people", text.code == 0 and b"llama-3.2-1b" in text.out
          and max(map(len, text.out.splitlines())) < 160, text)


def test_choice():
    small = plan_of("--arch", "smollm2-135m", "--memory", "128MiB")
    check("the total is the sum of its parts",
          small["total_bytes"] == sum(small[part] for part in PARTS) <= 128 << 20, small)
    chosen = [c for c in small["choices"] if c["chosen"]]
    check("one choice is chosen, and it is the plan", len(chosen) == 1 and all(
        chosen[0][f] == small[f] for f in ("k_format", "v_format", "window_tokens", "total_bytes")), small)
    check("it has the least loss of what fits", chosen and chosen[0]["loss_nats"] == min(
        c["loss_nats"] for c in small["choices"] if c["fits"]) == small["predicted"]["loss_nats"], small)
    check("two neighbours on each side",
          sorted(a["memory_bytes"] * 4 // (128 << 20) for a in small["alternatives"]) == [2, 3, 6, 8], small)
    q8 = plan_of("--arch", "smollm2-135m", "--memory", "1GiB", "--weights", "q8_0")
    check("weights in another format", q8["weights_bytes"] > 1.8 * small["weights_bytes"], q8)
    kept = plan_of("--arch", "smollm2-135m", "--memory", "128MiB", "--min-window", 6000)
    check("a least window is kept", kept["window_tokens"] >= 6000 and kept["fits"], kept)
    refused = plan_of("--arch", "smollm2-135m", "--memory", "100MiB", "--min-window", 6000, code=3)
    check("or refused with what would do", not refused["fits"] and refused["minimum_bytes"] > 100 << 20, refused)
    enough = plan_of("--arch", "smollm2-135m", "--memory", refused["minimum_bytes"], "--min-window", 6000)
    check("which does", enough["fits"] and enough["window_tokens"] == 6000, enough)

    last = float("inf")
    for mib in range(84, 300, 8):
        done = oriel("--arch", "smollm2-135m", "--memory", f"{mib}MiB", "--json")
        plan = json.loads(done.out)
        if not (plan["fits"] and plan["total_bytes"] <= mib << 20
                and plan["predicted"]["loss_nats"] <= last):
            check(f"more memory is never worse: {mib} MiB", False, plan)
        last = plan["predicted"]["loss_nats"]
    check("more memory was never worse", True)


def test_speed():
    blind = plan_of(SMALL, "--memory", "16MiB")["predicted"]
    check("without a device no speed, and why", blind["decode_tokens_per_s"] is None
          and blind["prefill_tokens_per_s"] is None and blind["at_depths"] == []
          and "--device" in blind["reason"], blind)
    cpu = ["--memory", "16MiB", "--device", "cpu"]
    plan = plan_of(SMALL, *cpu)
    told = plan["predicted"]
    check("with a device a speed", told["decode_tokens_per_s"] > 0 and told["prefill_tokens_per_s"] > 0
          and told["reason"] is None and told["device"] == "CPU", told)
    kept = list((scratch / "cache").rglob("*.speed"))
    check("rates are kept", len(kept) == 1, kept)
    check("and used again", plan_of(SMALL, *cpu)["predicted"] == told)
    # A model whose full window needs many times the memory of the weights. Both plans use the same rates, because other
    # tests run during the measurement.
    trained = b"llama.context_length" + struct.pack("<I", 4)
    long = scratch / "long.gguf"
    long.write_bytes(SMALL.read_bytes().replace(trained + struct.pack("<I", 512), trained + struct.pack("<I", 1 << 20)))
    shape = [long, "--memory", "64MiB", "--window", "max", "--device", "cpu"]
    plan = plan_of(*shape)
    told = plan["predicted"]
    speeds = [at["decode_tokens_per_s"] for at in told["at_depths"]]
    check("slower with depth, down to the full window", len(speeds) >= 2
          and speeds == sorted(speeds, reverse=True) and speeds[-1] == told["decode_tokens_per_s"]
          and told["at_depths"][-1]["depth"] == plan["window_tokens"] + plan["sink_tokens"], told)
    fast = (speeds[0] + speeds[-1]) / 2
    shorter = plan_of(*shape, "--min-speed", fast)
    check("a least speed shortens the window or changes the formats",
          shorter["predicted"]["decode_tokens_per_s"] >= fast
          and (shorter["window_tokens"] < plan["window_tokens"]
               or shorter["k_format"] != plan["k_format"]), shorter)
    done = oriel(SMALL, *cpu, "--min-speed", "1e8")
    check("a speed out of reach is refused with the best", done.code == 1
          and b"the best is" in done.err and done.err.count(b"\n") == 1, done)
    best = re.search(rb"the best is ([0-9.]+) ", done.err).group(1).decode()
    check("which may be asked for", plan_of(SMALL, *cpu, "--min-speed", best)["fits"], best)
    unknown = plan_of("--arch", "deepseek-v3", "--memory", "4GiB", "--device", "cpu", code=3)["predicted"]
    check("unless its weights are not known, and then nothing is measured",
          unknown["decode_tokens_per_s"] is None and unknown["device"] is None
          and "weights" in unknown["reason"], unknown)
    text = oriel(SMALL, *cpu, "--explain").out
    check("in words", b"most of the time goes into" in text and b"tokens/s, " in text, text)


def test_words():
    short = oriel("--arch", "smollm2-135m", "--memory", "128MiB").out.decode("utf-8")
    for word in ("fits in 128 MiB", "are left over", "tokens, some ", "pages of text", "bits for", "--explain", "--device auto"):
        check(f"plan answers: {word}", word in short, short)
    check("and no more", "nats" not in short and "crossover" not in short and len(short.splitlines()) < 22, short)
    text = oriel("--arch", "smollm2-135m", "--memory", "128MiB", "--explain").out.decode("utf-8")
    check("--explain says the same first", text.startswith(short.split("  --explain")[0].rstrip("\n")), text)
    for word in ("weights", "cache", "K4V4", "K8V4", "K8V8", "f16", "worse", "chosen", "64.0 MiB",
                 "256.0 MiB", "too little"):
        check(f"plan explains: {word}", word in text, text)
    text = oriel(SMALL, "--memory", "16MiB", "--explain").out.decode("utf-8")
    for word, meaning in (("nats", "1 % less likely"), ("K8V4", "keys in 8 bits"), ("sinks", "first tokens")):
        check(f"plan says what {word} means", word in text and meaning in text, text)
        check(f"but not to programs: {word}", meaning not in oriel(SMALL, "--memory", "16MiB", "--explain", "--json").out.decode())


def test_unknown_weights():
    shapes = json.loads(oriel("--list", "--json").out)["shapes"]
    check("the shapes whose weights are not described", UNKNOWN == {s["name"] for s in shapes
                                                                 if s["parameters"] is None}, shapes)
    for name in sorted(UNKNOWN):
        for memory in ("1MB", "100MB", "1TiB") if name == "gpt-oss-20b" else ("100MB",):
            done = oriel("--arch", name, "--memory", memory, "--json")
            plan = json.loads(done.out)
            fits = [plan["fits"], *(p["fits"] for p in plan["choices"] + plan["alternatives"])]
            least = [plan["minimum_bytes"], *(p["minimum_bytes"] for p in plan["choices"])]
            check(f"nobody can say whether {name} fits in {memory}", done.code == 3
                  and done.err.count(b"\n") == 1 and b"not known" in done.err
                  and set(fits) == set(least) == {None}
                  and plan["predicted"]["crossover_tokens"] is plan["weights_read_bytes_per_token"] is None, done)
            done = oriel("--arch", name, "--memory", memory)
            check(f"in words, {name} in {memory}", done.code == 3 and b" fits in " in done.out
                  and b"is not known" in done.out.splitlines()[0] and b"not described" in done.out, done)
    check("--list says so", b"not described" in oriel("--list").out)


def test_readme():
    """README's example equals the command's output, line by line, except for lines shown as "..."."""
    readme = (DATA.parent.parent / "README.md").read_text("utf-8")
    command, *lines = [line[4:] for line in readme.split("## A plan\n\n")[1].split("\n\nOriel allocates ")[0]
                       .split("\n")]
    check("README shows a plan", command.startswith("$ oriel plan models/"), command)
    told = oriel(*command.split()[3:], cwd=DATA.parent.parent).out.decode("utf-8")
    rest = told
    for i, part in enumerate("\n".join(lines).split("\n  ...\n")):
        at = rest.find(part)
        if not check(f"README's part {i} is what plan prints", at == 0 or (i > 0 and at > 0), "take " + told):
            print(told)
        rest = rest[at + len(part):]
    check("to its end", rest.strip() == "", rest)
    for size in ("10.8MB", "9MB", "1GiB"):
        wide = [line for line in oriel(BUNDLED, "--memory", size, "--explain").out.decode("utf-8").splitlines() if len(line) > 80]
        check(f"no line is wider than 80 columns, nor was one broken: {size}", not wide, wide)


def test_on_file():
    rows = DATA / "models/gemma4-e-q8_0.gguf"
    experts = DATA / "models/lfm2moe-q4_0.gguf"
    memory = ["--memory", "64MiB", "--window", "100"]
    held = plan_of(rows, *memory, "--on-file", "none")
    on_file = plan_of(rows, *memory)
    check("rows stay in the file unless they are held",
          held["on_file_bytes"] == 0 and on_file["on_file_bytes"] > 0
          and on_file["weights_bytes"] < held["weights_bytes"] and on_file["expert_count"] == 0
          and on_file["predicted"]["expert_hit_rate"] is None, [held, on_file])
    check("their line is in the picture", b"on file" in oriel(rows, *memory).out
          and b"on file" not in oriel(rows, *memory, "--on-file", "none").out)
    held = plan_of(experts, *memory)
    check("experts are held where there is room", held["expert_slots"] == 0 and held["expert_count"] == 6
          and held["on_file_bytes"] == 0 and held["predicted"]["expert_hit_rate"] == 1, held)
    some = plan_of(experts, *memory, "--expert-slots", "3")
    check("slots as asked for", some["expert_slots"] == 3 and some["on_file_bytes"] > 0
          and 0.45 < some["predicted"]["expert_hit_rate"] < 0.6, some)
    every = plan_of(experts, *memory, "--on-file", "all")
    check("all that can stay does", every["expert_slots"] == 6 and every["on_file_bytes"] == some["on_file_bytes"], every)
    big = plan_of("--arch", "lfm2-8b-a1b", "--memory", "2GB")
    check("8 B of experts in 2 GB", 4 <= big["expert_slots"] < 32 and big["total_bytes"] <= 2 * 10**9
          and big["window_tokens"] >= 4096 and big["minimum_bytes"] < 10**9, big)
    for args in (["--on-file", "some"], ["--expert-slots", "1"], ["--expert-slots", "7"],
                 ["--on-file", "rows", "--expert-slots", "3"]):
        done = oriel(experts, *memory, *args)
        check(f"wrong usage: {args}", done.code == 2 and done.out == b"" and done.err.count(b"\n") == 1, done)


def test_drafts():
    rows = DATA / "models/llama-q8_0.gguf"
    memory = ["--memory", "64MiB", "--window", "100"]
    without = plan_of(rows, *memory)
    check("no guesses unless they are asked for", without["draft_tokens"] == 0 and without["draft_bytes"] == 0, without)
    for source in ([rows], ["--arch", "smollm2-135m"]):
        plain = plan_of(*source, "--memory", "1GiB", "--window", "100")
        plan = plan_of(*source, "--memory", "1GiB", "--window", "100", "--draft", "7")
        check(f"what guesses take is told, {source}", plan["draft_tokens"] == 7 and plan["draft_bytes"] > 0
              and plan["total_bytes"] == plain["total_bytes"] + plan["draft_bytes"]
              and plan["kv_bytes"] == plain["kv_bytes"], [plain, plan])
    told = oriel(rows, *memory, "--draft", "7").out
    check("and is in the picture", b"up to 7 guesses a step" in told and b"guesses" not in oriel(rows, *memory).out, told)
    several = oriel(rows, *memory, "--draft", "7", "--sessions", "2")
    check("several sessions do without", b"drafts      none" in several.out, several)
    # A guess takes a version of all states, from memory that the window leaves over.
    plans = {}
    for memory_of, guesses in (("1GiB", 7), ("560MiB", 2), ("520MiB", 0)):
        source = ["--arch", "qwen3.5-0.8b", "--memory", memory_of]
        plain, plan = plan_of(*source), plan_of(*source, "--draft", "7")
        plans[memory_of] = plan
        check(f"guesses leave the window alone in {memory_of}", plan["draft_tokens"] == guesses
              and plan["state_slots"] == 2 + plan["checkpoints"] + guesses
              and all(plan[name] == plain[name] for name in ("window_tokens", "chunk_tokens", "k_format", "state_format")),
              [plain, plan])
    check("states are what guesses take", plans["1GiB"]["draft_bytes"] > 7 * 19 * 2**20, plans)
    told = oriel("--arch", "qwen3.5-0.8b", "--memory", "520MiB", "--draft", "7").out
    check("and the reason is told", b"no memory is left for their states" in told, told)
    for wrong in ("16", "-1", "some"):
        done = oriel(rows, *memory, "--draft", wrong)
        check(f"wrong usage: --draft {wrong}", done.code == 2 and done.out == b"", done)


def test_draft_models():
    model = DATA / "models/gemma4-e-q8_0.gguf"
    draft = DATA / "drafts/gemma4-e-assistant-f16.gguf"
    memory = ["--memory", "64MiB", "--window", "100"]
    without = plan_of(model, *memory)
    plan = plan_of(model, *memory, "--draft-model", draft)
    check("a draft model is part of the plan", without["draft_weights_bytes"] == 0
          and 80000 < plan["draft_weights_bytes"] < 200000 and plan["draft_tokens"] == 3
          and plan["weights_bytes"] > without["weights_bytes"] and plan["kv_bytes"] == without["kv_bytes"], [without, plan])
    check("with as many guesses as were asked for",
          plan_of(model, *memory, "--draft-model", draft, "--draft", "5")["draft_tokens"] == 5)
    told = oriel(model, *memory, "--draft-model", draft).out
    check("and in the picture", b"up to 3 guesses a step" in told and b"of weights" in told, told)
    for args, why in (([DATA / "models/llama-q8_0.gguf", "--draft-model", draft], b"guesses for a Gemma 4"),
                      ([model, "--draft-model", model], b"no architecture that guesses"),
                      ([model, "--draft-model", DATA / "nowhere.gguf"], b"nowhere.gguf"),
                      ([model, "--draft-model", draft, "--sessions", "2"], b"for one session and --sessions is 2"),
                      (["--arch", "gemma-4-e2b", "--draft-model", draft], b"not for a shape"),
                      ([draft], b"writes nothing by itself")):
        done = oriel(*args, *memory)
        check(f"refused: {args}", done.code != 0 and done.out == b"" and why in done.err and done.err.count(b"\n") == 1, done)


def test_without_attention():
    done = oriel("--arch", "mamba2-130m", "--memory", "1GiB")
    told = done.out.decode("utf-8")
    check("a model without attention has no window, no cache formats and nothing to lose by them",
          done.code == 0 and "no layer attends" in told and "sinks" not in told and "K8V4" not in told, told)


def test_usage():
    for args in (["--arch", "no-such-model", "--memory", "1GiB"], ["--arch", "llama-3.2-1b", SMALL],
                 [SMALL, "--weights", "q8_0"], ["--list", "--arch", "llama-3.2-1b"],
                 ["--arch", "llama-3.2-1b", "--weights", "q9"],
                 ["--arch", "llama-3.2-1b", "--window", "10", "--min-window", "11"]):
        done = oriel(*args)
        check(f"wrong usage: {args}", done.code == 2 and done.out == b""
              and done.err.count(b"\n") == 1, done)


def test_what_people_type():
    for size, want in (("8G", 8 << 30), ("8g", 8 << 30), ("512m", 512 << 20), (" 512 MiB ", 512 << 20), ("1.5GiB", 3 << 29),
                       (".5g", 1 << 29), ("64K", 65536), ("2T", 2 << 40), ("8GB", 8 * 10**9), ("8gb", 8 * 10**9),
                       ("65536", 65536), ("65536b", 65536)):
        got = json.loads(oriel(SMALL, "--memory", size, "--json").out)
        check(f"--memory {size!r}", got["memory_bytes"] == want, got)
    for size, word in (("0", "no memory"), ("0MB", "no memory"), ("-8G", "not a size"), ("8X", "not a size"),
                       ("8 G B", "not a size"), ("5.", "not a size"), ("1,5G", "not a size"), ("1e9", "not a size"),
                       ("nan", "not a size"), ("9" * 30, "not a size"), ("99999999999T", "not a size"), ("G", "not a size"),
                       (" ", "not a size"), ("", "empty")):
        done = oriel(SMALL, "--memory", size)
        check(f"--memory {size!r} is refused", done.code == 2 and done.out == b"" and done.err.count(b"\n") == 1
              and word in done.err.decode(), done)
    for kv in ("K8V4", "k8V4"):
        check(f"--kv {kv}", plan_of(SMALL, "--memory", "16M", "--kv", kv)["v_format"] == "int4")
    check("--device CPU", oriel(SMALL, "--memory", "16M", "--device", "CPU").code == 0)
    shape = plan_of("--arch", "Llama-3.2-1B", "--memory", "2G", "--weights", "Q8_0")
    check("a shape's name and a weight format in any case", shape["arch"] == "llama-3.2-1b", shape)
    for args, word in ((["--arch", "llama-3.2-1c"], "did you mean llama-3.2-1b?"), (["--arch", "zzz"], "--list"),
                       (["--window", "4194305"], "4194304"), (["--min-window", "-1"], "4194304"),
                       (["--kv", "K8V5"], "'K8V5'"), (["--device", "GPU"], "'GPU'"), (["--window", "1e3"], "whole number"),
                       (["--window", "10", "--min-window", "20"], "at most the window")):
        done = oriel(*args, "--memory", "1GiB")
        check(f"{args}: what is wrong, and what to do", done.code == 2 and done.out == b""
              and done.err.count(b"\n") == 1 and word in done.err.decode(), done)
    name = "/tmp/\udcff\udcfe"
    done = oriel(name)
    check("a path that is not UTF-8 is one line", done.code == 1 and done.err.count(b"\n") == 1, done)


def test_plot():
    for name, args in (("shape", ["--arch", "smollm2-135m", "--memory", "128MiB"]),
                       ("file", [SMALL, "--memory", "16MiB"]),
                       ("latent", ["--arch", "deepseek-v3", "--memory", "4GiB"])):
        path = scratch / f"{name}.svg"
        done = oriel(*args, "--plot", path)
        check(f"plot of a {name}", done.code == (3 if name == "latent" else 0) and path.exists(), done)
        root = xml.etree.ElementTree.parse(path).getroot()
        space = "{http://www.w3.org/2000/svg}"
        words = [node.text for node in root.iter(space + "text")]
        curves = 3 if name == "latent" else 4
        check(f"plot of a {name}: its curves, the choice and the bytes",
              root.tag == space + "svg" and len(list(root.iter(space + "polyline"))) == curves
              and {"weights", "cache", "the rest" if name == "latent" else "total", "window, tokens"}
              <= set(words), words)
        check(f"plot of a {name}: its title", ("without its weights" in words[0]) == (name == "latent"), words)
        check(f"plot of a {name}: its title says the result", re.search(r": \w+, [\d,]+ tokens$", words[0]), words)
        check(f"plot of a {name}: separators", not any(re.search(r"\d{4}", word) for word in words), words)
    for memory in ("9MiB", "64GiB"):  # far below the needed memory, and far above any effect
        path = scratch / "given.svg"
        oriel("--arch", "smollm2-135m", "--memory", memory, "--plot", path)
        root = xml.etree.ElementTree.parse(path).getroot()
        dashed = [float(node.get("x1")) for node in root.iter(space + "line") if node.get("stroke-dasharray")
                  and node.get("x1") == node.get("x2")]
        check(f"{memory} given is a line inside the axes", len(dashed) == 1 and 92 <= dashed[0] <= 592, dashed)
    done = oriel("--arch", "smollm2-135m", "--memory", "8MiB", "--plot", scratch / "refused.svg")
    check("a plan that does not fit is drawn, too", done.code == 3 and (scratch / "refused.svg").exists())
    done = oriel("--arch", "smollm2-135m", "--memory", "1GiB", "--plot", scratch / "none" / "a.svg")
    check("a plot that cannot be written is a failure", done.code == 1
          and done.err.count(b"\n") == 1, done)



def test_several_sessions():
    shape = ["--arch", "llama-3.2-1b", "--memory", "8GiB", "--kv", "f16", "--window", "2000"]
    token = PER_TOKEN["llama-3.2-1b"][0]
    alone = plan_of(*shape)
    check("one session is one", (alone["sessions"], alone["session_windows"], alone["prefix_tokens"],
                                 alone["prefix_bytes"]) == (1, [2000], 0, 0), alone)
    text = oriel(*shape).out.decode()
    check("and nobody is told so", "sessions" not in text and "prefix" not in text, text)
    plans = [plan_of(*shape, "--sessions", n, "--prefix-tokens", 500) for n in (1, 2, 3, 4)]
    check("the prefix is held once", all(p["prefix_bytes"] == 500 * token and p["sink_tokens"] == 500 for p in plans),
          plans)
    for before, plan in zip(plans, plans[1:]):
        n = plan["sessions"]
        check(f"{n} sessions: the last adds a ring", 0 <= plan["kv_bytes"] - before["kv_bytes"]
              - plan["ring_tokens"] * token <= token, (before, plan))
        check(f"{n} sessions: and what is said", plan["total_bytes"] - before["total_bytes"] == plan["session_bytes"]
              and plan["total_bytes"] == sum(plan[p] for p in PARTS), (before, plan))
    check("weights are there once", len({p["weights_bytes"] for p in plans}) == 1)
    windows = plan_of(*shape, "--sessions", 3, "--session-windows", "1000,0,500")
    check("windows differ", windows["session_windows"] == [1000, 2000, 500]
          and windows["kv_bytes"] < plan_of(*shape, "--sessions", 3)["kv_bytes"], windows)
    text = oriel(*shape, "--sessions", 3, "--session-windows", "1000,0,500").out.decode()
    check("which is said", "3 with windows of 1,000, 2,000, 500 tokens; one more takes" in " ".join(text.split()), text)
    text = oriel(*shape, "--sessions", 4, "--prefix-tokens", 500).out.decode()
    check("four sessions are explained", "4 with a window of 2,000 tokens each; one more takes" in text
          and "prefix      500 tokens in f16, 15.6 MiB, held once for all" in text, text)
    hybrid = ["--arch", "qwen3.5-2b", "--memory", "8GiB", "--window", "4092", "--checkpoints", "2"]
    check("states are each one's own", plan_of(*hybrid, "--sessions", 3)["state_bytes"]
          == 3 * plan_of(*hybrid)["state_bytes"])
    file = [SMALL, "--memory", "16MiB", "--window", "100"]
    told = plan_of(*file, "--transcript", "64KiB", "--sessions", 2)
    check("transcripts take host memory", told["transcript_bytes"] == 2 * 65536
          and told["host_bytes"] - plan_of(*file, "--sessions", 2)["host_bytes"] == 2 * 32768, told)
    for wrong in (["--sessions", 0], ["--sessions", 65], ["--sessions", "two"], ["--session-windows", "8,x"],
                  ["--sessions", 2, "--session-windows", "8,8,8"], ["--prefix-tokens", -1], ["--transcript", "2GiB"],
                  ["--transcript", "much"], ["--session-windows", ""]):
        program.fails(f"plan {wrong}", 2, "plan", *shape, *wrong)
    short = program.fails("more sessions than fit", 3, "plan", SMALL, "--memory", "1MB", "--sessions", 64)
    enough = short.err.split(b"try --memory ")[1].split()[0].decode()
    plan_of(SMALL, "--memory", enough, "--sessions", 64)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
