"""An independent forward pass in numpy that reads a GGUF file.

    python3 reference.py ../../models/oriel-tiny/oriel-tiny-q8_0.gguf "Tell me a story about a fox."

Weights are dequantised once; everything is computed in one dtype (float64
unless told otherwise), with a plain growing KV cache.  It shares no code with
model.py, so it can be used to check a runtime as well as the exporter.
"""
import sys

import numpy as np

import gguf
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


if __name__ == "__main__":
    ref = Reference(sys.argv[1], np.float32)
    tok = ref.tokenizer()
    ids = tok.encode("".join(f"<|im_start|>user\n{u}<|im_end|>\n<|im_start|>assistant\n" for u in sys.argv[2:3]))
    print(tok.decode(ref.greedy(ids, 300, stop=(tok.im_end,))[1]))
