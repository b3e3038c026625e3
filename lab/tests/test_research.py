"""lab/research: eviction.py computes what the program computes, and budget_plots.py draws the plots of docs/memory.md:
test_research.py ORIEL MODEL"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab" / "research"))
import eviction
from kv_formats import Model
from eviction import Net, Reader

ORIEL, MODEL = sys.argv[1:3]
TOKENS, SLOTS, REGION = 160, 40, 15


def losses(net, rows, region, policy, sample):
    cache = eviction.Cache(net, len(rows), SLOTS, region, policy, [(9, 15)] * len(rows), sample)
    return np.array([eviction.nll(cache.step(rows[:, t]), rows[:, t + 1]) for t in range(rows.shape[1] - 1)]), cache


class Streaming(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.net = Net(MODEL)
        rng = np.random.RandomState(5)
        cls.rows = rng.randint(3, cls.net.head.shape[0], (2, TOKENS))
        cls.sample = eviction.Sample(cls.net, cls.rows[0])
        cls.oldest, _ = losses(cls.net, cls.rows, 0, "oldest", cls.sample)

    def test_without_a_region_losses_are_the_programs(self):
        for lane, ids in enumerate(self.rows):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
                json.dump({"ids": ids.tolist()}, f)
                f.flush()
                done = subprocess.run([ORIEL, "eval", MODEL, "--tokens-file", f.name, "--window", str(SLOTS), "--kv",
                                       "f16", "--device", "cpu", "--json", "--nll"], stdout=subprocess.PIPE, check=True)
            # The program rounds keys and values to half floats, the script does not.
            self.assertAlmostEqual(json.loads(done.stdout)["nll_mean"], self.oldest[:, lane].mean(), 3)

    def test_a_region_of_the_newest_is_a_longer_window(self):
        """Fails if a member of the region has a wrong position or is lost."""
        recent, _ = losses(self.net, self.rows, REGION, "recent", self.sample)
        np.testing.assert_allclose(recent, self.oldest, atol=2e-4)

    def test_a_text_read_in_blocks_is_the_same(self):
        reader = Reader(self.net, SLOTS, TOKENS, eviction.SINKS, block=48)
        logits = reader.read(self.rows[0]) @ self.net.head.T
        np.testing.assert_allclose(eviction.nll(logits[:-1], self.rows[0, 1:]), self.oldest[:, 0], atol=2e-4)

    def test_every_policy_fills_its_region_with_tokens_that_left(self):
        for policy in eviction.POLICIES[1:]:
            loss, cache = losses(self.net, self.rows, REGION, policy, self.sample)
            self.assertTrue(np.isfinite(loss).all(), policy)
            kept = np.sort(cache.far_position, -1)
            self.assertTrue((np.diff(kept, axis=-1) > 0).all(), policy)  # no token twice
            self.assertGreaterEqual(kept.min(), eviction.SINKS)
            self.assertLess(kept.max(), TOKENS - 1 - cache.window)
            # In the order of their positions, wherever they lie.
            by_rank = np.take_along_axis(cache.far_position, cache.far_rank.argsort(-1), -1)
            np.testing.assert_array_equal(by_rank, kept)
            if policy == "fact":
                self.assertTrue((np.isin(np.arange(9, 15), kept[0, 0, 0])).all())

    def test_heavy_hitters_are_those_of_the_definition(self):
        """The first layer's keys and queries depend on no cache: there the region is simulated in float64, as a list
        of positions and one rotation of every key where it stands."""
        model = Model(MODEL)
        x = model.norm(model.w["token_embd.weight"][self.rows[0]], "blk.0.attn_norm")
        heads = lambda side: model.linear(x, "blk.0.attn_" + side).reshape(TOKENS, -1, model.head_dim)
        q, k = heads("q")[:, :model.heads // model.kv_heads], heads("k")[:, :1]
        for policy in ("heavy", "heavy/n", "heavy-decay"):
            seen, sums = [], np.zeros(TOKENS)
            for t in range(TOKENS - 1):
                left = [p for p in seen if eviction.SINKS <= p <= t - (SLOTS - REGION)]
                if len(left) > REGION:
                    worth = {p: sums[p] / (t - p if policy == "heavy/n" else 1) for p in left}
                    seen.remove(min(worth, key=worth.get))
                seen.append(t)
                place = np.arange(len(seen), dtype=float)
                turned = model.rope(k[seen], place)[:, 0]
                score = model.rope(q[t:t + 1], place[-1:])[0] @ turned.T / np.sqrt(model.head_dim)
                weight = np.exp(score - score.max(-1, keepdims=True))
                if policy == "heavy-decay":
                    sums *= 0.5**(1 / eviction.HALF_LIFE)
                sums[seen] += (weight / weight.sum(-1, keepdims=True)).sum(0)
            _, cache = losses(self.net, self.rows, REGION, policy, self.sample)
            kept = [p for p in seen if eviction.SINKS <= p <= t - (SLOTS - REGION)]
            self.assertEqual(kept, sorted(cache.far_position[0, 0, 0].astype(int)), policy)

    def test_of_the_two_most_alike_the_older_goes(self):
        _, cache = losses(self.net, self.rows, REGION, "diverse", self.sample)
        unit = cache.unit[0, 0, 0]
        expected = unit @ unit.T - 2 * np.eye(REGION)  # 1 with itself, where the script has -1
        np.testing.assert_allclose(cache.alike[0, 0, 0], expected, atol=1e-5)

    def test_a_turn_that_is_given_back_stands_behind_the_sinks(self):
        """Shown as it leaves the window, it is as if it had not left."""
        fact = [(eviction.SINKS, eviction.SINKS + REGION)] * 2
        cache = eviction.Cache(self.net, 2, SLOTS, REGION, "given", fact)
        for t in range(eviction.SINKS + SLOTS):
            cache.far_n[:] = np.clip(t + 1 - eviction.SINKS - cache.window, 0, REGION)
            loss = eviction.nll(cache.step(self.rows[:, t]), self.rows[:, t + 1])
            np.testing.assert_allclose(loss, self.oldest[t], atol=2e-4)


class Plots(unittest.TestCase):
    def test_each_of_the_page_is_drawn_again(self):
        shapes = re.findall(r"\(budget-(.*?)\.svg\)", (ROOT / "docs/memory.md").read_text(encoding="utf-8"))
        self.assertEqual(3, len(shapes))
        with tempfile.TemporaryDirectory() as folder:
            script = ROOT / "lab/research/budget_plots.py"
            subprocess.run([sys.executable, script, ORIEL, *shapes, "--out", folder], check=True)
            for shape in shapes:
                now = (pathlib.Path(folder) / f"budget-{shape}.svg").read_text(encoding="utf-8")
                kept = (ROOT / f"docs/budget-{shape}.svg").read_text(encoding="utf-8")
                words = [node.firstChild.data for node in xml.dom.minidom.parseString(kept).getElementsByTagName("text")]
                self.assertRegex(words[0], rf"^{shape}: [\d,]+ tokens in [\d,]+ MiB, [\d,]+ in [\d,]+ MiB")
                self.assertEqual([], [word for word in words if re.search(r"\d{4}", word)], "no separators")
                self.assertLess(len(kept), 60000)
                # Plans may differ by a few bytes between versions, but the visible plot must not.
                colours = [re.findall(r'stroke="(#\w+)"', text) for text in (kept, now)]
                self.assertLess(abs(len(colours[0]) - len(colours[1])), 6, "run lab/research/budget_plots.py")
                self.assertEqual(set(colours[0]), set(colours[1]), "run lab/research/budget_plots.py")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
