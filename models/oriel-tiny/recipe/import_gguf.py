"""Turns an exported GGUF file back into weights for model.py (the inverse of export_gguf.py).

    python3 import_gguf.py ../oriel-tiny-f16.gguf --out run/model.pt
"""
import argparse

import numpy as np
import torch

import gguf


def deinterleave(w, heads):
    """Undoes export_gguf.interleave."""
    return w.reshape(heads, w.shape[0] // heads // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def weights(path):
    """-> (state dict of Model, config as a dict)"""
    meta, t, _ = gguf.read(path)
    m = lambda key: meta["llama." + key]
    cfg = {"vocab": m("vocab_size"), "dim": m("embedding_length"), "layers": m("block_count"),
           "heads": m("attention.head_count"), "kv_heads": m("attention.head_count_kv"),
           "head_dim": m("attention.key_length"), "ffn": m("feed_forward_length"), "context": m("context_length"),
           "rope_theta": m("rope.freq_base"), "eps": m("attention.layer_norm_rms_epsilon")}
    state = {"embed": t["token_embd.weight"], "norm": t["output_norm.weight"]}
    for i in range(cfg["layers"]):
        w = lambda name: t[f"blk.{i}.{name}.weight"]
        state.update({
            f"blocks.{i}.norm1": w("attn_norm"), f"blocks.{i}.norm2": w("ffn_norm"),
            f"blocks.{i}.qkv": np.concatenate([deinterleave(w("attn_q"), cfg["heads"]),
                                               deinterleave(w("attn_k"), cfg["kv_heads"]), w("attn_v")]),
            f"blocks.{i}.out": w("attn_output"), f"blocks.{i}.down": w("ffn_down"),
            f"blocks.{i}.gate_up": np.concatenate([w("ffn_gate"), w("ffn_up")])})
    return {k: torch.from_numpy(np.array(v, np.float32)) for k, v in state.items()}, cfg


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("file")
    ap.add_argument("--out", default="run/model.pt")
    a = ap.parse_args()
    state, cfg = weights(a.file)
    torch.save({"model": state, "config": cfg}, a.out)


if __name__ == "__main__":
    main()
