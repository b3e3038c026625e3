"""Finds the links of the repository's pages, with only the standard library. The site and the test of links share it.

Not a Markdown parser: it knows what these pages use (headings with #, fenced and indented code, code spans,
[text](target) and ![text](target)), by the rules of GitHub for anchors.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(<?([^()\s<>]+(?:\([^()\s]*\))?)>?(?:\s+\"[^\"]*\")?\)")
_SPAN = re.compile(r"(`+)(?!`)(.*?)(?<!`)\1(?!`)")


def pages():
    """README.md, the pages next to it, the pages of docs/ and notes/, and those of the desktop program and the tests."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "notes").glob("*.md")),
            ROOT / "contrib/desktop/README.md", ROOT / "tests/README.md"]


def lines_of_text(text):
    """(number, line) of all lines that are not in a block of code."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        opening = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            if opening and opening.group(1).startswith(fence) and line.strip() == opening.group(1):
                fence = None
        elif opening:
            fence = opening.group(1)
        else:
            yield number, line


def plain(heading):
    """A heading's text without its marks."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[`*]", "", heading)


def slug(heading):
    """GitHub's anchor of a heading: lower case, punctuation left out, a hyphen for each blank."""
    kept = re.sub(r"[^\w\- ]", "", plain(heading).strip().lower())
    return kept.replace(" ", "-")


class Slugs:
    """Anchors of one page: the second of a name gets -1, the third -2."""

    def __init__(self):
        self.seen = {}

    def next(self, heading):
        name = slug(heading)
        count = self.seen.get(name, 0)
        self.seen[name] = count + 1
        return f"{name}-{count}" if count else name


def anchors(text):
    slugs = Slugs()
    found = set()
    for _, line in lines_of_text(text):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*\s*$", line)
        if heading:
            found.add(slugs.next(heading.group(1)))
    return found


def links(text):
    """(line number, target) of every link and picture."""
    for number, line in lines_of_text(text):
        if line.startswith("    ") and not re.match(r"\s*[-*\d]", line):
            continue  # indented code
        for target in _LINK.findall(_SPAN.sub("", line.replace("](`", "]("))):
            yield number, target
        # A link's text may be code: the span was taken away, the target was not.


def is_external(target):
    return re.match(r"[a-z][a-z0-9+.-]*:", target) is not None
