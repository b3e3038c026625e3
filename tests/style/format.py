"""Every tracked C and C++ file looks as clang-format lays it out, with the rules of .clang-format."""
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
VERSION = "14"  # others lay a few lines out differently
KINDS = ["*.h", "*.cpp", "*.c", "*.m"]


def find():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program:
            said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, encoding="utf-8").stdout
            if re.search(rf"version {VERSION}\.", said):
                return program
    return None


def main():
    program = find()
    if not program:
        print(f"SKIPPED: there is no clang-format {VERSION} (package clang-format-{VERSION})")
        return 0
    try:
        listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z", *KINDS], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        print("SKIPPED: this is no checkout of git")
        return 0
    files = [SOURCE / name for name in listed.decode().split("\0") if name]
    files = [path for path in files if path.is_file()]  # without deleted files
    if len(files) < 100:
        print(f"only {len(files)} files")
        return 1
    done = subprocess.run([program, "--dry-run", "-Werror", *files], stderr=subprocess.PIPE, encoding="utf-8",
                          errors="replace")
    wrong = sorted(set(re.findall(r"^(.+?):\d+:\d+: error:", done.stderr, re.M)))
    for path in wrong:
        print(f"{pathlib.Path(path).relative_to(SOURCE)}: run {program} -i on it")
    print(f"{len(files)} files, {len(wrong)} to lay out")
    return 1 if wrong or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
