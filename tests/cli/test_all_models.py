#!/usr/bin/env python3
"""Several models in one server: test_all_models.py ORIEL_BINARY TEST_DATA_DIR"""

import shutil
import sys
import threading

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import BUNDLED, CPU, EXACT, SMALL, check, json_of, oriel, run_tests, scratch
from server import Server

FORM = ["--kv", "f16", "--sessions", "1", "--window", "256", *CPU]


def folder_of(**files):
    folder = scratch / "models"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, source in files.items():
        if isinstance(source, bytes):
            (folder / f"{name}.gguf").write_bytes(source)
        else:
            shutil.copy(source, folder / f"{name}.gguf")
    return folder


def bytes_of(model):
    """The memory of one model in the server, including room for constraints."""
    with Server(model, *FORM, fixed=[]) as server:
        return server.about["memory_bytes"]


def text_of(model, prompt):
    return json_of("run", "run", model, "--prompt", prompt, "--raw", "--greedy", "--tokens", "8", "--kv", "f16",
                   "--window", "256", *CPU)["text"]


def ask(server, model, prompt="Once upon", **more):
    return server.post("/v1/completions", {"model": model, "prompt": prompt, "temperature": 0, "max_tokens": 8, **more})


def test_by_name():
    one, two = bytes_of(SMALL), bytes_of(EXACT)
    memory = max(one, two) + min(one, two) // 2  # memory for one model
    files = folder_of(first=SMALL, second=EXACT, broken=b"GGUF nonsense")
    want = {"first": text_of(SMALL, "Once upon"), "second": text_of(EXACT, "Once upon")}
    assert want["first"] != want["second"]
    with Server(files / "first.gguf", "--all-models", "--memory", str(memory), *FORM, fixed=[], ORIEL_MODELS=str(files)) as server:
        listed = {model["id"]: model["oriel"]["loaded"] for model in server.get("/v1/models").json["data"]}
        check("all are listed", listed == {"first": True, "second": False, "broken": False}, listed)
        tags = [model["name"] for model in server.get("/api/tags").json["models"]]
        check("for Ollama's clients, too", sorted(tags) == ["broken", "first", "second"], tags)
        for name in ("first", "second", "first", "second:latest", "second.gguf"):
            reply = ask(server, name)
            known = name.split(":")[0].split(".")[0]
            check(f"{name} answers", reply.status == 200 and reply.json["choices"][0]["text"] == want[known]
                  and reply.json["model"] == known, reply)
            check("the cap holds", server.metric("oriel_memory_bytes") <= memory, server.metric("oriel_memory_bytes"))
            running = [model["name"] for model in server.get("/api/ps").json["models"]]
            check("the other one made room", running == [known], running)
        loaded = ask(server, "first").json["oriel"]
        warm = ask(server, "first").json["oriel"]
        check("a reply says that it waited for a load", loaded["load_ms"] > 0 and "load_ms" not in warm, (loaded, warm))
        stream = ask(server, "second", stream=True)
        check("a stream says that it waits", stream.body.startswith(b": loading the model\n\n")
              and "".join(e["choices"][0]["text"] for e in stream.events if e["choices"]) == want["second"], stream)
        check("nobody named: the first", ask(server, None).json["model"] == "first")
        unknown = ask(server, "gpt-none")
        check("no such model", unknown.status == 404 and unknown.json["error"]["code"] == "model_not_found", unknown)
        broken = ask(server, "broken")
        check("a file that is no model", broken.status == 500 and broken.json["error"]["code"] == "model_not_loaded"
              and "broken" in broken.json["error"]["message"], broken)
        show = server.post("/api/show", {"model": "second"})
        check("shown without a load", show.json["details"]["format"] == "gguf" and show.status == 200, show)
        shutil.copy(SMALL, files / "later.gguf")
        check("one that came later", ask(server, "later").json["choices"][0]["text"] == want["first"])
        count = server.post("/tokenize", {"model": "second", "content": "Once upon"})
        check("tokens of a named model", count.json["tokens"] == json_of("ids", "tokenize", EXACT, stdin=b"Once upon")["ids"], count)


def test_at_the_same_time():
    one, two = bytes_of(SMALL), bytes_of(EXACT)
    memory = max(one, two) + min(one, two) // 2
    files = folder_of(first=SMALL, second=EXACT)
    want = {"first": text_of(SMALL, "Once upon"), "second": text_of(EXACT, "Once upon")}
    with Server(files / "first.gguf", "--all-models", "--memory", str(memory), *FORM, fixed=[], ORIEL_MODELS=str(files)) as server:
        wrong = []

        def work(number):
            for turn in range(6):
                name = "first" if (number + turn) % 2 == 0 else "second"
                reply = ask(server, name)
                if reply.status != 200 or reply.json["choices"][0]["text"] != want[name]:
                    wrong.append((name, reply))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check("each is answered by the model it named", not wrong, wrong[:2])
        check("the cap held", server.metric("oriel_memory_bytes") <= memory)
    both = one + two + (1 << 20)
    with Server(files / "first.gguf", "--all-models", "--memory", str(both), *FORM, fixed=[], ORIEL_MODELS=str(files)) as server:
        ask(server, "second")
        running = sorted(model["name"] for model in server.get("/api/ps").json["models"])
        check("both stay where there is room", running == ["first", "second"], running)


def test_too_large():
    files = folder_of(first=SMALL, large=BUNDLED)
    memory = bytes_of(SMALL) + (1 << 18)
    with Server(files / "first.gguf", "--all-models", "--memory", str(memory), *FORM, fixed=[], ORIEL_MODELS=str(files)) as server:
        reply = ask(server, "large")
        check("does not fit", reply.status == 400 and reply.json["error"]["code"] == "model_does_not_fit"
              and "--memory" in reply.json["error"]["message"], reply)
        check("nothing made room for it", [m["name"] for m in server.get("/api/ps").json["models"]] == ["first"])
        check("the first still answers", ask(server, "first").status == 200)


if __name__ == "__main__":
    if b"--queue" not in oriel("serve", "--help").out:
        print("skipped: this program was built without its server (libboost-dev)")
        sys.exit(77)
    sys.exit(run_tests(globals()))
