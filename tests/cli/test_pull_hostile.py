#!/usr/bin/env python3
"""`oriel pull` with captive portals, lying servers and planted files: test_pull_hostile.py ORIEL_BINARY TEST_DATA_DIR"""

import os
import shutil
import signal
import socket
import struct
import sys
import threading

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import PATIENCE, check, one_line_failure, run_tests, scratch
from test_pull import MODEL, SUM, part, place, pull, pulled, refused, server, start, until

PARTS = ["m.gguf.part", "m.gguf.part.json"]
PAGE = b"<html>please log in to the hotel's network</html>"
LENGTH = f"Content-Length: {len(MODEL)}"


def send(handler, status, *fields, body=b""):
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *fields, "Connection: close", ""))
    handler.wfile.write(head.encode() + body)
    handler.wfile.flush()


def rest(handler, wanted, *fields, to=len(MODEL)):
    """The file from its address, with only a Content-Length header; cut at `to`."""
    begin = int(wanted[len("bytes="):-1]) if wanted else 0
    fields += (f"Content-Length: {len(MODEL) - begin}",)
    if wanted:
        fields += (f"Content-Range: bytes {begin}-{len(MODEL) - 1}/{len(MODEL)}",)
    send(handler, "206 Partial Content" if wanted else "200 OK", *fields, body=MODEL[begin:to])


def cut_at(*ends):
    """Cuts the first answers there, then no more."""
    left = list(ends)
    return lambda handler, wanted: rest(handler, wanted, to=left.pop(0) if left else len(MODEL))


def chunks(data, size=50000):
    pieces = [data[at:at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x;note=1\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def untouched(name, folder, *args, **options):
    """The pull fails, and all existing files stay unchanged."""
    before = contents(folder)
    result = refused(name, folder, *args, keeps=before, **options)
    check(f"{name}: as it was", contents(folder) == before)
    return result


def with_curl(text):
    """An environment's PATH where curl is a shell script of our own."""
    folder = place()
    curl = folder / "curl"
    curl.write_text(f"#!/bin/sh\n{text}\n")
    curl.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_answers_that_are_no_file():
    """Partial data stays until the complete file arrives."""
    folder = place()
    url = server.put("/m.gguf", MODEL)
    etag = server.files["/m.gguf"].etag
    part(folder, url, etag=etag)
    server.put("/m.gguf", PAGE, ranges=False)
    untouched("a portal's page", folder, url, words=b"web page comes from")
    server.put("/login", PAGE, ranges=False)
    server.put("/m.gguf", b"", location="/login")
    untouched("a portal behind a redirect", folder, url, words=b"68.4 KiB are kept, `oriel pull ")
    for name, data in (("text", b"try again later"), ("nothing", b"")):
        server.put("/m.gguf", data, ranges=False)
        untouched(name, folder, url, words=b"is not a GGUF file")
    server.put("/m.gguf", MODEL, etag='"other"', cut_after=[0] * 9)
    untouched("another version that does not come", folder, url, "--retries", "0", words=b"broke")
    answers = iter(("416 Range Not Satisfiable", "200 OK"))
    server.put("/m.gguf", MODEL, raw=lambda handler, _: send(handler, next(answers), LENGTH))
    untouched("a range that is refused, and then nothing", folder, url, "--retries", "0", words=b"broke")
    server.put("/m.gguf", MODEL)
    check("then it goes on", pulled("then the file", folder, url).get("resumed_from") == 70000)


def test_files_of_others():
    url = server.put("/m.gguf", MODEL)
    for name, notes in (("a part without notes", None), ("notes that are none", "my own"), ("notes of nothing", "{}"),
                        ("notes of another program", '{"bytes": 5}')):
        folder = place()
        (folder / "m.gguf.part").write_bytes(b"years of work")
        if notes is not None:
            (folder / "m.gguf.part.json").write_text(notes)
        untouched(name, folder, url, words=b"is not a part of oriel's: move it away")
    folder = place()
    (folder / "m.gguf.part.json").write_text('{"mine": 1}')
    untouched("notes alone", folder, url, words=b"is not a part of oriel's: move it away")
    folder = place()
    (folder / "m.gguf.part").write_bytes(b"")
    server.put("/gone/m.gguf", b"", status=404)
    untouched("an empty file", folder, server.address + "/gone/m.gguf", words=b"has no")
    pulled("an empty file is none", folder, url)
    for name in PARTS:
        folder = place()
        os.mkfifo(folder / name)
        beside(f"a pipe {name}", folder, [name], url)
        folder = place()
        (scratch / "behind").write_bytes(b"")
        (folder / name).symlink_to(scratch / "behind")
        beside(f"a link {name}", folder, [name], url)
        check(f"a link {name}: leads to what it did", (folder / name).is_symlink() and
              (scratch / "behind").read_bytes() == b"")


def beside(name, folder, planted, url, *args):
    """The file arrives under an unpredictable temporary name; planted files are neither used nor changed."""
    before = {each: (folder / each).read_bytes() for each in planted if (folder / each).is_file()}
    result = pull(folder, url, *args, "--json")
    check(f"{name}: the file comes whole", result.code == 0 and (folder / "m.gguf").read_bytes() == MODEL
          and result.json["resumed_from"] == 0, result)
    left = sorted(path.name for path in folder.iterdir())
    check(f"{name}: what lay there stays, and nothing else", left == sorted(["m.gguf", *planted]), left)
    check(f"{name}: as it was", before == {each: (folder / each).read_bytes() for each in before})


def test_parts_that_others_can_write_to():
    """Half of another file, with notes that fit."""
    url = server.put("/m.gguf", MODEL)
    etag = server.files["/m.gguf"].etag
    for name, change in (("open to all", lambda path: path.chmod(0o666)),
                         ("open to a group", lambda path: path.chmod(0o664)),
                         ("with a second name", lambda path: os.link(path, scratch / f"second{places()}")),
                         ("of another user", lambda path: os.chown(path, 12345, -1))):
        if name == "of another user" and os.geteuid() != 0:
            check("SKIPPED: a file of another user needs root", True)
            continue
        for each in PARTS:
            folder = place()
            part(folder, url, b"bad" + MODEL, etag=etag)
            change(folder / each)
            beside(f"{each} {name}", folder, PARTS, url)
    folder = place()
    part(folder, url, b"bad" + MODEL, etag=etag)
    (folder / PARTS[0]).chmod(0o666)
    server.put("/m.gguf", MODEL, cut_after=[50000, 0])
    result = untouched("cut, beside such a part", folder, url, "--retries", "0", words=b"begins anew")
    check("says why", b"another user's or open to one" in result.err and b"are kept" not in result.err, result)


def places(count=[0]):
    count[0] += 1
    return count[0]


def during(change, then=len(MODEL) - 50000):
    """Sends a part of the file, calls `change`, sends the rest."""
    def answer(handler, _):
        send(handler, "200 OK", LENGTH, 'ETag: "a"', body=MODEL[:then])
        change()
        handler.wfile.write(MODEL[then:])
    return server.put("/m.gguf", MODEL, raw=answer)


def written(folder):
    path = folder / PARTS[0]
    return until(lambda: path.exists() and path.stat().st_size >= len(MODEL) - 100000)


def test_what_lies_there_is_summed():
    folder = place()

    def overwrite():
        written(folder)
        with open(folder / PARTS[0], "r+b") as file:
            file.seek(len(MODEL) - 200000)
            file.write(b"not what the server sent")
    refused("a part that is changed meanwhile", folder, during(overwrite), "--sha256", SUM, words=b"SHA-256")


def test_the_open_file_gets_the_name():
    folder = place()

    def exchange():
        written(folder)
        (folder / "other").write_bytes(b"GGUF of somebody else")
        (folder / "other").rename(folder / PARTS[0])
    refused("a part that is exchanged meanwhile", folder, during(exchange), "--sha256", SUM,
            words=b"by another program", keeps=PARTS[:1])
    check("the other stays", (folder / PARTS[0]).read_bytes() == b"GGUF of somebody else")
    folder = place()

    def move():
        written(folder)
        (folder / PARTS[0]).rename(folder / "moved")
        (folder / PARTS[0]).write_bytes(MODEL[::-1])
    result = pull(folder, during(move), "--sha256", SUM, "--json")
    check("a part that is moved meanwhile", result.code == 0 and (folder / "m.gguf").read_bytes() == MODEL, result)
    check("what came to its place stays", (folder / PARTS[0]).read_bytes() == MODEL[::-1])


def test_links_that_come_meanwhile():
    folder = place()
    behind = scratch / "precious"
    behind.write_bytes(b"precious")

    def answer(handler, _):
        (folder / PARTS[1]).symlink_to(behind)
        send(handler, "200 OK", LENGTH, 'ETag: "a"', body=MODEL)
    pulled("notes that become a link", folder, server.put("/m.gguf", MODEL, raw=answer))
    check("nothing is written through it", behind.read_bytes() == b"precious", behind.read_bytes()[:100])


def test_streams_without_end():
    """The header says how long the file is at most."""
    def endless(begin, chunked):
        def answer(handler, _):
            send(handler, "200 OK", *(["Transfer-Encoding: chunked"] if chunked else []))
            piece = begin
            while True:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                piece = bytes(65536)
        return answer
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 0)
    for name, begin, words in (("a file", MODEL, b"by its header"), ("an empty file", head, b"by its header"),
                               ("no version", b"GGUF", b"not a valid GGUF file"),
                               ("a name of exabytes", b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), b"not a valid GGUF file"),
                               ("values of no type", head[:16] + struct.pack("<QQcI", 1, 1, b"a", 99), b"not a valid GGUF file"),
                               ("more than there is room for", head[:8] + struct.pack("<QQQcIQIQ", 1, 0, 1, b"a", 1, 1 << 50, 0, 0),
                                b"free: make room")):
        for chunked in (True, False):
            refused(f"{name}, {'chunks' if chunked else 'bytes'} without end", place(),
                    server.put("/m.gguf", MODEL, raw=endless(begin, chunked)), words=words, keeps=KEPT.get(name, ()))
    one = head[:8] + struct.pack("<QQQ15sIIQ", 1, 1, 15, b"general.padding", 9, 8, 3) + (b"\1" + bytes(7) + b"x") * 3 + \
        struct.pack("<QcIQIQ", 1, b"t", 1, 4, 0, 0)
    result = pull(place(), server.put("/m.gguf", b"", raw=endless(one + bytes(16), True)))
    check("strings in a list", b"by its header" in result.err, result)


KEPT = {"more than there is room for": PARTS}


def test_parts_of_other_addresses():
    folder = place()
    part(folder, server.put("/one/m.gguf", MODEL), etag='"x"')
    for name, options in (("404", {"status": 404}), ("a page", {}), ("no answer", {"cut_after": [0] * 9})):
        url = server.put("/two/m.gguf", PAGE, ranges=False, **options)
        untouched(f"another address: {name}", folder, url, "--retries", "0")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = start(folder, f"http://127.0.0.1:{silent.getsockname()[1]}/m.gguf")
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGTERM)
            process.communicate()
    check("another address: stopped", sorted(contents(folder)) == PARTS)
    url = server.put("/two/m.gguf", MODEL)
    check("the file takes its place", pulled("another address", folder, url).get("resumed_from") == 0)


def test_trailers():
    ends = b"0\r\nX-Sum: abcdef\r\nX-Foo: bar\r\n\r\n"
    for name, fields in (("trailers", ["Trailer: X-Sum"]), ("trailers that nobody announced", []),
                         ("a length beside chunks", ["Content-Length: 5000"]),
                         ("trailers and a sum", [f"X-Checksum-Sha256: {SUM}"])):
        url = server.put("/m.gguf", MODEL, raw=lambda handler, _, more=fields: send(
            handler, "200 OK", "Transfer-Encoding: chunked", *more, body=chunks(MODEL) + ends))
        pulled(name, place(), url)

    def cut(handler, wanted):
        if wanted:
            rest(handler, wanted, 'ETag: "a"')
        else:
            send(handler, "200 OK", "Transfer-Encoding: chunked", 'ETag: "a"', body=chunks(MODEL)[:200000])
    fields = pulled("a chunk that was cut", place(), server.put("/m.gguf", MODEL, raw=cut))
    check("goes on behind what came of it", fields.get("file_bytes") == len(MODEL), fields)
    for name, body in (("a chunk of no size", b"GGUF and more"), ("a chunk longer than it said", b"4\r\nGGUFmore\r\n")):
        result = pull(place(), server.put("/m.gguf", b"", raw=lambda handler, _, data=body: send(
            handler, "200 OK", "Transfer-Encoding: chunked", body=data + b"\r\n" * 9000)), "--retries", "0")
        check(name, one_line_failure(result, 1), result)


def test_heads():
    url = server.put("/m.gguf", MODEL, raw=lambda handler, _: send(handler, "200 OK", "X-A: b", " ", LENGTH, body=MODEL))
    pulled("a field that goes on in an empty line", place(), url)

    def for_ever(handler, _):
        send(handler, "300 Multiple Choices")
        while True:
            handler.wfile.write(b"x" * 1000)
    url = server.put("/m.gguf", MODEL, raw=for_ever)
    refused("choices without end", place(), url, words=b"answers 300")
    endless = with_curl("echo no head; exec yes")
    refused("no head at all", place(), url, words=b"is not an HTTP response", more=endless)
    folder = place()
    (folder / "m.gguf").write_bytes(MODEL)
    untouched("choices where the file is", folder, url, words=b"answers 300")
    untouched("no head where the file is", folder, url, words=b"is not an HTTP response", more=endless)


def test_servers_without_versions():
    folder = place()
    url = server.put("/m.gguf", MODEL, raw=cut_at(100000, 160000, 160001))
    pulled("neither ETag nor date, cut three times", folder, url, "--retries", "1")
    asked = server.files["/m.gguf"].requests
    check("each goes on there", asked == [None, "bytes=100000-", "bytes=160000-", "bytes=160001-"], asked)
    folder = place()
    url = server.put("/m.gguf", MODEL, raw=cut_at(100000, 100000))
    result = refused("cut for good", folder, url, "--retries", "0", words=b"` begins anew; with --sha256 it goes on",
                     keeps=PARTS)
    check("nothing is said that is not so", b"goes on there" not in result.err, result)
    check("the sum says enough", pulled("with its sum", folder, url, "--sha256", SUM).get("resumed_from") == 100000)
    url = server.put("/m.gguf", MODEL, raw=cut_at(100000, 100000))
    refused("cut, with a sum", folder := place(), url, "--retries", "0", "--sha256", SUM, keeps=PARTS,
            words=f"`oriel pull {url} --sha256 {SUM}` goes on there".encode())
    check("anew without it", pulled("without its sum", folder, url).get("resumed_from") == 0)

    def another(handler, wanted):
        number = len(server.files["/m.gguf"].requests)
        rest(handler, wanted, f'ETag: "{number}"', to=100000 + 1000 * number)
    url = server.put("/m.gguf", MODEL, raw=another)
    refused("another version each time", place(), url, words=b"has changed the file, time and again", keeps=PARTS)


def test_logins():
    folder = place()
    url = server.put("/m.gguf", MODEL, cut_after=[50000, 0]).replace("//", "//me:secret@")
    process = start(folder, url, "--retries", "0")
    out, err = process.communicate()
    check("a login is not repeated", process.returncode == 1 and b"secret" not in out + err
          and b"are kept, the same command goes on there" in err, err)
    mode = (folder / "m.gguf.part.json").stat().st_mode
    check("the notes are the user's alone", mode & 0o777 == 0o600, oct(mode))
    (folder / "m.gguf.part.json").chmod(0o644)  # as earlier versions left them
    server.files["/m.gguf"].cut_after = [0]
    pull(folder, url, "--retries", "0")
    mode = (folder / "m.gguf.part.json").stat().st_mode
    check("those of earlier versions, too", mode & 0o777 == 0o600, oct(mode))
    check("and it goes on", pulled("with a login", folder, url).get("resumed_from") == 50000)

    def more(handler, wanted):
        send(handler, "200 OK" if not wanted else "206 Partial Content", "Transfer-Encoding: chunked", 'ETag: "a"',
             *([f"Content-Range: bytes {wanted[6:]}80000/80000"] if wanted else []),
             body=chunks(MODEL)[:None if wanted else 60000])
    url = server.put("/m.gguf", MODEL, raw=more).replace("//", "//me:secret@")
    result = pull(place(), url)
    check("nor when a server sends too much", b"sends more than" in result.err and b"secret" not in result.err, result)


def test_address_for_curl():
    paths = []

    def seen(handler, wanted):
        paths.append(handler.path)
        rest(handler, wanted)
    url = server.put("/m.gguf", MODEL, raw=seen) + "?a=\"b\\c'd\\n"
    pulled("quotes in an address", place(), url)
    check("come to the server", paths == ["/m.gguf?a=\"b\\c'd\\n"], paths)
    words = scratch / "words"
    result = pull(place(), url + "&secret", more=with_curl(f'echo "$@" > {words}; exit 7'))
    check("none of it is among curl's arguments", result.code == 1 and "secret" not in words.read_text()
          and "127.0.0.1" not in words.read_text(), words.read_text())


def test_names_that_drive_terminals():
    for name in ("m%1b[31m.gguf", "m%c2%9b31m.gguf", "m%9b31m.gguf", "m%ff.gguf", "m%00.gguf", "m%0a.gguf"):
        refused(f"a file's name {name}", place(), server.put("/" + name, MODEL), code=2, words=b"--to")
    for name in ("m\x1b[31m.gguf", "m\u009b31m.gguf", b"m\xff.gguf".decode("utf-8", "surrogateescape"), "a b.gguf"):
        refused(f"an address with {name!r}", place(), server.address + "/" + name, code=2, words=b"%20")
    refused("an address that ends with a folder", place(), server.address + "/models/", code=2, words=b"--to")
    pulled("other letters", place(), server.put("/m%C3%A4.gguf", MODEL), file="m\u00e4.gguf")
    loud = with_curl(r"printf 'curl: (6) Could not resolve: \033[31mr\302\233d\007\n' >&2; exit 6")
    result = pull(place(), server.address + "/m.gguf", more=loud)
    check("curl's words", one_line_failure(result, 1) and b"\x1b" not in result.err and b"\xc2\x9b" not in result.err
          and b"(Could not resolve: [31mrd)" in result.err, result)


def test_silence():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        folder = place()
        process = start(folder, f"http://{host}/m.gguf")
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=20 * PATIENCE)
        check("ended while it waits: leaves nothing", process.returncode == 130 and out + err == b""
              and not contents(folder), (process.returncode, err, contents(folder)))
        if not no_terminals():
            for file in (None, MODEL):
                folder = place()
                if file:
                    (folder / "m.gguf").write_bytes(file)
                terminal = AtTerminal("pull", f"http://{host}/m.gguf", ORIEL_MODELS=str(folder), no_proxy="*")
                seen = terminal.until(lambda: f"waiting for {host}" in terminal.screen.text())
                check(f"it waits visibly{' where the file is' if file else ''}", seen, terminal.screen.text())
                terminal.send_signal(signal.SIGINT)
                check("and stops", terminal.ended() == 130)
                terminal.forget()
            dumb = AtTerminal("pull", f"http://{host}/m.gguf", ORIEL_MODELS=str(place()), no_proxy="*", TERM="dumb")
            seen = dumb.until(lambda: f"waiting for {host}" in dumb.screen.text())
            dumb.send_signal(signal.SIGINT)
            check("TERM=dumb: in lines", seen and dumb.ended() == 130 and b"\x1b" not in dumb.raw, dumb.raw)
            dumb.forget()


def test_first_bytes():
    """They are used when they come, not when there are many."""
    folder = place()
    go_on = threading.Event()

    def slowly(handler, _):
        send(handler, "200 OK", LENGTH, 'ETag: "a"', body=MODEL[:100])
        go_on.wait(60)
        handler.wfile.write(MODEL[100:])
    process = start(folder, server.put("/m.gguf", MODEL, raw=slowly))
    check("a hundred bytes are enough", until(lambda: (folder / "m.gguf.part.json").exists()))
    go_on.set()
    process.communicate()
    check("then the others", contents(folder) == {"m.gguf": MODEL})


def test_why_it_is_not_the_same():
    folder = place()
    (folder / "m.gguf").write_bytes(MODEL)
    for name, url, words in (
            ("nobody there", "http://127.0.0.1:9/m.gguf", b"127.0.0.1:9 cannot be reached"),
            ("404", server.put("/404/m.gguf", b"", status=404), b"answers 404"),
            ("no length", server.put("/none/m.gguf", MODEL, length=False), b"does not say how long the file is"),
            ("another length", server.put("/other/m.gguf", MODEL + b"x"), f"not {len(MODEL) + 1:,}".encode())):
        result = untouched(name, folder, url, words=words)
        check(f"{name}: a sum would do", b"--sha256" in result.err, result)
        check(f"{name}: it does", pull(folder, url, "--sha256", SUM).code == 0)
    url = server.put("/sum/m.gguf", MODEL, headers={"X-Checksum-Sha256": "3" * 64})
    untouched("another sum", folder, url, words=b"its SHA-256 is " + SUM.encode())


if __name__ == "__main__":
    if shutil.which("curl") is None:
        print("SKIPPED: curl is not installed")
        sys.exit(0)
    sys.exit(run_tests(globals()))
