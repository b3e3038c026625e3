"""oriel-eyes: a tiny model that answers questions about simple pictures. Draws the pictures, trains, writes two GGUF files.

    python3 eyes.py train --out run                              # run/model.pt
    python3 eyes.py export --model run/model.pt --out oriel-eyes # oriel-eyes.gguf, oriel-eyes-mmproj.gguf
    python3 eyes.py judge --files oriel-eyes --library liboriel.so   # held-out pictures, through Oriel
    python3 eyes.py draw --out pictures                          # a few of them, as PNG files

The encoder is an `idefics3` one (SigLIP's blocks, patches joined 2 x 2, one matrix), the text model llama's.
README.md beside this file is the model's card.
"""
import argparse
import collections
import os
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "oriel-tiny"))
import gguf  # noqa: E402
from model import Config, Model, n_params  # noqa: E402
from pictures import ASKED, COLOURS, GROUNDS, LIT, SHAPES, SIDE, Dice, answer, dialogue, draw, invent, write_png  # noqa: E402
from tokenizer import SPECIALS, Tokenizer, learn_from  # noqa: E402
from train import Muon, rate_at  # noqa: E402

PATCH, MERGE = 8, 2  # pixels a side of a patch; patches a side of a row
WIDTH, DEPTH, HEADS, FFN = 64, 4, 4, 128  # of the encoder
EPS = 1e-5
TEXT = dict(dim=64, layers=3, heads=4, kv_heads=2, head_dim=16, ffn=128, context=512)

# ---- Dialogues as tokens --------------------------------------------------------------------------

EXTRA = ["<image>", "<fake_token_around_image>", "<global-img>"]
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}{% if message['content'] is string %}"
    "{{ message['content'] }}{% else %}{% for part in message['content'] %}{% if part['type'] == 'image' %}{{ '<image>' }}"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
ROWS = (SIDE // PATCH // MERGE) ** 2
ROW = -1  # stands for a row of a picture


def make_tokenizer():
    dice = Dice(7)
    rows = [{"system": None, "turns": [{"user": turn[1], "assistant": turn[2]} for turn in dialogue(dice)]} for _ in range(3000)]
    return learn_from(rows, 480)


def encode(tok, turns):
    """ids, and for each its weight in the loss: 1 in answers."""
    first = len(tok.tokens)
    ids, weights = [], []
    for picture, asked, told, _ in turns:
        shown = [first + 1, first + 2] + [ROW] * ROWS + [first + 1] if picture else []
        before = tok.encode("<|im_start|>user\n") + shown + tok.encode(f"{asked}<|im_end|>\n<|im_start|>assistant\n")
        said = tok.encode(told + "<|im_end|>")
        after = tok.encode("\n")
        ids += before + said + after
        weights += [0] * len(before) + [1] * len(said) + [0] * len(after)
    return ids, weights


# ---- The model -----------------------------------------------------------------------------------


def waves(side, width):
    """Positions to begin with: sines and cosines of the row and the column, so that near patches are alike."""
    pace = torch.pi * 2.0 ** torch.linspace(-1, 2, width // 4) / side * (torch.arange(side)[:, None] + 0.5)
    along = torch.cat([pace.sin(), pace.cos()], 1)
    return 0.3 * torch.cat([along[:, None].expand(-1, side, -1), along[None].expand(side, -1, -1)], 2).reshape(side * side, width)


class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("ln1", "ln2"):
            setattr(self, name, nn.LayerNorm(WIDTH, EPS))
        for name, rows, cols in (("attn_q", WIDTH, WIDTH), ("attn_k", WIDTH, WIDTH), ("attn_v", WIDTH, WIDTH),
                                 ("attn_out", WIDTH, WIDTH), ("ffn_up", FFN, WIDTH), ("ffn_down", WIDTH, FFN)):
            setattr(self, name, nn.Linear(cols, rows))


class Eyes(nn.Module):
    """Both parts. Tensors have GGUF's names where they go into a file as they are."""

    def __init__(self, vocab):
        super().__init__()
        self.patch_embd = nn.Linear(3 * PATCH * PATCH, WIDTH)
        self.position_embd = nn.Parameter(waves(SIDE // PATCH, WIDTH))
        self.blk = nn.ModuleList(EncoderBlock() for _ in range(DEPTH))
        self.post_ln = nn.LayerNorm(WIDTH, EPS)
        self.fc = nn.Linear(MERGE * MERGE * WIDTH, TEXT["dim"], bias=False)
        self.text = Model(Config(vocab=vocab, **TEXT))

    def rows(self, pictures):
        """uint8 [B, SIDE, SIDE, 3] -> [B * ROWS, dim]"""
        ct, n, side = self.text.compute, len(pictures), SIDE // PATCH

        def times(layer, x):
            return F.linear(x.to(ct), layer.weight.to(ct), None if layer.bias is None else layer.bias.to(ct))

        x = (pictures.float() / 255 - 0.5) / 0.5
        x = x.view(n, side, PATCH, side, PATCH, 3).permute(0, 1, 3, 5, 2, 4).reshape(n, side * side, -1)
        x = times(self.patch_embd, x).float() + self.position_embd
        for b in self.blk:
            y = b.ln1(x)
            q, k, v = (times(m, y).view(n, -1, HEADS, WIDTH // HEADS).transpose(1, 2) for m in (b.attn_q, b.attn_k, b.attn_v))
            seen = (q @ k.transpose(2, 3) * (WIDTH // HEADS) ** -0.5).softmax(-1) @ v
            x = x + times(b.attn_out, seen.transpose(1, 2).reshape(n, -1, WIDTH)).float()
            x = x + times(b.ffn_down, F.gelu(times(b.ffn_up, b.ln2(x)), approximate="tanh")).float()
        x = self.post_ln(x).view(n, side // MERGE, MERGE, side // MERGE, MERGE, WIDTH)
        return times(self.fc, x.transpose(2, 3).reshape(n * ROWS, -1)).float()

    def hidden(self, ids, rows):
        x = F.embedding(ids.clamp(min=0), self.text.embed)
        return self.text.layers(x.masked_scatter((ids == ROW)[..., None], rows))


# Facts that a picture's rows tell without the text model: the first part of the training.
LABELS = {"colour": list(COLOURS), "ground": list(COLOURS), "shape": [*SHAPES, "digit"], "count": [1, 2, 3, 4], "digit": [None, *LIT]}


def labels_loss(heads, rows, facts):
    """The loss, and the share of right labels of each kind."""
    z = heads(rows.view(len(facts), ROWS, -1).mean(1)).split([len(values) for values in LABELS.values()], 1)
    loss, right = 0.0, {}
    for part, (kind, values) in zip(z, LABELS.items()):
        wanted = torch.tensor([values.index(what[kind]) for what in facts])
        loss = loss + F.cross_entropy(part, wanted)
        right[kind] = float((part.argmax(1) == wanted).float().mean())
    return loss, right


def batch_of(tok, dialogues):
    """ids, weights, pictures"""
    coded = [encode(tok, turns) for turns in dialogues]
    length = max(len(ids) for ids, _ in coded)
    ids, weights = np.zeros((len(coded), length), np.int64), np.zeros((len(coded), length), np.float32)
    for i, (row, weight) in enumerate(coded):
        ids[i, :len(row)], weights[i, :len(row)] = row, weight
    pictures = [draw(*turn[0]) for turns in dialogues for turn in turns if turn[0]]
    return torch.from_numpy(ids), torch.from_numpy(weights), torch.from_numpy(np.array(pictures, np.uint8))


# ---- Training ------------------------------------------------------------------------------------


ALONE = 0.4  # of the time, the encoder's labels are the only questions
WHITE = 0.25  # of the time, all grounds are white
FALL, DECAY = 0.55, 0.1  # of the rate: the last part of the time; of the weights


def train(a):
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    tok = make_tokenizer()
    model = Eyes(len(tok.tokens) + len(EXTRA))
    model.text.compute = torch.bfloat16
    heads = nn.Linear(TEXT["dim"], sum(map(len, LABELS.values())))
    matrices = [p for name, p in model.named_parameters() if p.dim() == 2 and name.split(".")[-1] not in ("embed", "position_embd")]
    every, own = [*model.parameters(), *heads.parameters()], {id(p) for p in matrices}
    others = torch.optim.AdamW([p for p in every if id(p) not in own], a.lr, (0.9, 0.95), weight_decay=0)
    momenta = [torch.zeros_like(p) for p in matrices]
    print(f"{n_params(model)} parameters, {n_params(model) - n_params(model.text)} of the encoder, {len(tok.tokens)} tokens", flush=True)
    dice = Dice(a.seed)
    begin, step, share, losses = time.process_time(), 0, 0.0, []
    while share < 1:
        step += 1
        dice.grounds = GROUNDS if share > WHITE else GROUNDS[:1]  # easier pictures first
        two = 1 + (step % 10 == 0)  # pictures of a dialogue
        dialogues = [dialogue(dice, two) for _ in range(a.batch // two)]
        ids, weights, pictures = batch_of(tok, dialogues)
        facts = [turn[0][0] for turns in dialogues for turn in turns if turn[0]]
        rows = model.rows(pictures)
        loss, right = labels_loss(heads, rows, facts)
        losses.append(float(loss))
        if share > ALONE:
            asked = weights[:, 1:] > 0
            z = model.text.logits(model.hidden(ids, rows)[:, :-1][asked]).float()
            told = F.cross_entropy(z, ids[:, 1:][asked])
            losses[-1] = float(told)
            loss = told + 0.2 * loss
            right["answers"] = float((z.argmax(1) == ids[:, 1:][asked]).float().mean())
        for p in every:
            p.grad = None
        loss.backward()
        torch.nn.utils.clip_grad_norm_(every, 1.0)
        spent = time.process_time() - begin
        share = spent / (60 * a.minutes)
        lr = a.lr * max(0, rate_at(share, 0.02, FALL))
        others.param_groups[0]["lr"] = lr
        others.step()
        with torch.no_grad():  # as Muon in oriel-tiny's train.py
            for p, m in ((p, m) for p, m in zip(matrices, momenta) if p.grad is not None):
                m.mul_(0.95).add_(p.grad)
                change = Muon.orthogonalise((p.grad + 0.95 * m)[None])[0].float()
                p.mul_(1 - lr * DECAY).sub_(change, alpha=lr * 0.2 * max(p.shape) ** 0.5)
        if step % a.report == 0 or share >= 1:
            told = ", ".join(f"{kind} {100 * part:.0f} %" for kind, part in right.items())
            print(f"{step * a.batch} pictures, {spent:.0f} s, rate {lr:.5f}, loss {np.mean(losses):.3f}; right: {told}", flush=True)
            losses = []
            os.makedirs(a.out, exist_ok=True)
            torch.save({"model": model.state_dict(), "merges": tok.merges}, os.path.join(a.out, "model.pt"))


# ---- Files ---------------------------------------------------------------------------------------


def load(path):
    kept = torch.load(path, map_location="cpu")
    tok = Tokenizer(kept["merges"])
    model = Eyes(len(tok.tokens) + len(EXTRA))
    model.load_state_dict(kept["model"])
    return model, tok


def export(a):
    model, tok = load(a.model)
    cfg, kind, file_type = model.text.cfg.as_dict(), gguf.KIND[a.type], gguf.FILE_TYPE[a.type]
    about = {"general.author": "the Oriel authors", "general.license": "cc0-1.0",
             "general.description": "Tiny model that answers questions about simple pictures; trained from scratch on drawn ones."}
    own = {**about, "tokenizer.chat_template": TEMPLATE, "tokenizer.ggml.tokens": (gguf.STRING, tok.tokens + EXTRA),
           "tokenizer.ggml.token_type": (gguf.I32, [3] * len(SPECIALS) + [1] * (len(tok.tokens) - len(SPECIALS)) + [3] * len(EXTRA))}
    text = gguf.metadata(cfg, tok, "Oriel Eyes", "305K", file_type)
    gguf.write(f"{a.out}.gguf", [(key, t, own.get(key, value)) for key, t, value in text],
               gguf.tensors_of(model.text.state_dict(), cfg, kind))
    vision = {"embedding_length": WIDTH, "feed_forward_length": FFN, "block_count": DEPTH, "attention.head_count": HEADS,
              "attention.layer_norm_epsilon": EPS, "patch_size": PATCH, "image_size": SIDE, "preproc_image_size": SIDE,
              "projection_dim": TEXT["dim"], "projector.scale_factor": MERGE, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    clip = {"general.architecture": "clip", "general.type": "mmproj", "general.name": "Oriel Eyes", **about,
            "general.file_type": file_type, "clip.has_vision_encoder": True, "clip.projector_type": "idefics3", "clip.use_gelu": True,
            **{"clip.vision." + key: value for key, value in vision.items()}}
    types = {bool: gguf.BOOL, int: gguf.U32, float: gguf.FLOAT, str: gguf.STRING, list: gguf.ARRAY}
    gguf.write(f"{a.out}-mmproj.gguf", [(key, types[type(value)], (gguf.FLOAT, value) if isinstance(value, list) else value)
                                        for key, value in clip.items()], encoder_tensors(model, kind))


def encoder_tensors(model, kind):
    """Matrices of `kind`; patches and positions are small, and keep 16 bits."""
    out = []
    for name, p in model.state_dict().items():
        if name.startswith("text."):
            continue
        x = p.float().numpy()
        if name == "patch_embd.weight":
            x = x.reshape(WIDTH, 3, PATCH, PATCH)
        weight = name + ".weight" if name == "position_embd" else name
        of = gguf.F32 if x.ndim == 1 else gguf.F16 if x.ndim == 4 or name == "position_embd" else kind
        out.append(("mm.model.fc.weight" if name == "fc.weight" else "v." + weight, of, x))
    return out


def judge(a):
    """Each question about held-out pictures of many sizes, greedily, through Oriel's Python package."""
    os.environ["ORIEL_LIBRARY"] = a.library
    sys.path.append(str(HERE.parents[1] / "python"))
    import oriel

    counts, missed = collections.defaultdict(lambda: [0, 0]), []
    dice = Dice(1234, held_out=True)
    with oriel.Model(f"{a.files}.gguf", mmproj=f"{a.files}-mmproj.gguf", device=a.device) as model:
        with model.session() as chat:
            for i in range(a.count):
                what, drawn = invent(dice)
                side = int(dice.free(40, 200))
                for kind in ASKED:
                    if kind == "digit" and not what["digit"]:
                        continue
                    chat.reset()
                    asked = dice.pick(ASKED[kind])
                    chat.add("user", asked, pictures=[draw(what, drawn, side, side)])
                    got = "".join(chat.reply(greedy=True, max_tokens=12))
                    counts[what["kind"], kind][0] += got == answer(what, kind)
                    counts[what["kind"], kind][1] += 1
                    if got != answer(what, kind):
                        missed.append((i, what["kind"], side, asked, answer(what, kind), got))
    for (kind, asked), (good, of) in sorted(counts.items()):
        print(f"| {kind} | {asked} | {good} of {of} | {100 * good / of:.1f} % |")
    for row in missed[:a.show]:
        print(*row)


def show(a):
    dice = Dice(a.seed, held_out=True)
    os.makedirs(a.out, exist_ok=True)
    for i in range(a.count):
        what, drawn = invent(dice)
        write_png(f"{a.out}/{i:02}-{answer(what, 'all').replace(' ', '-')}.png", draw(what, drawn, a.side, a.side))


def main():
    ap = argparse.ArgumentParser()
    commands = ap.add_subparsers(dest="command", required=True)

    def command(name, run, **options):
        sub = commands.add_parser(name)
        sub.set_defaults(run=run)
        for option, default in options.items():
            sub.add_argument("--" + option.replace("_", "-"), default=default, type=type(default))

    command("train", train, out="run", minutes=9.5, batch=32, lr=4e-3, seed=1, report=100)
    command("export", export, model="run/model.pt", out="oriel-eyes", type="q8_0")
    command("judge", judge, files="oriel-eyes", library="liboriel.so", device="cpu", count=500, show=20)
    command("draw", show, out="pictures", count=24, side=64, seed=5)
    a = ap.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()
