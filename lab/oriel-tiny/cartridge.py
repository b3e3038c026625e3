"""Trains a prefix for a page of text: keys and values that replace the page in a session (a Cartridge).

    python3 cartridge.py page --out data/page
    python3 cartridge.py train --model ../../models/oriel-tiny/oriel-tiny-q8_0.gguf --page data/page/page.txt \
        --questions data/page/study.txt --tokens 32 --out data/page/page.gguf \
        --test data/page/test.json

The page is a user message. The teacher is the model with the whole page in its context; it answers the questions (one
a line, without answers). Training changes a prefix of a few tokens until the model after that prefix (the student)
answers like the teacher: KL(teacher || student) at every token of the answers.  The weights do not change.  After
Eyuboglu et al., "Cartridges" (2025, arXiv 2506.06266):
the prefix is initialised with the keys and values of the page's first tokens; the first one, which gets much
attention, is not trained.

Needs numpy; with a fast BLAS (Debian: libopenblas0) it takes a minute or two.  The same machine gives
the same bits.

The model after a prefix of keys and values, in numpy, with gradients for the prefix alone.

The weights do not change, so a backward pass costs as much as a forward pass.  Everything is in
the layout of the GGUF file, where RoPE turns the pairs (2i, 2i + 1).  Shapes: B texts of T tokens after P tokens of
prefix, H query heads and K heads of keys and values of D numbers, G = H / K.
"""

import argparse
import json
import os
import time

import banks
import gguf
import numpy as np
from dialogue import render
from facts import about_person, fmt, questions
from phrases import Rng, say
from tokenizer import Tokenizer


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class PrefixModel:
    def __init__(self, path, dtype=np.float32):
        self.meta, tensors, self.kinds = gguf.read(path)
        self.w = {name: x.astype(dtype) for name, x in tensors.items()}
        m = lambda key: self.meta["llama." + key]
        self.layers, self.heads, self.kv = m("block_count"), m("attention.head_count"), m("attention.head_count_kv")
        self.hd, self.eps = m("rope.dimension_count"), m("attention.layer_norm_rms_epsilon")
        self.steps = m("rope.freq_base") ** (-np.arange(0, self.hd, 2) / self.hd)
        self.output = self.w.get("output.weight", self.w["token_embd.weight"])
        self.dtype = dtype

    def tokenizer(self):
        return Tokenizer([x.split(" ") for x in self.meta["tokenizer.ggml.merges"]])

    def empty(self):
        """A prefix of no tokens: keys and values, [layers, K, 0, D] each."""
        shape = (self.layers, self.kv, 0, self.hd)
        return np.zeros(shape, self.dtype), np.zeros(shape, self.dtype)

    def rotations(self, first, count):
        angles = np.arange(first, first + count)[:, None] * self.steps
        return np.cos(angles).astype(self.dtype), np.sin(angles).astype(self.dtype)

    @staticmethod
    def rotate(x, cos, sin):
        out = np.empty_like(x)
        a, b = x[..., 0::2], x[..., 1::2]
        out[..., 0::2] = a * cos - b * sin
        out[..., 1::2] = a * sin + b * cos
        return out

    def split(self, y, n):
        """[B, T, n D] -> [B, n, T, D]"""
        return y.reshape(*y.shape[:2], n, self.hd).swapaxes(1, 2)

    @staticmethod
    def join(y):
        """[B, n, T, D] -> [B, T, n D]"""
        return y.swapaxes(1, 2).reshape(y.shape[0], y.shape[2], -1)

    def norm(self, x, gain):
        rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + self.dtype(self.eps))
        return x * rstd * gain, (x * rstd, rstd, gain)

    @staticmethod
    def norm_back(g, kept):
        y, rstd, gain = kept
        g = g * gain
        return (g - y * (g * y).mean(-1, keepdims=True)) * rstd

    def attend(self, q, k, v, past_k, past_v):
        """q [B, H, T, D], k and v [B, K, T, D], the prefix's [K, P, D] -> [B, H, T, D].

        Texts may end in padding: a token does not see later ones.
        """
        B, H, T, D = q.shape
        P = past_k.shape[1]
        q = q.reshape(B, self.kv, -1, D) * self.dtype(D**-0.5)
        before = q @ past_k.swapaxes(-1, -2)
        own = (q @ k.swapaxes(-1, -2)).reshape(B, self.kv, -1, T, T)
        own[..., np.triu(np.ones((T, T), bool), 1)] = -np.inf
        p = softmax(np.concatenate((before, own.reshape(B, self.kv, -1, T)), -1))
        out = p[..., :P] @ past_v + p[..., P:] @ v
        return out.reshape(B, H, T, D), (q, k, v, past_k, past_v, p)

    def attend_back(self, g, kept):
        """-> gradients of q, k, v and of the prefix's keys and values"""
        q, k, v, past_k, past_v, p = kept
        B, H, T, D = g.shape
        P = past_k.shape[1]
        g = g.reshape(q.shape)
        dp = np.concatenate((g @ past_v.swapaxes(-1, -2), g @ v.swapaxes(-1, -2)), -1)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True))
        dq = (ds[..., :P] @ past_k + ds[..., P:] @ k) * self.dtype(D**-0.5)
        dk, dv = ds[..., P:].swapaxes(-1, -2) @ q, p[..., P:].swapaxes(-1, -2) @ g
        past = lambda a, b: (a[..., :P].swapaxes(-1, -2) @ b).sum(0)
        return dq.reshape(B, H, T, D), dk, dv, past(ds, q), past(p, g)

    def layer(self, i, x, turn, past_k, past_v):
        """-> x after layer i, its keys and values, and the data for the backward pass"""
        w = lambda name: self.w[f"blk.{i}.{name}.weight"]
        y, norm1 = self.norm(x, w("attn_norm"))
        q = self.rotate(self.split(y @ w("attn_q").T, self.heads), *turn)
        k = self.rotate(self.split(y @ w("attn_k").T, self.kv), *turn)
        v = self.split(y @ w("attn_v").T, self.kv)
        a, attention = self.attend(q, k, v, past_k, past_v)
        x = x + self.join(a) @ w("attn_output").T
        y, norm2 = self.norm(x, w("ffn_norm"))
        gate, up = y @ w("ffn_gate").T, y @ w("ffn_up").T
        s = 1 / (1 + np.exp(-gate))
        x = x + (gate * s * up) @ w("ffn_down").T
        return x, (k, v), (norm1, attention, norm2, gate, up, s)

    def layer_back(self, i, g, turn, kept):
        """-> gradients of the layer's input and of the prefix's keys and values"""
        w = lambda name: self.w[f"blk.{i}.{name}.weight"]
        norm1, attention, norm2, gate, up, s = kept
        d = g @ w("ffn_down")
        dgate, dup = d * up * s * (1 + gate * (1 - s)), d * gate * s
        g = g + self.norm_back(dgate @ w("ffn_gate") + dup @ w("ffn_up"), norm2)
        a = self.split(g @ w("attn_output"), self.heads)
        dq, dk, dv, past_k, past_v = self.attend_back(a, attention)
        cos, sin = turn
        dq, dk = self.rotate(dq, cos, -sin), self.rotate(dk, cos, -sin)
        y = self.join(dq) @ w("attn_q") + self.join(dk) @ w("attn_k") + self.join(dv) @ w("attn_v")
        return g + self.norm_back(y, norm1), past_k, past_v

    def forward(self, ids, prefix):
        """ids [B, T] after a prefix -> normalised states [B, T, dim], their own keys and values
        [layers][B, K, T, D], data for backward()"""
        past_k, past_v = prefix
        turn = self.rotations(past_k.shape[2], ids.shape[1])
        x, own, tape = self.w["token_embd.weight"][ids], [], []
        for i in range(self.layers):
            x, kv, kept = self.layer(i, x, turn, past_k[i], past_v[i])
            own.append(kv)
            tape.append(kept)
        x, last = self.norm(x, self.w["output_norm.weight"])
        return x, own, (turn, tape, last)

    def backward(self, g, kept):
        """The gradient of the states from forward() -> the gradient of the prefix's keys and values"""
        turn, tape, last = kept
        g = self.norm_back(g, last)
        grads = []
        for i in reversed(range(self.layers)):
            g, past_k, past_v = self.layer_back(i, g, turn, tape[i])
            grads.append((past_k, past_v))
        return [np.stack(side) for side in zip(*reversed(grads))]

    def read(self, ids):
        """A text as a prefix."""
        _, own, _ = self.forward(np.asarray([ids]), self.empty())
        return [np.stack([kv[side][0] for kv in own]) for side in (0, 1)]

    def logits(self, states):
        return states @ self.output.T

    def answer(self, ids, prefix, limit, stop):
        """Greedy: the tokens that follow `ids`, without `stop`."""
        ids = list(ids)
        begin = len(ids)
        past_k, past_v = prefix
        fresh = ids
        while len(ids) - begin < limit:
            x, own, _ = self.forward(np.asarray([fresh]), (past_k, past_v))
            past_k = np.concatenate((past_k, np.stack([k[0] for k, _ in own])), 2)
            past_v = np.concatenate((past_v, np.stack([v[0] for _, v in own])), 2)
            fresh = [int(self.logits(x[0, -1]).argmax())]
            if fresh[0] == stop:
                break
            ids += fresh
        return ids[begin:]


FORMAT = "oriel-prefix"
VERSION = 1
HEARD = "I will remember that."  # the assistant's reply to the page
LONGEST = 60  # tokens of an answer


def page_ids(tok, page):
    return tok.encode(render(None, [{"user": page, "assistant": HEARD}]))


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
    """-> mean KL(teacher || student) per token in nats, and its gradient"""
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


def windows(tok, page, tokens):
    """Parts of the page, in whole sentences, each at most `tokens` tokens."""
    sentences, out = [s.rstrip(".") + "." for s in page.split(". ")], []
    while sentences:
        n = 1
        while n < len(sentences) and len(page_ids(tok, " ".join(sentences[: n + 1]))) <= tokens:
            n += 1
        out.append(" ".join(sentences[:n]))
        del sentences[:n]
    return out


def score(model, tok, prefix, questions):
    """-> how many answers are right, mean -log probability of the right answers' tokens in nats"""
    right, loss, count = 0, 0.0, 0
    for q in questions:
        asked, answer = question_ids(tok, q["question"]), tok.encode(q["answer"] + "<|im_end|>")
        said = tok.decode(model.answer(asked, prefix, LONGEST, tok.im_end))
        right += q["right"].casefold() in said.casefold()
        states, _, _ = model.forward(np.asarray([asked + answer[:-1]]), prefix)
        p = softmax(model.logits(states[0, len(asked) - 1 :]))
        loss -= np.log(p[np.arange(len(answer)), answer]).sum()
        count += len(answer)
    return right, loss / count


def compare(model, tok, text, prefix, questions, say=print):
    """Compares the prefix with the page, and with parts of the page of the same number of tokens."""
    tokens, ids = prefix[0].shape[2], page_ids(tok, text)
    of = lambda ids: score(model, tok, model.read(ids), questions)
    put = lambda name, n, s: say(f"{name}, {n} tokens: {s[0]:.4g} of {len(questions)} right, {s[1]:.2f} nats a token")
    put("the page", len(ids), of(ids))
    put("its beginning", tokens, of(ids[:tokens]))
    parts = [of(page_ids(tok, part)) for part in windows(tok, text, tokens)]
    put(f"mean of its {len(parts)} parts", tokens, np.mean(parts, 0))
    put("the best part", tokens, max(parts))
    put("the prefix", tokens, score(model, tok, prefix, questions))


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


def fingerprint(weights):
    """As prefixFingerprint() in runtime/exec/snapshot.h: hashBytes() over nothing, then over each weight."""
    odd, mask = 0xD6E8FEB86659FD93, (1 << 64) - 1
    h = 0x9E3779B97F4A7C15
    for word in [0] + [int(x) | 4 << 56 for x in weights.astype("<f4").view("<u4")]:
        h = (h ^ word) * odd & mask
        h ^= h >> 32
    return h


def rounded(x):
    """As the file has it."""
    return x.astype(np.float16).astype(x.dtype)


def write(path, model, prefix, ids):
    """docs/sessions.md says what the keys mean."""
    meta = [
        ("general.architecture", gguf.STRING, FORMAT),
        ("oriel.prefix.version", gguf.U32, VERSION),
        ("oriel.prefix.tokens", gguf.U32, prefix[0].shape[2]),
        ("oriel.prefix.layers", gguf.U32, model.layers),
        ("oriel.prefix.vocab_size", gguf.U32, len(model.w["token_embd.weight"])),
        ("oriel.prefix.model_architecture", gguf.STRING, model.meta["general.architecture"]),
        ("oriel.prefix.model_name", gguf.STRING, model.meta["general.name"]),
        ("oriel.prefix.fingerprint", gguf.U64, fingerprint(model.w["output_norm.weight"])),
        ("oriel.prefix.text_tokens", gguf.ARRAY, (gguf.I32, ids)),
    ]
    sides = [(f"prefix.{name}.{i}", gguf.F16, side[i]) for i in range(model.layers) for name, side in zip("kv", prefix)]
    gguf.write(path, meta, sides)


# ---- A page of facts, questions for training, and other questions for the test ----
#
# Names come from the model's training text, the facts are drawn at random. Training questions name the noun of the fact
# ("What is Mia's job?"); test questions use other sentences ("What does Mia do for a living?").

KINDS = ("age", "city", "colour", "food", "hobby", "job", "pet", "room", "sport")


def draw(rng, people, facts_each):
    """-> [(fact, value)], person by person; of a kind every person has another value"""
    out, taken = [], set()
    for name in rng.sample(banks.SHE + banks.HE, people):
        for kind in rng.sample(KINDS, facts_each):
            f = about_person(name, kind)
            while True:
                v = str(f.known(rng))
                if (kind, v) not in taken:
                    break
            taken.add((kind, v))
            out.append((f, v))
    return out


def page_text(rng, facts):
    return " ".join(fmt(rng.choice(f.say), v) + "." for f, v in facts)


def studied(rng, facts, wordings):
    """Questions by the noun."""
    out = []
    for f, _ in facts:
        frames, _ = questions(f)
        out += [say(rng, q) for q in rng.sample(sorted(set(frames)), wordings)]
    return out


def tested(facts):
    """All other questions."""
    return [{"question": q, "right": v, "answer": fmt(f.answer[0], v)} for f, v in facts for q in f.ask]


def write_page(a):
    os.makedirs(a.out, exist_ok=True)
    rng = Rng(f"page-{a.seed}")
    facts = draw(rng, a.people, a.each)
    put = lambda name: open(os.path.join(a.out, name), "w", encoding="utf-8", newline="\n")
    with put("page.txt") as f:
        f.write(page_text(rng, facts) + "\n")
    with put("study.txt") as f:
        f.write("\n".join(studied(rng, facts, a.wordings)) + "\n")
    with put("test.json") as f:
        json.dump(tested(facts), f, indent=1)
        f.write("\n")


def main():
    top = argparse.ArgumentParser()
    commands = top.add_subparsers(dest="command", required=True)
    ap = commands.add_parser("page", help="write page.txt, study.txt and test.json")
    ap.add_argument("--out", required=True, help="a folder")
    ap.add_argument("--people", type=int, default=10)
    ap.add_argument("--each", type=int, default=2, help="facts about everyone")
    ap.add_argument("--wordings", type=int, default=24, help="of a question in study.txt")
    ap.add_argument("--seed", type=int, default=1)
    ap = commands.add_parser("train", help="train a prefix")
    ap.add_argument("--model", required=True)
    ap.add_argument("--page", required=True, help="a text file: what the prefix stands for")
    ap.add_argument("--questions", required=True, help="a text file: what to study it by, one a line")
    ap.add_argument("--tokens", type=int, default=32, help="of the prefix")
    ap.add_argument("--steps", type=int, default=200)
    ap.add_argument("--batch", type=int, default=16, help="questions a step")
    ap.add_argument("--rate", type=float, default=0.03)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--out", required=True)
    ap.add_argument("--test", help="questions of `page` to compare it by")
    a = top.parse_args()
    if a.command == "page":
        write_page(a)
        return
    model = PrefixModel(a.model)
    tok = model.tokenizer()
    with open(a.page, encoding="utf-8") as f:
        text = f.read().strip()
    ids = page_ids(tok, text)
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
    if a.test:
        with open(a.test, encoding="utf-8") as f:
            compare(model, tok, text, [rounded(side) for side in prefix], json.load(f))


if __name__ == "__main__":
    main()
