"""The steps of docs/python.md: a wheel, a clean environment, the examples, the page's own lines."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import zipfile
from pathlib import Path

from support import ROOT, TINY

MISSING = [name for name in ("pip", "setuptools", "wheel", "venv")
           if subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True).returncode]
MYPY = shutil.which("mypy", path="/usr/bin") or shutil.which("mypy")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("ORIEL_", "PYTHON"))}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def python_blocks(page):
    """The indented blocks that are Python."""
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", page, flags=re.M):
        code = "\n".join(line[4:] for line in block.splitlines())
        if re.search(r"^ *(import oriel|plan = |with oriel|try:)", code, flags=re.M):
            ast.parse(code)
            yield code


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)} (python3-pip, python3-setuptools, python3-wheel, python3-venv)")
@unittest.skipUnless(os.environ.get("ORIEL_LIBRARY"), "no shared library was built (ORIEL_LIBRARY)")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        top = Path(cls.folder.name)
        # A copy, because building leaves files.
        shutil.copytree(ROOT / "python", top / "tree" / "python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        for name in ("LICENSE", "cmake", "runtime", "models"):
            (top / "tree" / name).symlink_to(ROOT / name)
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir")
        run(*pip, "wheel", "--no-index", "--no-build-isolation", "--no-deps", "-w", top / "dist", top / "tree" / "python",
            env=dict(CLEAN, ORIEL_LIBRARY=os.environ["ORIEL_LIBRARY"]))
        (cls.wheel,) = (top / "dist").iterdir()
        run(sys.executable, "-m", "venv", "--without-pip", top / "env")
        cls.python = top / "env" / "bin" / "python"
        run(*pip, "--python", cls.python, "install", "--no-index", cls.wheel, env=CLEAN)
        (cls.package,) = (top / "env").glob("lib/python3*/site-packages/oriel")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_name_promises_this_system_and_no_more(self):
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if shutil.which("objdump"):
            symbols = run("objdump", "-T", os.environ["ORIEL_LIBRARY"])
            newest = max(tuple(map(int, version)) for version in re.findall(r"\(GLIBC_(\d+)\.(\d+)", symbols))
            platform = platform.replace("linux", "manylinux_{}_{}".format(*newest))
            needed = set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", os.environ["ORIEL_LIBRARY"])))
            self.assertLessEqual({re.sub(r"[-.].*", "", name) for name in needed}, {"libc", "libm", "libdl", "libpthread", "ld"})
        else:
            platform = platform.replace("linux", r"manylinux_\d+_\d+")
        self.assertRegex(self.wheel.name, rf"^oriel-\d+\.\d+\.\d+-py3-none-{platform}\.whl$")
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
            notices = wheel.read("oriel/THIRD_PARTY_NOTICES.txt").decode()
            tag = wheel.read(next(name for name in names if name.endswith("/WHEEL"))).decode()
        self.assertIn("Root-Is-Purelib: false", tag)
        for name in ("py.typed", "LICENSE", "models/oriel-tiny-q8_0.gguf", "models/oriel-tiny-q8_0.gguf.calibration.json"):
            self.assertIn(f"oriel/{name}", names)
        for part in ("Unicode data files (", "Highway (", "Vulkan headers ("):
            self.assertIn(f"\n{part}", notices)
        self.assertTrue(any(re.fullmatch(r"oriel/(lib)?oriel\.(so|dylib|dll)", name) for name in names))

    def test_examples(self):
        examples = ROOT / "python" / "examples"
        said = run(self.python, examples / "chat.py", input="Hello!\n\n", env=CLEAN, cwd=self.folder.name)
        self.assertRegex(said, r"> \S+")
        run(self.python, examples / "window_against_memory.py", TINY, "plot.svg", env=CLEAN, cwd=self.folder.name)
        self.assertIn("<circle", (Path(self.folder.name) / "plot.svg").read_text(encoding="utf-8"))
        wrong = subprocess.run([self.python, examples / "chat.py", "nowhere.gguf"], capture_output=True, text=True, env=CLEAN)
        self.assertEqual((wrong.returncode, wrong.stderr.count("\n")), (1, 1))

    def test_the_pages_lines(self):
        blocks = list(python_blocks((ROOT / "docs" / "python.md").read_text(encoding="utf-8")))
        self.assertGreater(len(blocks), 4)
        blocks += list(python_blocks((ROOT / "python" / "README.md").read_text(encoding="utf-8")))
        # Pictures need a model that the repository has not: these lines are parsed only.
        script = "\n".join(["import oriel", *(block for block in blocks if "mmproj=" not in block)])
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "model.gguf").symlink_to(TINY)
            said = run(self.python, "-c", script, cwd=folder, env=CLEAN)
        self.assertIn("fits in 10.3 MiB", said)

    def test_types_name_every_option(self):
        """The .pyi files of the wheel against the list of the library."""
        stubs = {name: ast.parse((self.package / f"_{name}.pyi").read_text(encoding="utf-8")) for name in ("model", "session", "plan")}
        rows = json.loads(run(self.python, "-c", "import json, oriel; print(json.dumps(oriel.options()))", env=CLEAN))
        for name, function, scope in (("model", "__init__", "load"), ("plan", "plan", "load"), ("model", "session", "session"),
                                      ("session", "reply", "reply"), ("session", "generate", "reply")):
            (node,) = [item for item in ast.walk(stubs[name]) if isinstance(item, ast.FunctionDef) and item.name == function]
            keywords = {item.arg for item in node.args.kwonlyargs}
            for row in rows:
                self.assertEqual(row["name"] in keywords, row["scope"] == scope, (function, row["name"]))
                if row["scope"] == scope:
                    self.assertIn(f"{row['name']}: {row['help']}", ast.get_docstring(node))

    @unittest.skipUnless(MYPY, "mypy is not installed")
    def test_mypy_finds_wrong_options(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "app.py").write_text(APP, encoding="utf-8")
            done = subprocess.run([MYPY, "--strict", "--cache-dir", "cache", "--python-executable", self.python, "app.py"],
                                  cwd=folder, capture_output=True, text=True)
            own = subprocess.run([MYPY, "--strict", "--cache-dir", "cache", self.package], cwd=folder, capture_output=True, text=True)
        self.assertEqual(own.returncode, 0, own.stdout)
        wrong = {int(number) for number in re.findall(r"^app\.py:(\d+): error:", done.stdout, flags=re.M)}
        lines = {number for number, line in enumerate(APP.splitlines(), 1) if line.endswith("# wrong")}
        self.assertEqual(wrong, lines, done.stdout)
        self.assertIn('did you mean "temperature"', done.stdout)

    def test_a_source_distribution_has_the_sources(self):
        top = Path(self.folder.name)
        tree = top / "tree"
        for name in ("CMakeLists.txt", "cmake", "platform", "shaders"):
            if not (tree / name).exists():
                (tree / name).symlink_to(ROOT / name)
        run(sys.executable, "setup.py", "-q", "sdist", "-d", top / "sdist", cwd=tree / "python", env=CLEAN)
        (archive,) = (top / "sdist").iterdir()
        shutil.unpack_archive(archive, top / "unpacked", **({"filter": "data"} if sys.version_info >= (3, 12) else {}))
        (unpacked,) = (top / "unpacked").iterdir()
        for name in ("CMakeLists.txt", "setup.py", "stubs.py", "oriel/_abi.py", "source/CMakeLists.txt", "source/cmake/exports.cmake",
                     "source/runtime/CMakeLists.txt", "source/runtime/include/oriel/oriel.h"):
            self.assertTrue((unpacked / name).is_file(), name)


APP = """import oriel

with oriel.Model("model.gguf", memory="300MB", kv="k8v4", device="vulkan:1", window="max", speculate=4) as model:
    with model.session(thinking=False, tools=[{"name": "a"}]) as chat:
        print(chat.reply("Hello!", temperature=0, schema={"type": "object"}).text, model.plan.total_bytes)
        chat.reply("Hello!", temperatur=0)  # wrong
        chat.reply("Hello!", tool_choice="auto")  # wrong
oriel.Model("model.gguf", memry="300MB")  # wrong
oriel.Model("model.gguf", kv="k2v2")  # wrong
oriel.plan("model.gguf", memory=[1])  # wrong
"""


class Types(unittest.TestCase):
    def test_hints_are_complete(self):
        if MYPY is None:
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(
                [MYPY, "--strict", "--cache-dir", cache, "oriel", "stubs.py", "examples/window_against_memory.py"],
                cwd=ROOT / "python", capture_output=True, text=True,
            )
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
