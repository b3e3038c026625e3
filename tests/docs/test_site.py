"""The site holds every page, its links and anchors resolve, and nothing in it asks another host."""
import html.parser
import pathlib
import re
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
        for name in ("style.css", "page.js"):
            self.assertNotRegex((self.out / name).read_text(encoding="utf-8"), r"https?://|@import|url\(")


if __name__ == "__main__":
    try:
        import markdown_it  # noqa: F401
    except ImportError:
        sys.exit("SKIPPED: markdown-it for Python is not installed (package python3-markdown-it)")
    unittest.main(verbosity=2)
