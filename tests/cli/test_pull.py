#!/usr/bin/env python3
"""`oriel models` with the page that is made of it, models by name, and `oriel pull` against a server of the tests' own:
test_pull.py ORIEL_BINARY TEST_DATA_DIR
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from at_terminal import AtTerminal, no_terminals
from program import (BUNDLED, CPU, DATA, ORIEL, SMALL, check, environment, has_fields, json_of, one_line_failure,
                     run_tests, says_what_to_do, scratch, succeeds)
from slow_server import Server

MODEL = SMALL.read_bytes()
SUM = hashlib.sha256(MODEL).hexdigest()
server = Server()
places = 0


def place():
    """An empty folder for models."""
    global places
    places += 1
    folder = scratch / f"models{places}"
    folder.mkdir()
    return folder


def at(folder, **more):
    return environment(ORIEL_MODELS=str(folder), no_proxy="*", **more)


def pull(folder, *args, **options):
    return program.oriel("pull", *args, env=at(folder, **options.pop("more", {})), **options)


def pulled(name, folder, *args, file="m.gguf", want=MODEL):
    result = pull(folder, *args, "--json")
    check(f"{name}: it is there", result.code == 0 and result.err == b"" and
          (folder / file).read_bytes() == want, result)
    left = [path.name for path in folder.iterdir()]
    check(f"{name}: and nothing else", left == [file], left)
    return result.json if result.code == 0 else {}


def refused(name, folder, *args, code=1, words=b"", keeps=(), **options):
    result = pull(folder, *args, **options)
    check(name, one_line_failure(result, code) and says_what_to_do(result) and words in result.err, result)
    left = sorted(path.name for path in folder.iterdir())
    check(f"{name}: leaves {list(keeps) or 'nothing'}", left == sorted(keeps), left)
    return result


def part(folder, address, data=MODEL, **version):
    (folder / "m.gguf.part").write_bytes(data[:70000])
    (folder / "m.gguf.part.json").write_text(json.dumps({"url": address, "bytes": len(MODEL), **version}))


def start(folder, *args, **how):
    return subprocess.Popen([str(ORIEL), "pull", *args], env=at(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **how)


def until(condition, seconds=20):
    end = time.time() + seconds * program.PATIENCE
    while not condition() and time.time() < end:
        time.sleep(0.02)
    return condition()


def test_sums():
    """Published vectors: FIPS 180-4's examples, from the program's messages about files (not models)."""
    for text, want in ((b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
                       (b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
                       (b"a" * 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")):
        folder = place()
        (folder / "m.gguf").write_bytes(text)
        url = server.put("/sum/m.gguf", text)
        right = pull(folder, url, "--sha256", want.upper())
        wrong = pull(folder, url, "--sha256", want.replace("a", "b"))
        check(f"SHA-256 of {text[:3]}...", b"is damaged" in right.err and b"another file" in wrong.err, (right, wrong))


def test_good():
    folder = place()
    url = server.put("/m.gguf", MODEL)
    fields = pulled("pull", folder, url)
    program.has_fields("pull", fields, "name path url file_bytes sha256 checked_by was_there resumed_from runs")
    check("its fields are right", fields["name"] == "m" and fields["sha256"] == SUM and fields["checked_by"] is None
          and fields["file_bytes"] == len(MODEL) and fields["runs"] and not fields["was_there"], fields)
    check("a file that only its user writes to", (folder / "m.gguf").stat().st_mode & 0o777 == 0o644 & ~umask())
    loose = place()
    before = os.umask(0)
    pulled("without a umask", loose, url)
    os.umask(before)
    check("that one, too", (loose / "m.gguf").stat().st_mode & 0o777 == 0o644)
    again = pull(folder, url)
    check("again: is there already", again.code == 0 and b"is there already" in again.out, again)
    text = pull(place(), url)
    check("says what to type", text.code == 0 and b"\n  oriel chat m\n" in text.out and SUM.encode() in text.out, text)
    check("says what was not checked", b"Not verified: " in text.out and fields["verified"] is False, (text, fields))
    run = program.oriel("run", "m", "--prompt", "Hi", "--tokens", "2", "--json", *CPU, env=at(folder))
    check("its name stands for the file", run.code == 0 and run.json["tokens"] <= 2, run)
    word = program.oriel("info", "M.GGUF", "--json", env=at(folder))
    check("in any case, with the ending", word.code == 0, word)
    listed = program.oriel("models", "--local", "--json", env=at(folder)).json
    check("models --local", listed == {"folder": str(folder), "models": [
        {"id": "m", "path": str(folder / "m.gguf"), "file_bytes": len(MODEL)}]}, listed)
    deep = folder / "new" / "deeper"
    check("a folder that is missing is made", pull(deep, url).code == 0 and (deep / "m.gguf").exists())


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_sums_of_servers():
    folder = place()
    url = server.put("/m.gguf", MODEL)
    fields = pulled("--sha256", folder, url, "--sha256", SUM)
    check("the user's", fields["checked_by"] == "user" and fields["verified"] is True, fields)
    check("of what is there", pull(folder, url, "--sha256", SUM, "--json").json["was_there"])
    refused("a wrong one", place(), url, "--sha256", "0" * 64, words=b"SHA-256")
    for sum_, good in ((SUM, True), ("1" * 64, False)):
        server.put("/blob", MODEL)
        linked = server.put("/l/m.gguf", b"", location="/blob", headers={"X-Linked-Etag": f'"{sum_}"'})
        if good:
            fields = pulled("behind a redirect", place(), linked)
            check("the server's", fields["checked_by"] == "server", fields)
        else:
            refused("the server's is wrong", place(), linked, words=b"SHA-256")
    refused("no sum at all", place(), url, "--sha256", "abc", code=2)


def test_cuts():
    folder = place()
    url = server.put("/m.gguf", MODEL, cut_after=[100000, 60000, 1, None], block=10000)
    pulled("cut three times", folder, url)
    asked = server.files["/m.gguf"].requests
    check("each goes on where the last was cut", asked == [None, "bytes=100000-", "bytes=160000-", "bytes=160001-"],
          asked)
    folder = place()
    url = server.put("/m.gguf", MODEL, cut_after=[50000, 0, 0])
    refused("cut for good", folder, url, "--retries", "0", words=b"48.8 KiB are kept",
            keeps=["m.gguf.part", "m.gguf.part.json"])
    server.files["/m.gguf"].cut_after = []
    fields = pulled("another day", folder, url)
    check("goes on there", fields["resumed_from"] == 50000 and
          server.files["/m.gguf"].requests[-1] == "bytes=50000-", fields)
    # The whole file is present under its temporary name.
    folder = place()
    (folder / "m.gguf.part").write_bytes(MODEL)
    (folder / "m.gguf.part.json").write_text(json.dumps(
        {"url": url, "etag": server.files["/m.gguf"].etag, "bytes": len(MODEL)}))
    requests = len(server.files["/m.gguf"].requests)
    pulled("complete already", folder, url)
    check("asks for nothing", len(server.files["/m.gguf"].requests) == requests)


def test_changed():
    for name, version, options in (
            ("another ETag", {"etag": '"old"'}, {}),
            ("another date", {"last_modified": "Mon, 01 Jan 2024 00:00:00 GMT"},
             {"etag": None, "headers": {"Last-Modified": "Tue, 02 Jan 2024 00:00:00 GMT"}}),
            ("another size", {"etag": '"x"', "bytes": len(MODEL) + 1}, {"etag": '"x"'}),
            ("another sum", {"etag": '"x"', "sha256": "2" * 64}, {"etag": '"x"', "headers": {"X-Checksum-Sha256": SUM}}),
            ("nothing known", {}, {}),
            ("another address", {"etag": '"x"', "url": "http://127.0.0.1/other.gguf"}, {"etag": '"x"'})):
        folder = place()
        url = server.put("/m.gguf", MODEL, **options)
        part(folder, url, b"old" + MODEL, **version)  # would not be the file if it were gone on with
        fields = pulled(name, folder, url)
        check(f"{name}: from the beginning", fields.get("resumed_from") == 0, fields)
    folder = place()
    url = server.put("/m.gguf", MODEL, etag=None, headers={"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"})
    part(folder, url, last_modified="Mon, 01 Jan 2024 00:00:00 GMT")
    check("the same date", pulled("the same date", folder, url).get("resumed_from") == 70000)
    folder = place()
    part(folder, url, b"bad" + MODEL, last_modified="Mon, 01 Jan 2024 00:00:00 GMT")
    refused("a part that is damaged, with a sum", folder, url, "--sha256", SUM, words=b"SHA-256")


def test_servers_of_all_kinds():
    folder = place()
    url = server.put("/m.gguf", MODEL, ranges=False)
    part(folder, url, etag=server.files["/m.gguf"].etag)
    fields = pulled("no ranges", folder, url)
    check("no ranges: from the beginning, at once", fields["resumed_from"] == 0
          and server.files["/m.gguf"].requests == ["bytes=70000-"], server.files["/m.gguf"].requests)
    folder = place()
    pulled("no length", folder, server.put("/m.gguf", MODEL, length=False, etag=None))
    refused("more than it said", place(), server.put("/m.gguf", MODEL, claims=len(MODEL) - 100), words=b"")
    refused("less than it said", place(), server.put("/m.gguf", MODEL, claims=len(MODEL) + 100), "--retries", "0",
            words=b"another length")
    refused("a page", place(), server.put("/m.gguf", b"<!DOCTYPE html><html></html>"), words=b"web page")
    refused("nothing", place(), server.put("/m.gguf", b""), words=b"not a GGUF")
    refused("half a model", place(), server.put("/m.gguf", MODEL[:-5000]), words=b"not a valid GGUF")
    for status, words in ((404, b"has no"), (403, b"wants a login"), (401, b"browser"), (400, b"400")):
        refused(f"{status}", place(), server.put("/m.gguf", MODEL, status=status), words=words)
    refused("503", place(), server.put("/m.gguf", MODEL, status=503), "--retries", "0", words=b"503")
    refused("a redirect to another scheme", place(), server.put("/r/m.gguf", b"", location="ftp://127.0.0.1/m.gguf"),
            words=b"cannot be reached")
    server.put("/m.gguf", MODEL)
    pulled("a redirect", place(), server.put("/r/m.gguf", b"", location="/m.gguf"))
    refused("redirects without end", place(), server.put("/r/m.gguf", b"", location="/r/m.gguf"), words=b"redirects")
    refused("nobody there", place(), "http://127.0.0.1:9/m.gguf", words=b"cannot be reached")
    folder = place()
    dripping = server.put("/m.gguf", MODEL, drip=0.002, block=len(MODEL) // 200)
    pulled("a slow drip", folder, dripping)


def test_names_and_places():
    folder = place()
    url = server.put("/a%20b.gguf", MODEL)
    pulled("a coded name", folder, url + "?download=true", file="a b.gguf")
    text = pull(folder, url)
    check("a name in quotes", b"oriel chat 'a b'\n" in text.out, text)
    strange = place()
    text = pull(strange, server.put("/a%27b;id;%27.gguf", MODEL))
    line = next((line for line in text.out.decode().splitlines() if "oriel chat" in line), "")
    check("a name with quotes in it is one word of a shell", shlex.split(line) == ["oriel", "chat", "a'b;id;'"], text)
    url = server.put("/m.gguf", MODEL)
    here = place()
    check("--to a folder", pull(place(), url, "--to", here).code == 0 and (here / "m.gguf").exists())
    named = pull(place(), url, "--to", here / "n.bin", "--json")
    check("--to a file", named.code == 0 and (here / "n.bin").read_bytes() == MODEL, named)
    (here / "other.gguf").write_bytes(b"GGUF something else")
    refused("another file is there", here, url, "--to", here / "other.gguf", words=b"exists and may be another file",
            keeps=["m.gguf", "n.bin", "other.gguf"])
    check("and stays", (here / "other.gguf").read_bytes() == b"GGUF something else")
    (here / "link.gguf").symlink_to(here / "nowhere")
    refused("a link that leads nowhere", here, url, "--to", here / "link.gguf", words=b"is no file",
            keeps=["link.gguf", "m.gguf", "n.bin", "other.gguf"])
    for wrong in ("ftp://127.0.0.1/m.gguf", "file:///etc/passwd", "no-such-model", "smollm2-135m:q9_9"):
        refused(f"wrong usage: {wrong}", place(), wrong, code=2)
    refused("a name that is nearly one", place(), "smolm2-135m", code=2, words=b"did you mean smollm2-135m?")
    refused("no file's name", place(), server.address + "/", code=2, words=b"--to")
    refused("above the folder", place(), server.put("/..%2fx.gguf", MODEL), code=2)
    refused("a missing folder", place(), url, "--to", str(scratch / "missing") + "/", words=b"no folder")
    path = scratch / "none"
    path.mkdir(exist_ok=True)
    lone = program.oriel("pull", url, env={**at(folder := place()), "PATH": str(path)})
    check("without curl", one_line_failure(lone, 1) and b"curl is not installed" in lone.err
          and url.encode() in lone.err and not list(folder.iterdir()), lone)


def split(model, count):
    """-> the files of a model in `count` parts; the first has the metadata."""
    at = 8
    n_tensors, n_keys = struct.unpack_from("<QQ", model, at)
    at += 16

    def take(code):
        nonlocal at
        at += struct.calcsize("<" + code)
        return struct.unpack_from("<" + code, model, at - struct.calcsize("<" + code))[0]

    def text():
        nonlocal at
        size = take("Q")
        at += size

    def skip(kind):
        nonlocal at
        if kind == 8:
            text()
        elif kind == 9:
            element = take("I")
            for _ in range(take("Q")):
                skip(element)
        else:
            at += {0: 1, 1: 1, 2: 2, 3: 2, 7: 1, 10: 8, 11: 8, 12: 8}.get(kind, 4)

    keys_at = at
    for _ in range(n_keys):
        text()
        skip(take("I"))
    keys = model[keys_at:at]
    tensors = []
    for _ in range(n_tensors):
        begin = at
        text()
        n_dims = take("I")
        at += 8 * n_dims + 4
        tensors.append((model[begin:at], take("Q")))
    data = model[(at + 31) // 32 * 32:]
    ends = sorted(offset for _, offset in tensors)[1:] + [len(data)]

    def key(name, kind, code, value):
        return struct.pack("<Q", len(name)) + name + struct.pack("<I" + code, kind, value)

    parts = []
    for number in range(count):
        own = tensors[number * n_tensors // count:(number + 1) * n_tensors // count]
        texts = (keys if number == 0 else b"") + key(b"split.no", 2, "H", number) + key(
            b"split.count", 2, "H", count) + key(b"split.tensors.count", 5, "i", n_tensors)
        entries, body = b"", b""
        for entry, offset in own:
            entries += entry + struct.pack("<Q", len(body))
            body += data[offset:min(end for end in ends if end > offset)]
            body += bytes(-len(body) % 32)
        head = b"GGUF" + struct.pack("<IQQ", 3, len(own), 3 + (n_keys if number == 0 else 0)) + texts + entries
        parts.append(head + bytes(-len(head) % 32) + body)
    return parts


def test_models_in_several_files():
    parts = split(MODEL, 3)
    names = [f"m-q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    urls = [server.put("/" + name, data) for name, data in zip(names, parts)]
    folder = place()
    got = pull(folder, urls[1], "--json")
    check("any part gets all of them", got.code == 0 and got.json["file_bytes"] == sum(map(len, parts))
          and [(folder / name).read_bytes() for name in names] == parts and got.json["name"] == "m-q8_0", got)
    check("the first one is the model", got.json["path"] == str(folder / names[0]) and got.json["runs"], got)
    run = program.oriel("run", "m-q8_0", "--prompt", "Hi", "--tokens", "2", *CPU, env=at(folder))
    check("it runs by its name", run.code == 0, run)
    listed = program.oriel("list", "--json", env=at(folder)).json["models"]
    check("it is one model", [(m["id"], m["file_bytes"]) for m in listed] == [("m-q8_0", sum(map(len, parts)))], listed)
    again = pull(folder, urls[0])
    check("again: is there already", again.code == 0 and b"is there already" in again.out, again)
    server.files["/" + names[2]].cut_after = [len(parts[2]) // 2, 0]
    folder = place()
    cut = pull(folder, urls[0], "--retries", "0")
    check("a cut keeps the parts", one_line_failure(cut, 1) and (folder / names[1]).read_bytes() == parts[1], cut)
    going = pull(folder, urls[0], "--json")
    check("and goes on in the third", going.code == 0 and going.json["resumed_from"] > 0
          and (folder / names[2]).read_bytes() == parts[2], going)
    gone = program.oriel("rm", "m-q8_0", "--yes", env=at(folder))
    check("rm removes all parts", gone.code == 0 and not list(folder.glob("*.gguf")), gone)
    refused("a checksum is of one file", place(), urls[0], "--sha256", SUM, code=2, words=b"no --sha256")
    refused("into one file", folder := place(), urls[0], "--to", folder / "x.gguf", code=2, words=b"a folder with --to")
    other = split(MODEL, 2)
    server.put("/o-00001-of-00002.gguf", other[0])
    mixed = pull(place(), server.put("/o-00002-of-00002.gguf", parts[1]))
    check("parts of different models", one_line_failure(mixed, 1) and b"not a complete model" in mixed.err, mixed)
    lacks = pull(place(), server.put("/l-00001-of-00002.gguf", other[0]))
    check("a part that the server lacks", one_line_failure(lacks, 1) and b"404" in lacks.err, lacks)


def test_names_for_commands():
    folder = place()
    for command in ("info", "plan", "chat"):
        gone = program.oriel(command, "smollm2-135m", env=at(folder))
        check(f"{command} of one that is not here", one_line_failure(gone, 1)
              and b"`oriel pull smollm2-135m`" in gone.err and b"MiB" in gone.err, gone)
    wrong = program.oriel("info", "smolm2-135m", env=at(folder))
    check("of no one", one_line_failure(wrong, 1) and b"did you mean smollm2-135m?" in wrong.err, wrong)
    shutil.copyfile(SMALL, folder / "SmolLM2-135M-Instruct-Q4_K_M.gguf")
    for name in ("smollm2-135m", "SmolLM2-135M:Q4_K_M", "SmolLM2-135M-Instruct-Q4_K_M"):
        info = program.oriel("info", name, "--json", env=at(folder))
        check(f"by its name {name}", info.code == 0 and info.json["file_bytes"] == len(MODEL), info)
    one = program.oriel("models", "smollm2-135m", "--json", env=at(folder)).json["models"][0]
    check("models says where", one["id"] == "smollm2-135m" and one["path"] == str(next(folder.iterdir())), one)
    check("and where it comes from", one["url"] == one["page"] + "/resolve/main/" + one["file"], one)
    (folder / "smollm2-135m").write_bytes(BUNDLED.read_bytes())
    both = program.oriel("info", "smollm2-135m", "--json", env=at(folder), cwd=folder)
    check("a path goes before a name", both.json["file_bytes"] == BUNDLED.stat().st_size, both)
    check("oriel-tiny is the bundled one", program.oriel("info", "oriel-tiny", "--json", env=at(folder)).code == 0)
    named = program.oriel("info", "--json", env=at(folder, ORIEL_MODEL="smollm2-135m"))
    check("ORIEL_MODEL may be a name", named.code == 0 and named.json["file_bytes"] == len(MODEL), named)


def test_room():
    """On a disk of one megabyte."""
    disk = scratch / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0 or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], stderr=subprocess.DEVNULL).returncode != 0:
        check("SKIPPED: no small disk can be mounted here (needs root)", True)
        return
    try:
        big = server.put("/big.gguf", MODEL + bytes(4 << 20))
        refused("more than there is room for", disk, big, words=b"free")
        check("is not begun", len(server.files["/big.gguf"].requests) == 1)
        big = server.put("/big.gguf", MODEL, length=False, etag=None)
        refused("more by its header, where nobody says a length", disk, big, words=b"free: make room",
                keeps=["big.gguf.part", "big.gguf.part.json"])
        # The size of a header without an end is unknown.
        big = server.put("/big.gguf", b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"a", 9, 0, 1 << 29) +
                         bytes(4 << 20), length=False, etag=None)
        full = pull(disk, big)
        check("nobody can know how much", one_line_failure(full, 1) and b"No space left" in full.err
              and b"make room" in full.err, full)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_two_at_once():
    folder = place()
    url = server.put("/m.gguf", MODEL, drip=0.01, block=len(MODEL) // 100)
    first = start(folder, url)
    until(lambda: (folder / "m.gguf.part.json").exists())
    second = pull(folder, url)
    check("the second is told", one_line_failure(second, 1) and b"another oriel" in second.err, second)
    out, err = first.communicate()
    check("the first is not disturbed", first.returncode == 0 and (folder / "m.gguf").read_bytes() == MODEL, err)
    many = place()
    url = server.put("/m.gguf", MODEL)
    programs = [start(many, url) for _ in range(6)]
    for each in programs:
        each.communicate()
    check("of many at once one does it at least", any(p.returncode == 0 for p in programs)
          and [p.name for p in many.iterdir()] == ["m.gguf"] and (many / "m.gguf").read_bytes() == MODEL,
          [p.returncode for p in programs])


def test_stopped():
    folder = place()
    url = server.put("/m.gguf", MODEL, drip=0.02, block=len(MODEL) // 100)
    process = start(folder, url)
    until(lambda: (folder / "m.gguf.part").exists() and (folder / "m.gguf.part").stat().st_size > 0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20 * program.PATIENCE)
    check("Ctrl-C", process.returncode == 130 and out == b"" and b"are kept" in err
          and f"`oriel pull {url}`".encode() in err and err.count(b"\n") == 1, (process.returncode, err))
    server.files["/m.gguf"].drip = None
    fields = pulled("goes on", folder, url)
    check("from there", fields["resumed_from"] > 0, fields)
    folder = place()
    server.files["/m.gguf"].drip = 0.02
    process = start(folder, url)
    until(lambda: (folder / "m.gguf.part").exists() and (folder / "m.gguf.part").stat().st_size > 0)
    process.kill()
    process.communicate()
    server.files["/m.gguf"].drip = None
    check("killed: goes on as well", pulled("after a kill", folder, url)["resumed_from"] > 0)


def test_stopped_with_what_it_started():
    """A terminal's Ctrl-C ends curl, too, here while the server has yet to answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/m.gguf"
        ends = []
        for _ in range(5):
            process = start(place(), url, start_new_session=True)
            connection, _ = silent.accept()
            with connection:
                connection.recv(1)
                os.killpg(process.pid, signal.SIGINT)
                ends.append((process.communicate()[1], process.returncode))
    check("Ctrl-C is told as nothing else", ends == [(b"", 130)] * 5, ends)


def test_terminal():
    if no_terminals():
        return
    folder = place()
    url = server.put("/m.gguf", MODEL, drip=0.02, block=len(MODEL) // 60)
    for columns, sign in ((80, "/s"), (40, "left")):
        folder = place()
        terminal = AtTerminal("pull", url, columns=columns, ORIEL_MODELS=str(folder), no_proxy="*")
        seen = terminal.until(lambda: sign in terminal.screen.text() and "%" in terminal.screen.text())
        rows = terminal.screen.lines()
        check(f"{columns} columns: one line shows how far it is", seen and len([r for r in rows if r]) == 1, rows)
        code = terminal.ended()
        rows = terminal.screen.lines()
        check(f"{columns} columns: it is gone in the end", code == 0 and "%" not in terminal.screen.text()
              and "  oriel chat m" in rows, rows)
        terminal.forget()


def test_repositories():
    """The paths of huggingface.co on the tests' server: the requests of a pull, and their tokens."""
    import http.server
    import threading
    seen = []
    files = {"Some-Model-Q8_0.gguf": MODEL, "Some-Model-Q4_K_M.gguf": MODEL, "mmproj-f16.gguf": MODEL, "README.md": b"#"}

    class Hub(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            seen.append((self.path, self.headers.get("Authorization")))
            name = self.path.split("/")[-1]
            if self.path.startswith("/api/models/org/gated/") and self.headers.get("Authorization") != "Bearer tok-1":
                self.send_error(401)
                return
            if self.path.startswith(("/api/models/org/some-GGUF/tree/main", "/api/models/org/gated/tree/main")):
                data = json.dumps([{"type": "file", "path": path, "size": len(text)} for path, text in files.items()]).encode()
            elif "/resolve/main/" in self.path and name in files:
                data = files[name]
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    hub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    more = {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}"}
    folder = place()

    def asked(name, *args, **env):
        return program.oriel("pull", name, *args, env=at(folder, **more, **env))
    got = asked("org/some-GGUF", "--json")
    check("the usual quantisation", got.code == 0 and got.json["name"] == "org/some-GGUF:q4_k_m"
          and (folder / "org" / "some-GGUF" / "Some-Model-Q4_K_M.gguf").read_bytes() == MODEL, got)
    got = asked("org/some-GGUF:Q8_0")
    check("one by name", got.code == 0 and b"oriel chat org/some-GGUF:q8_0" in got.out, got)
    none = asked("org/some-GGUF:q2_k")
    check("one that is not there names those that are", one_line_failure(none, 1) and b"q8_0, q4_k_m" in none.err, none)
    missing = asked("org/nothing")
    check("no such repository", one_line_failure(missing, 1) and b"404" in missing.err, missing)
    closed = asked("org/gated")
    check("one that wants a login", one_line_failure(closed, 1) and b"HF_TOKEN" in closed.err, closed)
    check("no token was sent", all(token is None for _, token in seen), seen)
    opened = asked("org/gated", HF_TOKEN="tok-1")
    check("with the token", opened.code == 0, opened)
    before = len(seen)
    program.oriel("pull", server.put("/other.gguf", MODEL), env=at(place(), **more, HF_TOKEN="tok-1"))
    check("no other server gets it", len(seen) == before)
    for name in ("org/some-GGUF", "ORG/some-gguf:q8_0"):
        run = program.oriel("run", name, "--prompt", "Hi", "--tokens", "1", *CPU, env=at(folder))
        check(f"run {name}", run.code == 0, run)
    listed = program.oriel("list", env=at(folder))
    check("list has them", b"org/some-GGUF:q4_k_m" in listed.out and b"org/gated:q4_k_m" in listed.out, listed)
    lacks = program.oriel("chat", "org/other", env=at(folder))
    check("chat says how to get one", one_line_failure(lacks, 1) and b"`oriel pull org/other`" in lacks.err, lacks)
    hub.shutdown()


# ---- oriel models --------------------------------------------------------------------------------

ROOT = DATA.parent.parent
FIELDS = ["name", "architecture", "parameters", "file", "file_bytes", "memory_bytes_4096", "memory_bytes_32768",
          "license", "page"]


def models_of(*args, **options):
    return program.oriel("models", *args, **options)


def listed(*args):
    return json_of(f"models {' '.join(map(str, args))}", "models", *args)["models"]


def test_rows_of_models():
    models = listed()
    check("as many as were promised", len(models) >= 25, len(models))
    check("each once", len({m["file"] for m in models}) == len({m["name"] for m in models}) == len(models))
    # Rows of the table of architectures: row("llama", RopePairing::...
    runs = set(re.findall(r'^    row\("([^"]+)", RopePairing::',
                          (ROOT / "runtime/model/architecture.cpp").read_text("utf-8"), re.M))
    for model in models:
        has_fields(model["name"], model, " ".join(FIELDS))
        check(f"{model['name']}: its architecture runs", model["architecture"] in runs, model)
        check(f"{model['name']}: a page and a file on it", model["page"].startswith("https://")
              and model["file"].endswith(".gguf") and " " not in model["page"] + model["file"], model)
        check(f"{model['name']}: an SPDX identifier", re.fullmatch(r"[A-Za-z0-9.-]+", model["license"]), model)
        numbers = [model[name] for name in FIELDS if "bytes" in name]
        if model["file_bytes"] is None:
            check(f"{model['name']}: nothing is invented", set(numbers) == {None}, model)
            continue
        # From Q4_0 to Q8_0 with what embeddings have more.
        bits = 8 * model["file_bytes"] / model["parameters"]
        check(f"{model['name']}: a size of that many parameters", 4.4 < bits < 8.8, bits)
        held = model["file_bytes"] - model["on_file_bytes"]
        check(f"{model['name']}: more tokens take more memory",
              held < model["memory_bytes_4096"] < model["memory_bytes_32768"], model)
    known = [m["memory_bytes_4096"] for m in models if m["file_bytes"] is not None]
    check("in the order of memory", known == sorted(known))


def test_memory_is_that_of_the_shape_with_the_weights_of_the_file():
    for model in listed():
        if model["file_bytes"] is None:
            continue
        for tokens in (4096, 32768):
            plan = json_of(model["shape"], "plan", "--arch", model["shape"], "--memory", "1TiB", "--kv", "k8v4",
                           "--sinks", "4", "--window", tokens - 4)
            held = model["file_bytes"] - plan["on_file_bytes"]
            held += held // 36 if "_k_" in model["file"].lower() else 0
            want = plan["total_bytes"] - plan["weights_bytes"] + held
            check(f"{model['name']}: {tokens} tokens", model[f"memory_bytes_{tokens}"] == want, (want, model))


def test_the_page_has_the_same_table():
    printed = succeeds("the table", "models", "--markdown").out.decode("utf-8")
    page = (ROOT / "docs/reference/models.md").read_text("utf-8")
    check("docs/reference/models.md ends with what `oriel models --markdown` prints", page.endswith("\n\n" + printed), printed)


def test_words_of_models():
    text = succeeds("models", "models").out.decode("utf-8")
    check("within 80 columns", max(map(len, text.splitlines())) <= 80)
    for model in listed():
        lines = [line for line in text.splitlines() if line.startswith(model["id"] + " ")]
        check(f"{model['name']}: one line", len(lines) == 1, lines)
    check("nothing else but a note", len(text.splitlines()) <= len(listed()) + 10, text)
    one = succeeds("one", "models", "Gemma 4 E2B").out.decode("utf-8")
    for words in ("gemma-4-E2B-it-Q4_0.gguf", "2,841,481,184", "huggingface.co", "stay in the file", "Apache-2.0", "oriel chat"):
        check(f"one model: {words}", words in one, one)


def test_names_of_models():
    check("by a part", {"Gemma 4 E2B it", "Gemma 4 E4B it"} == {m["name"] for m in listed("gemma-4")})
    check("by the file", [m["name"] for m in listed("smollm3-q4_k_m.gguf")] == ["SmolLM3 3B"])
    check("by the architecture", len(listed("LLAMA")) > 5)
    check("a whole name goes before parts", [m["name"] for m in listed("qwen3-4b")] == ["Qwen3 4B Instruct 2507"])
    none = models_of("no-such-model")
    check("none", one_line_failure(none, 2) and none.out == b"" and b"`oriel models`" in none.err, none)
    for args in (["--markdown", "--json"], ["one", "two"], ["--no-such-option"]):
        check(f"wrong usage: {args}", one_line_failure(models_of(*args), 2))


def test_memory_of_models():
    fits = listed("--memory", "1GiB")
    check("those that fit", 5 < len(fits) < len(listed()) and all(
        m["memory_bytes_4096"] <= 1 << 30 for m in fits), fits)
    check("and no other", len(fits) == sum((m["memory_bytes_4096"] or 1 << 60) <= 1 << 30 for m in listed()))
    none = models_of("--memory", "1MiB")
    check("none fits", one_line_failure(none, 3) and none.out == b"", none)


if __name__ == "__main__":
    if shutil.which("curl") is None:
        print("SKIPPED: curl is not installed")
        sys.exit(0)
    sys.exit(run_tests(globals()))
