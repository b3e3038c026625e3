#!/usr/bin/env python3
"""Compiles the kernels for GPUs that are not here and compares the compilers' statistics with recorded bounds:

    gpu_compilers.py TOOL ROOT MODELS [--quick] [--gpu NAME]... [--record] [--worst N]
    gpu_compilers.py --start GPU ROOT                        prints what starts a program on a GPU

TOOL is oriel_compile_plan, ROOT a Debian with Mesa's drivers and mesa-drm-shim, MODELS a folder for made-up models.
scripts/gpu_compilers.sh prepares all three. Prints one row a GPU; the exit code is 1 if a pipeline fails or exceeds its
bound in bounds.json. --quick: three GPUs and the plans of one model. --record writes the bounds anew.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BOUNDS = HERE / "bounds.json"
LIBRARIES = "usr/lib/x86_64-linux-gnu"

# Name: shim, manifest, what selects the GPU, in a quick run.
GPUS = {
    "navi31": ("amdgpu", "radeon", {"AMDGPU_GPU_ID": "navi31"}, True),
    "navi21": ("amdgpu", "radeon", {"AMDGPU_GPU_ID": "navi21"}, False),
    "vega10": ("amdgpu", "radeon", {"AMDGPU_GPU_ID": "vega10"}, False),
    "ampere": ("nouveau", "nouveau", {"NOUVEAU_CHIPSET": "172"}, True),
    "adreno750": ("freedreno", "freedreno", {"FD_GPU_ID": "750"}, True),
    "adreno630": ("freedreno", "freedreno", {"FD_GPU_ID": "630"}, False),
    "m1": ("asahi", "asahi", {}, False),
}
# Shape and type of make_model.py, layers that show every kind, in a quick run. Widths are whole, vocabularies are not.
MODELS = [
    ("smollm2-135m", "q4_0", 1, True),
    ("smollm2-135m", "q4_k_m", 1, True),
    ("llama-3.2-1b", "q4_0", 1, False),
    ("ministral-3-3b", "q4_k_m", 1, False),
    ("gemma-4-e2b", "q4_0", 6, False),
    ("qwen3.5-0.8b", "q4_k_m", 4, False),
    ("granite-3.1-1b-a400m", "q4_0", 1, False),
    ("deepseek-v2-lite", "q4_0", 2, False),
]
CACHES = ["f16", "k8v8", "k4v4"]

# By the names of each driver's statistics: bytes or instructions that go to memory for want of registers, registers,
# and how many waves (on Apple threads) fit a core.
SPILLS = ["Scratch size", "Spilled VGPRs", "STP Count", "LDP Count", "Spills to memory", "Fills from memory", "SLM size",
          "Spills", "Fills"]
REGISTERS = ["VGPRs", "Registers used", "Number of GPRs", "GPRs"]
OCCUPANCY = ["Subgroups per SIMD", "Max Waves Per Core", "Max warps/SM", "Threads"]
# Times depend on the machine: a list fails only if it takes this many times as long as when it was recorded.
TIME_FACTOR = 20
# Dispatches of a token's body with an f16 cache, at most: GPU, shape, type, number.
DISPATCHES = [("ampere", "smollm2-135m", "q4_0", 185), ("adreno750", "smollm2-135m", "q4_0", 185)]


class Pipeline:
    def __init__(self, line):
        self.name, lists, ms, values = line.rstrip("\n").split("\t")
        self.lists = lists.split(",")
        self.failed = ms == "failed"
        self.ms = 0 if self.failed else float(ms)
        self.values = {} if self.failed else dict(pair.split("=") for pair in values.split(";") if pair)

    def value(self, names):
        return max((int(float(self.values[name])) for name in names if name in self.values), default=0)

    @property
    def kernel(self):
        return self.name.split("[")[0]

    @property
    def kind(self):
        """Products of several tokens are "chunk"; kernels that only a measurement can choose are "candidate"; all
        others must compile without scratch memory."""
        if self.lists == ["candidate"]:
            return "candidate"
        product = re.fullmatch(r"(?:expert_|head_)?matmul\w*\[\d+,\d+,(\d+),.*\]", self.name)
        return "chunk" if product and (product[1] != "1" or self.kernel.endswith("_matrix")) else "token"

    @property
    def key(self):
        return f"{self.kernel} {self.kind}"


def make_models(folder, quick):
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for shape, kind, layers, in_quick in MODELS:
        if quick and not in_quick:
            continue
        path = folder / f"{shape}-{kind}-{layers}.gguf"
        if not path.exists():
            part = path.with_suffix(".part")
            subprocess.run([sys.executable, str(HERE.parent.parent / "scripts" / "make_model.py"), shape, kind, str(part),
                            "--layers", str(layers), "--vocab", "4096"], check=True, stdout=subprocess.DEVNULL)
            part.rename(path)
        paths.append(str(path))
    return paths


def start(root, gpu, command):
    """The command line and the environment of a program that sees only this GPU."""
    shim, manifest, select, _ = GPUS[gpu]
    libraries = root / LIBRARIES
    environment = {**os.environ, **select, "MESA_SHADER_CACHE_DISABLE": "true", "MESA_LOG_LEVEL": "error",
                   "VK_DRIVER_FILES": str(root / "usr/share/vulkan/icd.d" / f"{manifest}_icd.json")}
    loader = [str(libraries / "ld-linux-x86-64.so.2"), "--preload", str(libraries / f"lib{shim}_noop_drm_shim.so"),
              "--library-path", str(libraries)]
    return loader + command, environment


def compile_plans(options, gpu, models):
    caches = [word for cache in (CACHES[:1] if options.quick else CACHES) for word in ("--kv", cache)]
    more = [] if options.quick else ["--candidates"]
    command, environment = start(options.root, gpu, [str(options.tool)] + models + caches + more)
    begin = time.monotonic()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines or not lines[0].startswith("#"):
        sys.exit(f"{gpu}: no pipeline could be compiled: {done.stderr[-600:]}")
    device = lines[0][2:].split("\t")
    return device, [Pipeline(line) for line in lines[1:]], time.monotonic() - begin


def summary(pipelines):
    """-> {key: [spills, registers, least occupancy]}"""
    found = {}
    for one in pipelines:
        numbers = [one.value(SPILLS), one.value(REGISTERS), one.value(OCCUPANCY)]
        worst = found.setdefault(one.key, numbers)
        found[one.key] = [max(worst[0], numbers[0]), max(worst[1], numbers[1]), min(worst[2], numbers[2])]
    return found


def compare(gpu, driver, pipelines, bounds, seconds):
    """Another version of the driver may well take other registers: spills are compared all the same."""
    failures = [f"{gpu}: {one.name} does not compile" for one in pipelines if one.failed]
    known = bounds.get(gpu)
    if known is None:
        return failures + [f"{gpu}: no bounds are recorded"]
    same = known["driver"] == driver
    if not same:
        print(f"{gpu}: registers and occupancy are not compared: the bounds are those of {known['driver']}")
    for key, (spills, registers, occupancy) in summary(pipelines).items():
        if key not in known["kernels"]:
            failures.append(f"{gpu}: {key} has no bound: record it")
            continue
        most_spills, most_registers, least_occupancy = known["kernels"][key]
        for what, worse, now, was in (("spills", spills > most_spills, spills, most_spills),
                                      ("registers", same and registers > most_registers, registers, most_registers),
                                      ("occupancy", same and occupancy < least_occupancy, occupancy,
                                       least_occupancy)):
            if worse:
                failures.append(f"{gpu}: {key}: {what} {now}, recorded {was}")
    if seconds > TIME_FACTOR * known["seconds"]:
        failures.append(f"{gpu}: compiling took {seconds:.0f} s, recorded {known['seconds']} s")
    return failures


def check_dispatches(options):
    failures = []
    for gpu, shape, kind, most in DISPATCHES:
        path = options.models / f"{shape}-{kind}-hollow.gguf"
        if not path.exists():
            subprocess.run([sys.executable, str(HERE.parent.parent / "scripts" / "make_model.py"), shape, kind, str(path),
                            "--vocab", "4096", "--hollow"], check=True, stdout=subprocess.DEVNULL)
        command, environment = start(options.root, gpu, [str(options.tool), "--dispatches", str(path)])
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = re.search(r"decode: \d+ ops, (\d+) dispatches", done.stdout)
        print(f"{gpu:<10} {shape} {kind}: {found[1] if found else 'no'} dispatches a token, at most {most}")
        if not found or int(found[1]) > most:
            failures.append(f"{gpu}: {shape} takes more than {most} dispatches a token")
    return failures


def print_start(gpu, root):
    """Prints the command line that starts a program on that GPU, a word a line."""
    command, environment = start(pathlib.Path(root).resolve(), gpu, [])
    changed = [f"{key}={value}" for key, value in environment.items() if os.environ.get(key) != value]
    print("\n".join(["env"] + changed + command))


def main():
    if sys.argv[1:2] == ["--start"]:
        print_start(*sys.argv[2:4])
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--gpu", action="append", choices=GPUS)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--worst", type=int, default=0, help="print so many pipelines that spill most")
    options = parser.parse_args()
    bounds = json.loads(BOUNDS.read_text()) if BOUNDS.exists() else {}
    models = make_models(options.models, options.quick)
    failures = []
    print(f"{'GPU':<10} {'pipelines':>9} {'failed':>6} {'spilling: token':>15} {'chunk':>5} {'candidate':>9} {'seconds':>7}  driver")
    for gpu in options.gpu or [name for name in GPUS if GPUS[name][3] or not options.quick]:
        device, pipelines, seconds = compile_plans(options, gpu, models)
        counts = [len({one.name for one in pipelines if one.kind == kind and one.value(SPILLS) > 0})
                  for kind in ("token", "chunk", "candidate")]
        print(f"{gpu:<10} {len(pipelines):>9} {sum(one.failed for one in pipelines):>6} {counts[0]:>15} {counts[1]:>5} "
              f"{counts[2]:>9} {seconds:>7.1f}  {device[0]}, {device[1]}", flush=True)
        for one in sorted(pipelines, key=lambda one: -one.value(SPILLS))[:options.worst]:
            print(f"    {one.kind:<9} {one.name}: spills {one.value(SPILLS)}, registers {one.value(REGISTERS)}, "
                  f"occupancy {one.value(OCCUPANCY)}, {one.ms:.0f} ms")
        if options.record:
            bounds[gpu] = {"driver": device[1], "seconds": round(seconds, 1), "kernels": dict(sorted(summary(pipelines).items()))}
        else:
            failures += compare(gpu, device[1], pipelines, bounds, seconds)
    if options.record:
        lines = []
        for gpu, known in bounds.items():
            kernels = ",\n".join(f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in known["kernels"].items())
            lines.append(f'  "{gpu}": {{\n    "driver": {json.dumps(known["driver"])},\n    "seconds": {known["seconds"]},\n    "kernels": {{\n{kernels}\n    }}\n  }}')
        BOUNDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    failures += check_dispatches(options)
    for failure in failures:
        print(f"FAILED  {failure}")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
