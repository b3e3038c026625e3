"""Quick starts are followed literally with what this build installs; samples in C of all pages compile; the programs that
search texts answer:

    python3 test_quick_start.py CMAKE BUILD [UNITTEST_ARGS...]

`FirstReply` prints the seconds from an empty folder to a reply, for each language. ORIEL_LIBRARY: the library of the Python
package. web/test/vite.test.mjs has the time with vite.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "package"))
from package import MODEL, SOURCE, on_the_cpu, run, scratch

CMAKE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2])
ANSWER = r"[A-Za-z]{2,}"  # it is sampled
PAGES = ["quick-start", "memory", "api"]
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
AROUND = """#include <oriel/advanced.h>
#include <stdio.h>
#include <string.h>
static void complain(oriel_log_level level, const char* line, void* user) { (void)level; (void)line; (void)user; }
static int print(const oriel_token_event* event, void* user) {
  fwrite(event->text, 1, event->text_bytes, user);
  return 0;
}
"""
OPENED = """int main(int argc, char** argv) {
  const char* path = argv[argc - 1];
  const char* text = "Hello!";
  oriel_options options = {.struct_size = sizeof(options), .memory_bytes = 64u << 20, .log = complain};
  oriel_model* model = NULL;
  oriel_session* session = NULL;
  if (oriel_model_load(path, &options, &model) != ORIEL_OK) return 1;
  if (oriel_session_create(model, NULL, &session) != ORIEL_OK) return 1;
  (void)text;
"""


def blocks(page, language):
    text = (SOURCE / f"docs/{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def program(block):
    """A complete program with a sample: the sample itself, its functions, or main with its lines."""
    if "int main(" in block:
        return block
    if block.startswith("static"):
        return AROUND.split("static")[0] + block + "int main(void) { return 0; }\n"
    return AROUND + OPENED + "  {\n" + block + "  }\n  return 0;\n}\n"


class Installed(unittest.TestCase):
    """An app's folder, and what this build installs, in a home of its own."""

    @classmethod
    def setUpClass(cls):
        for tool in ("gcc", "g++", "pkg-config"):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"{tool} is not installed")
        cls.scratch = scratch()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.home = pathlib.Path(cls.scratch.name)
        run(CMAKE, "--install", BUILD, "--prefix", cls.home / ".local")
        cls.folder = cls.home / "hello"
        cls.folder.mkdir()
        cls.text = (SOURCE / "docs/quick-start.md").read_text(encoding="utf-8")
        cls.prefix = re.search(r"^    (export PREFIX=.*)$", cls.text, re.M).group(1)

    def commands(self, heading):
        """Indented lines that are commands, of one part of the page."""
        part = self.text.split(f"\n## {heading}")[1].split("\n## ")[0]
        part = re.sub(r"^```.*?^```$", "", part, flags=re.M | re.S)
        return re.findall(r"^    ((?:gcc|g\+\+|export|\./|\"\$PREFIX).*)$", part, re.M)

    def environment(self):
        left_out = ("PKG_CONFIG_PATH", "ORIEL_MODEL", "ORIEL_LIBRARY", "PYTHONPATH", "NODE_PATH")
        return {**{name: value for name, value in on_the_cpu().items() if name not in left_out}, "HOME": str(self.home)}

    def shell(self, lines, folder=None):
        return run("sh", "-ec", "\n".join([self.prefix, *lines]), cwd=folder or self.folder, env=self.environment())

    def of_c(self):
        """The lines of the page for C and for C++, after hello.c and hello.cpp were written."""
        c, cpp = self.commands("2. Hello in C"), self.commands("3. Hello in C++")
        self.assertEqual((3, 2), (len(c), len(cpp)))
        (self.folder / "hello.c").write_text(blocks("quick-start", "c")[0])
        (self.folder / "hello.cpp").write_text(blocks("quick-start", "cpp")[0])
        libdir = next((self.home / ".local").rglob("oriel.pc")).parent
        c[0] = c[0].replace("$PREFIX/lib/pkgconfig", str(libdir))  # lib64 on some systems
        return c, [c[0], *cpp]

    def wheel(self):
        """The Python package, as docs/python.md makes it."""
        missing = [name for name in ("pip", "setuptools", "wheel", "venv") if importlib.util.find_spec(name) is None]
        library = os.environ.get("ORIEL_LIBRARY", "")
        if missing or not pathlib.Path(library).is_file():
            self.skipTest(f"{', '.join(missing) or 'the library of the Python package (ORIEL_LIBRARY)'} is not there")
        found = list((self.home / "dist").glob("oriel-*.whl"))
        if not found:
            tree = self.home / "tree"
            shutil.copytree(SOURCE / "python", tree / "python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
            for name in ("LICENSE", "cmake", "runtime", "models"):
                (tree / name).symlink_to(SOURCE / name)
            run(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-build-isolation", "--no-deps", "-w", self.home / "dist",
                tree / "python", env={**self.environment(), "ORIEL_LIBRARY": library})
            found = list((self.home / "dist").glob("oriel-*.whl"))
        return found[0]

    def tarball(self):
        """The npm package with this build's addon, in the place that docs/web.md names."""
        addon = BUILD / "web/native/oriel.node"
        if not addon.is_file() or not shutil.which("npm"):
            self.skipTest("the Node addon is not built: target oriel_node" if shutil.which("npm") else "npm is not installed")
        to = self.home / "clone/build/web"
        if not to.is_dir():
            to.mkdir(parents=True)
            (self.home / "clone/models").symlink_to(SOURCE / "models")
            package = self.home / "package"
            shutil.copytree(SOURCE / "web", package, ignore=shutil.ignore_patterns("node_modules", "dist", "prebuilds", "test", "page"))
            system = run("node", "-p", "process.platform + '-' + process.arch").strip()
            (package / "prebuilds" / system).mkdir(parents=True)
            shutil.copy(addon, package / "prebuilds" / system)
            run("npm", "pack", "--silent", "--pack-destination", to, cwd=package, env=self.environment())
        return next(to.glob("oriel-*.tgz"))


class QuickStart(Installed):
    def test_the_program_answers(self):
        lines = self.commands("1. Build and install")
        self.assertEqual(2, len(lines))
        self.assertRegex(self.shell(lines[1:]), ANSWER)

    def test_hello_in_c_and_in_cpp(self):
        for lines in self.of_c():
            self.assertRegex(self.shell(lines), ANSWER)

    def test_the_page_has_the_programs_of_the_examples(self):
        for language, name in (("c", "hello.c"), ("cpp", "hello.cpp")):
            source = (SOURCE / "apps/examples" / name).read_text(encoding="utf-8")
            self.assertEqual(source.split("\n", 1)[1], blocks("quick-start", language)[0])

    def test_blocks_of_code_fit_80_columns(self):
        for page in PAGES:
            text = (SOURCE / f"docs/{page}.md").read_text(encoding="utf-8")
            fenced = re.findall(r"^```\w*\n(.*?)^```$", text, re.M | re.S)
            indented = re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
            long = [line for block in [*fenced, *indented] for line in block.splitlines() if len(line) > 80]
            self.assertEqual([], long, page)

    def test_samples_of_the_page_run(self):
        samples = [block for block in blocks("quick-start", "c") if "int main(" not in block]
        self.assertGreater(len(samples), 4)
        source = AROUND + OPENED + "".join(f"  {{\n{block}  }}\n" for block in samples)
        source += "  oriel_session_destroy(session);\n  oriel_model_free(model);\n  return 0;\n}\n"
        (self.folder / "samples.c").write_text(source)
        prefix = self.home / ".local"
        library = next(prefix.rglob("liboriel.*"))
        run("gcc", *STRICT, "samples.c", f"-I{prefix}/include", library, "-lstdc++", "-lm", "-ldl", "-pthread", "-o",
            "samples", cwd=self.folder)
        said = run("./samples", MODEL, cwd=self.folder, env=on_the_cpu())
        for words in ("tokens/s", "remembers", "cannot go to token 1000000", "as if nothing had been"):
            self.assertIn(words, said)

    def test_samples_of_other_pages_compile(self):
        count = 0
        for page in PAGES:
            for block in blocks(page, "c"):
                (self.folder / "sample.c").write_text(program(block))
                run("gcc", *STRICT, "-fsyntax-only", f"-I{self.home}/.local/include", "sample.c", cwd=self.folder)
                count += 1
        self.assertGreater(count, 9)
        (self.folder / "sample.cpp").write_text(
            "#include <oriel/oriel.hpp>\n#include <cmath>\nvoid sample(oriel::Session &session, int unwanted) {\n"
            "auto show = [](std::string_view) {};\n" + blocks("quick-start", "cpp")[1] + "}\n")
        run("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{self.home}/.local/include", "sample.cpp",
            cwd=self.folder)


class FirstReply(Installed):
    """Two minutes are far above the time of any machine."""

    def timed(self, name, lines, folder=None):
        began = time.monotonic()
        said = self.shell(lines, folder)
        took = time.monotonic() - began
        print(f"first reply: {name} {took:.1f} s", flush=True)
        self.assertRegex(said, ANSWER)
        self.assertLess(took, 120)

    def test_c_and_cpp(self):
        for name, lines in zip(("C", "C++"), self.of_c()):
            self.timed(name, lines)

    def test_python(self):
        wheel = self.wheel()
        page = (SOURCE / "docs/python.md").read_text(encoding="utf-8")
        steps = re.findall(r"^    ((?:python3 -m venv|env/bin/pip install dist).*)$", page, re.M)
        self.assertEqual(2, len(steps))
        code = re.search(r"^## Stream a reply\n\n((?:    .*\n|\n(?=    ))+)", page, re.M).group(1)
        app = self.home / "app"
        (app / "dist").mkdir(parents=True)
        shutil.copy(wheel, app / "dist")
        (app / "model.gguf").symlink_to(MODEL)
        (app / "hello.py").write_text(re.sub("^    ", "", code, flags=re.M), encoding="utf-8")
        steps = [f"{sys.executable}{step[7:]}" if step.startswith("python3") else f"{step} --no-index" for step in steps]
        self.timed("Python", [*steps, "env/bin/python hello.py"], app)

    def test_node(self):
        self.tarball()
        page = (SOURCE / "docs/web.md").read_text(encoding="utf-8")
        block = re.search(r"^### Hello in Node\n[^#]*?\n((?:    [^\n]*\n)+)", page, re.M).group(1)
        lines = re.sub("^    ", "", block, flags=re.M).replace("npm install", "npm install --offline --no-audit --no-fund")
        self.assertIn("node hello.mjs", lines)
        self.timed("Node", [lines], self.home / "clone")


class Search(Installed):
    """apps/examples/search.*, python/examples/search.py and web/examples/search.mjs, with one index."""

    QUESTION = "Where does Zoe live?"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        texts = cls.home / "texts"
        (texts / "more").mkdir(parents=True)
        (texts / "a.txt").write_text("Zoe lives in Rome.\nShe likes it.\n\n\n\nThe cat is old.\n", encoding="utf-8")
        (texts / "more/b.txt").write_text("Öl ist teuer.\n\n" + "It rains today. " * 20 + "\n", encoding="utf-8")

    def ask(self, *program, places=None, new=0, index="index"):
        done = subprocess.run([str(word) for word in (*program, MODEL, MODEL, index, *(places or ["texts"]))], cwd=self.home,
                              env=self.environment(), input=self.QUESTION + "\n", capture_output=True, text=True, timeout=300)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        first, *said = done.stdout.splitlines()
        self.assertRegex(first, rf"^\d paragraphs, {new} new\. ")
        cited = [line for line in said if line.startswith("  [")]
        self.assertGreater(len("".join(said)), 0)
        for line in cited:
            self.assertRegex(line, r"^  \[[123]\] (texts/)?(a|more/b|new)\.txt, paragraph [12]$")

    def compiled(self, name):
        app = self.home / name.replace(".", "_")
        libdir = next((self.home / ".local").rglob("oriel.pc")).parent
        compiler = "g++ -std=c++17" if name.endswith("cpp") else "gcc"
        source = SOURCE / "apps/examples" / name
        self.shell([f"export PKG_CONFIG_PATH='{libdir}'", f"{compiler} '{source}' $(pkg-config --cflags --libs oriel) -o '{app}'"])
        return app

    def test_all_four_use_one_index(self):
        texts = [f"texts/{name}.txt" for name in ("a", "more/b")]
        c = self.compiled("search.c")
        index = self.home / "index"
        index.unlink(missing_ok=True)
        self.ask(c, places=texts, new=4)
        width = struct.unpack("<QQ", index.read_bytes()[:16])[1]
        self.assertEqual(16 + 4 * (8 + 4 * width), index.stat().st_size)
        programs = {"search.cpp": [self.compiled("search.cpp")]}
        missing = []
        for name, make in (("search.py", self.python), ("search.mjs", self.node)):
            try:
                programs[name] = make()
            except unittest.SkipTest as reason:
                missing.append(f"{name}: {reason}")
        made = index.read_bytes()
        for name, program in programs.items():
            with self.subTest(name):
                index.write_bytes(made)
                self.ask(*program)
                self.assertEqual(made, index.read_bytes())
                index.unlink()
                self.ask(*program, new=4)
                again = index.read_bytes()
                self.assertEqual((made[:24], len(made)), (again[:24], len(again)))
                self.ask(c, places=texts)  # the vectors of the others
                index.write_bytes(made[:-5])  # it was cut off
                self.ask(*program, new=1)
                index.write_bytes(b"\1" + made[1:])  # another encoder's
                self.ask(*program, new=4)
                self.assertEqual(len(made), index.stat().st_size)
        with self.subTest("search.c"):
            (self.home / "new.txt").write_text("A new one.\n", encoding="utf-8")
            self.ask(c, places=[*texts, "new.txt"], new=1)
            self.ask(c, places=[*texts, "new.txt"])
            index.write_bytes(index.read_bytes()[:-5])
            self.ask(c, places=texts, new=4)
        if missing:
            self.skipTest("; ".join(missing))

    def python(self):
        wheel = self.wheel()
        self.shell([f"{sys.executable} -m venv env", f"env/bin/pip install --no-index '{wheel}'"], self.home)
        return [self.home / "env/bin/python", SOURCE / "python/examples/search.py"]

    def node(self):
        tarball = self.tarball()
        self.shell(["mkdir -p js && cd js && npm init -y", f"npm install --offline --no-audit --no-fund '{tarball}'"], self.home)
        shutil.copy(SOURCE / "web/examples/search.mjs", self.home / "js")
        return ["node", self.home / "js/search.mjs"]

    def test_a_wrong_call_is_one_line(self):
        for name in ("search.c", "search.cpp"):
            program = self.compiled(name)
            done = subprocess.run([program, "missing.gguf", "missing.gguf", "i", "texts/a.txt" if name == "search.c" else "texts"],
                                  cwd=self.home, env=self.environment(), capture_output=True, text=True, check=False)
            self.assertEqual(1, done.returncode)
            for line in set(done.stderr.splitlines()):
                self.assertRegex(line, r"^search: cannot open missing\.gguf: ")

    def test_they_are_short(self):
        for name in ("apps/examples/search.c", "apps/examples/search.cpp", "python/examples/search.py", "web/examples/search.mjs"):
            self.assertLessEqual(len((SOURCE / name).read_text(encoding="utf-8").splitlines()), 200, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
