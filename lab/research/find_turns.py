#!/usr/bin/env python3
"""Compares scores that find the turn a question is about, among turns that left the window.

    python3 lab/research/find_turns.py models/oriel-tiny/oriel-tiny-q8_0.gguf

Held-out conversations of 400 turns tell facts of three kinds: in the wordings of
checks.py (which training never had), in the generator's wordings, and about other people.  After the conversation each
fact is asked for once, in another wording.  Every score ranks the turn with the fact among n turns; the others are
random.  Prints how often that turn is first, and among the first three.  notes/eviction.md has the results.
"""
import argparse
import json
import os
import re
import sys
from collections import Counter, defaultdict

import numpy as np

from eviction import Net, Reader

RECIPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oriel-tiny")
sys.path.insert(0, RECIPE)
import banks
import checks
from dialogue import Dialogue, render
from facts import PERSON, ask_wording
from facts_user import FACTS
from make_corpus import SHORT_ONES, one_of
from phrases import Rng
from skills_memory import ALIKE, ask, fact_of, tell
from skills_talk import story
from tokenizer import Tokenizer

TURNS = 400
SIZES = (100, 200, 400)
FRAME = "<|im_start|>user\nassistant<|im_end|>"


def slots_of(rng):
    """The facts of one conversation: {slot: kind}; no two that could be mixed up."""
    out = {slot: "own wordings" for slot in checks.FACTS}
    free = [s for s in FACTS if s not in out and not any(s in g and set(g) & set(out) for g in ALIKE)]
    rng.shuffle(free)
    for s in free:
        if len(out) < 70 and not any(s in g and set(g) & set(out) for g in ALIKE if "pet cat" not in g):
            out[s] = "generator's"
    while len(out) < 100:
        out[(banks.first_name(rng), rng.choice(sorted(PERSON)))] = "other people"
    return out


def asked_for(rng, slot, kind):
    if kind == "own wordings":
        return rng.choice(checks.FACTS[slot][1])
    return ask_wording(rng, fact_of(slot))


def conversation(rng, asking):
    """-> [(user, assistant)], [(turn, kind, question, value)].  `asking`: other facts are asked for in
    between, so that stored turns hold questions, too."""
    kinds = slots_of(rng)
    order = list(kinds)
    rng.shuffle(order)
    at = sorted(rng.sample(list(range(TURNS)), len(order)))
    turns, asked = [], []
    others = Dialogue(rng, True, plain=True)  # has facts of its own, which are asked for in between
    for i in range(TURNS):
        if i in at:
            slot = order[at.index(i)]
            if kinds[slot] == "own wordings":
                v, text = checks.told(rng, slot)
                turns.append((text, "I will remember that."))
            else:
                d = Dialogue(rng, True, plain=True)
                tell(d, slot, 1)
                v = d.facts[slot]
                turns.append((d.turns[-1]["user"], d.turns[-1]["assistant"]))
            asked.append((i, kinds[slot], asked_for(rng, slot, kinds[slot]), str(v)))
            continue
        if asking and rng.random() < 0.3:
            slot = (banks.first_name(rng), rng.choice(sorted(PERSON)))
            tell(others, slot, 1)
            ask(others, slot, "what")
            turns.append((others.turns[-1]["user"], others.turns[-1]["assistant"]))
            continue
        d = Dialogue(rng, True, plain=True)
        if rng.random() < 0.1:
            story(d, 0)
        else:
            one_of(d, [s for s in SHORT_ONES if s[0].__name__ not in ("said", "identity", "greet")])
        turns.append((d.turns[0]["user"], d.turns[0]["assistant"]))
    return turns, asked


# -- scores -------------------------------------------------------------------


class Terms:
    """Turns as counted terms."""

    def __init__(self, documents):
        self.counts = [Counter(d) for d in documents]
        self.size = np.array([len(d) for d in documents], float)

    def bm25(self, question, pick, power=1, length_share=0.75, k1=1.2):
        """Scores of the picked turns.  power 2: each term counts by its idf once more."""
        size = self.size[pick] / self.size[pick].mean()
        out = np.zeros(len(pick))
        for term in set(question):
            f = np.array([self.counts[i][term] for i in pick], float)
            out += self.idf(term, f)**power * f * (k1 + 1) / (f + k1 * (1 - length_share + length_share * size))
        return out

    @staticmethod
    def idf(term, f):
        df = (f > 0).sum()
        return np.log(1 + (len(f) - df + 0.5) / (df + 0.5))


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-9)


def z(x):
    return (x - x.mean()) / max(x.std(), 1e-9)


class Stored:
    """The turns of one conversation, with what scores need of them."""

    def __init__(self, net, tok, turns, window, distance):
        self.net, self.tok = net, tok
        self.frame = set(tok.encode(FRAME))
        ids, spans = [], []
        for user, assistant in turns:
            new = tok.encode(render(None, [{"user": user, "assistant": assistant}]))
            spans.append((len(ids), len(ids) + len(new)))
            ids += new
        self.ids = np.array(ids)
        self.reader = Reader(net, window, len(ids) + 512)
        hidden = self.reader.read(self.ids)
        self.at = np.array([i for i, t in enumerate(ids) if t not in self.frame])
        self.first = np.searchsorted(self.at, [a for a, _ in spans])
        self.tokens = np.diff(np.append(self.first, len(self.at)))
        self.terms = Terms([[i for i in ids[a:b] if i not in self.frame] for a, b in spans])
        self.words = Terms([self.word_list(u + " " + a) for u, a in turns])
        self.raw = self.reader.k[:, self.at]
        k = self.raw.reshape(net.layers, len(self.at), -1)
        self.mean = k.mean(1, keepdims=True)
        self.k = unit(k - self.mean)
        pooled = np.add.reduceat(hidden[self.at], self.first) / self.tokens[:, None]
        self.hidden_mean = pooled.mean(0)
        self.hidden = unit(pooled - self.hidden_mean)
        self.turn = tuple(a[:, None, None] for a in net.angles(np.array([distance])))

    @staticmethod
    def word_list(text):
        return re.findall(r"[a-z]+|\d+", text.lower())

    def look(self, question):
        """Keeps what scores need of a question that depends on no choice of candidates."""
        before = len(self.tok.encode("<|im_start|>user\n"))
        ids = self.tok.encode("<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n")
        n, net = self.reader.n, self.net
        hidden = self.reader.read(np.array(ids), keep=False)
        use = np.array([i for i in range(before, len(ids)) if ids[i] not in self.frame])
        self.question, self.asked_words = [ids[i] for i in use], self.word_list(question)
        q = unit(self.reader.k[:, n + use].reshape(net.layers, len(use), -1) - self.mean)
        self.likest = np.array([np.maximum.reduceat(q[i] @ self.k[i].T, self.first, 1) for i in range(net.layers)])
        self.near = self.hidden @ unit(hidden[use].mean(0) - self.hidden_mean)
        # The attention to each turn of every head and token of the question and of the frame after it.
        self.given = []
        for i in range(net.layers):
            q = net.turned(self.reader.queries[i][before:], self.turn)
            s = q.transpose(1, 2, 0, 3) @ self.raw[i].transpose(1, 2, 0)[:, None] / np.sqrt(net.head_dim)
            e = np.exp(s - s.max(-1, keepdims=True))
            self.given.append(np.add.reduceat(e, self.first, -1).reshape(-1, len(self.first)))

    def attention(self, pick, layers):
        """-> weights of the picked turns, if nothing else could be seen, for each of a turn's tokens"""
        e = np.stack([self.given[i] for i in layers])[..., pick]
        return (e / np.maximum(e.sum(-1, keepdims=True), 1e-30)).sum((0, 1)) / self.tokens[pick]


def scores(stored, pick):
    """-> {name: scores of the picked turns}"""
    ids, layers = stored.question, range(stored.net.layers)
    plain, twice = (stored.terms.bm25(ids, pick, power) for power in (1, 2))
    out = {"BM25": plain, "BM25, words": stored.words.bm25(stored.asked_words, pick),
           "BM25 x idf": twice}
    idf = np.array([Terms.idf(t, np.array([stored.terms.counts[i][t] for i in pick])) for t in ids])
    for i in layers:
        out[f"keys {i}"] = stored.likest[i][:, pick].sum(0)
        out[f"keys {i} x idf"] = (idf[:, None] * stored.likest[i][:, pick]).sum(0)
        out[f"BM25 + keys {i}"] = z(plain) + z(out[f"keys {i}"])
        out[f"BM25 x idf + keys {i} x idf"] = z(twice) + z(out[f"keys {i} x idf"])
    out["hidden mean"] = stored.near[pick]
    for name, some in (("all layers", layers), ("last third", layers[len(layers) * 2 // 3:])):
        out["attention, " + name] = stored.attention(pick, some)
        out["attention, not divided, " + name] = stored.attention(pick, some) * stored.tokens[pick]
        out["BM25 + attention, " + name] = z(plain) + z(out["attention, " + name])
        out["BM25 x idf + attention, " + name] = z(twice) + z(out["attention, " + name])
        for first in (8, 16, 32):
            best = np.argsort(-twice, kind="stable")[:first]
            for kind, weight in (("attention", 0), ("both", 1)):
                s = np.full(len(pick), -np.inf)
                s[best] = z(stored.attention(pick[best], some)) + weight * z(twice[best])
                out[f"{first} by BM25 x idf, then {kind}, {name}"] = s
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("--conversations", type=int, default=3)
    ap.add_argument("--window", type=int, default=252)
    ap.add_argument("--distance", type=int, default=300, help="at which attention sees every stored token")
    ap.add_argument("--asking", action="store_true", help="a third of the other turns ask for other facts")
    ap.add_argument("--json")
    a = ap.parse_args()
    net, tok = Net(a.model), Tokenizer.load(os.path.join(RECIPE, "tokenizer.json"))
    hits = defaultdict(list)  # (score, kind, size) -> ranks
    for c in range(a.conversations):
        rng = Rng(f"find-{c}")
        turns, asked = conversation(rng, a.asking)
        stored = Stored(net, tok, turns, a.window, a.distance)
        print(f"conversation {c}: {len(stored.ids)} tokens, {len(asked)} facts", file=sys.stderr, flush=True)
        for turn, kind, question, _ in asked:
            stored.look(question)
            others = [i for i in range(TURNS) if i != turn]
            for size in SIZES:
                pick = np.array([turn] + rng.sample(others, size - 1))
                for name, s in scores(stored, pick).items():
                    rank = (s[1:] >= s[0]).sum() if np.isfinite(s[0]) else size
                    hits[name, kind, size].append(rank)
                    hits[name, "all", size].append(rank)
    kinds = ("own wordings", "generator's", "other people", "all")
    names = list(dict.fromkeys(n for n, _, _ in hits))
    print("| score | turns | " + " | ".join(f"{k} ({len(hits[names[0], k, SIZES[0]])})" for k in kinds) + " |")
    print("|---" * 6 + "|")
    for n in names:
        for size in SIZES:
            cell = lambda k: " / ".join(f"{np.mean(np.array(hits[n, k, size]) < top):.0%}" for top in (1, 3))
            print(f"| {n} | {size} | " + " | ".join(cell(k) for k in kinds) + " |")
    if a.json:
        with open(a.json, "w") as f:
            json.dump([[*key, [int(r) for r in ranks]] for key, ranks in hits.items()], f)


if __name__ == "__main__":
    main()
