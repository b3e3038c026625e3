"""Answers from a folder of text files: python3 search.py CHAT_MODEL ENCODER FOLDER

Every paragraph becomes a vector. A question finds the nearest ones; the chat model answers from them and names them."""

import pathlib
import sys
from typing import List, Tuple

import oriel

FOUND = 3


def paragraphs(folder: str) -> List[Tuple[str, str]]:
    found = []
    for path in sorted(pathlib.Path(folder).glob("**/*.txt")):
        for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n\n"), 1):
            if text.strip():
                found.append((f"{path.name}, paragraph {number}", text.strip()[:1500]))
    return found


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    chat_path, encoder_path, folder = sys.argv[1:]
    texts = paragraphs(folder)
    if not texts:
        sys.exit(f"search.py: {folder} has no .txt files with text: give another folder")
    with oriel.Model(encoder_path) as encoder, encoder.session() as embedder, oriel.Model(chat_path) as model:
        vectors = embedder.embed_many([text for _, text in texts], kind="document")
        print(f"{len(texts)} paragraphs. Ask, or press Ctrl-D.")
        for line in sys.stdin:
            question = line.strip()
            if not question:
                continue
            asked = embedder.embed(question, kind="query")
            # Vectors have length 1: their product is the cosine of the angle between them.
            scores = [sum(a * b for a, b in zip(asked, vector)) for vector in vectors]
            best = sorted(range(len(texts)), key=lambda i: -scores[i])[:FOUND]
            sources = "\n\n".join(f"[{n}] {texts[i][1]}" for n, i in enumerate(best, 1))
            prompt = f"Answer from these sources and name them as [1], [2] or [3].\n\n{sources}\n\nQuestion: {question}"
            with model.session() as chat:
                for piece in chat.reply(prompt, max_tokens=200):
                    print(piece, end="", flush=True)
            print()
            for n, i in enumerate(best, 1):
                print(f"  [{n}] {texts[i][0]} ({scores[i]:.2f})")


if __name__ == "__main__":
    try:
        main()
    except (oriel.Error, ValueError) as error:
        sys.exit(f"search.py: {error}")
