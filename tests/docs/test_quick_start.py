"""docs/quick-start.md is followed literally with what this build installs; samples in C of all pages compile:

    python3 test_quick_start.py CMAKE BUILD [UNITTEST_ARGS...]
"""
import pathlib
import re
import shutil
import sys
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


class QuickStart(unittest.TestCase):
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

    def shell(self, lines):
        env = {**on_the_cpu(), "HOME": str(self.home)}
        for name in list(env):
            if name in ("PKG_CONFIG_PATH", "ORIEL_MODEL"):
                del env[name]
        return run("sh", "-ec", "\n".join([self.prefix, *lines]), cwd=self.folder, env=env)

    def test_the_program_answers(self):
        lines = self.commands("1. Build and install")
        self.assertEqual(2, len(lines))
        self.assertRegex(self.shell(lines[1:]), ANSWER)

    def test_hello_in_c_and_in_cpp(self):
        c, cpp = self.commands("2. Hello in C"), self.commands("3. Hello in C++")
        self.assertEqual((3, 2), (len(c), len(cpp)))
        (self.folder / "hello.c").write_text(blocks("quick-start", "c")[0])
        (self.folder / "hello.cpp").write_text(blocks("quick-start", "cpp")[0])
        libdir = next((self.home / ".local").rglob("oriel.pc")).parent
        c[0] = c[0].replace("$PREFIX/lib/pkgconfig", str(libdir))  # lib64 on some systems
        self.assertRegex(self.shell(c), ANSWER)
        self.assertRegex(self.shell([c[0], *cpp]), ANSWER)

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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
