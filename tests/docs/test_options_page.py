"""The generated pages of docs/reference/ are what scripts/options_page.py writes: test_options_page.py ORIEL..."""
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import options_page

ORIEL = sys.argv[1:]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = options_page.table(ORIEL)

    def test_the_pages_are_what_the_program_says(self):
        self.maxDiff = 2000
        for name, text in options_page.pages(ORIEL).items():
            self.assertEqual(text, (options_page.FOLDER / name).read_text(encoding="utf-8"),
                             "run python3 scripts/options_page.py build/release/apps/oriel")

    def test_commands_have_all_options_of_their_help(self):
        text = options_page.pages(ORIEL)["commands.md"]
        named = set(re.findall(r"--[a-z][a-z0-9-]*", text))
        for command in options_page.commands(ORIEL):
            flags = re.findall(r"^  (?:-\w, )?(--[a-z][a-z0-9-]*)", options_page.help_of(ORIEL, command), re.M)
            self.assertGreater(len(flags), 2, command)
            self.assertEqual(set(), set(flags) - named - {"--help"}, command)

    def test_every_row_is_on_the_page(self):
        self.assertGreater(len(self.rows), 50)
        page = options_page.page(self.rows)
        self.assertEqual(len(self.rows), len(re.findall(r"^\| `", page, re.M)))

    def test_completions_and_manual_have_the_flags(self):
        # Options of oriel_tools are accepted, but not shown.
        flags = {row["flag"] for row in self.rows if row["flag"] and row["layer"] != "laboratory"}
        self.assertGreater(len(flags), 40)
        for command in (["completions", "bash"], ["completions", "zsh"], ["completions", "fish"]):
            done = subprocess.run([*ORIEL, *command], capture_output=True, text=True, check=True)
            words = set(re.findall(r"[a-z][a-z0-9-]*", done.stdout))
            self.assertEqual(set(), flags - words, command)
        pages = "".join(subprocess.run([*ORIEL, "manual", name], capture_output=True, text=True, check=True).stdout
                        for name in ("chat", "run", "plan", "serve")).replace("\\-", "-")
        self.assertEqual(set(), flags - set(re.findall(r"--([a-z][a-z0-9-]*)", pages)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
