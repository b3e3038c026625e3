"""The site holds every page, its links and anchors resolve, and nothing in it asks another host."""
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
    try:
        import markdown_it  # noqa: F401
    except ImportError:
        sys.exit("SKIPPED: markdown-it for Python is not installed (package python3-markdown-it)")
    unittest.main(verbosity=2)
