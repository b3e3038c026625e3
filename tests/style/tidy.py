"""clang-tidy over what a build compiles, with the checks of .clang-tidy.

    python3 tidy.py BUILD [--all]

BUILD has a compile_commands.json. Without --all what takes long is left to scripts/tidy.sh: the program, for the
headers it includes, and kernels that are compiled once for each instruction set. A file that passed is not looked at
again until it, what it includes, its flags or the checks change: BUILD/tidy has the hashes.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
VERSION = "14"  # others have other checks
EVERY_TIME = ("runtime", "platform")
ALL = (*EVERY_TIME, "apps")
# Flags of gcc that clang does not know.
GCC_ONLY = re.compile(r" -f(no-tree-\S+|no-split-loops|no-unswitch-loops|no-ipa-cp-clone|no-fat-lto-objects)(?= )")


def find():
    """The program of this version, or the reason why there is none."""
    for name in (f"clang-tidy-{VERSION}", "clang-tidy"):
        program = shutil.which(name)
        if program:
            said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, encoding="utf-8").stdout
            if re.search(rf"version {VERSION}\.", said):
                return program, ""
    return None, f"there is no clang-tidy {VERSION} (package clang-tidy-{VERSION})"


def chosen(database, everything):
    """(file, folder, command) of what is looked at."""
    for entry in database:
        path = pathlib.Path(entry["file"])
        room = path.relative_to(SOURCE).parts[0] if SOURCE in path.parents else ""
        if room not in (ALL if everything else EVERY_TIME):
            continue
        if not everything and "HWY_TARGET_INCLUDE" in path.read_text(encoding="utf-8"):
            continue
        yield path, entry["directory"], entry["command"]


def preprocessed(folder, command):
    """What the compiler sees, or nothing where it does not say."""
    words = shlex.split(command)
    if pathlib.Path(words[0]).name == "ccache":
        words = words[1:]
    kept, skip = [], False
    for word in words:
        if not skip and word not in ("-c", "-o", "-MD", "-MT", "-MF"):
            kept.append(word)
        skip = word in ("-o", "-MT", "-MF")
    done = subprocess.run([*kept, "-E", "-P"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout if done.returncode == 0 else b""


def configuration(path):
    """All .clang-tidy files from the file's folder up."""
    folders = [folder for folder in path.parents if SOURCE in (folder, *folder.parents)]
    return b"".join((folder / ".clang-tidy").read_bytes() for folder in folders if (folder / ".clang-tidy").is_file())


def look(program, build, path, folder, command):
    """What is wrong with a file; empty: nothing."""
    text = preprocessed(folder, command)
    comments = path.read_bytes()  # such as NOLINT
    key = hashlib.sha256(b"\0".join([program.encode(), command.encode(), configuration(path), comments, text]))
    passed = build / "tidy" / key.hexdigest()
    if text and passed.exists():
        return ""
    done = subprocess.run([program, "-p", str(build / "tidy"), "--quiet", str(path)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        return done.stdout
    passed.touch()
    return ""


def main():
    build, everything = pathlib.Path(sys.argv[1]), "--all" in sys.argv[2:]
    program, reason = find()
    database = build / "compile_commands.json"
    if program and not database.is_file():
        program, reason = None, "this build has no compile_commands.json"
    if not program:
        print(f"SKIPPED: {reason}")
        return 0
    (build / "tidy").mkdir(exist_ok=True)
    entries = json.loads(database.read_text())
    for_clang = [{**entry, "command": GCC_ONLY.sub("", entry["command"])} for entry in entries]
    (build / "tidy/compile_commands.json").write_text(json.dumps(for_clang))
    files = list(chosen(entries, everything))
    if len(files) < 20:
        print(f"only {len(files)} files of {database} are of this checkout")
        return 1
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(lambda file: look(program, build, *file), files):
            if said:
                wrong += 1
                print(said, flush=True)
    print(f"{len(files)} files, {wrong} with something to change")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
