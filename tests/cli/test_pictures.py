#!/usr/bin/env python3
"""Checks the promises of docs/pictures.md: test_pictures.py ORIEL_BINARY TEST_DATA_DIR"""

import base64
import json
import re
import shlex
import shutil
import struct
import sys
import zlib

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import (BUNDLED, CPU, DATA, FIXED, HYBRID, SMALL, check, fails, floats, has_fields, json_of, oriel, relative_l2, run_tests,
                     scratch, succeeds)
from server import Server, refused

VISION = HYBRID.parent.parent / "vision"
ENCODER = VISION / "mmproj-gemma4v.gguf"
MODEL = VISION / "gemma4.gguf"


def test_rows():
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    golden = json.loads((VISION / "images-gemma4v.json").read_text())
    out = scratch / "rows.f32"
    for image in golden["images"][:5]:
        picture = VISION.parent / image["file"]
        told = json_of("rows", "eval", MODEL, "--mmproj", ENCODER, "--image", picture, "--image-rows-out", out, *CPU)
        has_fields("rows", told, "rows width")
        rule = image["rules"]["reference"]
        check("rows: how many", told == {"rows": rule["n_rows"], "width": 64}, told)
        error = relative_l2(floats(base64.b64decode(rule["rows_f32_b64"])), floats(out.read_bytes()))
        check("rows: near float64", error <= 2e-3, error)
    few = json_of("fewer rows", "eval", MODEL, "--mmproj", ENCODER, "--image", VISION / "img-vga.png",
                  "--image-tokens", "70", "--image-rows-out", out, *CPU)
    check("a budget is kept", 0 < few["rows"] <= 70, few)
    told = succeeds("as text", "eval", MODEL, "--mmproj", ENCODER, "--image", VISION / "img-dot.png",
                    "--image-rows-out", out, *CPU)
    check("as text", told.out == b"rows         256\nwidth        64\n", told)


def message_of(*parts):
    name = scratch / "messages.json"
    name.write_text(json.dumps([{"role": "user", "content": list(parts)}]))
    return name


def test_messages():
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    out = scratch / "logits.f32"
    for name in ("gemma4v", "qwen3vl-deepstack", "lfm2", "idefics3"):
        golden = json.loads((VISION / f"chat-{name}.json").read_text())
        model, encoder = VISION.parent / golden["text_model"], VISION.parent / golden["mmproj"]
        case = golden["cases"][0]
        want = case["variants"]["reference"]
        parts = [{**part, "path": str(VISION.parent / part["path"])} if part["type"] == "image" else part
                 for part in case["messages"][0]["content"]]
        urls = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(
            open(part["path"], "rb").read()).decode()}} if part["type"] == "image" else part for part in parts]
        for given in (parts, urls):
            told = json_of("messages", "eval", model, "--mmproj", encoder, "--messages", message_of(*given),
                           "--logits-out", out, "--window", "1024", *CPU)
            has_fields("messages", told, "tokens rows top")
            check("messages: rows and tokens", told["rows"] <= want["n_rows"] == told["tokens"], told)
            error = relative_l2(floats(base64.b64decode(want["exact"]["logits_f32_b64"])), floats(out.read_bytes()))
            check("messages: near float64", error <= 2e-3, error)
    picture = VISION / "img-tiny.png"
    told = json_of("run", "run", MODEL, "--mmproj", ENCODER, "--image", picture, "--prompt", "What?", "--tokens", "4", *CPU)
    check("run: rows are -1", told["prompt_token_ids"].count(-1) > 100, told)
    fails("no eyes", 1, "run", SMALL, "--image", picture, "--prompt", "What?", "--tokens", "4", *CPU)
    web = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    fails("an address", 1, "eval", MODEL, "--mmproj", ENCODER, "--messages", message_of(web), *CPU)


EYES = [DATA / "eyes" / "oriel-eyes.gguf", "--mmproj", DATA / "eyes" / "oriel-eyes-mmproj.gguf", *CPU]


def png_of(side, colour_at):
    """A PNG file of `side` x `side` pixels."""
    lines = b"".join(b"\0" + b"".join(bytes(colour_at(x, y)) for x in range(side)) for y in range(side))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)


def test_a_trained_model():
    """The example of docs/pictures.md, and pictures drawn here."""
    page = (DATA.parent.parent / "docs" / "pictures.md").read_text(encoding="utf-8")
    command, answer = re.search(r"^    \$ oriel (run tests/data/eyes/.*\n.*)\n    (.*)$", page, re.M).groups()
    told = succeeds("the page's example", *shlex.split(command.replace("\\\n", " ")), *CPU, cwd=DATA.parent.parent)
    check("the page's answer", told.out.decode() == answer + "\n", (told, answer))
    red, white, blue, black = (220, 20, 20), (255, 255, 255), (20, 40, 210), (8, 8, 8)
    disc = lambda x, y: (x - 40) ** 2 + (y - 50) ** 2 < 24 ** 2
    box = lambda x, y: abs(x - 56) < 22 and abs(y - 42) < 22
    drawn = {"a red circle": (disc, red, white), "a blue circle": (disc, blue, white), "a red square": (box, red, white),
             "a white square": (box, white, black)}
    for answer, (inside, colour, ground) in drawn.items():
        picture = scratch / "drawn.png"
        picture.write_bytes(png_of(96, lambda x, y: colour if inside(x, y) else ground))
        told = succeeds(answer, "run", *EYES, "--image", picture, "--temperature", "0", "What is this?")
        check(f"it sees {answer}", told.out.decode() == answer + "\n", told)


def pictured(picture, text="What is this?"):
    """A picture and a text in the form of each route: path, body, where the reply says how many tokens it read, and its text."""
    data = base64.b64encode(picture).decode()
    url = "data:image/png;base64," + data
    source = {"type": "base64", "media_type": "image/png", "data": data}

    def user(*parts):
        return [{"role": "user", "content": list(parts)}]

    return {
        "chat": ("/v1/chat/completions", {"messages": user({"type": "image_url", "image_url": {"url": url}},
                                                           {"type": "text", "text": text}), "max_tokens": 6},
                 lambda got: (got["usage"]["prompt_tokens"], got["choices"][0]["message"]["content"])),
        "responses": ("/v1/responses", {"input": user({"type": "input_image", "image_url": url},
                                                      {"type": "input_text", "text": text}), "max_output_tokens": 6},
                      lambda got: (got["usage"]["input_tokens"], got["output"][0]["content"][0]["text"])),
        "messages": ("/v1/messages", {"messages": user({"type": "image", "source": source},
                                                       {"type": "text", "text": text}), "max_tokens": 6},
                     lambda got: (got["usage"]["input_tokens"] + got["usage"]["cache_read_input_tokens"],
                                  got["content"][0]["text"])),
        "ollama's chat": ("/api/chat", {"messages": [{"role": "user", "content": text, "images": [data]}],
                                        "options": {"num_predict": 6, "temperature": 0}, "stream": False},
                          lambda got: (got["prompt_eval_count"], got["message"]["content"])),
        "generate": ("/api/generate", {"prompt": text, "images": [data], "options": {"num_predict": 6, "temperature": 0}, "stream": False},
                     lambda got: (got["prompt_eval_count"], got["response"])),
    }


def test_serve():
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    png = (VISION / "img-tiny.png").read_bytes()
    with Server(MODEL, "--mmproj", ENCODER, "--image-tokens", "70", "--window", "512") as server:
        show = server.post("/api/show", {"model": "any"}).json
        listed = server.get("/v1/models").json["data"][0]
        check("it is told that the model sees", "vision" in show["capabilities"]
              and listed["architecture"]["input_modalities"] == ["text", "image"]
              and server.get("/props").json["modalities"]["vision"], (show, listed))
        wanted = None
        for name, (path, body, read) in pictured(png).items():
            got = server.post(path, {"model": "any", "temperature": 0, **body})
            told = read(got.json) if got.status == 200 else None
            wanted = wanted or told
            check(f"{name}: the same picture, the same reply", told == wanted is not None and told[0] > 60, (told, wanted, got))
        got = server.chat([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:;base64,R0lG"}}]}])
        check("in a line", got.json["error"]["message"] == "cannot read the picture: it is neither PNG nor JPEG: convert it", got)
        broken = {"not base64": (b"", "****"), "not a picture": (b"GIF89a 1234", None), "a cut picture": (png[:60], None)}
        for fault, (picture, data) in broken.items():
            for name, (path, body, _) in pictured(picture).items():
                text = json.dumps(body)
                if data:
                    text = text.replace('base64,"', f'base64,{data}"').replace('"data": ""', f'"data": "{data}"')
                    text = text.replace('"images": [""]', f'"images": ["{data}"]')
                got = server.post(path, text, Content_Type="application/json")
                check(f"{name}: {fault}", got.status == 400 and b"picture" in got.body, got)
        kinds = {"a kind of picture": ({"type": "base64", "media_type": "image/gif", "data": "R0lG"}, b"source.media_type"),
                 "an address": ({"type": "url", "url": "https://example.com/cat.png"}, b"opens no addresses"),
                 "a file": ({"type": "file", "file_id": "f"}, b"opens no addresses"), "none": ({}, b"opens no addresses"),
                 "no data": ({"type": "base64", "media_type": "image/png"}, b"source.data")}
        for fault, (source, why) in kinds.items():
            got = server.post("/v1/messages", {"max_tokens": 6, "messages": [
                {"role": "user", "content": [{"type": "image", "source": source}]}]})
            check(f"messages: {fault}", got.status == 400 and why in got.body, got)
        refused("an address", server.post("/v1/responses", {"input": [{"role": "user", "content": [
            {"type": "input_image", "image_url": "https://example.com/cat.png"}]}]}), 400, "input[0].content[0]")
        for fields in ({"images": "x"}, {"images": [3]}, {"images": ["x"], "raw": True}):
            got = server.post("/api/generate", {"prompt": "x", **fields})
            check(f"generate: {fields}", got.status == 400 and "images" in got.json["error"], got)
        got = server.post("/api/chat", {"messages": [{"role": "assistant", "content": "x", "images": ["x"]}]})
        check("only users show pictures", got.status == 400 and "messages[0].images" in got.json["error"], got)
        data = base64.b64encode(png).decode()
        for count in (8, 40):  # more than the window holds
            got = server.post("/api/chat", {"messages": [{"role": "user", "content": "x", "images": [data] * count}],
                                            "stream": False})
            check(f"{count} pictures", got.status == 400 and got.json["error"], got)
        got = server.post("/v1/messages/count_tokens", {"messages": pictured(png)["messages"][1]["messages"]})
        check("rows are not counted before they are read", got.status == 400 and b"when a reply reads them" in got.body, got)
        path, body, read = pictured(png)["chat"]
        check("and it goes on", read(server.post(path, {"temperature": 0, **body}).json) == wanted)
    models = scratch / "models"
    models.mkdir()
    shutil.copy(SMALL, models / "blind.gguf")
    with Server(MODEL, "--mmproj", ENCODER, "--window", "512", "--all-models", "--memory", "80MB", "--kv", "f16", *CPU,
                fixed=[], ORIEL_MODELS=str(models)) as server:
        sees = {model["id"]: "image" in model["architecture"]["input_modalities"] for model in server.get("/v1/models").json["data"]}
        check("the encoder is the first model's", sees == {"gemma4": True, "blind": False}, sees)
        got = server.post("/v1/completions", {"model": "blind", "prompt": "Once", "max_tokens": 2})
        check("the others load without it", got.status == 200, got)
        got = server.post("/api/show", {"model": "blind"})
        check("and are described without it", got.status == 200 and "vision" not in got.json["capabilities"], got)
        path, body, read = pictured(png)["chat"]
        check("the first sees again", read(server.post(path, {"model": "gemma4", **body}).json)[0] > 60)
    with Server(SMALL) as server:
        check("no eyes", server.post("/api/show", {"model": "any"}).json["capabilities"].count("vision") == 0
              and server.get("/v1/models").json["data"][0]["architecture"]["input_modalities"] == ["text"])
        for name, (path, body, _) in pictured(png).items():
            got = server.post(path, body)
            check(f"{name}: no eyes", got.status == 400, got)


def test_a_chat_at_a_terminal():
    if no_terminals():
        return
    blind = AtTerminal("chat", BUNDLED, "--greedy", *FIXED, ORIEL_NO_SAVE="1")
    blind.until(blind.at_prompt)
    check("/image: a model without eyes", "has no eyes" in blind.send("/image cat.png"))
    check("and it goes on", blind.send("Hello!").count("\n") > 1)
    check("leaves", blind.close() == 0)
    blind.forget()
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    plain, spaced, cut = scratch / "dot.png", scratch / "a dot.png", scratch / "broken.png"
    plain.write_bytes((VISION / "img-dot.png").read_bytes())
    spaced.write_bytes((VISION / "img-tiny.png").read_bytes())
    cut.write_bytes((VISION / "img-vga.png").read_bytes()[:300])
    args = ["chat", MODEL, "--mmproj", ENCODER, "--image-tokens", "70", "--window", "2048", "--greedy", "--tokens", "3", *FIXED]
    chat = AtTerminal(*args, columns=200, ORIEL_NO_SAVE="1")
    chat.until(chat.at_prompt)
    read, goes = "Read ", "it goes with your next message"
    told = chat.send("/image")
    check("/image without a file", "/image needs the name of a file" in told, told)
    chat.keys("\x15")
    told = chat.send(f"/image {scratch}/none.png")
    check("/image: a wrong path", "none.png" in told and read not in told, told)
    told = chat.send(f"/image {cut}")
    check("/image: a broken file", "cannot read the picture" in told and read not in told, told)
    told = chat.send(f"/image {plain}")
    check("/image", f"{read}{plain}" in told and goes in told, told)

    def held():
        """The tokens after the latest reply."""
        return int((["0"] + re.findall(r"context ([\d,]+)/", "\n".join(chat.screen.lines())))[-1].replace(",", ""))

    before = held()
    chat.send("What is this?")
    with_picture = held()
    check("it went with the message", with_picture - before > 40, (before, with_picture))
    chat.send("And now?")
    check("once", held() - with_picture < 40, (with_picture, held()))
    for name, typed in (("a path alone", str(plain)), ("quoted", f"'{spaced}'"), ("with a backslash", str(spaced).replace(" ", "\\ ")),
                        ("as an address", f"file://{plain}"), ("two after a text", f"Compare '{spaced}' {plain}")):
        before = held()
        told = chat.send(typed)
        check(f"dropped, {name}", told.count(goes) == 1 + name.startswith("two"), told)
        if not name.startswith("two"):
            chat.send("So?")
        check(f"dropped, {name}: it is read", held() - before > 40, (before, held()))
    before = held()
    told = chat.send(f"Look: {cut}")
    check("dropped, a broken file: nothing is sent", "cannot read the picture" in told and held() == before, told)
    check("dropped, a broken file: the line is still there", chat.typed() == f"Look: {cut}", chat.typed())
    chat.keys("\x15")
    told = chat.send(f"{scratch}/none.png")
    check("no file: a message", goes not in told and held() > before, told)
    check("leaves", chat.close() == 0)
    chat.forget()


def test_bad_input():
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    out = scratch / "none.f32"
    cut = scratch / "cut.png"
    cut.write_bytes((VISION / "img-vga.png").read_bytes()[:700])
    image = ["--image", VISION / "img-vga.png"]
    rows = ["--image-rows-out", out]
    fails("no encoder", 1, "eval", MODEL, *image, *rows, *CPU)
    for half in (image, rows):
        told = oriel("eval", MODEL, "--mmproj", ENCODER, *half, *CPU)
        check("a picture and a place for its rows go together", told.code == 2 and b" requires --image" in told.err, told)
    fails("a cut picture", 1, "eval", MODEL, "--mmproj", ENCODER, "--image", cut, *rows, *CPU)
    fails("the encoder of another model", 1, "eval", SMALL, "--mmproj", ENCODER, *image, *rows, *CPU)
    fails("a model is no encoder", 1, "eval", MODEL, "--mmproj", MODEL, *image, *rows, *CPU)
    fails("too narrow", 1, "eval", MODEL, "--mmproj", ENCODER, "--image", VISION / "img-ribbon.png", *rows, *CPU)
    check("and nothing is written", not out.exists())


def test_plan():
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    memory = ["--memory", "60MB", "--window", "256"]
    without = json_of("a plan", "plan", MODEL, *memory)
    check("no encoder", without["image_bytes"] == 0 and without["image_tokens"] == 0, without)
    before = 0
    for tokens in (70, 280, 560):
        plan = json_of("a plan", "plan", MODEL, "--mmproj", ENCODER, "--image-tokens", tokens, *memory)
        # The rest: the rows of a prefill batch, and their kernels.
        rest = plan["total_bytes"] - without["total_bytes"] - plan["image_bytes"]
        check("the encoder is in the total", plan["image_tokens"] == tokens and 0 <= rest <= 65536, plan)
        check("more tokens take more memory", plan["image_bytes"] > before, plan)
        before = plan["image_bytes"]
    told = succeeds("in the picture", "plan", MODEL, "--mmproj", ENCODER, *memory)
    check("has a line", b"  of host, for pictures of up to 280 tokens\n" in told.out, told)
    fails("tokens without an encoder", 2, "plan", MODEL, "--image-tokens", "70", *memory)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
