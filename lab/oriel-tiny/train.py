"""Trains oriel-tiny on the generated dialogues.

    python3 train.py --data data --out run                 # CPU or CUDA
    python3 train.py --data data --out run --resume        # go on after a stop
    python3 train.py --data more --out run2 --start-from run/model.pt   # a second stage

The loss is taken on assistant tokens, and with a tenth of the weight on user and system text.
Every row of a batch is one dialogue that starts at position 0, so dialogues do not see each other; rows of similar
length share a batch of --batch-tokens.  The learning rate goes
up linearly, stays, and falls to zero over the last part of --tokens, so the schedule does not
depend on the machine.  A checkpoint with the state of the optimisers is written every
--save-minutes; a stopped and resumed run makes the same steps as an uninterrupted one.
Matrix products run in bf16, master weights are fp32.
"""
import argparse
import csv
import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from dialogue import encode_dialogue
from model import Config, Model, n_params
from phrases import Rng
from tokenizer import Tokenizer


def load_split(data, split, tok, context):
    """Encoded dialogues as flat arrays, cached in an .npz next to the text."""
    src, cache = os.path.join(data, split + ".jsonl"), os.path.join(data, split + ".npz")
    if os.path.exists(cache) and os.path.getmtime(cache) > os.path.getmtime(src):
        z = np.load(cache)
        return z["ids"], z["mask"], z["start"]
    ids, mask, start = [], [], [0]
    with open(src) as f:
        for line in f:
            i, m = encode_dialogue(tok, json.loads(line), context)
            if sum(m):
                ids.append(np.array(i, np.uint16))
                mask.append(np.array(m, np.uint8))
                start.append(start[-1] + len(i))
    ids, mask, start = np.concatenate(ids), np.concatenate(mask), np.array(start, np.int64)
    np.savez(cache, ids=ids, mask=mask, start=start)
    return ids, mask, start


USER_SAMPLE = 4  # one user token of this number is trained on, with this factor on its weight


def batches(split, batch_tokens, rng, user_weight=0.0, pool=4096, pad_to=32):
    """Yields (ids, target, weight); positions with weight 0 have no target.

    Assistant tokens weigh 1, user and system tokens `user_weight` on average.
    """
    ids, mask, start = split
    noise = np.random.default_rng(rng.randrange(1 << 32)) if rng else None
    order = list(range(len(start) - 1))
    if rng:
        rng.shuffle(order)
    for p in range(0, len(order), pool):
        rows = sorted(order[p : p + pool], key=lambda r: start[r + 1] - start[r])
        groups, cur, width = [], [], 0
        for r in rows:
            w = -(-int(start[r + 1] - start[r]) // pad_to) * pad_to
            if cur and max(w, width) * (len(cur) + 1) > batch_tokens:
                groups.append((cur, width))
                cur, width = [], 0
            cur.append(r)
            width = max(w, width)
        groups.append((cur, width))
        if rng:
            rng.shuffle(groups)
        for g, width in groups:
            x = np.zeros((len(g), width), np.int64)
            m = np.zeros((len(g), width), np.float32)
            for i, r in enumerate(g):
                n = start[r + 1] - start[r]
                x[i, :n] = ids[start[r] : start[r + 1]]
                m[i, :n] = mask[start[r] : start[r + 1]]
            user = m == 2
            m[user] = 0
            if user_weight:
                m[user & (noise.random(m.shape) < 1 / USER_SAMPLE)] = user_weight * USER_SAMPLE
            # position t predicts token t + 1
            y = np.roll(x, -1, 1)
            weight = np.roll(m, -1, 1)
            weight[:, -1] = 0
            yield torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(weight)


class Muon:
    """Momentum with orthogonalised updates for the matrices inside the blocks.

    Each update is brought close to an orthogonal matrix with five
    Newton-Schulz steps and scaled so that its size matches AdamW's, so both
    share one learning rate.  Q, K, V, gate and up count as single matrices.
    """

    def __init__(self, model, decay, momentum=0.95):
        self.decay, self.momentum, self.lr = decay, momentum, 0.0
        cfg = model.cfg
        h, k, d = cfg.heads, cfg.kv_heads, cfg.head_dim
        parts = {
            "qkv": [h * d, k * d, k * d],
            "out": [cfg.dim],
            "gate_up": [cfg.ffn, cfg.ffn],
            "down": [cfg.dim],
        }
        self.items = [(getattr(b, n), sizes) for b in model.blocks for n, sizes in parts.items()]
        self.buffers = [torch.zeros_like(p) for p, _ in self.items]

    @staticmethod
    def orthogonalise(g):
        x = g.to(torch.bfloat16)
        tall = x.shape[1] > x.shape[2]
        if tall:
            x = x.transpose(1, 2)
        x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).to(x.dtype)
        for _ in range(5):
            a = torch.bmm(x, x.transpose(1, 2))
            b = -4.7750 * a + 2.0315 * torch.bmm(a, a)
            x = 3.4445 * x + torch.bmm(b, x)
        return x.transpose(1, 2) if tall else x

    @torch.no_grad()
    def step(self, run=None):
        """`run(jobs)` calls functions, maybe on several threads; default: one by one."""
        groups = {}
        for (p, sizes), m in zip(self.items, self.buffers):
            m.mul_(self.momentum).add_(p.grad)
            g = torch.add(p.grad, m, alpha=self.momentum)
            p.mul_(1 - self.lr * self.decay)
            for part, grad in zip(p.split(sizes), g.split(sizes)):
                groups.setdefault(tuple(part.shape), []).append((part, grad))

        def update(shape, pairs):
            u = self.orthogonalise(torch.stack([g for _, g in pairs]))
            scale = 0.2 * max(shape) ** 0.5
            for (part, _), du in zip(pairs, u.float()):
                part.sub_(du, alpha=self.lr * scale)

        jobs = [
            lambda s=s, h=h: update(s, h)
            for s, pairs in groups.items()
            for h in (pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :])
            if h
        ]
        (run or (lambda jobs: [j() for j in jobs]))(jobs)

    def state_dict(self):
        return self.buffers

    def load_state_dict(self, buffers):
        for m, b in zip(self.buffers, buffers):
            m.copy_(b)


def batch_loss(model, batch, device):
    """-> weighted mean loss, sum of the weights."""
    x, y, weight = (t.to(device) for t in batch)
    h = model.hidden(x).reshape(-1, model.cfg.dim)
    at = weight.reshape(-1).nonzero().squeeze(1)
    w = weight.reshape(-1).index_select(0, at)
    return model.loss(h.index_select(0, at), y.reshape(-1).index_select(0, at), w), float(w.sum())


class Workers:
    """Splits a batch over threads that each run forward and backward alone.

    On a CPU this beats parallel operators: there is one meeting per step
    instead of thousands, which matters most when other programs run, too.
    """

    def __init__(self, model, count):
        self.model, self.count = model, count
        self.params = list(model.parameters())
        self.pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))

    def run(self, jobs):
        for j in [self.pool.submit(torch.no_grad()(f)) for f in jobs]:
            j.result()

    def part(self, batch, total):
        loss, n = batch_loss(self.model, batch, "cpu")
        return float(loss) * n / total, torch.autograd.grad(loss * (n / total), self.params)

    def step(self, batch):
        """Leaves the gradients in .grad; returns (loss, sum of the weights)."""
        rows, total = len(batch[0]), float(batch[2].sum())
        cuts = [rows * i // self.count for i in range(self.count + 1)]
        jobs = [
            self.pool.submit(self.part, tuple(t[a:b] for t in batch), total)
            for a, b in zip(cuts, cuts[1:])
            if b > a and batch[2][a:b].any()
        ]
        done = [j.result() for j in jobs]
        for i, p in enumerate(self.params):
            p.grad = done[0][1][i]
            for _, g in done[1:]:
                p.grad = p.grad + g[i]
        return sum(l for l, _ in done), total


@torch.no_grad()
def validate(model, split, device, limit=None):
    total, count = 0.0, 0
    for i, b in enumerate(batches(split, 8192, None)):
        if limit and i >= limit:
            break
        loss, n = batch_loss(model, b, device)
        total += float(loss) * n
        count += n
    return total / count


def rate_at(done, warm, fall):
    """Warm-up, plateau, and a fall to zero; `done` is the share of the tokens seen."""
    return min(done / warm, 1.0, (1 - done) / fall)


def options():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="data")
    ap.add_argument("--out", default="run")
    ap.add_argument("--tokenizer", default="tokenizer.json")
    ap.add_argument("--tokens", type=float, default=32e6, help="token budget (padding not counted)")
    ap.add_argument("--batch-tokens", type=int, default=16384)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--warmup", type=float, default=0.02, help="share of the tokens")
    ap.add_argument("--fall", type=float, default=0.6, help="share of the tokens")
    ap.add_argument("--decay", type=float, default=0.1)
    ap.add_argument(
        "--user-weight", type=float, default=0.1, help="loss weight of user and system text"
    )
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count(),
        help="CPU: split batches over so many threads",
    )
    ap.add_argument("--save-minutes", type=float, default=5)
    ap.add_argument("--eval-steps", type=int, default=250)
    ap.add_argument("--stop-steps", type=int, help="save and leave after so many steps")
    ap.add_argument("--resume", action="store_true")
    ap.add_argument("--start-from", metavar="MODEL", help="weights to begin with, a model.pt")
    for k, v in Config().as_dict().items():
        ap.add_argument("--" + k.replace("_", "-"), type=type(v), default=v)
    return ap.parse_args()


# glibc gives large blocks back to the system at once and gets them again page by page, which
# costs a quarter of the speed; it reads these when a program starts.
MALLOC = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(1 << 26),
}


def main():
    a = options()
    if "MALLOC_MMAP_MAX_" not in os.environ:
        os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **MALLOC})
    os.makedirs(a.out, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)
    cfg = Config(**{k: getattr(a, k) for k in Config().as_dict()})
    tok = Tokenizer.load(a.tokenizer)
    train, val = (load_split(a.data, s, tok, cfg.context) for s in ("train", "val"))
    print(
        f"train {len(train[0]) / 1e6:.1f}M tokens in {len(train[2]) - 1} dialogues ({(train[1] == 1).mean():.0%} assistant), "
        f"val {len(val[0]) / 1e6:.2f}M",
        flush=True,
    )

    torch.manual_seed(a.seed)
    model = Model(cfg).to(device)
    model.compute = torch.bfloat16
    muon = Muon(model, a.decay)
    own = {id(p) for p, _ in muon.items}
    decay = [p for p in model.parameters() if p.dim() == 2 and id(p) not in own]
    plain = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": a.decay}, {"params": plain, "weight_decay": 0.0}],
        lr=a.lr,
        betas=(0.9, 0.95),
        eps=1e-8,
        foreach=True,
    )
    if a.start_from:
        model.load_state_dict(torch.load(a.start_from, map_location=device)["model"])
    step, seen, spent, epoch, skip = 0, 0, 0.0, 0, 0
    path = os.path.join(a.out, "checkpoint.pt")
    if a.resume and os.path.exists(path):
        ck = torch.load(path, map_location=device)
        model.load_state_dict(ck["model"])
        opt.load_state_dict(ck["opt"])
        muon.load_state_dict(ck["muon"])
        step, seen, spent, epoch, skip = (
            ck[k] for k in ("step", "seen", "spent", "epoch", "in_epoch")
        )
    print(f"{n_params(model) / 1e6:.2f}M parameters on {device}, step {step}", flush=True)

    workers = Workers(model, a.workers) if device == "cpu" else None
    log = open(os.path.join(a.out, "log.csv"), "a" if step else "w", newline="")
    writer = csv.writer(log)
    if not step:
        writer.writerow(["step", "tokens", "seconds", "lr", "train_loss", "val_loss"])

    def save(done=False):
        state = {
            "model": model.state_dict(),
            "config": cfg.as_dict(),
            "step": step,
            "seen": seen,
            "spent": clock(),
            "epoch": epoch,
            "in_epoch": in_epoch,
        }
        if done:
            torch.save(state, os.path.join(a.out, "model.pt"))
        state["opt"] = opt.state_dict()
        state["muon"] = muon.state_dict()
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)

    # Ctrl-C or kill: finish the step, save, leave.
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: setattr(a, "stop_steps", 1))
    t0, seen0 = time.time(), seen
    clock = lambda: spent + time.time() - t0
    last_save, run_loss, run_n, in_epoch, done = clock(), 0.0, 0, 0, False
    while not done:
        in_epoch = 0
        for b in batches(train, a.batch_tokens, Rng(f"{a.seed}-{epoch}"), a.user_weight):
            if in_epoch < skip:
                in_epoch += 1
                continue
            if seen >= a.tokens or a.stop_steps and step >= a.stop_steps:
                done = True
                break
            in_epoch += 1
            count = int((b[0] != 0).sum())
            rate = rate_at(min(seen + count, a.tokens - 1) / a.tokens, a.warmup, a.fall)
            for g in opt.param_groups:
                g["lr"] = a.lr * rate
            muon.lr = a.lr * rate
            if workers:
                loss, n = workers.step(b)
            else:
                loss, n = batch_loss(model, b, device)
                model.zero_grad(set_to_none=True)
                loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            muon.step(workers.run if workers else None)
            step += 1
            seen += count
            run_loss += float(loss) * n
            run_n += n
            if step % 50 == 0 or step == a.stop_steps:
                speed = (seen - seen0) / (time.time() - t0)
                print(
                    f"step {step} tokens {seen / 1e6:.2f}M {clock() / 60:.1f} min lr {a.lr * rate:.5f} loss {run_loss / run_n:.4f} "
                    f"{speed:.0f} tok/s, {(a.tokens - seen) / speed / 60:.0f} min to go",
                    flush=True,
                )
                v = validate(model, val, device, limit=12) if step % a.eval_steps == 0 else ""
                if v:
                    print(f"  validation {v:.4f}", flush=True)
                writer.writerow(
                    [
                        step,
                        seen,
                        round(clock()),
                        f"{a.lr * rate:.6f}",
                        f"{run_loss / run_n:.4f}",
                        f"{v:.4f}" if v else "",
                    ]
                )
                log.flush()
                run_loss, run_n = 0.0, 0
            if clock() - last_save > a.save_minutes * 60:
                save()
                last_save = clock()
        else:
            epoch, skip = epoch + 1, 0
    finished = seen >= a.tokens
    if finished:
        v = validate(model, val, device)
        print(
            f"done: {step} steps, {seen / 1e6:.2f}M tokens, {clock() / 60:.1f} min, validation {v:.4f}",
            flush=True,
        )
        writer.writerow([step, seen, round(clock()), "", "", f"{v:.4f}"])
    save(True)


if __name__ == "__main__":
    main()
