"""A program linked by LLVM's linker, which accepts the same files as Microsoft's, finds the DLL's functions.

    python3 test_import_library.py DLL IMPORT_LIBRARY [EMULATOR...]

The program uses no C library, because this machine has no headers or libraries of Microsoft's.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from package import SOURCE, run

PROGRAM = r"""
#include <oriel/advanced.h>
__declspec(dllimport) void __stdcall ExitProcess(unsigned);
__declspec(dllimport) void *__stdcall GetStdHandle(unsigned);
__declspec(dllimport) int __stdcall WriteFile(void *, const void *, unsigned, unsigned *, void *);
int _fltused;
static void say(const char *text) {
  unsigned length = 0, written = 0;
  while (text[length]) ++length;
  WriteFile(GetStdHandle((unsigned)-11), text, length, &written, 0);
}
void start(void) {
  say(oriel_version());
  say(" ");
  say(oriel_status_text(oriel_model_load(0, 0, 0)));
  ExitProcess(oriel_model_last_error(0)[0] != 0);
}
"""


def main(dll, library, emulator):
    for program in ("clang", "lld-link", "llvm-dlltool"):
        if not shutil.which(program):
            print(f"SKIPPED: {program} is not installed")
            return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "main.c").write_text(PROGRAM)
        (folder / "kernel32.def").write_text("LIBRARY kernel32.dll\nEXPORTS\n ExitProcess\n GetStdHandle\n WriteFile\n")
        run("llvm-dlltool", "-m", "i386:x86-64", "-d", "kernel32.def", "-l", "kernel32.lib", cwd=folder)
        run("clang", "--target=x86_64-pc-windows-msvc", "-ffreestanding", "-DORIEL_SHARED", "-Wall", "-Wextra", "-Werror",
            f"-I{SOURCE / 'runtime/include'}", "-c", "main.c", cwd=folder)
        run("lld-link", "main.o", library, "kernel32.lib", "/entry:start", "/subsystem:console", "/nodefaultlib",
            "/out:app.exe", cwd=folder)
        shutil.copy(dll, folder)
        exported = run("objdump", "-p", dll).split("[Ordinal/Name Pointer] Table")[1].split("\n\n")[0]
        wanted = set()
        for header in ("oriel", "advanced"):
            text = (SOURCE / f"runtime/include/oriel/{header}.h").read_text(encoding="utf-8")
            wanted |= set(re.findall(r"^ORIEL_API [^;(]*?(oriel_\w+)\(", text, re.M))
        got = set(re.findall(r"\] (?:\+base\[\s*\d+\] +)?(?:[0-9a-f]+ )?(\w+)$", exported, re.M))
        assert got == wanted, (got - wanted, wanted - got)
        needs = re.findall(r"DLL Name: (\S+)", run("objdump", "-p", dll))
        assert not [one for one in needs if re.match("lib|.*gcc|.*stdc", one)], needs
        done = subprocess.run([*emulator, folder / "app.exe"], stdout=subprocess.PIPE, cwd=folder, timeout=300)
        assert done.returncode == 0 and re.fullmatch(rb"\d+\.\d+\.\d+ [ -~]+", done.stdout), done
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
