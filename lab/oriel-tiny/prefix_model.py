"""The model after a prefix of keys and values, in numpy, with gradients for the prefix alone.

The weights do not change, so a backward pass costs as much as a forward pass.  Everything is in
the layout of the GGUF file, where RoPE turns the pairs (2i, 2i + 1).  Shapes: B texts of T tokens after P tokens of
prefix, H query heads and K heads of keys and values of D numbers, G = H / K.
"""
import numpy as np

import gguf
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
