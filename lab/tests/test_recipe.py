#!/usr/bin/env python3
"""Tests of the recipe of oriel-tiny; need only the standard library."""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

RECIPE = pathlib.Path(__file__).resolve().parents[1] / "oriel-tiny"
sys.path.insert(0, str(RECIPE))
sys.dont_write_bytecode = True

import banks  # noqa: E402
import checks  # noqa: E402
import evaluate  # noqa: E402
from dialogue import Dialogue, encode_dialogue, held_out  # noqa: E402
from facts import told  # noqa: E402
from facts_user import FACTS  # noqa: E402
from make_corpus import make_dialogue, write_split  # noqa: E402
from phrases import Rng, say  # noqa: E402
from skills_memory import sentence, value  # noqa: E402
from skills_numbers import arithmetic, check_sum, late_problem, spoken  # noqa: E402
from stories import Story  # noqa: E402
from dialogue import MANNERS, Style  # noqa: E402
from tellings import LATE_CLAUSES  # noqa: E402
from tokenizer import Tokenizer, learn_from  # noqa: E402

CORPUS_SHA256 = "c36c350890b82f5f8d7db52f97f62c157df454a79daafb6a90bcc06ad13c8145"
STAGE_SHA256 = {
    ("memory", 2): "c9c97367b5d901f8814ec997abe59334e3bc09d0acdf69551b7dd1f0dd45d704",
    ("last", 3): "8509bf73604e7f97fafd51491720f4898161fb2de795e3cda7fc04592596cc81",
    ("tables", 4): "5f634ea24b17045c8f54ce9538af4c652f455fcc0285c3e310a2f4789d321867",
    ("search", 5): "ad43391683b2d991e46b521202eb55d029f0fb0cb28669a942f2c076220b50f2",
}
MERGES_SHA256 = "6497eaa2f54428f3141404513f3beb375e58211f1f1913d420d58300babef26e"


def dialogues(split, count):
    return [make_dialogue(1, split, i) for i in range(count)]


class Corpus(unittest.TestCase):
    def test_same_seed_gives_the_same_bytes_everywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            digests = [
                write_split(folder + "/x.jsonl", 1, "train", 600, processes)[2]
                for processes in (1, 2)
            ]
        self.assertEqual(digests, [CORPUS_SHA256] * 2)

    def test_so_do_the_mixes_of_later_stages(self):
        with tempfile.TemporaryDirectory() as folder:
            for (mix, seed), digest in STAGE_SHA256.items():
                got = write_split(folder + "/x.jsonl", seed, "train", 200, 2, mix)[2]
                self.assertEqual(got, digest, mix)

    def test_neither_hash_seed_nor_locale_changes_it(self):
        program = (
            "import sys, json; sys.path.insert(0, sys.argv[1]); from make_corpus import make_dialogue\n"
            "print(json.dumps([make_dialogue(1, 'train', i) for i in range(40)]))"
        )
        outs = {
            subprocess.run(
                [sys.executable, "-B", "-c", program, str(RECIPE)],
                capture_output=True,
                check=True,
                env={"PYTHONHASHSEED": seed, "LC_ALL": locale},
            ).stdout
            for seed, locale in (("1", "C"), ("2", "C.UTF-8"))
        }
        self.assertEqual(len(outs), 1)

    def test_pairs_of_numbers_are_in_one_split_only(self):
        for val in (False, True):
            d = Dialogue(Rng(f"numbers-{val}"), val, plain=True)
            for _ in range(300):
                arithmetic(d, ("+",))
            sums = [
                t["assistant"].split(" is ")[0].split(" plus ")
                for t in d.turns
                if " plus " in t["assistant"]
            ]
            self.assertGreater(len(sums), 200)
            for a, b in sums:
                a, b = sorted((int(a), int(b)))
                self.assertEqual(held_out(f"{a}+{b}"), val, (a, b))

    def test_coined_values_are_in_one_split_only(self):
        for val in (False, True):
            for i in range(200):
                d = Dialogue(Rng(f"facts-{val}-{i}"), val, plain=True)
                d.only_new = True
                self.assertEqual(held_out(f"code|{value(d, 'code')}"), val)

    def test_every_gold_answer_is_in_the_written_answer(self):
        checked = 0
        later = [make_dialogue(seed, "val", i, mix) for mix, seed in STAGE_SHA256 for i in range(60)]
        for row in dialogues("val", 400) + later:
            for turn in row["turns"]:
                if turn["gold"] is not None:
                    checked += 1
                    self.assertTrue(evaluate.right_turn(turn, turn["assistant"]), turn)
        self.assertGreater(checked, 1000)

    def test_lists_never_repeat_an_item(self):
        found = 0
        for row in dialogues("train", 1500):
            for turn in row["turns"]:
                if (
                    turn["skill"].startswith("list:")
                    and not row["system"]
                    and not any(t["skill"] == "style" for t in row["turns"])
                ):
                    found += 1
                    self.assertTrue(evaluate.list_is_right(turn["skill"], turn["assistant"]), turn)
        self.assertGreater(found, 50)

    def test_hero_and_friend_never_share_a_name(self):
        for i in range(500):
            s = Story(Rng(f"story-{i}"))
            self.assertNotEqual(s.hero[0].lower(), s.friend[0].lower())
            self.assertIn(s.hero, s.text)
            self.assertNotIn("{", s.text)

    def test_sums_are_right(self):
        d = Dialogue(Rng("sums"), False, plain=True)
        for _ in range(600):
            arithmetic(d)
        for turn in d.turns:
            words = turn["assistant"].rstrip(".").split()
            if len(words) == 5 and words[1] in ("plus", "minus", "times"):
                a, b, r = int(words[0]), int(words[2]), int(words[4])
                self.assertEqual({"plus": a + b, "minus": a - b, "times": a * b}[words[1]], r)

    def test_checked_sums_agree_with_themselves(self):
        for first in (False, True):
            d = Dialogue(Rng("checks"), False, plain=True)
            d.counts_first = first
            for _ in range(200):
                check_sum(d)
            for turn in d.turns:
                sum_ = re.search(r"([0-9]+) (plus|minus|times) ([0-9]+) is ([0-9]+)", turn["assistant"])
                a, b, r = (int(sum_[i]) for i in (1, 3, 4))
                asked = int(re.findall(r"[0-9]+", turn["user"])[2])
                self.assertEqual({"plus": a + b, "minus": a - b, "times": a * b}[sum_[2]], r)
                self.assertEqual("Yes" in turn["assistant"], asked == r, turn)

    def test_number_words(self):
        self.assertEqual(
            [spoken(n) for n in (0, 13, 40, 42, 100, 107)],
            ["zero", "thirteen", "forty", "forty-two", "one hundred", "one hundred and seven"],
        )

    def test_wordings_of_facts_hold_their_value(self):
        for slot, f in FACTS.items():
            for text in f.say + f.more + f.answer + f.check:
                self.assertRegex(text, r"\{(v|V|a_v|A_v)\}", slot)


class Styles(unittest.TestCase):
    def test_answers_follow_the_instruction(self):
        for i in range(300):
            rng = Rng(f"style-{i}")
            s = Style(rng, rng.choice(("end", "start", "title", "manner", "sign")))
            for plain in (False, True):
                text = s.apply("That is right.", plain)
                where = {"end": text.endswith, "start": text.startswith, "sign": text.endswith}.get(
                    s.kind
                )
                if where:
                    self.assertTrue(where(s.value), text)
                elif s.kind == "title":
                    self.assertIn(s.value.lower(), text.lower())
                else:
                    self.assertTrue(text.startswith(MANNERS[s.value][1]), text)
            if s.kind != "manner":
                self.assertIn(s.value, s.ask)


class Wordings(unittest.TestCase):
    def test_alternatives_nest(self):
        got = {say(Rng(i), "(a|b (c|d))[ e]") for i in range(200)}
        self.assertEqual(got, {"A", "A e", "B c", "B c e", "B d", "B d e"})

    def test_unbalanced_brackets_are_refused(self):
        with self.assertRaises(ValueError):
            say(Rng(1), "(a|b))")

    def test_every_way_to_tell_a_fact_holds_its_value_and_no_sign_of_the_grammar(self):
        rng = Rng("tellings")
        for slot, fact in FACTS.items():
            for pattern in list(fact.say) + list(fact.more) + LATE_CLAUSES.get(slot, []):
                for _ in range(5):
                    text = told(rng, pattern, "Vvv")
                    self.assertIn("Vvv", text, slot)
                    self.assertFalse(set("{}[]()|") & set(text), text)


class Tokens(unittest.TestCase):
    def test_learning_is_reproducible_byte_for_byte(self):
        rows = dialogues("train", 150)
        tok = learn_from(rows, 600)
        self.assertEqual(hashlib.sha256(json.dumps(tok.merges).encode()).hexdigest(), MERGES_SHA256)

    def test_digits_and_spelled_letters_are_single_tokens(self):
        tok = Tokenizer.load(str(RECIPE / "tokenizer.json"))
        self.assertEqual([tok.decode([i]) for i in tok.encode("4071")], list("4071"))
        self.assertEqual([tok.decode([i]) for i in tok.encode("l-a-m-p")], list("l-a-m-p"))

    def test_all_text_comes_back(self):
        tok = Tokenizer.load(str(RECIPE / "tokenizer.json"))
        for text in (
            "| name | age |\n|---|---|\n",
            "What's 3+4?",
            "Zürich, \u20ac5 \U0001f600",
            "  two  spaces ",
        ):
            self.assertEqual(tok.decode(tok.encode(text)), text)

    def test_mask_marks_what_the_assistant_wrote(self):
        tok = Tokenizer.load(str(RECIPE / "tokenizer.json"))
        ids, mask = encode_dialogue(
            tok, {"system": "Be kind.", "turns": [{"user": "Hi", "assistant": "Hello!"}]}, 1024
        )
        self.assertEqual(tok.decode([i for i, m in zip(ids, mask) if m == 1]), "Hello!<|im_end|>")
        self.assertEqual(len(ids), len(mask))

    def test_an_untaught_answer_is_read_but_not_learned(self):
        tok = Tokenizer.load(str(RECIPE / "tokenizer.json"))
        turn = {"user": "I am Ada.", "assistant": "Okay.", "untaught": True}
        ids, mask = encode_dialogue(tok, {"system": None, "turns": [turn]}, 1024)
        self.assertNotIn(1, mask)
        self.assertIn("Okay.", tok.decode(ids))


class Checks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tok = Tokenizer.load(str(RECIPE / "tokenizer.json"))
        cls.checks, cls.talks = checks.all_checks(cls.tok, 10)

    def test_distances_are_kept(self):
        for c in self.checks:
            if c.skill.startswith("recall at"):
                goal = int(c.skill.split()[-1])
                size = sum(len(self.tok.encode(u + a)) + 9 for u, a in c.turns[1:])
                self.assertTrue(0.8 * goal <= size <= 1.2 * goal + 10, (c.skill, size))

    def test_wordings_are_not_those_of_the_corpus(self):
        rng = Rng("wordings")
        for slot, (tells, asks) in checks.FACTS.items():
            own = [q for q in asks if q in FACTS[slot].ask]
            self.assertEqual(own, [], slot)
            told_in_corpus = set()
            for late in (False, True):
                dialogue = Dialogue(rng, False, plain=True)
                dialogue.late = late
                told_in_corpus |= {sentence(dialogue, slot, "Vvv") for _ in range(3000)}
            self.assertGreater(len(told_in_corpus), 500, slot)
            own = [t for t in tells if t.format(v="Vvv", a_v="a Vvv") in told_in_corpus]
            self.assertEqual(own, [], slot)

    def test_word_problems_are_not_those_of_the_corpus(self):
        dialogue = Dialogue(Rng("problems"), False, plain=True)
        for op, asked in checks.SUMS.items():
            asked = {q.format(a=7, b=3) for q in asked if "nuts" in q}
            own = {late_problem(dialogue, op, 7, 3)[0] for _ in range(20000)}
            self.assertGreater(len({t for t in own if " nuts" in t}), 20)
            self.assertEqual(asked & own, set())

    def test_answers_cannot_be_guessed(self):
        for c in self.checks:
            if c.skill.startswith("recall at"):
                self.assertIn(c.gold[0], c.turns[0][0])
                self.assertNotIn(c.gold[0].lower(), c.question.lower())

    def test_judging(self):
        self.assertTrue(evaluate.list_is_right("list:fruits:2", "Apple and pear."))
        self.assertFalse(evaluate.list_is_right("list:fruits:2", "Apple and apple."))
        self.assertFalse(evaluate.list_is_right("list:fruits:2", "Apple, pear and plum."))
        self.assertTrue(checks.number_in("It is 45.", 45))
        self.assertFalse(checks.number_in("It is 145.", 45))

    def test_the_card_has_a_place_for_every_part(self):
        with tempfile.TemporaryDirectory() as folder:
            card = pathlib.Path(folder) / "card.md"
            card.write_text(
                (RECIPE.parents[1] / "models" / "oriel-tiny" / "MODEL_CARD.md").read_text(encoding="utf-8"), encoding="utf-8"
            )
            evaluate.fill(card, {"checks": "c1", "validation": "v1", "transcripts": "t1"})
            for part in ("c1", "v1", "t1"):
                self.assertIn(part, card.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
