"""The plots of docs/memory.md equal the output of lab/research/budget_plots.py: test_budget_plots.py ORIEL"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORIEL = sys.argv[1]


class Plots(unittest.TestCase):
    def test_each_of_the_page_is_drawn_again(self):
        shapes = re.findall(r"\(budget-(.*?)\.svg\)", (ROOT / "docs/memory.md").read_text(encoding="utf-8"))
        self.assertEqual(3, len(shapes))
        with tempfile.TemporaryDirectory() as folder:
            script = ROOT / "lab/research/budget_plots.py"
            subprocess.run([sys.executable, script, ORIEL, *shapes, "--out", folder], check=True)
            for shape in shapes:
                now = (pathlib.Path(folder) / f"budget-{shape}.svg").read_text(encoding="utf-8")
                kept = (ROOT / f"docs/budget-{shape}.svg").read_text(encoding="utf-8")
                words = [node.firstChild.data for node in xml.dom.minidom.parseString(kept).getElementsByTagName("text")]
                self.assertRegex(words[0], rf"^{shape}: [\d,]+ tokens in [\d,]+ MiB, [\d,]+ in [\d,]+ MiB")
                self.assertEqual([], [word for word in words if re.search(r"\d{4}", word)], "no separators")
                self.assertLess(len(kept), 60000)
                # Plans may differ by a few bytes between versions, but the visible plot must not.
                colours = [re.findall(r'stroke="(#\w+)"', text) for text in (kept, now)]
                self.assertLess(abs(len(colours[0]) - len(colours[1])), 6, "run lab/research/budget_plots.py")
                self.assertEqual(set(colours[0]), set(colours[1]), "run lab/research/budget_plots.py")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
