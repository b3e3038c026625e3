#!/usr/bin/env python3
"""Third-party code: every package names its owner, and downloads match their recorded hashes: test_third_party.py [BUILD]

With a build folder of Ninja on Debian: what its compiler and linker took has notices, too."""
import fnmatch
import json
import os
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
        for script in ("cmake/install.cmake", "cmake/source_bundle.cmake", "scripts/web.sh", "web/package.json",
                       "python/setup.py", "integrations/apple/build_xcframework.sh"):
            self.assertIn("THIRD_PARTY_NOTICES.txt", text_of(script), script)
        self.assertIn("ORIEL_NOTICES_TO", text_of("integrations/android/build.gradle.kts"))
        for script in ("scripts/package.sh", "scripts/web.sh"):
            self.assertIn("oriel_complete_notices", text_of(script), script)


# Packages whose files are in no package of Oriel, or need no notice.
WITHOUT = {
    "libc6-dev": "the C library is linked at run time, its start code is free", "linux-libc-dev": "numbers of the system",
    "libstdc++-*-dev": "GCC's runtime library exception", "libgcc-*-dev": "GCC's runtime library exception",
    "libnode-dev": "only declarations: Node has the code", "nodejs": "only declarations: Node has the code",
    "libedit-dev": "only declarations: the library is opened at run time",
    "openjdk-*-jdk-headless": "only declarations: Java has the code", "libbsd-dev": "only declarations",
}
# A target of the build, and the file with its notices: of this build, or the parts of a package's script.
PRODUCTS = {"oriel_cli": None, "oriel_node": None, "oriel_python": "python/setup.py", "oriel_desktop": None}


class Taken(unittest.TestCase):
    """Headers that the compiler read and archives that the linker read, by the packages that own them."""

    @classmethod
    def setUpClass(cls):
        cls.build = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
        if cls.build is None or not (cls.build / "build.ninja").is_file() or not Path("/var/lib/dpkg/info").is_dir():
            raise unittest.SkipTest("needs a build folder of Ninja, on Debian")
        cls.deps = {}
        for line in cls.ninja("-t", "deps").splitlines():
            if line[:1].strip():
                inputs = cls.deps.setdefault(line.split(": #deps")[0], set())
            elif line.strip():
                inputs.add(os.path.normpath(cls.build / line.strip()))

    @classmethod
    def ninja(cls, *words):
        return subprocess.run(["ninja", "-C", cls.build, *words], capture_output=True, text=True, check=True).stdout

    def read_by(self, link):
        """Files outside the trees that the compiler or the linker read for a target. Links it again, unless that is slow."""
        objects = set(re.findall(r"\S+\.o\b", link))
        for archive in re.findall(r"\bruntime/liboriel\w*\.a", link):
            objects |= {item for item in self.deps if item.startswith(f"runtime/CMakeFiles/{Path(archive).stem[3:]}.dir/")}
        found = set().union(*(self.deps.get(item, set()) for item in objects))
        self.assertGreater(len(found), 50)
        archives = [word for word in link.split() if word.startswith("/") and word.endswith(".a")]
        if "-flto" not in link:  # else it would take as long as the build
            with tempfile.TemporaryDirectory() as folder:
                traced = re.sub(r" -o \S+ ", f" -Wl,--trace -o {folder}/linked ", link, count=1)
                self.assertNotEqual(traced, link)
                done = subprocess.run(traced, shell=True, cwd=self.build, capture_output=True, text=True, check=True)
            archives += re.findall(r"^\(?(/\S+?\.[ao])\b", done.stdout, re.M)
            self.assertGreater(len(archives), 3)
        inside = (f"{SOURCE}/", f"{self.build}/", "/tmp/")
        return {path for path in found | set(map(os.path.normpath, archives)) if not path.startswith(inside)}

    def owners(self, files):
        """Debian packages. The system may have moved /lib to /usr/lib since they were made."""
        wanted = {name: path for path in files for name in (path, path[4:], os.path.realpath(path))}
        owned = {}
        for listed in Path("/var/lib/dpkg/info").glob("*.list"):
            for name in wanted.keys() & set(listed.read_text(encoding="utf-8").splitlines()):
                owned[wanted[name]] = listed.stem.split(":")[0]
        self.assertEqual([], sorted(files - owned.keys()), "files of no package")
        return set(owned.values())

    def parts_of(self, target):
        script = PRODUCTS[target]
        if script is not None:
            return re.findall(r'"(\w+)"', re.search(r"^PARTS = \((.*?)\)", text_of(script), re.M).group(1))
        titles = re.findall(r"^={80}\n(.+?) \(", (self.build / "THIRD_PARTY_NOTICES.txt").read_text(encoding="utf-8"), re.M)
        rows = dict(re.findall(r'^set\(oriel_notice_(\w+) "([^|]+)\|', NOTICES.read_text(encoding="utf-8"), re.M))
        return [part for part, title in rows.items() if title in titles]

    def test_everything_that_was_taken_has_a_notice(self):
        package_of = dict(re.findall(r'^set\(oriel_notice_(\w+) ".*\|([^|"]+)"\)', NOTICES.read_text(encoding="utf-8"), re.M))
        rules = self.ninja("-t", "targets", "all")
        tried = []
        for target in PRODUCTS:
            if not re.search(rf"^{target}: phony$", rules, re.M):
                continue
            link = self.ninja("-t", "commands", target).splitlines()[-1]
            inputs = re.findall(r"\S+\.o\b", link)
            if not inputs or not all((self.build / item).is_file() for item in inputs):
                continue  # it is built on request
            with self.subTest(target):
                covered = [*WITHOUT, *(package_of[part] for part in self.parts_of(target))]
                taken = self.owners(self.read_by(link))
                self.assertEqual([], [name for name in sorted(taken)
                                      if not any(fnmatch.fnmatch(name, pattern) for pattern in covered)])
                tried.append(target)
        self.assertIn("oriel_python", tried)


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
    sys.exit(unittest.main(argv=sys.argv[:1], verbosity=2))
