"""A chat at the terminal: python3 chat.py [MODEL] [MEMORY]"""

import sys

import oriel


def say(chat: oriel.Session, text: str) -> None:
    reply = chat.reply(text)
    try:
        for piece in reply:
            print(piece, end="", flush=True)
    except KeyboardInterrupt:
        print(" [stopped]", end="")
    print("\n")


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else None
    memory = sys.argv[2] if len(sys.argv) > 2 else None
    with oriel.Model(path, memory=memory) as model, model.session() as chat:
        plan = model.plan
        print(f"{model.info.name} in {oriel.format_size(plan.total_bytes)}, window {plan.window_tokens} tokens.")
        print("An empty line, or Ctrl-D, ends the chat; Ctrl-C stops a reply.\n")
        while True:
            try:
                text = input("> ")
            except (EOFError, KeyboardInterrupt):
                print()
                return
            if not text.strip():
                return
            say(chat, text)


if __name__ == "__main__":
    try:
        main()
    except (oriel.Error, ValueError) as error:
        sys.exit(f"chat.py: {error}")
