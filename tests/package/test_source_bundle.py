"""The bundle of sources is compiled outside CMake by plain compilers, and a program in C that links it gets a reply.

    python3 test_source_bundle.py CMAKE BUILD LAVAPIPE_ICD COMPILER [UNITTEST_ARGS...]

Without optimisation, for the time it takes; else as its README and docs/linking.md have it.
"""
import os
import pathlib
import re
import shutil
import sys
import unittest

from package import SOURCE, on_the_cpu, replies, run, scratch, sections

CMAKE, BUILD, ICD, COMPILER = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]


class SourceBundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which(COMPILER):
            raise unittest.SkipTest(f"{COMPILER} is not installed")
        cls.scratch = scratch()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.bundle = cls.folder / "oriel-bundle"
        run(CMAKE, "-P", SOURCE / "cmake/source_bundle.cmake", BUILD / "runtime/source_bundle.txt.cmake", cls.bundle)
        for header in (cls.bundle / "src").rglob("*.h"):  # it needs nothing of this tree
            assert str(SOURCE) not in header.read_text(encoding="utf-8"), header

    def test_the_readme_and_the_page_say_the_same(self):
        lines = [line[4:] for line in (self.bundle / "README.md").read_text().splitlines() if line.startswith("    ")]
        page = "".join(sections("docs/linking.md")["Sources without CMake"]).splitlines()
        self.assertEqual([line for line in page if line.startswith(("g++", "ar", "gcc"))], lines)

    def test_one_header_has_all_of_both(self):
        one = (self.bundle / "oriel.h").read_text(encoding="utf-8")
        self.assertNotIn('#include "', one)
        for name in ("oriel", "advanced"):
            header = (SOURCE / f"runtime/include/oriel/{name}.h").read_text(encoding="utf-8")
            for function in re.findall(r"^ORIEL_API [^;(]*?oriel_\w+\(", header, re.M):
                self.assertIn(function, one)
        for language, mode in (("c", "c99"), ("c++", "c++11")):
            (self.folder / "header").write_text('#include "oriel.h"\n#include <oriel/advanced.h>\n')
            run(COMPILER, "-x", language, f"-std={mode}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only",
                self.folder / "header", f"-I{self.bundle}", f"-I{self.bundle}/src")

    def test_a_program_links_it(self):
        lines = [line[4:] for line in (self.bundle / "README.md").read_text().splitlines() if line.startswith("    ")]
        compiling = re.search(r"g\+\+ (.*) -c", lines[0]).group(1).replace("-O2", "-O0")
        launcher = ["ccache"] if shutil.which("ccache") else []
        # The same flags for each file, on all processors.
        (self.folder / "Makefile").write_text(
            "objects := $(notdir $(patsubst %.cpp,%.o,$(wildcard oriel-bundle/src/*/*.cpp)))\n"
            "vpath %.cpp $(wildcard oriel-bundle/src/*)\nall: $(objects)\n"
            f"%.o: %.cpp\n\t@cd oriel-bundle && {' '.join(launcher)} {COMPILER} {compiling} -c "
            "$(patsubst oriel-bundle/%,%,$<) -o ../$@\n")
        if not shutil.which("make"):
            self.skipTest("make is not installed")
        said = run("make", f"-j{os.cpu_count() or 2}", cwd=self.folder, env={**os.environ, "CCACHE_BASEDIR": str(self.folder)})
        self.assertNotIn("warning", said)
        objects = list(self.folder.glob("*.o"))
        self.assertEqual(len(objects), len(list((self.bundle / "src").glob("*/*.cpp"))), "two files have one name")
        run("ar", "rcs", "liboriel.a", *objects, cwd=self.folder)
        shutil.copy(SOURCE / "apps/examples/minimal.c", self.folder / "app.c")
        text = (self.folder / "app.c").read_text().replace("<oriel/oriel.h>", '"oriel.h"')
        (self.folder / "app.c").write_text(text)
        gcc = {"g++": "gcc", "clang++": "clang"}[COMPILER]
        self.link(gcc, lines[2])
        replies(self, self.folder / "app")
        if pathlib.Path(ICD).is_file():
            (self.folder / "app.c").write_text(text.replace("options.log = onLog;", "options.log = onLog; options.device = \"vulkan\";"))
            self.link(gcc, lines[2])
            replies(self, self.folder / "app", {**os.environ, "VK_ICD_FILENAMES": ICD, "VK_DRIVER_FILES": ICD})

    def link(self, compiler, line):
        run(compiler, *line.split()[1:], "-o", "app", cwd=self.folder, env={**os.environ, "CPATH": str(self.bundle)})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
