#!/usr/bin/env python3
"""Third-party code: every package names its owner, and downloads match their recorded hashes: test_third_party.py"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
NOTICES = SOURCE / "cmake/notices.cmake"


def text_of(name):
    return (SOURCE / name).read_text(encoding="utf-8")


def notices(*words):
    """THIRD_PARTY_NOTICES.txt of these components."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "notices.txt"
        before = [word for word in words if word.startswith("-D")]
        parts = [word for word in words if not word.startswith("-D")]
        subprocess.run(["cmake", *before, "-P", NOTICES, file, *parts], check=True, stdin=subprocess.DEVNULL)
        return file.read_text(encoding="utf-8")


class Notices(unittest.TestCase):
    def test_a_notice_names_the_licence_and_has_its_text(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as licence:
            licence.write("Permission is hereby granted; [to all]\n")
            licence.flush()
            text = notices(f"-DORIEL_LICENCE_imgui={licence.name}", "imgui")
        self.assertIn("\nDear ImGui (MIT)\nCopyright: Omar Cornut\n", text)
        self.assertIn("\nPermission is hereby granted; [to all]\n", text)

    def test_a_text_that_is_not_on_this_machine_is_told(self):
        text = notices("-DORIEL_LICENCE_stb=/nonexistent", "stb")
        self.assertIn("\nstb (MIT or public domain)\n", text)
        self.assertRegex(text, r"\nNOT HERE: .*libstb-dev")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            script = f". {SOURCE}/scripts/lib/install.sh; oriel_complete_notices {file.name}"
            refused = subprocess.run(["bash", "-c", script], capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(1, refused.returncode)
        self.assertIn(b"libstb-dev", refused.stderr)

    def test_every_part_that_is_linked_has_a_notice(self):
        known = set(re.findall(r"^set\(oriel_notice_(\w+) ", NOTICES.read_text(encoding="utf-8"), re.M))
        named = set(re.findall(r"oriel_parts ([a-z0-9 ]+)\)", text_of("CMakeLists.txt")))
        self.assertEqual(known, {part for parts in named for part in parts.split()})

    def test_every_library_of_the_window_has_a_notice(self):
        rows = re.findall(r'^set\(oriel_notice_\w+ "[^|]+\|([^|]+)\|.*\|([^|"]+)"\)', text_of("cmake/notices.cmake"), re.M)
        self.assertLess(5, len(rows))
        for licence, _ in rows:
            self.assertNotIn("GPL", licence)
        linked = re.findall(r'find_library\([^)]* DOC "[^"(]*\(([\w.-]+)\)"\)', text_of("contrib/desktop/CMakeLists.txt"))
        self.assertLess(3, len(linked))
        self.assertLessEqual(set(linked), {package for _, package in rows})

    def test_every_package_has_the_file(self):
        for script in ("cmake/install.cmake", "cmake/make_source_bundle.cmake", "scripts/web.sh", "web/package.json",
                       "python/setup.py", "integrations/apple/build_xcframework.sh"):
            self.assertIn("THIRD_PARTY_NOTICES.txt", text_of(script), script)
        self.assertIn("ORIEL_NOTICES_TO", text_of("integrations/android/build.gradle.kts"))
        for script in ("scripts/package.sh", "scripts/web.sh"):
            self.assertIn("oriel_complete_notices", text_of(script), script)


class Fetched(unittest.TestCase):
    def tracked(self, *suffixes):
        for folder in ("apps", "cmake", "integrations", "platform", "python", "runtime", "scripts", "tests", "web"):
            for path in sorted((SOURCE / folder).rglob("*")):
                if path.suffix in suffixes or path.name in suffixes:
                    yield path
        yield SOURCE / "CMakeLists.txt"

    def test_what_cmake_downloads_has_a_hash(self):
        found = 0
        for path in self.tracked(".cmake", "CMakeLists.txt"):
            calls = re.findall(r"(?:FetchContent_Declare|ExternalProject_Add|file\(DOWNLOAD)[^)]*\)",
                               path.read_text(encoding="utf-8"))
            for call in calls:
                found += 1
                self.assertRegex(call, r"(URL|EXPECTED)_HASH\s+SHA256=[0-9a-f]{64}", path)
        self.assertLessEqual(1, found)

    def test_what_npm_installs_is_locked(self):
        for path in self.tracked(".sh"):
            for line in path.read_text(encoding="utf-8").splitlines():
                if not line.lstrip().startswith("#"):
                    self.assertNotRegex(line, r"\bnpm (install|i|add)\b|\bnpx\b", path)
        folders = sorted((SOURCE / "scripts/npm").iterdir())
        self.assertEqual(["clients", "kotlin", "web"], [folder.name for folder in folders])
        for folder in folders:
            wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"]
            packages = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
            self.assertEqual(wanted, packages.pop("")["dependencies"])
            for name, version in wanted.items():
                self.assertEqual(version, packages[f"node_modules/{name}"]["version"])
            for name, package in packages.items():
                self.assertRegex(package["integrity"], r"^sha512-", name)


if __name__ == "__main__":
    sys.exit(unittest.main())
