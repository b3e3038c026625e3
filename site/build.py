"""The pages of docs/ as a static site: site/build.py OUT_FOLDER

Needs markdown-it for Python (MIT licence; Debian's python3-markdown-it): it reads Markdown as GitHub does. Everything
that a page links to in this repository becomes part of the site: other pages, and source files as text. The result
asks nothing of any other host, and may be opened from a disk.
"""
import html
import json
import os
import pathlib
import re
import shutil
import sys

sys.dont_write_bytecode = True
from markdown_it import MarkdownIt

from markdown_links import ROOT, Slugs, is_external, pages

HERE = pathlib.Path(__file__).resolve().parent
SHORT_CODE = 28
WORD = re.compile(r"\w{2,}")
ASSETS = {".svg", ".png", ".html"}


def plain(text):
    """HTML without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def address(path):
    """The place of a file of the repository in the site."""
    relative = path.relative_to(ROOT)
    if relative == pathlib.Path("README.md"):
        return pathlib.Path("index.html")
    if relative.suffix in ASSETS:
        return relative
    return relative.with_suffix(".html") if relative.suffix == ".md" else relative.with_name(relative.name + ".html")


class Site:
    def __init__(self, out):
        self.out = out
        self.markdown = MarkdownIt("commonmark").enable("table").enable("strikethrough")
        self.navigation = json.loads((HERE / "navigation.json").read_text(encoding="utf-8"))
        self.waiting = [path.resolve() for path in pages()]
        self.done = set()
        self.index = []  # address, page, heading, words: of each section

    def build(self):
        while self.waiting:
            path = self.waiting.pop()
            if path in self.done:
                continue
            self.done.add(path)
            if path.suffix == ".md":
                self.page(path)
            elif path.suffix in ASSETS:
                self.copy(path)
            else:
                self.source(path)
        for name in ("style.css", "page.js", "search.js"):
            shutil.copy(HERE / name, self.out / name)
        index = json.dumps(sorted(self.index), ensure_ascii=False, separators=(",", ":"))
        (self.out / "search-index.js").write_text(f"globalThis.searchIndex = {index};\n", encoding="utf-8")

    def target(self, link, page):
        """A link of a page, as the site has it. Its target becomes part of the site."""
        if is_external(link) or link.startswith("#"):
            return link
        name, mark, anchor = link.partition("#")
        path = (page.parent / name).resolve()
        if path.is_dir():
            path = path / "README.md"
        if not path.is_file() or ROOT not in path.parents:
            return link
        self.waiting.append(path)
        return os.path.relpath(address(path), address(page).parent).replace(os.sep, "/") + mark + anchor

    def page(self, path):
        tokens = self.markdown.parse(path.read_text(encoding="utf-8"))
        slugs, contents = Slugs(), []
        for token, inside in zip(tokens, tokens[1:] + tokens[:1]):
            if token.type == "heading_open":
                anchor = slugs.next(inside.content)
                token.attrSet("id", anchor)
                contents.append((token.tag, anchor, self.markdown.renderInline(inside.content)))
            for child in token.children or []:
                if child.type == "code_inline" and len(child.content) <= SHORT_CODE:
                    child.attrSet("class", "short")  # is not broken
                for attribute in ("href", "src"):
                    if child.attrGet(attribute):
                        child.attrSet(attribute, self.target(child.attrGet(attribute), path))
        body = self.markdown.renderer.render(tokens, self.markdown.options, {})
        body = body.replace("<table>", '<div class="table" tabindex="0"><table>').replace("</table>", "</table></div>")
        title = next((text for tag, _, text in contents if tag == "h1"), path.stem)
        self.write(path, title, body, [entry for entry in contents if entry[0] == "h2"])
        if path.name != "CHANGELOG.md":  # names everything
            self.add_to_index(path, plain(title), tokens)

    def add_to_index(self, path, title, tokens):
        """The sections of a page: each word of one once."""
        anchor, heading, words = "", title, {}

        def end_section():
            if words:
                self.index.append((address(path).as_posix() + anchor, title, heading, " ".join(words)))
            words.clear()

        for token, before in zip(tokens, [None, *tokens]):
            if token.type == "inline" and before.type == "heading_open":
                end_section()
                anchor, heading = f"#{before.attrGet('id')}", plain(self.markdown.renderInline(token.content))
            if token.type in ("inline", "fence", "code_block"):
                text = token.content if token.type != "inline" else plain(self.markdown.renderInline(token.content))
                words.update(dict.fromkeys(word for word in WORD.findall(text.lower()) if not word.isdigit()))
        end_section()

    def source(self, path):
        name = path.relative_to(ROOT).as_posix()
        text = html.escape(path.read_text(encoding="utf-8"))
        self.write(path, name, f"<h1><code>{name}</code></h1><pre><code>{text}</code></pre>", [])

    def copy(self, path):
        to = self.out / address(path)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)

    def menu(self, path):
        """Links by task; pages that no task names come last."""
        named = {ROOT / name for group in self.navigation for name in group["pages"]}
        others = [page for page in pages() if page not in named]
        groups = self.navigation + [{"title": "More", "pages": {
            page.relative_to(ROOT).as_posix(): page.stem for page in others}}]
        lines = []
        for group in groups:
            items = []
            for name, text in group["pages"].items():
                page = ROOT / name
                if page.is_file():
                    here = ' aria-current="page"' if page == path else ""
                    items.append(f'<li><a href="{self.target(os.path.relpath(page, path.parent), path)}"{here}>'
                                 f"{html.escape(text)}</a></li>")
            if items:
                lines.append(f"<h2>{html.escape(group['title'])}</h2><ul>{''.join(items)}</ul>")
        return "\n".join(lines)

    def write(self, path, title, body, contents):
        to = self.out / address(path)
        to.parent.mkdir(parents=True, exist_ok=True)
        marks = "".join(f'<li><a href="#{anchor}">{text}</a></li>' for _, anchor, text in contents)
        values = {
            "ROOT": os.path.relpath(".", address(path).parent).replace(os.sep, "/"),
            "TITLE": html.escape(plain(title)),
            "MENU": self.menu(path),
            "CONTENTS": f"<nav class='contents' aria-label='On this page'><h2>On this page</h2><ul>{marks}</ul></nav>"
                        if len(contents) > 2 else "",
            "BODY": body,
        }
        text = (HERE / "page.html").read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)  # BODY comes last: names inside it are not replaced
        to.write_text(text, encoding="utf-8")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: site/build.py OUT_FOLDER")
    out = pathlib.Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    site = Site(out)
    site.build()
    print(f"{len(site.done)} files in {out}")


main()
