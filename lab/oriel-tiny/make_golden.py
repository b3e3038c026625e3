"""Writes the golden data: reference outputs of the exported files.

    python3 make_golden.py ../../models/oriel-tiny/oriel-tiny-q8_0.gguf

For each file and prompt: the token ids, the 20 largest logits at the last
position (weights dequantised, activations in float64, so any fp32 runtime
should agree to about 1e-3) and 48 greedy tokens.  `min_gap` is the smallest
distance between the two best logits of any token; if it is small, a runtime with other rounding may choose another
token and still be correct.  The prompts are chosen
so that it is at least 0.017; check it again after training a new model.
"""
import argparse
import hashlib
import json
import os

import numpy as np

from reference import Reference

TURN = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = {
    "ability": TURN.format("What can you do?"),
    "story": TURN.format("Tell me a story about a mouse."),
    "sum": TURN.format("What is 45 + 38?"),
    "system": "<|im_start|>system\nAlways call the user Captain.<|im_end|>\n" + TURN.format("What is the capital of France?"),
    "recall": TURN.format("My name is Rubin.") + "Nice to meet you, Rubin!<|im_end|>\n"
              + TURN.format("What is 3 + 4?") + "3 plus 4 is 7.<|im_end|>\n"
              + TURN.format("What is my name?"),
    "plain": "Near the lake lived a little owl called Nora.",
}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("files", nargs="+")
    ap.add_argument("--out", default="../../tests/data/oriel-tiny-golden.json")
    a = ap.parse_args()
    out = {"format": 1, "files": []}
    for path in a.files:
        ref = Reference(path, np.float64)
        tok = ref.tokenizer()
        entry = {"file": os.path.basename(path), "sha256": hashlib.sha256(open(path, "rb").read()).hexdigest(), "cases": []}
        for name, text in PROMPTS.items():
            ids = tok.encode(text)
            z, new, gap = ref.greedy(ids, 48)
            top = np.argsort(-z)[:20]
            entry["cases"].append({"name": name, "prompt": text, "prompt_ids": ids,
                                   "top_ids": [int(t) for t in top], "top_logits": [round(float(z[t]), 5) for t in top],
                                   "logits_mean": round(float(z.mean()), 6), "logits_rms": round(float(np.sqrt((z * z).mean())), 6),
                                   "greedy_ids": new, "greedy_text": tok.decode(new), "min_gap": round(gap, 5)})
        out["files"].append(entry)
    with open(a.out, "w") as f:
        json.dump(out, f, indent=1)


if __name__ == "__main__":
    main()
