"""Trains a prefix for a page of text: keys and values that stand for it in a session (a Cartridge).

    python3 cartridge_page.py --out data/page
    python3 cartridge.py --model ../oriel-tiny-q8_0.gguf --page data/page/page.txt \\
        --questions data/page/study.txt --tokens 32 --out data/page/page.gguf

The page is a user's message, and whoever has it whole in the context is the teacher: it answers the
questions (one a line, no answers are given), and the prefix of a few tokens is changed until the
model behind it answers as the teacher does: KL(teacher || behind the prefix) at every token of the
answers.  The weights stay as they are.  After Eyuboglu et al., "Cartridges" (2025, arXiv 2506.06266):
the prefix begins as the keys and values of the page's first tokens; the first of them, which much
attention rests on, is kept.

Needs numpy; with a fast BLAS (Debian: libopenblas0) it takes a minute or two.  The same machine gives
the same bits.
"""
import argparse
import time

import numpy as np

import gguf
from dialogue import render
from prefix_model import PrefixModel, softmax
from rng import Rng

FORMAT = "oriel-prefix"
VERSION = 1
HEARD = "I will remember that."  # what the assistant says to the page
LONGEST = 60  # tokens of an answer


def page_ids(tok, page):
    return tok.encode(render(None, [{"user": page, "assistant": HEARD}]))


def first_part(tok, page, tokens):
    """The longest beginning of the page, word by word, that takes at most so many tokens with its turn."""
    words = page.split(" ")
    while words and len(page_ids(tok, " ".join(words))) > tokens:
        words.pop()
    return " ".join(words)


def question_ids(tok, question):
    return tok.encode(render(None, [{"user": question}]))


class Example:
    """A question with the teacher's answer, and what the teacher expects at each token of it."""

    def __init__(self, model, tok, page, question):
        asked = question_ids(tok, question)
        answer = model.answer(asked, page, LONGEST, tok.im_end)
        self.ids = asked + answer
        self.first = len(asked) - 1
        states, _, _ = model.forward(np.asarray([self.ids]), page)
        self.expected = softmax(model.logits(states[0, self.first :]))


def loss_of(model, prefix, examples, with_grad=True):
    """-> mean KL(teacher || behind the prefix) a token in nats, its gradient"""
    ids = np.zeros((len(examples), max(len(e.ids) for e in examples)), int)
    for row, e in zip(ids, examples):
        row[: len(e.ids)] = e.ids
    states, _, kept = model.forward(ids, prefix)
    rows = np.concatenate([np.full(len(e.expected), b) for b, e in enumerate(examples)])
    at = np.concatenate([np.arange(e.first, len(e.ids)) for e in examples])
    expected = np.concatenate([e.expected for e in examples])
    p = softmax(model.logits(states[rows, at]))
    tiny = np.finfo(p.dtype).tiny
    loss = (expected * (np.log(expected + tiny) - np.log(p + tiny))).sum() / len(at)
    if not with_grad:
        return loss, None
    g = np.zeros_like(states)
    g[rows, at] = (p - expected) @ model.output / len(at)
    return loss, model.backward(g, kept)


class Adam:
    def __init__(self, values, betas=(0.9, 0.98), eps=1e-8):
        self.values, self.betas, self.eps, self.steps = values, betas, eps, 0
        self.mean = [np.zeros_like(x) for x in values]
        self.square = [np.zeros_like(x) for x in values]

    def step(self, grads, rate):
        self.steps += 1
        a, b = self.betas
        for x, g, m, s in zip(self.values, grads, self.mean, self.square):
            m += (1 - a) * (g - m)
            s += (1 - b) * (g * g - s)
            x -= rate * (m / (1 - a**self.steps)) / (np.sqrt(s / (1 - b**self.steps)) + self.eps)


def batches(rng, examples, size):
    """All examples once, in batches of similar length and random order."""
    order = list(range(len(examples)))
    rng.shuffle(order)
    order.sort(key=lambda i: len(examples[i].ids) // 4)
    cut = [order[i : i + size] for i in range(0, len(order), size)]
    rng.shuffle(cut)
    return [[examples[i] for i in batch] for batch in cut]


def train(model, prefix, examples, steps, size, rate, seed, say=print):
    """Changes the prefix in place; the rate falls to zero along a cosine."""
    rng, adam, queue, begin, mean = Rng(f"cartridge-{seed}"), Adam(prefix), [], time.time(), None
    for step in range(steps):
        queue = queue or batches(rng, examples, size)
        loss, grads = loss_of(model, prefix, queue.pop())
        for g in grads:
            g[:, :, 0] = 0  # the first token is kept
        adam.step(grads, rate * (1 + np.cos(np.pi * step / steps)) / 2)
        mean = loss if mean is None else 0.95 * mean + 0.05 * loss
        if (step + 1) % 50 == 0 or step + 1 == steps:
            say(f"step {step + 1}: KL {mean:.4f} a token, {time.time() - begin:.0f} s", flush=True)


def fingerprint(data):
    """FNV-1a, 64 bits."""
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def write(path, model, prefix, ids):
    """docs/sessions.md says what the keys mean."""
    k, v = (side.swapaxes(1, 2) for side in prefix)  # [layers, P, K, D]
    meta = [
        ("general.architecture", gguf.STRING, FORMAT),
        ("general.name", gguf.STRING, f"{len(ids)} tokens in {k.shape[1]}"),
        ("oriel.prefix.version", gguf.U32, VERSION),
        ("oriel.prefix.tokens", gguf.U32, k.shape[1]),
        ("oriel.prefix.layers", gguf.U32, model.layers),
        ("oriel.prefix.head_count_kv", gguf.U32, model.kv),
        ("oriel.prefix.head_dim", gguf.U32, model.hd),
        ("oriel.prefix.vocab_size", gguf.U32, len(model.w["token_embd.weight"])),
        ("oriel.prefix.model_architecture", gguf.STRING, model.meta["general.architecture"]),
        ("oriel.prefix.model_name", gguf.STRING, model.meta["general.name"]),
        ("oriel.prefix.weights", gguf.U64, fingerprint(model.w["output_norm.weight"].astype("<f4").tobytes())),
        ("oriel.prefix.text_tokens", gguf.ARRAY, (gguf.I32, ids)),
    ]
    sides = [(f"prefix.{side}.{i}", gguf.F16, x[i]) for i in range(model.layers) for side, x in (("k", k), ("v", v))]
    gguf.write(path, meta, sides)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", required=True)
    ap.add_argument("--page", required=True, help="a text file: what the prefix stands for")
    ap.add_argument("--questions", required=True, help="a text file: what to study it by, one a line")
    ap.add_argument("--tokens", type=int, default=32, help="of the prefix")
    ap.add_argument("--steps", type=int, default=600)
    ap.add_argument("--batch", type=int, default=16, help="questions a step")
    ap.add_argument("--rate", type=float, default=0.01)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    model = PrefixModel(a.model)
    tok = model.tokenizer()
    with open(a.page, encoding="utf-8") as f:
        ids = page_ids(tok, f.read().strip())
    with open(a.questions, encoding="utf-8") as f:
        questions = f.read().split("\n")
    if not 2 <= a.tokens < len(ids):
        ap.error(f"--tokens: the page has {len(ids)}; give 2 or more, and fewer than that")
    page = model.read(ids)
    examples = [Example(model, tok, page, q) for q in questions if q.strip()]
    print(f"{len(ids)} tokens of text, {len(examples)} questions", flush=True)
    prefix = [np.ascontiguousarray(side[:, :, : a.tokens]) for side in page]
    train(model, prefix, examples, a.steps, a.batch, a.rate, a.seed)
    write(a.out, model, prefix, ids)


if __name__ == "__main__":
    main()
