"""The recipes of packaging/: their data, and with a CMake their steps from a local tarball: test_recipes.py [CMAKE]

vcpkg and Conan are replaced by small stand-ins (vcpkg_steps.cmake, and Conan below), which only run CMake.
"""
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import types
import unittest

sys.dont_write_bytecode = True
from package import SOURCE, on_the_cpu, run, scratch

CMAKE = sys.argv[1] if len(sys.argv) > 1 else None
PACKAGING = SOURCE / "packaging"


def version():
    return re.search(r"project\(oriel VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)


class Conan:
    """The parts of Conan that conanfile.py uses, by CMake alone."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.variables = {}
        conan = self

        class Toolchain:
            def __init__(self, recipe):
                self.cache_variables = conan.variables

            def generate(self):
                pass

        class CMake:
            def __init__(self, recipe):
                pass

            def configure(self):
                given = [f"-D{name}={'ON' if value else 'OFF'}" for name, value in conan.variables.items()]
                run(CMAKE, "-S", conan.folder / "source", "-B", conan.folder / "build", "-DCMAKE_BUILD_TYPE=Release",
                    f"-DCMAKE_INSTALL_PREFIX={conan.folder / 'package'}", "-DCMAKE_INSTALL_LIBDIR=lib", *given,
                    env=on_the_cpu())

            def build(self):
                run(CMAKE, "--build", conan.folder / "build", "--parallel", env=on_the_cpu())

            def install(self):
                run(CMAKE, "--install", conan.folder / "build")

        def copy(recipe, pattern, src, dst):
            for path in pathlib.Path(src).glob(pattern.replace("/*", "/**/*")):
                if path.is_file():
                    to = pathlib.Path(dst) / path.relative_to(src)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, to)

        modules = {"conan": {"ConanFile": type("ConanFile", (), {})}, "conan.tools": {},
                   "conan.tools.cmake": {"CMake": CMake, "CMakeToolchain": Toolchain, "cmake_layout": lambda recipe: None},
                   "conan.tools.files": {"copy": copy, "load": lambda recipe, path: pathlib.Path(path).read_text(encoding="utf-8")}}
        for name, members in modules.items():
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__dict__.update(members)

    def recipe(self, file):
        spec = importlib.util.spec_from_file_location("recipe", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        recipe = module.Oriel()
        recipe.export_sources_folder = str(self.folder / "source")
        recipe.options = types.SimpleNamespace(**module.Oriel.default_options)
        recipe.requires = lambda reference: self.required.append(reference)
        self.required = []
        return recipe


class Recipes(unittest.TestCase):
    def test_versions_and_features_are_those_of_the_build(self):
        port = json.loads((PACKAGING / "vcpkg/oriel/vcpkg.json").read_text(encoding="utf-8"))
        self.assertEqual(version(), port["version"])
        with scratch() as folder:
            recipe = Conan(folder).recipe(PACKAGING / "conan/conanfile.py")
            recipe.set_version()
            self.assertEqual(version(), recipe.version)

    def test_options_are_those_of_the_page(self):
        page = (SOURCE / "docs/linking.md").read_text(encoding="utf-8")
        names = set()
        for name in ("vcpkg/oriel/portfile.cmake", "conan/conanfile.py"):
            names |= set(re.findall(r"\bORIEL_[A-Z_]+", (PACKAGING / name).read_text(encoding="utf-8")))
        self.assertGreater(len(names), 2)
        self.assertEqual([], sorted(name for name in names if f"`{name}`" not in page))


@unittest.skipUnless(CMAKE, "no CMake was given")
class Steps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        files = subprocess.run(["git", "-C", SOURCE, "ls-files", "-coz", "--exclude-standard"], capture_output=True, text=True, check=False)
        if files.returncode != 0:
            raise unittest.SkipTest("the sources are no git checkout")
        cls.scratch = scratch()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        name = f"oriel-{version()}"
        with tarfile.open(cls.folder / f"{name}.tar.gz", "w:gz", compresslevel=1) as tarball:
            for file in files.stdout.split("\0"):
                if file and not file.startswith(("tests/data/", "models/")) and (SOURCE / file).is_file():
                    tarball.add(SOURCE / file, f"{name}/{file}")
        with tarfile.open(cls.folder / f"{name}.tar.gz") as tarball:
            tarball.extractall(cls.folder)
        cls.tree = cls.folder / name

    def links(self, prefix):
        build = prefix.with_name(prefix.name + "-app")
        run(CMAKE, "-S", self.tree / "packaging/conan/test_package", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
        run(CMAKE, "--build", build)
        self.assertEqual(f"oriel {version()}\n", run(build / "app", env=on_the_cpu()))

    def test_vcpkg(self):
        prefix = self.folder / "vcpkg"
        run(CMAKE, "-D", f"PORT_DIR={self.tree / 'packaging/vcpkg/oriel'}", "-D", f"TO={prefix}", "-D",
            f"WORK={self.folder / 'vcpkg-build'}", "-D", "FEATURES=vulkan", "-P",
            SOURCE / "tests/package/vcpkg_steps.cmake", env=on_the_cpu())
        self.assertTrue((prefix / "share/oriel/usage").is_file())
        self.assertTrue((prefix / "share/oriel/LICENSE").is_file())
        self.links(prefix)

    def test_conan(self):
        conan = Conan(self.folder / "conan")
        recipe = conan.recipe(self.tree / "packaging/conan/conanfile.py")
        recipe.options.vulkan = False
        recipe.export_sources()
        recipe.requirements()
        recipe.generate()
        recipe.build()
        recipe.package()
        self.assertEqual(["highway"], [reference.partition("/")[0] for reference in conan.required])
        self.links(self.folder / "conan/package")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
