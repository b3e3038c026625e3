"""Writes the trained model as GGUF v3 (llama architecture).

    python3 export_gguf.py --model run/model.pt --out ../../models/oriel-tiny/oriel-tiny

Several models of the same shape are averaged; a model named twice counts twice. Averaging works for stages of one
training (Wortsman et al. 2022, "Model soups").

PyTorch stores the rotary halves one after the other; GGUF's llama layout stores pairs, so the rows of Q and K are
permuted within each head.
"""
import argparse

import numpy as np
import torch

import gguf
from tokenizer import SPECIALS, Tokenizer

TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
FILE_TYPE = {"f16": 1, "q4_0": 2, "q8_0": 7}
KIND = {"f16": gguf.F16, "q4_0": gguf.Q4_0, "q8_0": gguf.Q8_0}


def interleave(w, heads):
    return w.reshape(heads, 2, w.shape[0] // heads // 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def tensors_of(state, cfg, kind):
    get = lambda k: state[k].float().cpu().numpy()
    h, k, d = cfg["heads"], cfg["kv_heads"], cfg["head_dim"]
    # The tied embedding is also the output matrix; four bits would hurt it most.
    table = gguf.Q8_0 if kind == gguf.Q4_0 else kind
    out = [
        ("token_embd.weight", table, get("embed")),
        ("output_norm.weight", gguf.F32, get("norm")),
    ]
    for i in range(cfg["layers"]):
        src, dst = f"blocks.{i}.", f"blk.{i}."
        q, key, v = np.split(get(src + "qkv"), [h * d, (h + k) * d])
        gate, up = np.split(get(src + "gate_up"), 2)
        out += [
            (dst + "attn_norm.weight", gguf.F32, get(src + "norm1")),
            (dst + "attn_q.weight", kind, interleave(q, h)),
            (dst + "attn_k.weight", kind, interleave(key, k)),
            (dst + "attn_v.weight", kind, v),
            (dst + "attn_output.weight", kind, get(src + "out")),
            (dst + "ffn_norm.weight", gguf.F32, get(src + "norm2")),
            (dst + "ffn_gate.weight", kind, gate),
            (dst + "ffn_up.weight", kind, up),
            (dst + "ffn_down.weight", kind, get(src + "down")),
        ]
    return out


def metadata(cfg, tok, name, label, file_type):
    g = gguf
    return [
        ("general.architecture", g.STRING, "llama"),
        ("general.type", g.STRING, "model"),
        ("general.name", g.STRING, name),
        ("general.author", g.STRING, "the Oriel authors"),
        ("general.license", g.STRING, "apache-2.0"),
        (
            "general.description",
            g.STRING,
            "Tiny chat model trained from scratch on generated dialogues; a demo for the Oriel runtime.",
        ),
        ("general.size_label", g.STRING, label),
        ("general.languages", g.ARRAY, (g.STRING, ["en"])),
        ("general.file_type", g.U32, file_type),
        ("general.quantization_version", g.U32, 2),
        ("llama.context_length", g.U32, cfg["context"]),
        ("llama.embedding_length", g.U32, cfg["dim"]),
        ("llama.block_count", g.U32, cfg["layers"]),
        ("llama.feed_forward_length", g.U32, cfg["ffn"]),
        ("llama.attention.head_count", g.U32, cfg["heads"]),
        ("llama.attention.head_count_kv", g.U32, cfg["kv_heads"]),
        ("llama.attention.key_length", g.U32, cfg["head_dim"]),
        ("llama.attention.value_length", g.U32, cfg["head_dim"]),
        ("llama.attention.layer_norm_rms_epsilon", g.FLOAT, cfg["eps"]),
        ("llama.rope.dimension_count", g.U32, cfg["head_dim"]),
        ("llama.rope.freq_base", g.FLOAT, cfg["rope_theta"]),
        ("llama.vocab_size", g.U32, cfg["vocab"]),
        ("tokenizer.ggml.model", g.STRING, "gpt2"),
        ("tokenizer.ggml.pre", g.STRING, "smollm"),
        ("tokenizer.ggml.tokens", g.ARRAY, (g.STRING, tok.tokens)),
        (
            "tokenizer.ggml.token_type",
            g.ARRAY,
            (g.I32, [3 if i < len(SPECIALS) else 1 for i in range(len(tok.tokens))]),
        ),
        ("tokenizer.ggml.merges", g.ARRAY, (g.STRING, [" ".join(m) for m in tok.merges])),
        ("tokenizer.ggml.bos_token_id", g.U32, tok.eot),
        ("tokenizer.ggml.eos_token_id", g.U32, tok.im_end),
        ("tokenizer.ggml.padding_token_id", g.U32, tok.eot),
        ("tokenizer.ggml.add_bos_token", g.BOOL, False),
        ("tokenizer.ggml.add_space_prefix", g.BOOL, False),
        ("tokenizer.chat_template", g.STRING, TEMPLATE),
    ]


def mean_of(states):
    return {name: sum(s[name].float() for s in states) / len(states) for name in states[0]}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", nargs="+", default=["run/model.pt"])
    ap.add_argument("--tokenizer", default="tokenizer.json")
    ap.add_argument("--out", default="../../models/oriel-tiny/oriel-tiny", help="path without the ending")
    ap.add_argument("--name", default="Oriel Tiny")
    ap.add_argument("--types", nargs="+", default=["f16", "q8_0", "q4_0"], choices=sorted(KIND))
    a = ap.parse_args()
    models = [torch.load(path, map_location="cpu") for path in a.model]
    cfg, tok = models[0]["config"], Tokenizer.load(a.tokenizer)
    assert len(tok.tokens) == cfg["vocab"] and all(m["config"] == cfg for m in models)
    state = mean_of([m["model"] for m in models])
    label = f"{sum(v.numel() for v in state.values()) / 1e6:.0f}M"
    for t in a.types:
        path = f"{a.out}-{t}.gguf"
        gguf.write(
            path,
            metadata(cfg, tok, a.name, label, FILE_TYPE[t]),
            tensors_of(state, cfg, KIND[t]),
        )
        print(path)


if __name__ == "__main__":
    main()
