#!/usr/bin/env python3
"""Compares policies for the tokens that a KV cache keeps after they leave its window, in numpy.

    python3 lab/research/eviction.py MODEL.gguf --loss [--ids FILE.json]     nats a token past the window
    python3 lab/research/eviction.py MODEL.gguf --recall                     facts told a number of tokens ago
    python3 lab/research/eviction.py MODEL.gguf --turns                      a whole turn, given back

Each layer and KV head has `--slots` slots after its sinks.  `window` of them are the last tokens.  The
others (--region) are a region of tokens that left the window, chosen by a policy each time one more leaves:

    oldest        no region: all slots are window
    heavy         largest sum of attention weights since it was read (H2O)
    heavy/n       the same, divided by the number of queries
    heavy-decay   the same sum, in which a weight halves every 64 queries
    heavy-rare    the same sum, but never the 16 most frequent tokens
    diverse       the region's keys are as unlike as can be: of the two most alike the older one goes
    value-norm    largest values
    random        a control
    recent        the newest: must equal `oldest`, which checks positions
    fact          the tokens of the fact that will be asked for: a bound for all policies

Keys of the region lie between the sinks and the window in the order of their positions. They are rotated at those
places, exactly as in a contiguous cache.  Without --ids the text is held-out
dialogues of the bundled model.  notes/eviction.md has the method and the results.
"""

import argparse
import json
import os
import sys

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


RECIPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oriel-tiny")
SINKS = 4
POLICIES = ("oldest", "heavy", "heavy/n", "heavy-decay", "heavy-rare", "diverse", "value-norm", "random", "recent",
            "fact")
HALF_LIFE = 64  # queries
FREQUENT = 16


class Cache:
    """Caches of `lanes` texts.  Arrays [layers, lanes, kv heads, slots, ...]; keys of the window are rotated at their
    absolute positions, keys of the region are not rotated."""

    def __init__(self, net, lanes, slots, region, policy, fact=None, sample=None):
        self.net, self.lanes, self.region, self.window, self.policy = net, lanes, region, slots - region, policy
        make = lambda n, *more: np.zeros((net.layers, lanes, net.kv_heads, n, *more), np.float32)
        d = net.head_dim
        self.lane_arrays = {
            "sink_k": make(SINKS, d), "sink_v": make(SINKS, d),
            "near_k": make(self.window, d), "near_raw": make(self.window, d), "near_v": make(self.window, d),
            "near_sum": make(self.window),
            "far_k": make(region, d), "far_v": make(region, d), "far_sum": make(region),
            "far_position": make(region), "far_rank": make(region),
            "unit": make(region, d) if policy == "diverse" else make(0),
            "alike": make(region, region) if policy == "diverse" else make(0),
        }
        self.__dict__.update(self.lane_arrays)
        self.lane_arrays.update(t=np.zeros((1, lanes), int), far_n=np.zeros((1, lanes), int),
                                ids=np.zeros((1, lanes, self.window), int))
        self.near_ids = self.lane_arrays["ids"][0]
        self.t, self.far_n = self.lane_arrays["t"][0], self.lane_arrays["far_n"][0]
        self.fact = np.zeros((lanes, 2), int) if fact is None else np.array(fact)
        self.sample = sample  # what policies know of texts in general: see Sample
        self.random = np.random.RandomState(1)
        self.slot_angles = net.angles(np.arange(SINKS + region))

    def put(self, lane, other):
        """Copies one lane of another cache of the same shape."""
        for name, array in self.lane_arrays.items():
            array[:, lane] = other.lane_arrays[name][:, lane]

    def step(self, ids, want_logits=True):
        """One token in each lane -> logits [lanes, vocabulary]"""
        net, t, lane = self.net, self.t, np.arange(self.lanes)
        is_sink = t < SINKS
        slot = np.where(is_sink, 0, (t - SINKS) % self.window)
        leaving = t >= SINKS + self.window
        grow = leaving & (self.far_n < self.region) & (self.policy != "given")
        after = self.far_n + grow
        self.place = SINKS + after + np.minimum(np.maximum(t - SINKS + 1, 0), self.window) - 1
        self.place = np.where(is_sink, t, self.place)
        wide = lambda angles: tuple(z[:, None, None] for z in angles)
        narrow = lambda angles: tuple(z[:, None] for z in angles)
        at_t, at_place = net.angles(t), net.angles(self.place)
        hidden = [np.arange(SINKS)[None] > t[:, None],
                  np.arange(self.region)[None] >= after[:, None],
                  np.arange(self.window)[None] >= (t - SINKS + 1)[:, None]]
        bias = np.where(np.concatenate(hidden, 1), np.float32(-1e30), np.float32(0))[:, None, None]
        scale = np.float32(1 / np.sqrt(net.head_dim))
        x = net.w["token_embd.weight"][ids]
        for i in range(net.layers):
            q, k, v = net.qkv(x, i)
            if self.region and leaving.any():
                self._offer(i, leaving, slot)
            turned = net.turned(k, narrow(at_t))
            s = lane[is_sink]
            self.sink_k[i, s, :, t[s]], self.sink_v[i, s, :, t[s]] = turned[s], v[s]
            n = lane[~is_sink]
            self.near_k[i, n, :, slot[n]], self.near_v[i, n, :, slot[n]] = turned[n], v[n]
            self.near_raw[i, n, :, slot[n]], self.near_sum[i, n, :, slot[n]] = k[n], 0
            here, there = net.turned(q, wide(at_t)), net.turned(q, wide(at_place))
            keys = [there @ self.sink_k[i].swapaxes(-1, -2)]
            if self.region:
                keys.append(there @ self._far_keys(i).swapaxes(-1, -2))
            keys.append(here @ self.near_k[i].swapaxes(-1, -2))
            score = np.concatenate(keys, -1) * scale + bias
            p = np.exp(score - score.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            a, b = SINKS, SINKS + self.region
            out = p[..., :a] @ self.sink_v[i] + p[..., a:b] @ self.far_v[i] + p[..., b:] @ self.near_v[i]
            weight = p.sum(2)
            if self.policy == "heavy-decay":
                self.near_sum[i] *= 0.5**(1 / HALF_LIFE)
                self.far_sum[i] *= 0.5**(1 / HALF_LIFE)
            self.near_sum[i] += weight[..., b:]
            self.far_sum[i] += weight[..., a:b]
            x = net.rest(x, out, i)
        self.near_ids[n, slot[n]] = ids[n]
        self.far_n += grow
        self.t += 1
        return net.norm(x, "output_norm") @ net.head.T if want_logits else None

    def _far_keys(self, i):
        at = SINKS + self.far_rank[i].astype(int)
        return self.net.turned(self.far_k[i], tuple(z[at] for z in self.slot_angles))

    def give(self, lane):
        """Policy `given`: from now on the lane sees what its region holds."""
        self.far_n[lane] = min(self.fact[lane, 1] - self.fact[lane, 0], self.region)

    # -- who stays -------------------------------------------------------------

    def _offer(self, i, leaving, slot):
        """The tokens that leave the window of layer i may take a place in the region."""
        lane = np.arange(self.lanes)
        k, v = self.near_raw[i, lane, :, slot], self.near_v[i, lane, :, slot]
        total = self.near_sum[i, lane, :, slot]
        position = (self.t - self.window)[:, None] + np.zeros_like(total)
        if self.policy == "given":
            return self._file(i, leaving, k, v)
        if self.policy == "heavy-rare":
            total = np.where(np.isin(self.near_ids[lane, slot], self.sample.frequent)[:, None], np.float32(-1e6), total)
        unit = alike = None
        if self.policy == "diverse":
            unit = k - self.sample.means[i]
            unit /= np.maximum(np.linalg.norm(unit, axis=-1, keepdims=True), 1e-9)
            alike = (self.unit[i] @ unit[..., None])[..., 0]
        full = (self.far_n >= self.region)[:, None]
        victim = np.where(full, self._worth(i, k, v, total, position, alike).argmin(-1), self.far_n[:, None])
        victim = np.where(leaving[:, None], victim, self.region)
        b, g = np.nonzero(victim < self.region)
        m = victim[b, g]
        rank = np.where(full[b, 0], self.far_rank[i, b, g, m], np.inf)
        self.far_rank[i, b, g] -= self.far_rank[i, b, g] > rank[:, None]
        self.far_rank[i, b, g, m] = np.where(full[b, 0], self.region - 1, self.far_n[b])
        self.far_k[i, b, g, m], self.far_v[i, b, g, m] = k[b, g], v[b, g]
        self.far_sum[i, b, g, m], self.far_position[i, b, g, m] = total[b, g], position[b, g]
        if unit is not None:
            self.unit[i, b, g, m] = unit[b, g]
            self.alike[i, b, g, m], self.alike[i, b, g, :, m] = alike[b, g], alike[b, g]
            self.alike[i, b, g, m, m] = -1

    def _file(self, i, leaving, k, v):
        """The turn that will be given back: its keys and values are put where it will stand."""
        p = self.t - self.window - self.fact[:, 0]
        b = np.flatnonzero(leaving & (p >= 0) & (p < np.minimum(self.fact[:, 1] - self.fact[:, 0], self.region)))
        self.far_k[i, b, :, p[b]], self.far_v[i, b, :, p[b]] = k[b], v[b]
        self.far_rank[i, b, :, p[b]] = p[b][:, None]

    def _worth(self, i, k, v, total, position, alike):
        """-> [lanes, kv heads, region + 1]: the worth of the region's tokens and of the token that leaves the window"""
        both = lambda far, new: np.concatenate([far, new[..., None]], -1)
        where = both(self.far_position[i], position)
        if self.policy in ("heavy", "heavy-decay", "heavy-rare"):
            return both(self.far_sum[i], total)
        if self.policy == "heavy/n":
            return both(self.far_sum[i], total) / (self.t[:, None, None] - where)
        if self.policy == "value-norm":
            return both((self.far_v[i]**2).sum(-1), (v**2).sum(-1))
        if self.policy == "random":
            return self.random.rand(*where.shape)
        if self.policy == "recent":
            return where
        if self.policy == "fact":
            first, last = self.fact[:, 0, None, None], self.fact[:, 1, None, None]
            return where + 1e6 * ((where >= first) & (where < last))
        most = both(np.maximum(self.alike[i].max(-1), alike), alike.max(-1))
        return -most + 1e-6 * where  # diverse


def nll(logits, ids):
    top = logits.max(-1, keepdims=True)
    return np.log(np.exp(logits - top).sum(-1)) + top[:, 0] - logits[np.arange(len(ids)), ids]


# -- texts --------------------------------------------------------------------


def recipe():
    sys.path.insert(0, RECIPE)
    import cache_quality
    import checks
    import dialogue
    import phrases
    import tokenizer
    return cache_quality, checks, dialogue, phrases.Rng, tokenizer.Tokenizer.load(os.path.join(RECIPE, "tokenizer.json"))


def dialogues(lanes, tokens):
    quality, _, _, Rng, tok = recipe()
    return np.array([quality.conversation(tok, Rng(f"evict-{i}"), tokens) for i in range(lanes)])


class Told:
    """Conversations that tell `together` facts in separate turns, one after the other, with other topics before and
    after them.  A later question asks for a single fact."""

    def __init__(self, lanes, distances, together=1, spare=120):
        _, checks, dialogue, Rng, tok = recipe()
        self.tok, rows = tok, []
        self.fact, self.asked, self.at, self.again = [], [], [], []
        slots = sorted(checks.FACTS)
        encode = lambda user, assistant: tok.encode(dialogue.render(None, [{"user": user, "assistant": assistant}]))
        for i in range(lanes):
            rng, slot = Rng(f"told-{i}"), slots[i % len(slots)]
            value, text = checks.told(rng, slot)
            ids = sum((encode(*turn) for turn in checks.between(rng, tok, 50)), [])
            texts = [text]
            if together > 1:
                others = rng.sample([s for s in slots if s != slot], together - 1)
                texts += [checks.told(rng, s)[1] for s in others]
                rng.shuffle(texts)
            turn = sum((encode(text, "I will remember that.") for text in texts), [])
            self.fact.append((len(ids), len(ids) + len(turn)))
            ids += turn
            ends = []
            while len(ids) < self.fact[-1][1] + max(distances) + spare:
                for other in checks.between(rng, tok, 300):
                    ends.append(len(ids))
                    ids += encode(*other)
            told = self.fact[-1][1]
            self.at.append([min(ends, key=lambda e: abs(e - told - d)) for d in distances])
            question = tok.encode(f"<|im_start|>user\n{rng.choice(checks.FACTS[slot][1])}<|im_end|>\n"
                                  "<|im_start|>assistant\n")
            self.asked.append((question, value))
            self.again.append(turn)
            rows.append(ids)
        self.steps = max(at for lane in self.at for at in lane) + 1
        self.rows = np.array([(ids + [0] * self.steps)[:self.steps] for ids in rows])


# -- measurements -------------------------------------------------------------


def measure_loss(net, rows, slots, region, policy, sample):
    """-> mean loss of each text past sinks + slots"""
    cache, out = Cache(net, len(rows), slots, region, policy, sample=sample), []
    for at in range(rows.shape[1] - 1):
        out.append(nll(cache.step(rows[:, at]), rows[:, at + 1]))
    return np.mean(out[SINKS + slots:], 0)


def answers(cache, tok, prompts, limit=24):
    """Greedy, all lanes at once -> texts"""
    ids = [list(p) for p in prompts]
    done = np.zeros(len(ids), bool)
    for at in range(max(map(len, ids)) + limit):
        logits = cache.step(np.array([lane[at] for lane in ids]))
        for lane, row, asked in zip(range(len(ids)), ids, prompts):
            if at + 1 == len(row):
                row.append(int(logits[lane].argmax()))
                done[lane] |= row[-1] == tok.im_end or len(row) == len(asked) + limit
        if done.all():
            break
    return [tok.decode(row[len(asked):]).split("<|im_end|>")[0] for row, asked in zip(ids, prompts)]


def measure_recall(net, told, distances, slots, region, policy, sample, ways=("",)):
    """-> {way: facts recalled at each distance, [distances, lanes]}.  ways: "" asks; "given" sees the
    turn in its region from then on; "again" reads the turn's text first."""
    lanes = len(told.rows)
    make = lambda: Cache(net, lanes, slots, region, policy, told.fact, sample)
    cache, forks = make(), [make() for _ in distances]
    for at in range(told.steps):
        for fork, wanted in zip(forks, np.array(told.at).T):
            for lane in np.flatnonzero(wanted == at):
                fork.put(lane, cache)
        if at + 1 < told.steps:
            cache.step(told.rows[:, at], want_logits=False)
    out = {way: [] for way in ways}
    for fork in forks:
        for way in ways:
            run = make()
            for lane in range(lanes):
                run.put(lane, fork)
                if way == "given":
                    run.give(lane)
            prompts = [(again if way == "again" else []) + asked
                       for again, (asked, _) in zip(told.again, told.asked)]
            texts = answers(run, told.tok, prompts)
            out[way].append([value.casefold() in text.casefold() for text, (_, value) in zip(texts, told.asked)])
    return {way: np.array(hits) for way, hits in out.items()}


class Sample:
    """Statistics of another text: means of keys [layers, kv heads, d], the most frequent ids."""

    def __init__(self, net, ids):
        reader = Reader(net, 124, len(ids), SINKS)
        reader.read(ids)
        self.means = reader.k.mean(1)
        self.frequent = np.bincount(ids).argsort(kind="stable")[::-1][:FREQUENT]


def regions(a):
    """Policies with their regions; a policy without a region is `oldest`."""
    for policy in a.policies.split(","):
        if policy not in POLICIES:
            raise SystemExit(f"no policy called {policy}: {', '.join(POLICIES)}")
        for region in [0] if policy == "oldest" else map(int, a.region.split(",")):
            yield policy, region


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    for name in ("loss", "recall", "turns"):
        ap.add_argument("--" + name, action="store_true")
    ap.add_argument("--ids", help="a text for --loss: a list of ids, or lists of them, or an object with either")
    ap.add_argument("--slots", type=int, default=124, help="behind the sinks, in each layer and KV head")
    ap.add_argument("--region", default="31", help="how many of them are region; several with commas")
    ap.add_argument("--policies", default=",".join(p for p in POLICIES if p != "recent"))
    ap.add_argument("--lanes", type=int, default=39, help="texts side by side")
    ap.add_argument("--tokens", type=int, default=1000, help="of each text of --loss")
    ap.add_argument("--together", type=int, default=1, help="facts told one after the other; --turns gives all back")
    ap.add_argument("--distances", default="60,180,380,780")
    a = ap.parse_args()
    net = Net(a.model)
    distances = list(map(int, a.distances.split(",")))
    if a.loss:
        if a.ids:
            with open(a.ids) as f:
                data = json.load(f)
            data = (data.get("chunks") or data["ids"]) if isinstance(data, dict) else data
            data = np.concatenate([np.array(c, int).ravel() for c in data])
            lanes = min(a.lanes, len(data) // a.tokens)
            rows, other = data[:lanes * a.tokens].reshape(lanes, -1), data[-500:]
        else:
            rows, other = dialogues(a.lanes, a.tokens), dialogues(a.lanes + 1, 500)[-1]
        base, sample = None, Sample(net, other)
        print(f"{rows.shape[0]} texts of {rows.shape[1]} tokens, {SINKS} + {a.slots} slots\n")
        print("| policy | region | nats a token | against the first row | +- |\n" + "|---" * 5 + "|")
        for policy, region in regions(a):
            loss = measure_loss(net, rows, a.slots, region, policy, sample)
            base = loss if base is None else base
            spread = (loss - base).std() / np.sqrt(max(len(loss) - 1, 1))
            print(f"| {policy} | {region} | {loss.mean():.4f} | {(loss - base).mean():+.4f} | {spread:.4f} |",
                  flush=True)
    if a.recall or a.turns:
        told = Told(a.lanes, distances, a.together)
        sample = Sample(net, dialogues(1, 500)[0])
        longest = max(b - a for a, b in told.fact)
        print(f"{len(told.rows)} facts, {SINKS} + {a.slots} slots, turns of at most {longest} tokens\n")
        print("| policy | region | " + " | ".join(map(str, distances)) + " |\n" + "|---" * (2 + len(distances)) + "|")
        line = lambda name, region, hits: print(
            f"| {name} | {region} | " + " | ".join(str(h.sum()) for h in hits) + " |", flush=True)
        for policy, region in regions(a) if a.recall else ():
            line(policy, region, measure_recall(net, told, distances, a.slots, region, policy, sample)[""])
        for region in map(int, a.region.split(",")) if a.turns else ():
            got = measure_recall(net, told, distances, a.slots, region, "given", sample, ("", "given", "again"))
            line("window alone", region, got[""])
            line("the turn given back", region, got["given"])
            line("its text read again", region, got["again"])


if __name__ == "__main__":
    main()
