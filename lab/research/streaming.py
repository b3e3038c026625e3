"""Forward passes in numpy, float32, with StreamingLLM's cache: shared by lab/research/eviction.py and lab/research/find_turns.py.

A token sees `sinks` first tokens and the last `window`; sinks are scored as if the cache were
contiguous (docs/design.md, "The cache").  Takes the models of lab/research/kv_formats.py: arch llama or qwen2.
"""
import numpy as np

from kv_formats import Model


class Net(Model):
    """The weights in float32, and the parts of a layer."""

    def __init__(self, path):
        super().__init__(path)
        self.w = {name: w.astype(np.float32) for name, w in self.w.items()}
        self.head = self.w.get("output.weight", self.w["token_embd.weight"])
        half = self.head_dim // 2
        self.first, self.second = slice(0, None, 2), slice(1, None, 2)
        if self.halves:
            self.first, self.second = slice(0, half), slice(half, None)

    def angles(self, position):
        """-> cosines, sines [..., head_dim / 2] of positions [...]"""
        angle = np.asarray(position, float)[..., None] * self.freq
        return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)

    def turned(self, x, angles):
        """x [..., head_dim] after RoPE; the angles' shapes broadcast."""
        c, s = angles
        a, b = x[..., self.first], x[..., self.second]
        out = np.empty_like(x)
        out[..., self.first] = a * c - b * s
        out[..., self.second] = a * s + b * c
        return out

    def qkv(self, x, i):
        """-> queries [n, kv heads, heads each, d], keys and values [n, kv heads, d], without RoPE"""
        b, n, d = f"blk.{i}.", len(x), self.head_dim
        y = self.norm(x, b + "attn_norm")
        q, k, v = (self.linear(y, b + "attn_" + side) for side in "qkv")
        return q.reshape(n, self.kv_heads, -1, d), k.reshape(n, -1, d), v.reshape(n, -1, d)

    def rest(self, x, out, i):
        """The residual stream after layer i, whose heads gave `out`."""
        b = f"blk.{i}."
        x = x + self.linear(out.reshape(len(x), -1), b + "attn_output")
        y = self.norm(x, b + "ffn_norm")
        gate = self.linear(y, b + "ffn_gate")
        return x + self.linear(gate / (1 + np.exp(-gate)) * self.linear(y, b + "ffn_up"), b + "ffn_down")


class Reader:
    """One text through the model, a block at a time.  Keeps keys (before RoPE) and values of all
    tokens: k, v [layers, tokens, kv heads, d]."""

    def __init__(self, net, window, capacity, sinks=4, block=128):
        self.net, self.window, self.sinks, self.size, self.n = net, window, sinks, block, 0
        self.k = np.zeros((net.layers, capacity, net.kv_heads, net.head_dim), np.float32)
        self.v = np.zeros_like(self.k)
        self.queries = [None] * net.layers  # of the last block, before RoPE: [tokens, kv heads, each, d]

    def read(self, ids, keep=True):
        """-> normed hidden vectors [len(ids), dim]; with keep=False the text ends where it did."""
        start, out = self.n, []
        for at in range(0, len(ids), self.size):
            out.append(self._block(ids[at:at + self.size]))
        if not keep:
            self.n = start
        return np.concatenate(out)

    def _block(self, ids):
        net, a, b = self.net, self.n, self.n + len(ids)
        s, w = min(self.sinks, b), self.window
        low = max(s, a - w + 1)
        t, j = np.arange(a, b), np.arange(low, b)
        hide = np.concatenate([np.arange(s)[None] > t[:, None],
                               (j[None] > t[:, None]) | (j[None] <= t[:, None] - w)], 1)
        at_t = net.angles(t)
        at_c = net.angles(np.minimum(t, self.sinks + w - 1))
        wide = lambda angles: tuple(z[:, None, None] for z in angles)
        narrow = lambda angles: tuple(z[:, None] for z in angles)
        x = net.w["token_embd.weight"][ids]
        for i in range(net.layers):
            q, self.k[i, a:b], self.v[i, a:b] = net.qkv(x, i)
            self.queries[i] = q
            sink_k = net.turned(self.k[i, :s], narrow(net.angles(np.arange(s))))
            near_k = net.turned(self.k[i, low:b], narrow(net.angles(j)))
            score = np.concatenate([self._scores(net.turned(q, wide(at_c)), sink_k),
                                    self._scores(net.turned(q, wide(at_t)), near_k)], -1)
            score = np.where(hide[None, None], np.float32(-np.inf), score / np.sqrt(np.float32(net.head_dim)))
            e = np.exp(score - score.max(-1, keepdims=True))
            e /= e.sum(-1, keepdims=True)
            value = np.concatenate([self.v[i, :s], self.v[i, low:b]]).transpose(1, 0, 2)[:, None]
            x = net.rest(x, (e @ value).transpose(2, 0, 1, 3), i)
        self.n = b
        return net.norm(x, "output_norm")

    @staticmethod
    def _scores(q, k):
        """[n, kv, each, d] x [m, kv, d] -> [kv, each, n, m]"""
        return q.transpose(1, 2, 0, 3) @ k.transpose(1, 2, 0)[:, None]
