"""An independent forward pass in numpy that reads a GGUF file.

    python3 reference.py say ../../models/oriel-tiny/oriel-tiny-q8_0.gguf --text "Tell me a story about a fox."
    python3 reference.py golden ../../models/oriel-tiny/oriel-tiny-q8_0.gguf
    python3 reference.py compare --data data ../../models/oriel-tiny/oriel-tiny-q8_0.gguf ../../build/models/oriel-tiny-*.gguf

Weights are dequantised once; everything is computed in one dtype (float64
unless told otherwise), with a plain growing KV cache.  It shares no code with
model.py, so it can be used to check a runtime as well as the exporter.

`golden` writes the golden data, reference outputs of the exported files.
For each file and prompt: the token ids, the 20 largest logits at the last
position (weights dequantised, activations in float64, so any fp32 runtime
should agree to about 1e-3) and 48 greedy tokens.  `min_gap` is the smallest
distance between the two best logits of any token; if it is small, a runtime with other rounding may choose another
token and still be correct.  The prompts are chosen
so that it is at least 0.017; check it again after training a new model.

`compare` prints the loss on assistant tokens for several files: the cost of quantisation.
"""
import argparse
import hashlib
import json
import os

import numpy as np

import gguf
from dialogue import encode_dialogue
from tokenizer import Tokenizer


class Reference:
    def __init__(self, path, dtype=np.float64):
        self.meta, tensors, self.kinds = gguf.read(path)
        self.w = {k: v.astype(dtype) for k, v in tensors.items()}
        m = lambda key: self.meta["llama." + key]
        self.layers, self.heads, self.kv = m("block_count"), m("attention.head_count"), m("attention.head_count_kv")
        self.hd, self.eps = m("rope.dimension_count"), m("attention.layer_norm_rms_epsilon")
        self.inv = (m("rope.freq_base") ** (-np.arange(0, self.hd, 2, dtype=np.float64) / self.hd))
        self.dtype = dtype
        self.reset()

    def tokenizer(self):
        return Tokenizer([x.split(" ") for x in self.meta["tokenizer.ggml.merges"]])

    def reset(self):
        empty = np.zeros((self.kv, 0, self.hd), self.dtype)
        self.cache = [[empty, empty] for _ in range(self.layers)]

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.w[name]

    def rope(self, x, pos):
        """x [heads, T, head_dim]; the pairs (2i, 2i + 1) are rotated."""
        ang = pos[:, None] * self.inv[None, :]
        c, s = np.cos(ang).astype(self.dtype), np.sin(ang).astype(self.dtype)
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
        out[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
        return out

    def __call__(self, ids):
        """Appends `ids` to the cache; returns logits [len(ids), vocab]."""
        T, past = len(ids), self.cache[0][0].shape[1]
        pos = np.arange(past, past + T)
        x = self.w["token_embd.weight"][np.asarray(ids)]
        split = lambda y, n: y.reshape(T, n, self.hd).swapaxes(0, 1)
        for i in range(self.layers):
            w = lambda n: self.w[f"blk.{i}.{n}.weight"]
            y = self.norm(x, f"blk.{i}.attn_norm.weight")
            q = self.rope(split(y @ w("attn_q").T, self.heads), pos)
            k = self.rope(split(y @ w("attn_k").T, self.kv), pos)
            v = split(y @ w("attn_v").T, self.kv)
            k, v = (np.concatenate((old, new), 1) for old, new in zip(self.cache[i], (k, v)))
            self.cache[i] = [k, v]
            out = np.empty_like(q)
            for h in range(self.heads):
                g = h // (self.heads // self.kv)
                s = q[h] @ k[g].T / np.sqrt(self.hd)
                s[np.arange(past + T)[None, :] > pos[:, None]] = -np.inf
                e = np.exp(s - s.max(-1, keepdims=True))
                out[h] = e / e.sum(-1, keepdims=True) @ v[g]
            x = x + out.swapaxes(0, 1).reshape(T, -1) @ w("attn_output").T
            y = self.norm(x, f"blk.{i}.ffn_norm.weight")
            gate = y @ w("ffn_gate").T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ w("ffn_up").T)) @ w("ffn_down").T
        return self.norm(x, "output_norm.weight") @ self.w.get("output.weight", self.w["token_embd.weight"]).T

    def greedy(self, ids, count, stop=()):
        """-> (last-position logits of the prompt, new ids, smallest top-1/top-2 gap)."""
        self.reset()
        z = first = self(ids)[-1]
        new, gap = [], np.inf
        while len(new) < count:
            a, b = np.sort(z)[-2:][::-1]
            gap = min(gap, a - b)
            new.append(int(z.argmax()))
            if new[-1] in stop:
                break
            z = self([new[-1]])[-1]
        return first, new, float(gap)


def say(a):
    ref = Reference(a.files[0], np.float32)
    tok = ref.tokenizer()
    ids = tok.encode(f"<|im_start|>user\n{a.text}<|im_end|>\n<|im_start|>assistant\n")
    print(tok.decode(ref.greedy(ids, 300, stop=(tok.im_end,))[1]))


TURN = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = {
    "ability": TURN.format("What can you do?"),
    "story": TURN.format("Tell me a story about a mouse."),
    "sum": TURN.format("What is 45 + 38?"),
    "system": "<|im_start|>system\nAlways call the user Captain.<|im_end|>\n" + TURN.format("What is the capital of France?"),
    "recall": TURN.format("My name is Rubin.") + "Nice to meet you, Rubin!<|im_end|>\n"
              + TURN.format("What is 3 + 4?") + "3 plus 4 is 7.<|im_end|>\n"
              + TURN.format("What is my name?"),
    "plain": "Near the lake lived a little owl called Nora.",
}


def golden(a):
    out = {"format": 1, "files": []}
    for path in a.files:
        ref = Reference(path, np.float64)
        tok = ref.tokenizer()
        entry = {"file": os.path.basename(path), "sha256": hashlib.sha256(open(path, "rb").read()).hexdigest(), "cases": []}
        for name, text in PROMPTS.items():
            ids = tok.encode(text)
            z, new, gap = ref.greedy(ids, 48)
            top = np.argsort(-z)[:20]
            entry["cases"].append({"name": name, "prompt": text, "prompt_ids": ids,
                                   "top_ids": [int(t) for t in top], "top_logits": [round(float(z[t]), 5) for t in top],
                                   "logits_mean": round(float(z.mean()), 6), "logits_rms": round(float(np.sqrt((z * z).mean())), 6),
                                   "greedy_ids": new, "greedy_text": tok.decode(new), "min_gap": round(gap, 5)})
        out["files"].append(entry)
    with open(a.out, "w") as f:
        json.dump(out, f, indent=1)


def compare(a):
    with open(os.path.join(a.data, "val.jsonl")) as f:
        rows = [json.loads(l) for _, l in zip(range(a.rows), f)]
    for path in a.files:
        ref = Reference(path, np.float32)
        tok = ref.tokenizer()
        total = count = 0
        for row in rows:
            ids, mask = encode_dialogue(tok, row, ref.meta["llama.context_length"])
            ref.reset()
            z = ref(ids)[:-1]
            z -= z.max(-1, keepdims=True)
            nll = np.log(np.exp(z).sum(-1)) - z[np.arange(len(z)), ids[1:]]
            m = np.array(mask[1:]) == 1
            total, count = total + float(nll[m].sum()), count + int(m.sum())
        print(f"{os.path.basename(path)}: loss {total / count:.4f}, perplexity {np.exp(total / count):.4f} on {count} tokens")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("what", choices=["say", "golden", "compare"])
    ap.add_argument("files", nargs="+")
    ap.add_argument("--text", default="")
    ap.add_argument("--out", default="../../tests/data/oriel-tiny-golden.json")
    ap.add_argument("--data", default="data")
    ap.add_argument("--rows", type=int, default=150)
    a = ap.parse_args()
    {"say": say, "golden": golden, "compare": compare}[a.what](a)


if __name__ == "__main__":
    main()
