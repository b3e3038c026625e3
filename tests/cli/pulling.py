"""Helpers of the tests of `oriel pull`: a server, and folders for models."""

import hashlib
import json
import subprocess
import time

import program
from program import ORIEL, SMALL, check, environment, one_line_failure, says_what_to_do, scratch
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
