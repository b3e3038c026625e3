"""The library is built with each option of CMake that a page names, and a program in C that links it gets a reply.

    python3 test_options.py CMAKE BUILD FOLDER [UNITTEST_ARGS...]

BUILD is the build whose test this is. Each test builds in a folder of its own below FOLDER.
"""
import os
import pathlib
import re
import shutil
import sys
import unittest

from package import (HERE, SOURCE, fresh, on_the_cpu, read_cache, replies, replies_with_four_tokens, run, shader_compiler,
                     sections)
from test_documented import CONFIGURATIONS

CMAKE, BUILD, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
OURS = read_cache(BUILD)
PAGE = sections("docs/linking.md")
CONSUMER = HERE / "consumer/consumer.c"
MULTIARCH = "lib/x86_64-linux-gnu"


def make(folder, *options, environment=None, target=None):
    """Configures and builds folder/build."""
    environment = environment or on_the_cpu()
    run(CMAKE, "-S", folder, "-B", folder / "build", "-G", OURS["CMAKE_GENERATOR"], *options, env=environment)
    run(CMAKE, "--build", folder / "build", "--parallel", os.cpu_count() or 2, *(["--target", target] if target else []),
        env=environment)


def flags(options):
    return [f"-D{name}={value}" for name, value in options.items()]


def link_source(folder):
    """A folder that looks like the checkout, so that builds in it do not write to the checkout."""
    for entry in SOURCE.iterdir():
        if not entry.name.startswith(".") and entry.name not in ("build", "shared"):
            (folder / entry.name).symlink_to(entry)


def functions_of(*headers):
    found = []
    for name in headers:
        text = (SOURCE / f"runtime/include/oriel/{name}.h").read_text(encoding="utf-8")
        found += re.findall(r"^ORIEL_(?:TOOLS_)?API [^;(]*?(oriel_\w+)\(", text, re.M)
    assert len(found) > 5
    return sorted(found)


class Options(unittest.TestCase):
    def check(self, name, build):
        """That the build has what CONFIGURATIONS says."""
        cache = read_cache(build)
        for option, value in CONFIGURATIONS[name].items():
            if not value.startswith("<") and option != "BUILD_SHARED_LIBS":
                self.assertEqual(value, cache.get(option, "OFF"), option)

    def commands(self, build):
        return "".join(path.read_text() for path in build.rglob("flags.make")) + "".join(
            path.read_text() for path in build.glob("build.ninja"))

    def test_by_default(self):
        """The lines of the page without the program: an optimised library, installed."""
        folder = fresh(FOLDER / "by_default")
        link_source(folder)
        environment = on_the_cpu(PREFIX=str(folder / "prefix"), CMAKE_BUILD_PARALLEL_LEVEL=str(os.cpu_count() or 2))
        environment.pop("CMAKE_BUILD_TYPE", None)
        if not shutil.which("make"):
            environment.setdefault("CMAKE_GENERATOR", "Ninja")
        lines = PAGE["Installed"][0].replace("cmake", f'"{CMAKE}"')
        run("sh", "-ec", lines.replace("-B build", "-B build -DORIEL_BUILD_CLI=OFF"), cwd=folder, env=environment)
        self.check("by_default", folder / "build")
        self.assertIn("-O3 -DNDEBUG", self.commands(folder / "build"))
        cache = read_cache(folder / "build")
        compiler, app = cache["CMAKE_C_COMPILER"], folder / "app"
        library = next(folder.glob("prefix/lib*/**/liboriel.a"))
        runtime = PAGE["Plain compilers"][0].splitlines()[0].split("-loriel ")[1].split()[:-2]
        run(compiler, SOURCE / "apps/examples/minimal.c", "-I", folder / "prefix/include", library, *runtime,
            "-o", app)
        replies(self, app)

    def framework_options(self, folder):
        """Runs the script that builds the framework, and checks its CMake options for each of Apple's systems."""
        copied = folder / "integrations/apple"
        shutil.copytree(SOURCE / "integrations/apple", copied, ignore=shutil.ignore_patterns("build"))
        (folder / "runtime").symlink_to(SOURCE / "runtime")
        programs = fresh(folder / "programs")
        (programs / "cmake").write_text(
            '#!/bin/sh\nprintf "%s\\n" "$*" >>"$SAID"\n'
            'if [ "$1" = --build ]; then mkdir -p "$2/runtime" && : >"$2/runtime/liboriel.a"; fi\n')
        (programs / "xcodebuild").write_text(
            '#!/bin/sh\nfor word in "$@"; do case $word in */liboriel.a|*/include) [ -e "$word" ] || exit 1;; esac; done\n'
            'printf "xcodebuild %s\\n" "$*" >>"$SAID"\n')
        for program in programs.iterdir():
            program.chmod(0o755)
        said = folder / "said"
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "SAID": str(said)}
        environment.pop("ORIEL_VULKAN", None)
        run(copied / "build_xcframework.sh", env=environment)
        lines = said.read_text().splitlines()
        configured = [set(re.findall(r"-D(ORIEL_\w+=\w+)", line)) for line in lines if line.startswith("-S")]
        self.assertEqual(3, len(configured))
        self.assertEqual(3, lines[-1].count("liboriel.a"))
        self.assertEqual(configured[0], configured[1])
        self.assertEqual(configured[0], configured[2])
        return dict(option.split("=") for option in configured[0])

    def test_as_a_framework(self):
        """The options of Apple's script, in the source tree of a project in C that has no build type."""
        folder = fresh(FOLDER / "as_a_framework")
        options = self.framework_options(fresh(folder / "script"))
        headers = OURS.get("ORIEL_HIGHWAY_INSTALLED", "")
        if not (pathlib.Path(headers) / "hwy/highway.h").is_file():
            self.skipTest("Highway's headers are not installed")
        # Instead of a download.
        fetched = fresh(folder / "highway")
        (fetched / "hwy").symlink_to(pathlib.Path(headers) / "hwy")
        app = fresh(folder / "app")
        (app / "third_party").mkdir()
        (app / "third_party/oriel").symlink_to(SOURCE)
        (app / "CMakeLists.txt").write_text(PAGE["In the source tree"][0])
        shutil.copy(SOURCE / "apps/examples/minimal.c", app / "main.c")
        environment = on_the_cpu()
        environment.pop("CMAKE_BUILD_TYPE", None)
        make(app, *flags(options), f"-DCMAKE_IGNORE_PATH={headers}", f"-DFETCHCONTENT_SOURCE_DIR_HIGHWAY={fetched}",
             environment=environment)
        self.check("as_a_framework", app / "build")
        commands = self.commands(app / "build")
        self.assertIn("ORIEL_CPU_SIMD=1", commands)
        self.assertNotIn("ORIEL_VULKAN=1", commands)
        self.assertIn("-O2", commands)
        replies(self, app / "build/app")
        self.assertNotIn("-O2", re.sub(r"(?s)\A.*?build \S*main\.c\.o:(.*?)\n\n.*", r"\1", commands))
        # Oriel's options do not leak into the project.
        cache = read_cache(app / "build")
        for name in ("ORIEL_SWIFTSHADER_ICD", "ORIEL_LAVAPIPE_ICD", "ORIEL_REFERENCE_DATA", "ORIEL_TEST_ALL",
                     "ORIEL_JSON", "ORIEL_CLI11"):
            self.assertNotIn(name, cache)
        self.assertFalse((app / "build/compile_commands.json").exists())
        run(CMAKE, "--install", app / "build", "--prefix", folder / "prefix")
        self.assertEqual([], list(folder.glob("prefix/*")))

    def test_as_a_shared_library(self):
        """Fetched by a project with unusual settings, with another compiler if installed."""
        folder = fresh(FOLDER / "as a shared library (Größe 1)")
        source = folder / "mit Lücken"
        source.symlink_to(SOURCE)
        parent = folder / "parent"
        shutil.copytree(HERE / "parent", parent)
        (parent / "cmake").mkdir()
        for name in ("highway", "install", "optimise", "shaders", "warnings"):  # Oriel has files of these names
            (parent / f"cmake/{name}.cmake").write_text('message(FATAL_ERROR "Oriel includes a file of the project that adds it")\n')
        (folder / "block.cmake").write_text(PAGE["FetchContent"][0])
        options = dict(CONFIGURATIONS["as_a_shared_library"])
        options["ORIEL_VULKAN_HEADERS"] = OURS["ORIEL_VULKAN_HEADERS"]
        options.update(shader_compiler(folder))
        compilers = {}
        if shutil.which("clang") and shutil.which("clang++"):
            compilers = {"CMAKE_C_COMPILER": "clang", "CMAKE_CXX_COMPILER": "clang++"}
        del options["ORIEL_INSTALL"]  # the project sets it, as a variable
        make(parent, *flags({**options, **compilers}), f"-DFETCHCONTENT_SOURCE_DIR_ORIEL={source}",
             f"-DBLOCK={folder / 'block.cmake'}", f"-DCONSUMER={CONSUMER}")
        options["ORIEL_INSTALL"] = "ON"
        self.assertEqual({"oriel_glslang", "oriel_spirv_val"}, set((folder / "programs_run").read_text().split()))
        replies_with_four_tokens(self, parent / "build/programs/in_c")
        run(parent / "build/programs/app")
        self.assertFalse((parent / "build/compile_commands.json").exists())

        prefix = folder / "prefix"
        run(CMAKE, "--install", parent / "build", "--prefix", prefix)
        library = next(prefix.rglob("liboriel.so"))
        self.assertEqual([], list(prefix.rglob("bin/*")))
        if sys.platform == "linux" and shutil.which("nm"):
            for headers, shared in ((("oriel", "advanced"), library),
                                    (("tools",), library.with_name("liboriel_tools.so"))):
                exported = [line.split()[-1] for line in run("nm", "-D", "--defined-only", shared).splitlines()]
                self.assertEqual(functions_of(*headers), sorted(exported))
        # A program that the C compiler links needs nothing but the library, and the C++ runtime only to run.
        app = folder / "app"
        run(compilers.get("CMAKE_C_COMPILER", "cc"), CONSUMER, "-I", prefix / "include", "-L", library.parent, "-loriel",
            "-o", app)
        environment = on_the_cpu(LD_LIBRARY_PATH=str(library.parent))
        replies_with_four_tokens(self, app, environment)
        tools = folder / "tools"
        run(compilers.get("CMAKE_C_COMPILER", "cc"), HERE / "consumer/tools.c", "-I", prefix / "include", "-L",
            library.parent, "-loriel_tools", "-loriel", "-o", tools)
        self.assertIn("shapes", run(tools, env=environment))
        if shutil.which("pkg-config"):
            said = run("pkg-config", "--libs", "oriel-tools",
                       env={**os.environ, "PKG_CONFIG_PATH": str(library.parent / "pkgconfig")})
            self.assertNotIn("stdc++", said)

    def test_as_plain_code(self):
        """A build without optional parts and without optimisation, in the layout of Debian's packages."""
        folder = fresh(FOLDER / "as_plain_code")
        link_source(folder)
        layout = ["-DCMAKE_INSTALL_PREFIX=/usr", "-DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu"]
        make(folder, *flags(CONFIGURATIONS["as_plain_code"]), *layout, "-DCMAKE_BUILD_TYPE=Debug",
             "-DCMAKE_CXX_FLAGS_DEBUG=", target="oriel_tools")
        self.check("as_plain_code", folder / "build")
        run(CMAKE, "--install", folder / "build", env={**os.environ, "DESTDIR": str(folder / "nothing")})
        self.assertEqual([], [path for path in folder.glob("nothing/**/*") if path.is_file()])
        # The same with installation rules, for the generated files.
        run(CMAKE, folder / "build", "-DORIEL_INSTALL=ON")
        run(CMAKE, "--build", folder / "build", "--target", "oriel_tools")
        run(CMAKE, "--install", folder / "build", env={**os.environ, "DESTDIR": str(folder / "stage")})
        libraries = folder / "stage/usr/lib/x86_64-linux-gnu"
        app = folder / "app"
        if shutil.which("pkg-config"):
            asked = run("pkg-config", "--cflags", "--libs", "oriel",
                        env={**os.environ, "PKG_CONFIG_LIBDIR": str(libraries / "pkgconfig"),
                             "PKG_CONFIG_SYSROOT_DIR": ""})
            self.assertIn(str(folder.resolve().name), asked)
            run("cc", CONSUMER, *asked.split(), "-o", app)
        else:
            run("cc", CONSUMER, "-I", folder / "stage/usr/include", libraries / "liboriel.a", "-lstdc++", "-lm", "-ldl",
                "-pthread", "-o", app)
        replies_with_four_tokens(self, app)

    def test_as_packages(self):
        """The program and both libraries, laid out and packed as in Debian. Files that do not differ from this build
        come from the compiler's cache, if there is one."""
        folder = fresh(FOLDER / "as_packages")
        same = {name: OURS[name] for name in ("CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER",
                                              "ORIEL_WARNINGS_AS_ERRORS", "ORIEL_UNITY") if OURS.get(name)}
        options = {**same, **CONFIGURATIONS["as_packages"], "CMAKE_INSTALL_LIBDIR": MULTIARCH}
        options["ORIEL_DESKTOP"] = "OFF"  # as in scripts/package.sh
        run(CMAKE, "-S", SOURCE, "-B", folder / "build", "-G", OURS["CMAKE_GENERATOR"], *flags(options))
        run(CMAKE, "--build", folder / "build", "--parallel", os.cpu_count() or 2,
            env={**os.environ, "CCACHE_BASEDIR": str(folder / "build")})
        self.check("as_packages", folder / "build")
        program = folder / "build/apps/oriel"
        self.assertNotIn(b"libedit", program.read_bytes())
        self.packages(folder)
        with self.assertRaisesRegex(AssertionError, "needs histedit.h"):
            run(CMAKE, folder / "build", "-DORIEL_LINE_EDITOR=ON", "-DORIEL_LIBEDIT=")

    def packages(self, folder):
        to = folder / "packages"
        cpack = pathlib.Path(CMAKE).with_name("cpack")
        run(cpack, "-G", "TGZ", "-B", to, cwd=folder / "build")
        self.assertEqual(1, len(list(to.glob("oriel-0.2.0-linux-*.tar.gz"))))
        if not shutil.which("dpkg-shlibdeps"):
            print("SKIPPED: the .deb: dpkg-shlibdeps is not installed")
            return
        run(cpack, "-G", "DEB", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", "-B", to, cwd=folder / "build")
        package = next(to.glob("oriel_0.2.0-1_*.deb"))
        fields = run("dpkg-deb", "-f", package)
        for wanted in (r"^Package: oriel$", r"^Version: 0\.1\.0-1$", r"^Depends: .*libc6.*libstdc\+\+6", r"^Recommends: .*libvulkan1"):
            self.assertRegex(fields, re.compile(wanted, re.M))
        root = folder / "root"
        run("dpkg-deb", "-x", package, root)
        run("dpkg-deb", "-e", package, folder / "control")
        self.assertIn("activate-noawait ldconfig", (folder / "control/triggers").read_text())
        self.assertIn("liboriel 0.2 oriel", (folder / "control/shlibs").read_text())
        self.in_a_clean_root(root)
        if shutil.which("lintian"):
            said = run("lintian", "--allow-root", "--fail-on", "none", "--tag-display-limit", "0", package)
            self.assertEqual([], [line for line in said.splitlines() if line.startswith(("E:", "W:"))])

    def in_a_clean_root(self, root):
        usr, libraries = root / "usr", root / "usr" / MULTIARCH
        said = run(usr / "bin/oriel", "run", "--device", "cpu", "--prompt", "Hello", "--tokens", "4", env=on_the_cpu())
        self.assertNotEqual("", said.strip())
        for page in ("oriel.1.gz", "oriel-chat.1.gz"):
            self.assertTrue((usr / "share/man/man1" / page).is_file(), page)
        for script in ("bash-completion/completions/oriel", "zsh/site-functions/_oriel",
                       "fish/vendor_completions.d/oriel.fish"):
            self.assertIn("plan", (usr / "share" / script).read_text(), script)
        self.assertTrue((usr / "share/doc/oriel/copyright").is_file())
        notices = (usr / "share/doc/oriel/THIRD_PARTY_NOTICES.txt").read_text(encoding="utf-8")
        for part in ("Unicode data files", "Highway", "Vulkan headers", "CLI11", "JSON for Modern C++", "Boost"):
            self.assertIn(f"\n{part} (", notices)
        self.assertNotIn("\nNOT HERE:", notices)
        # Apps find each kind of library in it.
        environment = on_the_cpu(PKG_CONFIG_PATH=str(libraries / "pkgconfig"), LD_LIBRARY_PATH=str(libraries))
        project = fresh(root.parent / "project")
        shutil.copy(SOURCE / "apps/examples/minimal.c", project / "main.c")
        block = PAGE["Installed"][1]
        linked = {"": False, " COMPONENTS static": False, " COMPONENTS shared": True, " COMPONENTS static tools": False}
        for components, shared in linked.items():
            (project / "CMakeLists.txt").write_text(block.replace("0.2 REQUIRED", "0.2 REQUIRED" + components))
            shutil.rmtree(project / "build", ignore_errors=True)
            run(CMAKE, "-S", project, "-B", project / "build", "-G", OURS["CMAKE_GENERATOR"], f"-DCMAKE_PREFIX_PATH={usr}")
            run(CMAKE, "--build", project / "build")
            self.assertEqual(shared, b"liboriel.so.0.2" in (project / "build/app").read_bytes(), components)
            replies(self, project / "build/app", environment)
        (project / "CMakeLists.txt").write_text(block.replace("0.2 REQUIRED", "0.2 REQUIRED COMPONENTS dynamic"))
        with self.assertRaisesRegex(AssertionError, "without the\\s+component\\s+dynamic"):
            run(CMAKE, "-S", project, "-B", project / "build")
        if shutil.which("pkg-config"):
            for static in ([], ["--static"]):
                words = run("pkg-config", "--cflags", "--libs", *static, "oriel", env=environment).split()
                self.assertEqual(bool(static), "-lstdc++" in words)
                run("cc", project / "main.c", *words, "-o", project / "app")
                replies(self, project / "app", environment)
        names = {name: sorted(line.split()[-1] for line in run("nm", "-D", "--defined-only", libraries / name).splitlines())
                 for name in ("liboriel.so.0.2", "liboriel_tools.so.0.2")}
        self.assertEqual(functions_of("oriel", "advanced"), names["liboriel.so.0.2"])
        self.assertEqual(functions_of("tools"), names["liboriel_tools.so.0.2"])
        for name in names:
            self.assertIn(f"Library soname: [{name}]", run("readelf", "-d", libraries / name))

    def test_the_tests_refuse_a_shared_library(self):
        folder = fresh(FOLDER / "refused")
        with self.assertRaisesRegex(AssertionError, "give\\s+-DBUILD_SHARED_LIBS=OFF"):
            run(CMAKE, "-S", SOURCE, "-B", folder, "-G", OURS["CMAKE_GENERATOR"], "-DORIEL_BUILD_TESTS=ON",
                "-DBUILD_SHARED_LIBS=ON", "-DORIEL_VULKAN=OFF", "-DORIEL_CPU_SIMD=OFF")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
