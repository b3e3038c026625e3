"""Answers from the text files of a folder, with their sources: python3 search.py CHAT_MODEL ENCODER INDEX FOLDER

Every paragraph becomes a vector. The file INDEX keeps the vectors, so that only new paragraphs are encoded. A question
finds the nearest paragraphs. The chat model answers in JSON: a text, and the numbers of the paragraphs that it used."""

import array
import functools
import operator
import os
import pathlib
import struct
import sys
from typing import Dict, List, Sequence, Set, Tuple

import oriel

FOUND = 3
SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "maxLength": 600},
        "sources": {"type": "array", "maxItems": 3, "items": {"type": "integer", "minimum": 1, "maximum": 3}},
    },
    "required": ["answer", "sources"],
    "additionalProperties": False,
}


def read_folder(folder: str) -> List[Tuple[str, str]]:
    """Places and texts of all paragraphs. The end of a very long one is left out."""
    found = []
    for path in sorted(pathlib.Path(folder).glob("**/*.txt")):
        texts = path.read_text(encoding="utf-8", errors="replace").split("\n\n")
        for number, text in enumerate(filter(None, (text.strip("\n") for text in texts)), 1):
            found.append((f"{path.relative_to(folder).as_posix()}, paragraph {number}", text[:1500]))
    return found


def key_of(text: str) -> int:
    """FNV-1a."""
    step = lambda key, byte: (key ^ byte) * 1099511628211 % 2**64  # noqa: E731
    return functools.reduce(step, text.encode(), 14695981039346656037)


def read_index(path: str, head: bytes, width: int) -> Dict[int, Sequence[float]]:
    """The index has the bytes of the encoder's file and the width of a vector, then a key and a vector for each
    paragraph. An index of another encoder is not used."""
    try:
        data = pathlib.Path(path).read_bytes()
    except FileNotFoundError:
        data = b""
    rows = struct.Struct(f"<Q{width}f")
    if not data.startswith(head):
        return {}
    whole = (len(data) - len(head)) // rows.size * rows.size
    return {key: vector for key, *vector in rows.iter_unpack(data[len(head) : len(head) + whole])}


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    chat_path, encoder_path, index, folder = sys.argv[1:]
    texts = read_folder(folder)
    if not texts:
        sys.exit(f"search.py: {folder} has no .txt files with text: give another folder")
    with oriel.Model(encoder_path) as encoder, encoder.session() as embedder, \
            oriel.Model(chat_path, constraints=True) as model:
        width = encoder.info.n_embd
        head = struct.pack("<QQ", os.path.getsize(encoder_path), width)
        known = read_index(index, head, width)
        keys = [key_of(text) for _, text in texts]
        new = [text for key, (_, text) in zip(keys, texts) if key not in known]
        if new:
            known.update(zip(map(key_of, new), embedder.embed_many(new, kind="document")))
        vectors = [known[key] for key in keys]
        rows = (struct.pack("<Q", key) + array.array("f", vector).tobytes() for key, vector in zip(keys, vectors))
        pathlib.Path(index).write_bytes(head + b"".join(rows))
        print(f"{len(texts)} paragraphs, {len(new)} new. Ask, or press Ctrl-D.")
        for line in sys.stdin:
            asked = embedder.embed(line, kind="query")
            # Vectors have length 1: their product is the cosine of the angle between them.
            scores = [sum(map(operator.mul, asked, vector)) for vector in vectors]
            best = sorted(range(len(texts)), key=lambda i: -scores[i])[:FOUND]
            sources = "".join(f"\n[{n}] {texts[i][1]}\n" for n, i in enumerate(best, 1))
            named: Set[int] = set()
            with model.session() as chat:
                reply = chat.reply(f"Answer from these sources.\n{sources}\nQuestion: {line.strip()}", schema=SCHEMA,
                                   value_parts=True, max_tokens=400)
                for part in reply.parts():
                    if part.kind == "string":
                        print(part.text, end="", flush=True)
                    elif part.kind == "literal":
                        named.add(int(part.text))
            for n, i in enumerate(best, 1):
                if n in named:
                    print(f"\n  [{n}] {texts[i][0]}", end="")
            print(flush=True)


if __name__ == "__main__":
    try:
        main()
    except (oriel.Error, OSError, ValueError) as error:
        sys.exit(f"search.py: {error}")
