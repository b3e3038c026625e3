"""Validation loss, accuracy per skill, recall by distance, sample transcripts.

    python3 evaluate.py --model run/model.pt --data data --rows 600 --per-skill 30 --recall 40

All decoding is greedy in fp32.  An answer counts as correct if it contains the
expected string (case ignored).  The history in front of every question is the
written one, not the model's own.  Items are held out, except for the second
recall column, where only the dialogue is new.
"""
import argparse
import json
import math
import os
import random
from collections import defaultdict

import torch

import banks
import facts
import skills_memory
import skills_talk
from dialogue import NAME, Dialogue, render
from make_corpus import small
from model import Config, Model
from tokenizer import Tokenizer
from train import load_split, validate

GROUPS = {
    "arithmetic": ["addition", "subtraction", "times table"],
    "numbers": ["compare", "sequence", "counting", "order", "even/odd", "sort", "max/min"],
    "recall": ["recall", "recall two", "recall yes/no", "recall list", "recall all", "recall unknown", "correction"],
    "tables": [
        "opposite", "sound", "colour", "plural", "capital", "definition", "past tense",
        "baby animal", "home", "legs", "use of", "category"
    ],
    "text tasks": ["repeat", "spell", "letter", "reverse list", "count words", "pick word", "list"],
    "story": ["story", "story next", "story qa"],
    "talk": ["identity", "animal fact", "riddle answer"],
}


def load(path):
    ck = torch.load(path, map_location="cpu")
    model = Model(Config(**ck["config"]))
    model.load_state_dict(ck["model"])
    return model.eval()


class Chat:
    """A conversation with a growing cache; forks are cheap (tensors are shared)."""
    def __init__(self, model, tok, system=None):
        self.model, self.tok = model, tok
        self.cache, self.length, self.last = [[] for _ in model.blocks], 0, None
        if system:
            self.feed(render(system, []))

    def feed(self, text):
        ids = self.tok.encode(text)
        with torch.no_grad():
            h = self.model.hidden(torch.tensor([ids]), self.cache)[:, -1]
            self.last = self.model.logits(h)[0]
        self.length += len(ids)

    def fork(self):
        c = Chat(self.model, self.tok)
        c.cache, c.length, c.last = [list(kv) for kv in self.cache], self.length, self.last
        return c

    def answer(self, limit, temperature=0.0, generator=None):
        """Generates up to <|im_end|> and leaves the cache ready for the next turn."""
        out = []
        while len(out) < limit and self.length < self.model.cfg.context:
            t = int(self.last.argmax()) if not temperature else int(
                torch.multinomial(
                    (self.last.float() / temperature).softmax(-1), 1, generator=generator))
            if t == self.tok.im_end:
                break
            out.append(t)
            with torch.no_grad():
                h = self.model.hidden(torch.tensor([[t]]), self.cache)[:, -1]
                self.last = self.model.logits(h)[0]
            self.length += 1
        return self.tok.decode(out).strip()

    def user(self, text):
        self.feed(render(None, [{"user": text}]))


def correct(turn, text):
    if turn["skill"].startswith("list:"):
        _, kind, n = turn["skill"].split(":")
        items = [
            w.strip(" .").lower() for w in text.replace(" and ", ", ").split(",") if w.strip(" .")
        ]
        last = items[-1].split(",")[0] if items else ""
        bank = [w.lower() for w in banks.CATEGORIES[kind]]
        items = [w for w in items[:-1] + [last] if w in bank]
        return len(set(items)) == int(n)
    if turn["skill"] == "recall unknown":
        return "not told" in text or "do not know" in text
    return turn["gold"].casefold() in text.casefold()


def skills(model, tok, rows, per_skill):
    hits, wrong = defaultdict(list), defaultdict(list)
    for row in rows:
        chat = Chat(model, tok, row["system"])
        for turn in row["turns"]:
            chat.user(turn["user"])
            skill = turn["skill"].split(":")[0]
            asked = turn["gold"] is not None or skill in ("list", "recall unknown")
            if chat.length > model.cfg.context - 60:
                break
            if asked and len(hits[skill]) < per_skill and skill not in ("tell", "bye"):
                got = chat.fork().answer(260 if skill == "story" else 60)
                ok = correct(turn, got)
                hits[skill].append(ok)
                if not ok:
                    wrong[skill].append((turn["user"], got, turn["assistant"]))
            chat.feed(turn["assistant"] + "<|im_end|>\n")
            if chat.length > model.cfg.context - 60:
                break
    return {k: (sum(v), len(v)) for k, v in hits.items()}, wrong


def recall_at(model, tok, distance, count, seed, unseen=True):
    """Accuracy when `distance` tokens lie between the statement and the question.

    unseen: a coined value that never occurs as this kind of fact in the training
    text; otherwise any value that may occur there.
    """
    hits, wrong = 0, []
    for i in range(count):
        rng = random.Random(f"{seed}-{distance}-{i}")
        while True:
            d = Dialogue(rng, unseen)
            d.name, d.title, d.short, d.system, d.only_new = NAME, None, False, None, unseen
            skills_memory.tell(d, rng.choice(facts.CORE if rng.random() < 0.75 else sorted(facts.FACTS)), 1)
            fact = list(d.facts)[0]
            chat = Chat(model, tok)
            turn = d.turns[0]
            start = len(tok.encode(render(None, d.turns)))
            while True:
                if rng.random() < (0.35 if distance > 250 else 0.0):
                    skills_talk.story(d, 0)
                else:
                    small(d)
                size = len(tok.encode(render(None, d.turns))) - start
                if size >= distance * 0.8:
                    break
            n = len(d.turns)
            skills_memory.ask(d, fact, kind="what")
            if size <= distance * 1.1 + 10:
                break
        chat.feed(render(None, d.turns[:n]))
        chat.user(d.turns[n]["user"])
        got = chat.answer(30)
        if correct(d.turns[n], got):
            hits += 1
        else:
            wrong.append((turn["user"], d.turns[n]["user"], got))
    return hits, count, wrong


def conversation_recall(model, tok, count, seed):
    """Name and town after a greeting and a story, all answers by the model: (names, towns, count)."""
    names = towns = 0
    for i in range(count):
        d = Dialogue(random.Random(f"{seed}-{i}"), True)
        d.only_new = True
        name, town = skills_memory.value(d, "name"), skills_memory.value(d, "city")
        chat, got = Chat(model, tok), ""
        for text in (d.c("Hello!", "Hi!", "Good morning!"), f"My name is {name} and I live in {town}.",
                     f"Tell me a story about {banks.an(d.c(banks.ANIMALS))}.", "What is my name?", "Where do I live?"):
            chat.user(text)
            got = chat.answer(260)
            chat.feed("<|im_end|>\n")
            names += text == "What is my name?" and name in got
        towns += town in got
    return names, towns, count


TRANSCRIPTS = [
    (None, [
        "Hello!", "Who are you?", "What can you do?", "Are you private?",
        "What is an attention sink?", "Thank you!", "Bye!",
    ]),
    (None, [
        "Hi, my name is Marlo and I live in Oslo.", "Tell me a story about a hedgehog.",
        "What happened next?", "Who was the main character?", "What did the hero learn?",
        "What is my name?", "Where do I live?",
    ]),
    (None, [
        "The code is 7391. Please remember it.", "My favourite colour is teal.",
        "What is 36 + 47?", "What is 9 times 8?", "Spell lantern.", "What is the code?",
        "Actually, my favourite colour is red.", "What is my favourite colour?",
    ]),
    (None, [
        "What is the capital of Peru?", "What is the opposite of heavy?",
        "What sound does an owl make?", "What is the plural of mouse?",
        "Name four fruits.", "What is a volcano?", "Which month comes after October?",
    ]),
    ("You are Nova, a cheerful robot.", [
        "Who are you?", "Tell me a joke.", "Another one, please.", "I am sad today.",
        "Tell me a short story about a robot and a violin.",
    ]),
    ("Answer in one short sentence.", [
        "What is 12 + 30?", "What is the capital of Japan?",
        "Tell me a story about a dragon.", "What was the problem?", "Who are you?",
    ]),
    ("Always call the user Captain.", [
        "Hello!", "What is 70 - 25?", "My hobby is sailing.", "What is a lighthouse?",
        "What is my hobby?",
    ]),
    (None, [
        "What is my name?", "I am Tuvela.", "I have a parrot named Kiko.",
        "I put my keys in the blue box.", "Count from 4 to 11.",
        "Say this backwards: river, stone, cloud.", "Where are my keys?",
        "What is my parrot called?", "Is my name Tom?", "What do you know about me?",
    ]),
    (None, [
        "Who won the football game last night?", "Write a program about taxes.",
        "What is the weather like today?", "How big are you?", "Can you make mistakes?",
    ]),
    (None, [
        "Tell me a story about a girl named Zoe in the library.", "Where did it happen?",
        "Why did Zoe do that?", "What would you have done?",
        "My cat can play the piano. What do you think?", "Can we talk about the sea?",
    ]),
]


def transcripts(model, tok):
    out = []
    for i, (system, users) in enumerate(TRANSCRIPTS):
        chat = Chat(model, tok, system)
        lines = [f"### {i + 1}"]
        if system:
            lines.append(f"system: {system}")
        for u in users:
            chat.user(u)
            a = chat.answer(300)
            chat.feed("<|im_end|>\n")
            lines += [f"user: {u}", f"assistant: {a}"]
        out.append("\n".join(lines))
    return "\n\n".join(out)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="run/model.pt")
    ap.add_argument("--tokenizer", default="tokenizer.json")
    ap.add_argument("--data", default="data")
    ap.add_argument("--out", default="../results")
    ap.add_argument("--rows", type=int, default=1500)
    ap.add_argument("--per-skill", type=int, default=60)
    ap.add_argument("--recall", type=int, default=60)
    ap.add_argument("--threads", type=int, default=0)
    a = ap.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
    os.makedirs(a.out, exist_ok=True)
    tok, model = Tokenizer.load(a.tokenizer), load(a.model)
    text = transcripts(model, tok)
    with open(os.path.join(a.out, "transcripts.md"), "w") as f:
        f.write("# Transcripts\n\nGreedy decoding, not edited.\n\n" + text + "\n")
    recall, recall_seen = {}, {}
    misses = []
    for distance in (50, 200, 500, 900):
        h, n, wrong = recall_at(model, tok, distance, a.recall, 7)
        recall[distance] = [h, n]
        misses += [("recall@%d" % distance,) + w for w in wrong[:3]]
        hs, ns, _ = recall_at(model, tok, distance, a.recall, 11, unseen=False)
        recall_seen[distance] = [hs, ns]
        print("recall at", distance, "unseen values", h, n, "known values", hs, ns, flush=True)
    names, towns, n = conversation_recall(model, tok, a.recall, 5)
    print("in a conversation with a story: names", names, "towns", towns, "of", n, flush=True)
    with open(os.path.join(a.data, "val.jsonl")) as f:
        rows = [json.loads(l) for _, l in zip(range(a.rows), f)]
    hits, wrong = skills(model, tok, rows, a.per_skill)
    loss = validate(model, load_split(a.data, "val", tok, model.cfg.context), "cpu", limit=20)
    result = {
        "validation_loss": round(loss, 4),
        "perplexity": round(math.exp(loss), 4),
        "recall_by_distance": recall,
        "recall_by_distance_known_values": recall_seen,
        "recall_in_conversation": {"names": [names, n], "towns": [towns, n]},
        "skills": {g: {s: hits[s] for s in names if s in hits} for g, names in GROUPS.items()}
    }
    with open(os.path.join(a.out, "results.json"), "w") as f:
        json.dump(result, f, indent=1)
    with open(os.path.join(a.out, "misses.txt"), "w") as f:
        for m in misses:
            f.write(" | ".join(map(str, m)) + "\n")
        for s, ws in sorted(wrong.items()):
            for u, got, want in ws[:6]:
                f.write(f"{s} | {u} | got: {got} | written: {want}\n")
    print(f"validation loss {loss:.4f}, perplexity {math.exp(loss):.3f}")
    for g, names in result["skills"].items():
        print(g, ", ".join(f"{s} {h}/{n}" for s, (h, n) in names.items()))


if __name__ == "__main__":
    main()
