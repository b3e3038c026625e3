"""Trains oriel-tiny on the generated dialogues.

    python3 train.py --data data --out run --tokens 30e6
    python3 train.py --data data --out run --minutes 60     # budget by the clock

    python3 train.py --data data --out run --init ../oriel-tiny-f16.gguf   # continue

The loss is taken on assistant tokens, with --user-weight also a little on the rest.  Dialogues are batched with others
of similar length, one per row, starting at position 0.  The learning rate goes
up linearly, then down as a cosine over the token or time budget.  A checkpoint
is written every --save-minutes and picked up again by --resume.
Matrix products run in bf16 (CPU with AMX or CUDA), master weights are fp32.
"""
import argparse
import csv
import json
import math
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from dialogue import encode_dialogue
from import_gguf import weights
from model import Config, Model, n_params
from tokenizer import Tokenizer


def load_split(data, split, tok, context):
    """Encoded dialogues as flat arrays, cached in an .npz beside the text."""
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


USER_SAMPLE = 4  # one in so many user tokens is trained on, with so many times the weight


def batches(split, batch_tokens, rng, user_weight=0.0, pool=4096, pad_to=32):
    """Yields (ids, target, weight); positions with weight 0 have no target.

    Assistant tokens weigh 1, user and system tokens `user_weight` on average.
    """
    ids, mask, start = split
    noise = np.random.default_rng(rng.getrandbits(32)) if rng else None
    order = list(range(len(start) - 1))
    if rng:
        rng.shuffle(order)
    for p in range(0, len(order), pool):
        rows = sorted(order[p:p + pool], key=lambda r: start[r + 1] - start[r])
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
                x[i, :n] = ids[start[r]:start[r + 1]]
                m[i, :n] = mask[start[r]:start[r + 1]]
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
        parts = {"qkv": [h * d, k * d, k * d], "out": [cfg.dim], "gate_up": [cfg.ffn, cfg.ffn], "down": [cfg.dim]}
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
    def step(self):
        groups = {}
        for (p, sizes), m in zip(self.items, self.buffers):
            m.mul_(self.momentum).add_(p.grad)
            g = torch.add(p.grad, m, alpha=self.momentum)
            p.mul_(1 - self.lr * self.decay)
            for part, grad in zip(p.split(sizes), g.split(sizes)):
                groups.setdefault(tuple(part.shape), []).append((part, grad))
        for shape, pairs in groups.items():
            u = self.orthogonalise(torch.stack([g for _, g in pairs]))
            scale = 0.2 * max(shape) ** 0.5
            for (part, _), du in zip(pairs, u.float()):
                part.sub_(du, alpha=self.lr * scale)

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

    def part(self, batch, total):
        loss, n = batch_loss(self.model, batch, "cpu")
        return float(loss) * n / total, torch.autograd.grad(loss * (n / total), self.params)

    def step(self, batch):
        """Leaves the gradients in .grad; returns (loss, sum of the weights)."""
        rows, total = len(batch[0]), float(batch[2].sum())
        cuts = [rows * i // self.count for i in range(self.count + 1)]
        jobs = [self.pool.submit(self.part, tuple(t[a:b] for t in batch), total) for a, b in zip(cuts, cuts[1:]) if b > a and batch[2][a:b].any()]
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


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="data")
    ap.add_argument("--out", default="run")
    ap.add_argument("--tokenizer", default="tokenizer.json")
    ap.add_argument("--tokens", type=float, default=30e6, help="token budget (padding not counted)")
    ap.add_argument("--minutes", type=float, help="clock budget instead of a token budget")
    ap.add_argument("--batch-tokens", type=int, default=8192)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--optimizer", choices=("adamw", "muon"), default="adamw",
                    help="muon: orthogonalised momentum for block matrices, AdamW for the rest")
    ap.add_argument("--min-lr", type=float, default=0.02, help="final rate as a share of --lr")
    ap.add_argument("--warmup", type=int, default=150, help="steps")
    ap.add_argument("--decay", type=float, default=0.1)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--threads", type=int, default=0)
    ap.add_argument("--workers", type=int, default=0, help="CPU: split batches over this many threads instead")
    ap.add_argument("--save-minutes", type=float, default=8)
    ap.add_argument("--eval-steps", type=int, default=250)
    ap.add_argument("--resume", action="store_true")
    ap.add_argument("--init", help="start from the weights of this GGUF file")
    ap.add_argument("--user-weight", type=float, default=0.0, help="loss weight of user and system text")
    for k, v in Config().as_dict().items():
        ap.add_argument("--" + k.replace("_", "-"), type=type(v), default=v)
    a = ap.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
    os.makedirs(a.out, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cfg = Config(**{k: getattr(a, k) for k in Config().as_dict()})
    tok = Tokenizer.load(a.tokenizer)
    train, val = (load_split(a.data, s, tok, cfg.context) for s in ("train", "val"))
    print(f"train {len(train[0]) / 1e6:.1f}M tokens in {len(train[2]) - 1} dialogues ({(train[1] == 1).mean():.0%} assistant), "
          f"val {len(val[0]) / 1e6:.2f}M", flush=True)

    torch.manual_seed(a.seed)
    model = Model(cfg).to(device)
    if a.init:
        model.load_state_dict(weights(a.init)[0])
    model.compute = torch.bfloat16
    muon = Muon(model, a.decay) if a.optimizer == "muon" else None
    own = {id(p) for p, _ in muon.items} if muon else set()
    decay = [p for p in model.parameters() if p.dim() == 2 and id(p) not in own]
    plain = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": a.decay}, {"params": plain, "weight_decay": 0.0}],
                            lr=a.lr, betas=(0.9, 0.95), eps=1e-8, foreach=True)
    step, seen, spent, epoch, skip = 0, 0, 0.0, 0, 0
    path = os.path.join(a.out, "checkpoint.pt")
    if a.resume and os.path.exists(path):
        ck = torch.load(path, map_location=device)
        model.load_state_dict(ck["model"])
        opt.load_state_dict(ck["opt"])
        if muon:
            muon.load_state_dict(ck["muon"])
        step, seen, spent, epoch, skip = (ck[k] for k in ("step", "seen", "spent", "epoch", "in_epoch"))
    print(f"{n_params(model) / 1e6:.2f}M parameters on {device}, step {step}", flush=True)

    workers = Workers(model, a.workers) if a.workers else None
    log = open(os.path.join(a.out, "log.csv"), "a" if step else "w", newline="")
    writer = csv.writer(log)
    if not step:
        writer.writerow(["step", "tokens", "seconds", "lr", "train_loss", "val_loss"])

    def save(done=False):
        state = {"model": model.state_dict(), "config": cfg.as_dict(), "step": step, "seen": seen, "spent": clock(),
                 "epoch": epoch, "in_epoch": in_epoch}
        if done:
            torch.save(state, os.path.join(a.out, "model.pt"))
        state["opt"] = opt.state_dict()
        state["muon"] = muon.state_dict() if muon else None
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)

    t0 = time.time()
    clock = lambda: spent + time.time() - t0
    last_save, run_loss, run_n, in_epoch, done = clock(), 0.0, 0, 0, False
    while not done:
        in_epoch = 0
        for b in batches(train, a.batch_tokens, random.Random(f"{a.seed}-{epoch}"), a.user_weight):
            in_epoch += 1
            if in_epoch <= skip:
                continue
            at = clock() / (a.minutes * 60) if a.minutes else seen / a.tokens
            if at >= 1:
                done = True
                break
            rate = min((step + 1) / a.warmup, 1.0) * (a.min_lr + (1 - a.min_lr) * 0.5 * (1 + math.cos(math.pi * at)))
            for g in opt.param_groups:
                g["lr"] = a.lr * rate
            if workers:
                loss, n = workers.step(b)
            else:
                loss, n = batch_loss(model, b, device)
                model.zero_grad(set_to_none=True)
                loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            if muon:
                muon.lr = a.lr * rate
                muon.step()
            step += 1
            seen += int((b[0] != 0).sum())
            run_loss += float(loss) * n
            run_n += n
            if step % 50 == 0:
                print(f"step {step} tokens {seen / 1e6:.2f}M {clock() / 60:.1f} min lr {a.lr * rate:.5f} "
                      f"loss {run_loss / run_n:.4f} {seen / clock():.0f} tok/s", flush=True)
                v = validate(model, val, device, limit=12) if step % a.eval_steps == 0 else ""
                if v:
                    print(f"  validation {v:.4f}", flush=True)
                writer.writerow([step, seen, round(clock()), f"{a.lr * rate:.6f}", f"{run_loss / run_n:.4f}", f"{v:.4f}" if v else ""])
                log.flush()
                run_loss, run_n = 0.0, 0
            if clock() - last_save > a.save_minutes * 60:
                save()
                last_save = clock()
        else:
            epoch, skip = epoch + 1, 0
    v = validate(model, val, device)
    print(f"done: {step} steps, {seen / 1e6:.2f}M tokens, {clock() / 60:.1f} min, validation {v:.4f}", flush=True)
    writer.writerow([step, seen, round(clock()), "", "", f"{v:.4f}"])
    save(done=True)


if __name__ == "__main__":
    main()
