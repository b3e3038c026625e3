"""Every option of CMake that a page or a CMake file names is built by a test, with the value it is named with."""
import re
import unittest

from configurations import CONFIGURATIONS, ELSEWHERE, THIS_BUILD
from package import SOURCE

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
        self.assertEqual([], sorted(missing), "add it to a configuration of tests/package/configurations.py")
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
