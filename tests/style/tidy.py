"""Runs clang-tidy on the files of a build, with the checks of .clang-tidy.

    python3 tidy.py BUILD [--library | --all]

BUILD has a compile_commands.json. Without an option it checks only the changes of the last commits: changed sources,
and for each changed header a source that includes it; at most the latest 8 files. --library: all sources of the library, except for kernels that
are compiled once per instruction set. --all (scripts/tidy.sh): also these and the program, which take long because of
their headers. A file that passed is checked again only after a change of it, its includes, its flags or the checks:
BUILD/tidy has the hashes.
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
COMMITS = 8
MOST = 8  # files of the last commits
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)
EVERY_TIME = ("runtime", "platform")
ALL = (*EVERY_TIME, "apps")
# Flags of gcc that clang does not know.
GCC_ONLY = re.compile(r" -f(no-tree-\S+|no-split-loops|no-unswitch-loops|no-ipa-cp-clone|no-fat-lto-objects)(?= )")


def find():
    """The program of this version, or the reason for its absence."""
    for name in (f"clang-tidy-{VERSION}", "clang-tidy"):
        program = shutil.which(name)
        if program:
            said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, encoding="utf-8").stdout
            if re.search(rf"version {VERSION}\.", said):
                return program, ""
    return None, f"there is no clang-tidy {VERSION} (package clang-tidy-{VERSION})"


def without_batches(database):
    """With an entry for each file of a batch (cmake/batches.cmake) instead of the batch's."""
    for entry in database:
        if "/batches/" not in entry["file"]:
            yield entry
            continue
        for name in INCLUDE.findall(pathlib.Path(entry["file"]).read_text(encoding="utf-8")):
            file = str(SOURCE / name)
            yield {**entry, "file": file, "command": entry["command"].replace(f"-c {entry['file']}", f"-c {file}")}


def chosen(database, everything):
    """(file, folder, command) of the files to check."""
    for entry in database:
        path = pathlib.Path(entry["file"])
        room = path.relative_to(SOURCE).parts[0] if SOURCE in path.parents else ""
        if room not in (ALL if everything else EVERY_TIME):
            continue
        if not everything and "HWY_TARGET_INCLUDE" in path.read_text(encoding="utf-8"):
            continue
        yield path, entry["directory"], entry["command"]


def changed():
    """Files changed in the last commits or not committed; None, for all of them: unknown, or the checks changed."""
    def git(*words):
        done = subprocess.run(["git", "-C", str(SOURCE), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              encoding="utf-8")
        return done.stdout.split("\0") if done.returncode == 0 else None

    try:
        lists = (git("diff", "--name-only", "-z", f"HEAD~{COMMITS}"), git("ls-files", "--others", "--exclude-standard", "-z"))
    except OSError:
        return None
    if None in lists:
        return None
    names = {SOURCE / name for listed in lists for name in listed if name}
    return None if any(name.name == ".clang-tidy" for name in names) else names


def latest(files):
    """The MOST files that changed last, and the number of the others."""
    log = subprocess.run(["git", "-C", str(SOURCE), "log", f"-{20 * COMMITS}", "--format=", "--name-only"], stdout=subprocess.PIPE,
                         encoding="utf-8").stdout.split("\n")
    places = {}
    for place, name in enumerate(log):
        places.setdefault(name, place)
    files = sorted(files, key=lambda file: places.get(str(file[0].relative_to(SOURCE)), len(log)))
    return files[:MOST], max(0, len(files) - MOST)


def with_headers(names, sources):
    """The changed sources, and for each changed header the first source that includes it, directly if possible."""
    folders = [SOURCE, *(SOURCE / room for room in EVERY_TIME), SOURCE / "runtime/include"]

    def included(path):
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            yield from (folder / name for folder in (path.parent, *folders) if (folder / name).is_file())

    wanted = [source for source in sources if source in names]
    for header in sorted(name for name in names if name.suffix == ".h" and name.is_file()):
        including, seen = [header], {header}
        while including and not any(path in sources for path in including):
            including = [path for room in EVERY_TIME for path in sorted((SOURCE / room).rglob("*.*"))
                         if path.suffix in (".h", ".cpp") and path not in seen and seen & set(included(path))]
            seen.update(including)
        found = [path for path in including if path in sources]
        if found and not set(found) & set(wanted):
            wanted.append(found[0])
    return wanted


def preprocessed(folder, command):
    """The preprocessed source, or nothing if the compiler fails."""
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
    """The problems of a file; empty: none."""
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
    recent = None if sys.argv[2:] else changed()
    program, reason = find()
    database = build / "compile_commands.json"
    if program and not database.is_file():
        program, reason = None, "this build has no compile_commands.json"
    if not program:
        print(f"SKIPPED: {reason}")
        return 0
    (build / "tidy").mkdir(exist_ok=True)
    entries = list(without_batches(json.loads(database.read_text())))
    for_clang = [{**entry, "command": GCC_ONLY.sub("", entry["command"])} for entry in entries]
    (build / "tidy/compile_commands.json").write_text(json.dumps(for_clang))
    files = list(chosen(entries, everything))
    if len(files) < 20:
        print(f"only {len(files)} files of {database} are of this checkout")
        return 1
    if recent is not None:
        wanted = set(with_headers(recent, {path for path, _, _ in files}))
        files, others = latest([file for file in files if file[0] in wanted])
        if others:
            print(f"{others} more changed files are left to scripts/tidy.sh")
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
