"""Every option of CMake that a page or a CMake file names is built by a test, with the value it is named with.

test_options.py builds each of CONFIGURATIONS and checks the result.
"""

import re
import unittest

from package import SOURCE

# By the test that builds it. Values in <> are what this machine has.
CONFIGURATIONS = {
    # `cmake -B build` without the program, which takes longer than the rest and is tested by the build of this test.
    # The first five are defaults.
    "by_default": {
        "ORIEL_VULKAN": "ON",
        "ORIEL_COMPILE_SHADERS": "OFF",
        "ORIEL_CPU_SIMD": "ON",
        "ORIEL_BUILD_TESTS": "OFF",
        "ORIEL_WARNINGS_AS_ERRORS": "OFF",
        "ORIEL_BOTH_LIBRARIES": "OFF",
        "ORIEL_INSTALL": "ON",
        "CMAKE_BUILD_TYPE": "Release",
        "ORIEL_BUILD_CLI": "OFF",
        "ORIEL_PACK_RELOCATIONS": "ON",
    },
    # The options of integrations/apple/build_xcframework.sh. The test reads them from the script.
    "as_a_framework": {
        "ORIEL_VULKAN": "OFF",
        "ORIEL_BUILD_CLI": "OFF",
        "ORIEL_FETCH_HIGHWAY": "ON",
        "BUILD_SHARED_LIBS": "OFF",
    },
    "as_a_shared_library": {
        "BUILD_SHARED_LIBS": "ON",
        "ORIEL_WARNINGS_AS_ERRORS": "ON",
        "ORIEL_PACK_RELOCATIONS": "OFF",
        "ORIEL_INSTALL": "ON",
        "ORIEL_COMPILE_SHADERS": "ON",
        "ORIEL_GLSLANG": "<the shader compiler>",
        "ORIEL_SPIRV_VAL": "<its validator>",
        "ORIEL_VULKAN_HEADERS": "<Vulkan's headers>",
        "CMAKE_BUILD_TYPE": "Debug",
    },
    # As scripts/package.sh does it; and everything is there to build with a line editor.
    "as_packages": {
        "ORIEL_LINE_EDITOR": "OFF",
        "ORIEL_SERVER": "OFF",
        "ORIEL_STATIC_RUNTIME": "ON",
        "ORIEL_BUILD_CLI": "ON",
        "ORIEL_BOTH_LIBRARIES": "ON",
    },
    "as_plain_code": {
        "ORIEL_VULKAN": "OFF",
        "ORIEL_CPU_SIMD": "OFF",
        "ORIEL_BUILD_CLI": "OFF",
        "ORIEL_INSTALL": "OFF",
        "ORIEL_FETCH_HIGHWAY": "OFF",
        "ORIEL_WARNINGS_AS_ERRORS": "ON",
    },
}

# The build whose tests these are.
THIS_BUILD = {"ORIEL_BUILD_TESTS": "ON", "ORIEL_BUILD_CLI": "ON", "ORIEL_CLI11": "<CLI11>", "ORIEL_JSON": "<JSON>",
              "ORIEL_LINE_EDITOR": "AUTO", "ORIEL_LIBEDIT": "<libedit>", "ORIEL_SERVER": "AUTO",
              "ORIEL_BOOST": "<Boost>", "ORIEL_STATIC_RUNTIME": "OFF"}

# Documented, but not for apps. The value is the reason for no test.
ELSEWHERE = {
    "ORIEL_DLLTOOL": "scripts/cross.sh windows-x64",
    "ORIEL_TARGET": "scripts/cross.sh",
    "ORIEL_PROGRAM_LTO": "builds for Windows, and those of other compilers than gcc, are without",
    "ORIEL_DESKTOP": "scripts/desktop.sh",
    "ORIEL_BUILD_LAB": "scripts/nightly.sh",
    "ORIEL_UNITY": "scripts/test.sh",
    "ORIEL_FUZZ": "scripts/fuzz.sh",
    "ORIEL_JSI": "scripts/bindings.sh",
    "ORIEL_WASM_THREADS": "scripts/web.sh",
    "EMSCRIPTEN_ROOT": "scripts/web.sh",
    "ORIEL_NODE": "what tests run on",
    "ORIEL_HIGHWAY_INSTALLED": "found or not, as ORIEL_FETCH_HIGHWAY says",
    "ORIEL_TEST_ALL": "which tests run",
    "ORIEL_SWIFTSHADER_ICD": "what tests run on",
    "ORIEL_LAVAPIPE_ICD": "what tests run on",
    "ORIEL_REFERENCE_DATA": "what tests read",
    "ORIEL_SWIFTC": "scripts/bindings.sh",
    "ORIEL_SWIFT_RUN": "scripts/bindings.sh",
    "ORIEL_KOTLIN": "scripts/bindings.sh",
    "ORIEL_JDK_INCLUDE": "tests/jni",
    "ORIEL_JDK_INCLUDE_SYSTEM": "tests/jni",
    "ORIEL_HEADER_": "tests/header",
    "CMAKE_PREFIX_PATH": "test_linking.py",
    "CMAKE_FIND_ROOT_PATH": "scripts/cross.sh",
    "ORIEL_NOTICES_TO": "needs the NDK",
    "ANDROID_ABI": "needs the NDK",
    "ANDROID_NDK": "needs the NDK",
    "ANDROID_STL": "needs the NDK",
    "CMAKE_SYSTEM_NAME": "needs Xcode",
    "CMAKE_SYSTEM_PROCESSOR": "needs Xcode",
    "CMAKE_OSX_SYSROOT": "needs Xcode",
    "CMAKE_OSX_ARCHITECTURES": "needs Xcode",
    "CMAKE_OSX_DEPLOYMENT_TARGET": "needs Xcode",
}


PAGES = ["*.md", "docs/*.md", "models/**/*.md", "integrations/**/*.md", "integrations/**/*.sh",
         "integrations/**/*.kts", "toolchains/*.cmake", "CMakePresets.json"]
CMAKE = ["CMakeLists.txt", "cmake/*.cmake", "runtime/CMakeLists.txt", "apps/CMakeLists.txt", "shaders/*.cmake",
         "integrations/**/CMakeLists.txt", "tests/**/CMakeLists.txt", "toolchains/*.cmake"]
# Variables of CMake's scripts, and names of the C API, which pages have in tables, too.
NO_OPTIONS = {"NAMES", "SPIRV", "OUTPUT"}.union(
    *(re.findall(r"\bORIEL_[A-Z0-9_]+", path.read_text(encoding="utf-8"))
      for path in SOURCE.glob("runtime/include/oriel/*.h")))


def files(patterns):
    found = {path for pattern in patterns for path in SOURCE.glob(pattern)}
    return sorted(path for path in found if "build" not in path.relative_to(SOURCE).parts)


def named():
    """(option, value or "", file) for every documented option."""
    for path in files(PAGES):
        text = path.read_text(encoding="utf-8")
        for name, value in re.findall(r"-D ?([A-Z][A-Z0-9_]+)=([A-Za-z0-9]*)", text):
            if name in ("LANGUAGE", "TO", "PROGRAM"):
                continue  # of integrations/options/option_names.cmake, a script
            yield name, value, path
        for name, value in re.findall(r'"((?:ORIEL|BUILD)_[A-Z0-9_]+)": "([A-Za-z0-9]*)"', text):
            yield name, value, path
        if path.suffix == ".md":
            # Rows of a table of options, with each value that the row says something about.
            for row in re.findall(r"^\| `(?:ORIEL|BUILD|CMAKE)_[^\n]*", text, re.M):
                for name in re.findall(r"`([A-Z0-9_]+)`", row.split("|")[1]):
                    yield name, "", path
                    for value in re.findall(r"`(ON|OFF)`", row):
                        yield name, value, path
    for path in files(CMAKE):
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
        for name in re.findall(r"\boption\(\s*([A-Za-z0-9_]+)", text):
            yield name, "", path
            if name not in ELSEWHERE:
                yield name, "ON", path
                yield name, "OFF", path
        for name in re.findall(r"\b(?:find_path|find_program|find_file|find_library)\(\s*(ORIEL_[A-Za-z0-9_]+)", text):
            yield name, "", path
        for name in re.findall(r"\bset\(\s*(ORIEL_[A-Za-z0-9_]+)[^)]*\bCACHE\b", text):
            yield name, "", path


class Documented(unittest.TestCase):
    def test_the_header_of_the_line_editor_is_optional(self):
        found = 0
        for path in [*SOURCE.glob("apps/**/*.h"), *SOURCE.glob("apps/**/*.cpp")]:
            lines = path.read_text(encoding="utf-8").splitlines()
            for before, line in zip(lines, lines[1:]):
                if "<histedit.h>" in line and line.startswith("#include"):
                    found += 1
                    self.assertEqual("#ifdef ORIEL_LINE_EDITOR", before, path)
        self.assertEqual(1, found)

    def test_every_option_that_is_named_is_built(self):
        built = {}
        for options in [*CONFIGURATIONS.values(), THIS_BUILD]:
            for name, value in options.items():
                built.setdefault(name, set()).add(value)
        missing, known = set(), set()
        for name, value, path in named():
            if name in NO_OPTIONS:
                continue
            known.add(name)
            if name in ELSEWHERE:
                continue
            good = name in built and (value not in ("ON", "OFF") or value in built[name])
            if not good:
                missing.add(f"{path.relative_to(SOURCE)}: {name}" + (f"={value}" if value else ""))
        self.assertEqual([], sorted(missing), "add it to a configuration of this file")
        self.assertGreater(len(known), 15)
        self.assertEqual([], sorted(set(built) - known), "no page or CMake file names it any more")

    def test_every_option_of_a_build_is_in_the_page(self):
        page = (SOURCE / "docs/linking.md").read_text(encoding="utf-8")
        for name in {name for options in [*CONFIGURATIONS.values(), THIS_BUILD] for name in options}:
            self.assertIn(f"`{name}`", page)

    def test_no_option_is_both_built_and_left_out(self):
        for options in CONFIGURATIONS.values():
            self.assertEqual(set(), set(options) & set(ELSEWHERE))


if __name__ == "__main__":
    unittest.main(verbosity=2)
