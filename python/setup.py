"""Builds the shared library and puts it, the bundled model and the types of its options into the wheel.

ORIEL_LIBRARY: a library that is there already, instead of building one. ORIEL_CMAKE_ARGS: more arguments for CMake.
"""

import ctypes
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import stubs  # noqa: E402

# A source distribution has the tree inside; a checkout has it around this folder.
ROOT = HERE / "source" if (HERE / "source").is_dir() else HERE.parent
LIBRARY = {"win32": "oriel.dll", "darwin": "liboriel.dylib"}.get(sys.platform, "liboriel.so")
MODEL = ("oriel-tiny-q8_0.gguf", "oriel-tiny-q8_0.gguf.calibration.json", "MODEL_CARD.md")
PARTS = ("unicode", "highway", "vulkan")  # of cmake/notices.cmake
SOURCES = ("CMakeLists.txt", "LICENSE", "cmake", "runtime", "platform", "shaders")


def version():
    header = (ROOT / "runtime/include/oriel/oriel.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"#define ORIEL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))


def need(program, package):
    if shutil.which(program) is None:
        sys.exit(f"oriel: {program} is not installed: install {package}, or set ORIEL_LIBRARY to a built {LIBRARY}")


def licences():
    """ORIEL_LICENCE_highway=FILE and its like, where no Debian package has the text."""
    return [f"-D{name}={value}" for name, value in os.environ.items() if name.startswith("ORIEL_LICENCE_")]


def built_library(build):
    """Oriel and its laboratory, compiled in `build`."""
    given = os.environ.get("ORIEL_LIBRARY")
    if given:
        return Path(given)
    need("cmake", "cmake")
    if not os.environ.get("CMAKE_GENERATOR") and shutil.which("ninja"):
        generator = ["-G", "Ninja"]
    else:
        generator = []
    arguments = ["-DCMAKE_BUILD_TYPE=Release", f"-DORIEL_ROOT={ROOT}", *generator]
    arguments += shlex.split(os.environ.get("ORIEL_CMAKE_ARGS", ""))
    subprocess.run(["cmake", "-S", str(HERE), "-B", str(build), *arguments], check=True)
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", str(build), "--config", "Release", "--target", "oriel_python", "-j", jobs], check=True)
    return next((build / "python").rglob(LIBRARY))


def option_list(library):
    """The options of a built library."""
    write = ctypes.CDLL(str(library)).oriel_option_list
    needed = ctypes.c_size_t()
    write(None, ctypes.c_size_t(), ctypes.byref(needed))
    text = ctypes.create_string_buffer(needed.value)
    write(text, needed, ctypes.byref(needed))
    return json.loads(text.value)["options"]


class BuildPy(build_py):
    def run(self):
        super().run()
        package = Path(self.build_lib) / "oriel"
        shutil.copy(built_library(Path(self.get_finalized_command("build").build_temp) / "cmake"), package / LIBRARY)
        stubs.write(option_list(package / LIBRARY), package, package)
        shutil.copy(ROOT / "LICENSE", package)
        need("cmake", "cmake")
        notices = ["-P", str(ROOT / "cmake/notices.cmake"), str(package / "THIRD_PARTY_NOTICES.txt"), *PARTS]
        subprocess.run(["cmake", *licences(), *notices], check=True)
        (package / "models").mkdir(exist_ok=True)
        for name in MODEL:
            shutil.copy(ROOT / "models" / "oriel-tiny" / name, package / "models")


class PlatformWheel(bdist_wheel):
    """For every Python 3 of this system: the library is called through ctypes."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        platform = super().get_tag()[2]
        library = Path(self.get_finalized_command("build_py").build_lib) / "oriel" / LIBRARY
        # Of glibc the library's newest symbol counts (PEP 600). It needs no other library of the system.
        versions = re.findall(rb"\bGLIBC_(\d+)\.(\d+)\b", library.read_bytes()) if sys.platform == "linux" else []
        if versions:
            major, minor = max(tuple(map(int, version)) for version in versions)
            platform = platform.replace("linux", f"manylinux_{major}_{minor}", 1)
        return "py3", "none", platform


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


class SourceDistribution(sdist):
    """With the source tree, from which the library is built."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        source = Path(base_dir) / "source"
        for name in SOURCES + tuple(f"models/oriel-tiny/{model}" for model in MODEL):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__", "tests"))
            else:
                shutil.copy(ROOT / name, target)
        for name in ("CMakeLists.txt", "stubs.py"):
            shutil.copy(HERE / name, base_dir)


setup(
    version=version(),
    distclass=BinaryDistribution,
    cmdclass={"build_py": BuildPy, "bdist_wheel": PlatformWheel, "sdist": SourceDistribution},
)
