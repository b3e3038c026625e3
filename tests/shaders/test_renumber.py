"""Renumbered SPIR-V means the same: a disassembler, which knows the language by itself, sees the same instructions, with
one id for each and no id for two.

    test_renumber.py SPIRV_FOLDER [SPIRV_DIS]
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
import renumber_spirv  # noqa: E402  # pylint: disable=wrong-import-position

EVERY = 6  # of the kernels: each takes two runs of the disassembler


def words_of(code):
    return renumber_spirv.struct.unpack(f"<{len(code) // 4}I", code)


def disassembled(spirv_dis, file):
    command = [spirv_dis, "--raw-id", "--no-header", "--no-indent", str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def check_same(name, before, after):
    assert len(before) == len(after), name
    to, back = {}, {}
    for line, other in zip(before, after):
        ids, others = re.findall(r"%\d+", line), re.findall(r"%\d+", other)
        assert re.sub(r"%\d+", "%", line) == re.sub(r"%\d+", "%", other), f"{name}: {line} / {other}"
        for old, new in zip(ids, others):
            assert to.setdefault(old, new) == new and back.setdefault(new, old) == old, f"{name}: {line} / {other}"


def main():
    spirv_dis = sys.argv[2] if len(sys.argv) > 2 else "spirv-dis"
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.spv"))
    assert files, "no kernels"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "cmake/renumber_spirv.py"), folder, *(f"{f.stem}={f}" for f in files)]
        renumbered = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        for name in renumbered[::EVERY]:
            words = renumber_spirv.restored(list(words_of(pathlib.Path(folder, name).read_bytes())))
            file = pathlib.Path(folder, "restored.spv")
            file.write_bytes(renumber_spirv.struct.pack(f"<{len(words)}I", *words))
            check_same(name, disassembled(spirv_dis, pathlib.Path(sys.argv[1], name + ".spv")),
                       disassembled(spirv_dis, file))
    # The table is of what these shaders use; others are packed as they are, which costs bytes only.
    assert len(renumbered) * 10 >= len(files) * 9, f"{len(renumbered)} of {len(files)} kernels are renumbered"
    print(f"{len(renumbered[::EVERY])} of {len(renumbered)} renumbered kernels mean the same")


if __name__ == "__main__":
    main()
