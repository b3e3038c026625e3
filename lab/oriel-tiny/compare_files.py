"""Loss on assistant tokens for several GGUF files (what quantisation costs).

    python3 compare_files.py --data data ../../models/oriel-tiny/oriel-tiny-q8_0.gguf ../../build/models/oriel-tiny-*.gguf
"""
import argparse
import json
import os

import numpy as np

from dialogue import encode_dialogue
from reference import Reference


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("files", nargs="+")
    ap.add_argument("--data", default="data")
    ap.add_argument("--rows", type=int, default=150)
    a = ap.parse_args()
    with open(os.path.join(a.data, "val.jsonl")) as f:
        rows = [json.loads(l) for _, l in zip(range(a.rows), f)]
    for path in a.files:
        ref = Reference(path, np.float32)
        tok = ref.tokenizer()
        total = count = 0
        for row in rows:
            ids, mask = encode_dialogue(tok, row, ref.meta["llama.context_length"])
            ref.reset()
            z = ref(ids)[:-1]
            z -= z.max(-1, keepdims=True)
            nll = np.log(np.exp(z).sum(-1)) - z[np.arange(len(z)), ids[1:]]
            m = np.array(mask[1:]) == 1
            total, count = total + float(nll[m].sum()), count + int(m.sum())
        print(f"{os.path.basename(path)}: loss {total / count:.4f}, perplexity {np.exp(total / count):.4f} on {count} tokens")


if __name__ == "__main__":
    main()
