"""Options: docs/cli.md and the pages next to it name all options of `--help`, and only existing ones. The generated pages of
docs/reference/ are what scripts/options_page.py writes: test_cli_page.py ORIEL...
"""

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
OPTION = r"(?<![\w-])--[a-z][a-z0-9-]*"
# Options of other programs that these pages name.
OF_OTHERS = {"--install", "--preset"}


def help_of(*command):
    return subprocess.run([*ORIEL, *command, "--help"], capture_output=True, text=True, check=True).stdout


def commands():
    part = help_of().split("\nCommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z]+)", part, re.M)


def options(text):
    """Flags at the beginning of a help line; "--think, --no-think" has two."""
    heads = re.findall(r"^  (?:-\w, )?(--\S.*?)(?:  |$)", text, re.M)
    return {name for head in heads for name in re.findall(OPTION, head)}


def pages():
    """docs/cli.md, the generated page of all options, and the page of the server."""
    return {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("cli.md", "reference/commands.md", "serve.md")}


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.helps = {command: help_of(command) for command in commands()}
        cls.text = "\n".join(pages().values())

    def test_there_are_commands_and_each_has_its_place(self):
        self.assertGreater(len(self.helps), 12)
        for command in self.helps:
            named = re.search(rf"^##? .*\b{command}\b", self.text, re.M | re.I)
            self.assertTrue(named, f"{command} is named in no heading")

    def test_every_option_is_on_the_page(self):
        for command, text in self.helps.items():
            found = options(text)
            self.assertGreater(len(found), 2, command)
            named = set(re.findall(OPTION, self.text))
            self.assertEqual(set(), found - named - {"--help"}, f"options of {command} that no page names")

    def test_every_option_that_the_page_names_is_there(self):
        known = set().union(*map(options, self.helps.values())) | {"--help", "--version"}
        # Commands that the list of commands leaves out.
        for command in set(re.findall(r"\boriel ([a-z]+)\b", self.text)) - set(self.helps) - {"help", "version"}:
            done = subprocess.run([*ORIEL, command, "--help"], capture_output=True, text=True)
            known |= options(done.stdout) if done.returncode == 0 else set()
        self.assertEqual(set(), set(re.findall(OPTION, self.text)) - known - OF_OTHERS)

    def test_what_a_command_is_shown_with_it_takes(self):
        blocks = re.findall(r"^```\n(oriel .*?)^```$", self.text, re.M | re.S)
        for block in [line for lines in blocks for line in re.split(r"^(?=oriel )", lines, flags=re.M) if line]:
            command = block.split()[1]
            if command in self.helps and "[" in block:
                shown = set(re.findall(OPTION, block))
                self.assertEqual(set(), shown - options(self.helps[command]), f"oriel {command}")

    def test_helps_fit_80_columns(self):
        for command, text in {"": help_of(), **self.helps}.items():
            long = [line for line in text.splitlines() if len(line) > 80]
            self.assertEqual([], long, command)




class Generated(unittest.TestCase):
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
