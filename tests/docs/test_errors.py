"""docs/api.md has the lines that calls really fail with: test_errors.py CAUSE_ERRORS MODEL [EMULATOR...]"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM, MODEL, EMULATOR = sys.argv[1], sys.argv[2], sys.argv[3:]
ELSEWHERE = {7, 8, 9}  # what devices there are, and what becomes of them, is not this test's


def expression(entry):
    """A line of the page: numbers may be others, and "..." is any text."""
    text = re.escape(re.sub(r"\s+", " ", entry)).replace(r"\.\.\.", ".*")
    text = re.sub(r"\d+(?:\\\.\d+)?", r"[\\d.]+", text)
    return re.sub(r"keys\\ in\\ .*?values\\ in\\ \S+?\\ ", r"keys\\ in\\ .*values\\ in\\ \\S+\\ ", text)


def documented():
    """{status: [a line of the page]}"""
    lines, status = {}, None
    for line in (ROOT / "docs/api.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = re.match(r"## ORIEL_ERROR_[A-Z_]+ \((\d+)\)", line)
            status = int(heading.group(1)) if heading else None
        elif status and re.match(r"    \S", line):
            lines.setdefault(status, []).append(line.strip())
        elif status and re.match(r"      +\S", line) and lines.get(status):
            lines[status][-1] += " " + line.strip()
    return lines


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.out = subprocess.run([*EMULATOR, PROGRAM, MODEL, folder], capture_output=True, text=True,
                                     check=True).stdout
            for path in (folder, str(pathlib.Path(MODEL).parent)):
                cls.out = cls.out.replace(path + "/", "")

    def test_architectures_are_those_of_the_pages(self):
        said = re.search(r"^4: .*use a model of one of these: (.*) and (\d+) more$", self.out, re.M)
        named, more = said.group(1).split(", "), int(said.group(2))
        table = (ROOT / "docs/models.md").read_text(encoding="utf-8")
        known = re.findall(r"^\| `(\S+)` \|", table, re.M)
        self.assertEqual([], sorted(set(named) - set(known)))
        self.assertEqual(len(known), len(named) + more)
        self.assertIn(f"{len(known)} architectures", (ROOT / "README.md").read_text(encoding="utf-8"))

    def test_lines_are_those_of_the_page(self):
        page, met = documented(), set()
        for status, line in re.findall(r"^(\d+): (.*)$", self.out, re.M):
            status = int(status)
            if status == 0 or line == "-" or status in ELSEWHERE:
                continue
            fitting = [entry for entry in page.get(status, []) if re.fullmatch(expression(entry), line)]
            self.assertTrue(fitting, f"docs/api.md does not have this line of status {status}: {line}")
            met.update(fitting)
        stale = [entry for status, entries in page.items() if status not in ELSEWHERE for entry in entries
                 if entry not in met]
        self.assertEqual([], stale, "lines of the page that nothing said")

    def test_every_status_has_a_section_and_a_row(self):
        header = (ROOT / "runtime/include/oriel/oriel.h").read_text(encoding="utf-8")
        text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
        found = re.findall(r"^  (ORIEL_(?:OK|ERROR_[A-Z_]+)) = (\d+)", header, re.M)
        self.assertEqual(17, len(found))
        for name, number in found:
            self.assertIn(f"| `{name}` | {number} |", text)
            if number != "0":
                self.assertIn(f"\n## {name} ({number})\n", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
