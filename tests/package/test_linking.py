"""An app finds the installed library and links it, in each way that docs/linking.md shows.

    python3 test_linking.py CMAKE BUILD [UNITTEST_ARGS...]
"""
import pathlib
import re
import shutil
import sys
import unittest

from package import (HERE, MODEL, SOURCE, fresh, kernels, on_the_cpu, read_cache, replies, run, scratch,
                     sections)

CMAKE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2])
PAGE = sections("docs/linking.md")


class Linking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = scratch()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.prefix = cls.folder / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)
        cls.libdir = next(cls.prefix.rglob("liboriel.a")).parent
        for name in ("main.c", "main.cpp"):
            shutil.copy(SOURCE / "apps/examples/minimal.c", cls.folder / name)

    def test_every_kernel_for_vulkan_is_installed(self):
        if read_cache(BUILD).get("ORIEL_VULKAN") != "ON":
            self.skipTest("this build is without Vulkan")
        files = {"the library": self.libdir / "liboriel.a"}
        if (self.prefix / "bin/oriel").is_file():
            files["the program"] = self.prefix / "bin/oriel"
        for what, path in files.items():
            code = path.read_bytes()
            names = set(re.findall(rb"matmul_\w+_matrix(?=\0)", code))
            # Kernels for f16 and for each quantised type with integer quants (shaders/variants.cmake).
            self.assertEqual(13, len(names), f"{what}: kernels for matrix units")
            self.assertEqual([], [name for name in kernels.Packed(kernels.TRACKED).kernels if name.encode() + b"\0" not in code],
                             what)

    def environment(self):
        return on_the_cpu(PREFIX=str(self.prefix), PKG_CONFIG_PATH=str(self.libdir / "pkgconfig"))

    def link(self, line):
        """Runs a line of the page, and the program it made."""
        line = line.replace("$PREFIX/lib", str(self.libdir))
        app = self.folder / "app"
        app.unlink(missing_ok=True)
        run("sh", "-c", line, cwd=self.folder, env=self.environment())
        replies(self, app)

    def need(self, *programs):
        for program in programs:
            if not shutil.which(program):
                self.skipTest(f"{program} is not installed")

    def test_pkg_config_names_all_that_gcc_needs(self):
        self.need("pkg-config", "gcc")
        for line in "".join(PAGE["pkg-config"]).splitlines():
            self.link(line)
            strict = line.replace("gcc", "gcc -std=c99 -pedantic -Wall -Wextra -Werror")
            self.link(strict.replace("--libs", "--libs --static"))

    def test_pkg_config_names_all_that_clang_needs(self):
        self.need("pkg-config", "clang")
        self.link(PAGE["pkg-config"][0].replace("gcc", "clang -std=c99 -pedantic -Wall -Wextra -Werror"))

    def test_pkg_config_says_what_is_installed(self):
        self.need("pkg-config")
        version = re.search(r"project\(oriel VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
        ask = lambda what: run("pkg-config", what, "oriel", env=self.environment()).strip()
        self.assertEqual(version, ask("--modversion"))
        self.assertEqual("", ask("--validate"))
        self.assertTrue(pathlib.Path(ask("--variable=libdir")).samefile(self.libdir))
        self.assertTrue((pathlib.Path(ask("--variable=includedir")) / "oriel/oriel.h").is_file())

    def test_the_laboratory_is_linked_with_the_lines_of_the_page(self):
        self.need("pkg-config", "gcc")
        shutil.copy(HERE / "consumer/tools.c", self.folder)
        lines = "".join(PAGE["The laboratory"][1:]).splitlines()
        self.assertEqual(2, len(lines))
        for line in lines:
            with self.subTest(line=line):
                app = self.folder / "tools"
                app.unlink(missing_ok=True)
                run("sh", "-c", line.replace("$PREFIX/lib", str(self.libdir)), cwd=self.folder, env=self.environment())
                self.assertIn("shapes", run(app))
        self.assertEqual("", run("pkg-config", "--validate", "oriel-tools", env=self.environment()).strip())

    def test_an_app_that_links_oriel_alone_gets_nothing_of_the_laboratory(self):
        self.need("nm")
        defined = {library: set(re.findall(r" [TtWV] (\w+)", run("nm", "--defined-only", self.libdir / library)))
                   for library in ("liboriel.a", "liboriel_tools.a")}
        self.assertFalse([name for name in defined["liboriel.a"] & defined["liboriel_tools.a"]
                          if name.startswith("oriel_")])
        header = (SOURCE / "runtime/include/oriel/tools.h").read_text(encoding="utf-8")
        functions = set(re.findall(r"^ORIEL_TOOLS_API [^;(]*?(oriel_\w+)\(", header, re.M))
        self.assertGreater(len(functions), 5)
        self.assertEqual(functions, {name for name in defined["liboriel_tools.a"] if name.startswith("oriel_")})

    def test_plain_compilers_link_with_the_lines_of_the_page(self):
        lines = "".join(PAGE["Plain compilers"]).splitlines()
        self.assertEqual(["gcc", "g++"], [line.split()[0] for line in lines])
        for line in lines:
            # clang: test_pkg_config_names_all_that_clang_needs
            for compiler in {"gcc": ["gcc"], "g++": ["g++", "clang++"]}[line.split()[0]]:
                with self.subTest(compiler=compiler):
                    self.need(compiler)
                    self.link(line.replace(line.split()[0], compiler, 1))

    def test_an_app_may_have_a_namespace_oriel(self):
        self.need("g++", "nm")
        source = HERE / "consumer/namespace.cpp"
        for optimise in ("-O0", "-O2"):
            app = self.folder / "namespace"
            run("g++", "-std=c++17", optimise, f"-I{self.prefix / 'include'}", source, self.libdir / "liboriel.a",
                "-pthread", "-ldl", "-o", app)
            self.assertIn("answered", run(app, MODEL, env=self.environment()))
        for library in ("liboriel.a", "liboriel_tools.a"):
            names = run("nm", "-C", "--defined-only", self.libdir / library)
            self.assertFalse(re.findall(r" [A-Z] .*\boriel::.*", names), library)
            strong = re.findall(r" [TDBR] (.+)", names)
            self.assertFalse([name for name in strong if "oriel_internal::" not in name and not name.startswith("oriel_")])

    def cmake_project(self, lines, name):
        folder = fresh(self.folder / name)
        (folder / "CMakeLists.txt").write_text(lines)
        shutil.copy(self.folder / "main.c", folder)
        return folder

    def build(self, folder, prefix, *options):
        generator = read_cache(BUILD)["CMAKE_GENERATOR"]
        run(CMAKE, "-S", folder, "-B", folder / "build", "-G", generator, f"-DCMAKE_PREFIX_PATH={prefix}", *options,
            env=on_the_cpu())
        run(CMAKE, "--build", folder / "build", env=on_the_cpu())
        replies(self, folder / "build/app")

    def test_find_package_works_for_a_project_in_c_alone_and_a_library_can_hold_it(self):
        lines = PAGE["Installed"][1].strip().splitlines()
        holding = [line.replace("add_executable(app main.c)", "add_library(plugin SHARED main.c)").replace("(app ", "(plugin ")
                   for line in lines if line.startswith(("add_executable", "target_link_libraries"))]
        self.assertEqual(2, len(holding))
        folder = self.cmake_project("\n".join([*lines, *holding, ""]), "in_c")
        self.build(folder, self.prefix, "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,defs")
        self.assertTrue(list((folder / "build").glob("*plugin.*")))
        self.assertNotIn("CMAKE_CXX_COMPILER", read_cache(folder / "build"))

    def test_find_package_works_for_a_project_in_c_and_cpp_and_in_a_folder_that_was_moved(self):
        moved = self.folder / "Ordner mit Lücken"
        shutil.copytree(self.prefix, moved)
        lines = PAGE["Installed"][1].replace("LANGUAGES C", "LANGUAGES C CXX")
        self.build(self.cmake_project(lines, "Überall woanders"), moved)

    def test_another_minor_version_is_refused(self):
        for version in ("0.1", "0.3", "1.0"):
            # No compiler is looked for: it would be asked for after that.
            lines = PAGE["Installed"][1].replace("oriel 0.2", f"oriel {version}").replace("LANGUAGES C", "LANGUAGES NONE")
            folder = self.cmake_project(lines, "version")
            with self.assertRaisesRegex(AssertionError, r"compatible\s+with requested version"):
                run(CMAKE, "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_the_licence_and_the_models_card_are_installed(self):
        documents = self.prefix / "share/doc/oriel"
        self.assertEqual((SOURCE / "LICENSE").read_bytes(), (documents / "LICENSE").read_bytes())
        self.assertIn("\nUnicode data files (", (documents / "THIRD_PARTY_NOTICES.txt").read_text(encoding="utf-8"))
        models = list(self.prefix.glob("share/oriel/models/*.gguf"))
        if models:
            self.assertIn("Licence of the weights", (documents / "oriel-tiny.md").read_text(encoding="utf-8"))
        self.assertEqual(["advanced.h", "oriel.h", "tools.h"], sorted(path.name for path in self.prefix.rglob("*.h")))

    def test_the_readmes_sample_is_c99(self):
        self.need("gcc")
        text = (SOURCE / "README.md").read_text(encoding="utf-8").split("## Link it")[1].split("\n## ")[0]
        lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
        self.assertEqual("#include <oriel/oriel.h>", lines[0])
        source = "\n".join([
            lines[0], "static int on_text(const oriel_token_event *event, void *user) {",
            "(void)event; (void)user; return 0; }", "int main(void) {", "void *my_data = NULL;", *lines[1:], "}\n"])
        (self.folder / "sample.c").write_text(source)
        run("gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only",
            f"-I{self.prefix / 'include'}", self.folder / "sample.c")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
