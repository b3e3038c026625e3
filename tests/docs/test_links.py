"""Every link of the pages and of the site has a target, including anchors, and nothing in the site asks another host:
test_links.py [CLASS...]
"""

import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "site"))
from markdown_links import anchors, is_external, links, pages, slug

# Questions of newcomers, and the place of each answer.
QUESTIONS = {
    "what is it": "README.md#oriel",
    "how do I link it": "docs/linking.md#in-the-source-tree",
    "the meaning of a window": "docs/memory.md#the-window",
    "where is the forward pass": "docs/design.md#the-forward-pass",
    "how do I add an op": "docs/extending.md#an-op",
    "what happens when memory is too small": "docs/api.md#oriel_error_memory_budget-5",
    "how do I stream in Python": "docs/python.md#stream-a-reply",
    "what runs on a GPU": "docs/devices.md#tested-and-compiled-devices",
    "how do I report a bug": "CONTRIBUTING.md#reporting-a-bug",
    "what changed in 0.2": "CHANGELOG.md#020",
}


def wrong(page, target):
    """Why a link leads nowhere, or None."""
    name, _, anchor = target.partition("#")
    path = (page.parent / urllib.parse.unquote(name)).resolve() if name else page
    if ROOT not in path.parents and path != ROOT:
        return "it leads out of the repository"
    if not path.exists():
        return "there is no such file"
    if anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
        return "there is no such heading"
    return None


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        bad, count = [], 0
        for page in pages():
            for number, target in links(page.read_text(encoding="utf-8")):
                if is_external(target):
                    continue
                count += 1
                reason = wrong(page, target)
                if reason:
                    bad.append(f"{page.relative_to(ROOT)}:{number}: {target}: {reason}")
        self.assertEqual([], bad)
        self.assertGreater(count, 80)

    def test_links_that_lead_nowhere_are_found(self):
        page = ROOT / "README.md"
        self.assertIsNotNone(wrong(page, "docs/nowhere.md"))
        self.assertIsNotNone(wrong(page, "docs/design.md#nowhere"))
        self.assertIsNotNone(wrong(page, "../elsewhere"))
        found = [target for _, target in links("[`a`](b.md) ![c](d.svg)\n\n```\n[e](f)\n```\n`[g](h)` [i](j.md#k)\n")]
        self.assertEqual(["b.md", "d.svg", "j.md#k"], found)

    def test_anchors_are_those_of_github(self):
        self.assertEqual("what-it-costs-keys--values", slug("What it costs: keys & values"))
        self.assertEqual("oriel_plan-and-more", slug("`oriel_plan` and *more*"))
        self.assertEqual({"a", "a-1", "b"}, anchors("# A\n## A\n```\n# no heading\n```\n### b ##\n"))

    def test_questions_of_newcomers_have_answers_one_link_away(self):
        readme = ROOT / "README.md"
        near = {target.partition("#")[0] for _, target in links(readme.read_text(encoding="utf-8"))} | {"README.md"}
        for question, place in QUESTIONS.items():
            self.assertIsNone(wrong(readme, place), question)
            self.assertIn(place.partition("#")[0], near, question)

    def test_every_page_is_linked_from_the_readme_or_a_page_that_is(self):
        seen, waiting = set(), [ROOT / "README.md"]
        while waiting:
            page = waiting.pop()
            if page in seen or page.suffix != ".md" or not page.is_file():
                continue
            seen.add(page)
            for _, target in links(page.read_text(encoding="utf-8")):
                if not is_external(target) and target.partition("#")[0]:
                    waiting.append((page.parent / target.partition("#")[0]).resolve())
        self.assertEqual([], [str(page.relative_to(ROOT)) for page in pages() if page not in seen])


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "a":
            self.links.append(values["href"])
        elif "src" in values or tag == "link":
            self.loaded.append(values.get("src") or values["href"])


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            import markdown_it  # noqa: F401
        except ImportError:
            raise unittest.SkipTest("markdown-it for Python is not installed (package python3-markdown-it)") from None
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name).resolve() / "site"
        done = subprocess.run([sys.executable, ROOT / "site/build.py", cls.out], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        cls.pages = {path: Page(path.read_text(encoding="utf-8")) for path in cls.out.rglob("*.html")
                     if path.name != "device-report.html"}

    def test_every_page_is_there(self):
        for page in (ROOT / "docs").glob("*.md"):
            self.assertIn(self.out / "docs" / f"{page.stem}.html", self.pages)
        self.assertIn(self.out / "index.html", self.pages)

    def test_links_and_anchors_resolve(self):
        bad = []
        for path, page in self.pages.items():
            for link in page.links + page.loaded:
                if re.match(r"[a-z]+:", link):
                    continue
                name, _, anchor = link.partition("#")
                target = (path.parent / urllib.parse.unquote(name)).resolve() if name else path
                if not target.is_file() or (anchor and target in self.pages and anchor not in self.pages[target].ids):
                    bad.append(f"{path.relative_to(self.out)}: {link}")
        self.assertEqual([], bad)

    def test_nothing_is_loaded_from_elsewhere(self):
        for path, page in self.pages.items():
            for name in page.loaded:
                self.assertFalse(name.startswith(("http", "//")), f"{path}: {name}")
        for name in ("style.css", "page.js", "search.js"):
            self.assertNotRegex((self.out / name).read_text(encoding="utf-8"), r"https?://|@import|url\(")


    def index(self):
        text = (self.out / "search-index.js").read_text(encoding="utf-8")
        return json.loads(text.removeprefix("globalThis.searchIndex = ").rstrip(";\n"))

    def test_the_index_is_small_and_leads_to_sections(self):
        self.assertLess((self.out / "search-index.js").stat().st_size, 400_000)
        for address, *_ in self.index():
            name, _, anchor = address.partition("#")
            page = self.pages[self.out / name]
            self.assertTrue(not anchor or anchor in page.ids, address)
        named = {address.partition("#")[0] for address, *_ in self.index()}
        for page in (ROOT / "docs").glob("*.md"):
            self.assertIn(f"docs/{page.stem}.html", named)

    def test_a_search_finds_the_section_that_a_reader_means(self):
        if not shutil.which("node"):
            self.skipTest("node is not installed")
        code = ("const {findSections} = require(process.argv[1] + '/search.js'); require(process.argv[1] + '/search-index.js');"
                "console.log(JSON.stringify(process.argv.slice(2).map(q => findSections(searchIndex, q, 5))))")
        queries = ["logit bias", "fork", "Ctrl+Tab", "no such word anywhere qqq", "", "desktop keys"]
        done = subprocess.run(["node", "-e", code, self.out, *queries], capture_output=True, text=True, check=True)
        found = [[one["address"] for one in one_query] for one_query in json.loads(done.stdout)]
        self.assertIn("docs/reference/options.html", " ".join(found[0]))
        self.assertIn("docs/sessions.html", " ".join(found[1]))
        self.assertIn("contrib/desktop/README.html", found[2][0])
        self.assertEqual([[], []], found[3:5])
        self.assertIn("contrib/desktop/README.html", found[5][0])

    def test_wide_tables_move_by_themselves(self):
        """On a phone: within a frame that the keyboard reaches, with the first column in place."""
        for path, page in self.pages.items():
            text = path.read_text(encoding="utf-8")
            self.assertEqual(text.count("<table>"), text.count('<div class="table" tabindex="0"><table>'), path)
        self.assertRegex((self.out / "style.css").read_text(encoding="utf-8"), r"tr > :first-child \{ position: sticky")


if __name__ == "__main__":
    unittest.main(verbosity=2)
