"""Helpers of the tests of building, installing and linking."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/shaders"))
import kernels  # noqa: E402  # pylint: disable=wrong-import-position

HERE = SOURCE / "tests/package"
MODEL = SOURCE / "models/oriel-tiny/oriel-tiny-q8_0.gguf"


def run(*command, **options):
    """Output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-6000:]}")
    return done.stdout


def on_the_cpu(**more):
    """An environment without Vulkan devices, in which CMake's builds are never optimised."""
    environment = {**os.environ, "VK_ICD_FILENAMES": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent", **more}
    if os.name == "posix":
        for language in ("C", "CXX"):
            environment.setdefault(f"CMAKE_{language}_COMPILER_LAUNCHER", str(HERE / "unoptimised.sh"))
    return environment


def read_cache(build):
    """A build's CMakeCache.txt by name."""
    text = (pathlib.Path(build) / "CMakeCache.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([^#/][^:\n]*):[A-Z]+=(.*)$", text, re.M))


def shader_compiler(folder):
    """CMake options for programs whose results use the tracked kernels, which scripts/pack_kernels.sh compiles and
    checks."""
    spirv = fresh(pathlib.Path(folder) / "spirv")
    for name, code in kernels.Packed(kernels.TRACKED).modules.items():
        (spirv / f"{name}.spv").write_bytes(code)
    options = {}
    for name in ("ORIEL_GLSLANG", "ORIEL_SPIRV_VAL"):
        program = pathlib.Path(folder) / name.lower()
        program.write_text(f"""#!/bin/sh
for word; do last=$word; [ "$before" = -o ] && output=$word; before=$word; done
compiled='{spirv}'/"$(basename "${{output:-$last}}")"
echo "$(basename "$0")" >>'{folder}/programs_run'
if [ -n "$output" ]; then cp "$compiled" "$output"; else cmp -s "$compiled" "$last"; fi
""")
        program.chmod(0o755)
        options[name] = str(program)
    return options


def sections(page):
    """The blocks of code of a page in docs/, by the heading above them."""
    found, heading, block = {}, None, []
    for line in [*(SOURCE / page).read_text(encoding="utf-8").splitlines(), "end"]:
        if line.startswith("    ") or (block and not line):
            block.append(line[4:])
            continue
        if block:
            found.setdefault(heading, []).append("\n".join(block).strip() + "\n")
            block = []
        if line.startswith("#"):
            heading = line.lstrip("# ")
    return found


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def scratch():
    """A folder without spaces, independent of the build's path: some lines of the pages need that."""
    return tempfile.TemporaryDirectory(prefix="oriel-package-")


def replies(test, program, environment=None):
    """minimal.c answers in words, with the bundled model and on the CPU."""
    said = run(program, MODEL, "What is your name?", env=environment or on_the_cpu())
    test.assertRegex(said, r"[A-Za-z]{2,}")


def replies_with_four_tokens(test, program, environment=None):
    said = run(program, MODEL, env=environment or on_the_cpu())
    test.assertRegex(said, r": 4 tokens, ok$")
