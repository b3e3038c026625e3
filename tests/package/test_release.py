"""The files of a release and of the tree, and workflows that call existing scripts only: test_release.py [CLASS...]"""

import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True
from package import SOURCE


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], capture_output=True, check=False).returncode != 0:
            raise unittest.SkipTest("the sources are no git checkout")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        done = subprocess.run([SOURCE / "scripts/release.sh", cls.folder, "source"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        cls.version = re.search(r"project\(oriel VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)

    def test_the_source_tarball_has_the_tracked_files(self):
        tracked = subprocess.run(["git", "-C", SOURCE, "ls-tree", "-r", "--name-only", "-z", "HEAD"], capture_output=True,
                                 text=True, check=True).stdout.split("\0")
        with tarfile.open(self.folder / f"oriel-{self.version}.tar.gz") as tarball:
            names = {member.name for member in tarball if not member.isdir()}
        self.assertEqual({f"oriel-{self.version}/{name}" for name in tracked if name}, names)

    def test_checksums_are_right(self):
        rows = [line.split("  ") for line in (self.folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
        self.assertEqual({path.name for path in self.folder.iterdir()} - {"SHA256SUMS"}, {name for _, name in rows})
        for digest, name in rows:
            self.assertEqual(digest, hashlib.sha256((self.folder / name).read_bytes()).hexdigest())

    def test_the_bill_of_materials_names_all_parts_and_files(self):
        bill = json.loads((self.folder / f"oriel-{self.version}.spdx.json").read_text(encoding="utf-8"))
        self.assertEqual("SPDX-2.3", bill["spdxVersion"])
        notices = re.findall(r"^set\(oriel_notice_(\w+) ", (SOURCE / "cmake/notices.cmake").read_text(encoding="utf-8"), re.M)
        ids = {part["SPDXID"] for part in bill["packages"]}
        self.assertEqual({f"SPDXRef-{name}" for name in ["oriel", *notices]}, ids)
        self.assertEqual([f"./oriel-{self.version}.tar.gz"], [file["fileName"] for file in bill["files"]])
        known = {"SPDXRef-DOCUMENT", *ids, *(file["SPDXID"] for file in bill["files"])}
        for relation in bill["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, known)
        for part in bill["packages"]:
            self.assertRegex(part["licenseDeclared"], r"^[A-Za-z0-9.-]+( (OR|AND|WITH) [A-Za-z0-9.-]+)*$")

    def test_an_unknown_part_is_refused(self):
        with tempfile.TemporaryDirectory() as other:
            done = subprocess.run([SOURCE / "scripts/release.sh", other, "sources"], capture_output=True, text=True, check=False)
        self.assertEqual((2, True), (done.returncode, "there is no part sources" in done.stderr), done)


class Workflows(unittest.TestCase):
    def test_they_call_existing_scripts_only(self):
        commands = []
        for file in sorted((SOURCE / ".github/workflows").glob("*.yml")):
            text = file.read_text(encoding="utf-8")
            commands += re.findall(r"^ +- run: (.*)$", text, re.M)
            self.assertEqual(text.count("run:"), len(re.findall(r"^ +- run: \S", text, re.M)), file)
        self.assertGreater(len(commands), 4)
        for command in commands:
            script = SOURCE / command.split()[0]
            self.assertTrue(script.is_file() and script.stat().st_mode & 0o100, command)
            self.assertTrue(command.startswith("scripts/"), command)


LARGE = 1_000_000  # bytes
TREE = 40 << 20  # bytes of all tracked files

# Files that are larger today, and their limits. Every new version adds its size to every clone, so replace them rarely,
# and never by larger ones (lab/oriel-tiny/README.md).
KNOWN = {
    "models/oriel-tiny/oriel-tiny-q8_0.gguf": 9066240,
    "tests/data/models/gemma3.gguf": 2227616,
    "tests/data/models/llama-f32.gguf": 3553504,
    "tests/data/models/llama-mqa.gguf": 1195360,
    "tests/data/models/qwen3.gguf": 1654144,
}


def tracked():
    """Files known to git, including staged ones."""
    listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], stdout=subprocess.PIPE, check=True).stdout
    return [name.decode() for name in listed.split(b"\0") if name]


def sizes():
    """{name: bytes} of the tracked files that there are."""
    paths = {name: SOURCE / name for name in tracked()}
    return {name: path.stat().st_size for name, path in paths.items() if path.is_file() and not path.is_symlink()}


class TrackedFiles(unittest.TestCase):
    """Every clone carries every version of every file forever, so large files and the whole tree have limits."""
    @classmethod
    def setUpClass(cls):
        try:
            tracked()
        except (OSError, subprocess.CalledProcessError):
            raise unittest.SkipTest("the sources are no git checkout") from None

    def test_no_file_is_larger_than_it_may_be(self):
        self.assertEqual({}, {name: size for name, size in sizes().items() if size > KNOWN.get(name, LARGE)})

    def test_the_whole_tree_is_no_larger_than_it_may_be(self):
        self.assertLessEqual(sum(sizes().values()), TREE)

    def test_the_list_names_files_that_there_are(self):
        self.assertEqual(set(), set(KNOWN) - set(tracked()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
