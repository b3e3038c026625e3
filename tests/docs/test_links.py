"""Every link of the pages has a target, including anchors."""
import sys
import unittest
import urllib.parse

sys.dont_write_bytecode = True
import pathlib

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
