#!/usr/bin/env python3
"""The user's config file: test_config.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import CPU, EXACT, SMALL, check, environment, json_of, oriel, run_tests, scratch

PROMPT = ["--prompt", "Once upon", "--raw", *CPU]


def written(config, name="config.json"):
    path = scratch / name
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return path


def with_config(config, *args, **env):
    return oriel(*args, env=environment(ORIEL_CONFIG=str(written(config)), **env))


def ids(result):
    check("runs", result.code == 0, result)
    return result.json["token_ids"]


def run(config, *args, **env):
    return ids(with_config(config, "run", *args, *PROMPT, "--json", **env))


def plain(model, *args):
    return json_of("plain", "run", model, *args, *PROMPT)["token_ids"]


def test_defaults():
    base = {"model": str(SMALL), "tokens": 6, "greedy": True, "memory": "64MiB", "kv": "f16"}
    same = ["--greedy", "--memory", "64MiB", "--kv", "f16"]
    check("stands for the command line", run(base) == plain(SMALL, "--tokens", 6, *same))
    check("an option counts more", run(base, "--tokens", "3") == plain(SMALL, "--tokens", 3, *same))
    check("and its short form", run(base, "-n", "3") == plain(SMALL, "--tokens", 3, *same))
    check("MODEL counts more", run(base, EXACT) == plain(EXACT, "--tokens", 6, *same))
    check("and -m", run(base, "-m", EXACT) == plain(EXACT, "--tokens", 6, *same))
    check("the environment counts more", run(base, ORIEL_MODEL=str(EXACT)) == plain(EXACT, "--tokens", 6, *same))
    hot = run(base, "--temperature", "0.9", "--seed", "3")
    check("what excludes an option is left out", hot == run({**base, "greedy": False}, "--temperature", "0.9", "--seed", "3"))
    off = with_config({**base, "model": "/nowhere.gguf"}, "run", SMALL, *PROMPT, "--no-config", "--tokens", "2", *same, "--json")
    check("--no-config", ids(off) == plain(SMALL, "--tokens", 2, *same))
    none = oriel("run", SMALL, *PROMPT, "--tokens", "2", *same, "--json", env=environment(ORIEL_CONFIG=""))
    check("an empty name is none", ids(none) == plain(SMALL, "--tokens", 2, *same))
    stops = run({**base, "stop": ["zzzz", "yyyy"]})
    check("a list is an option several times", stops == plain(SMALL, "--tokens", 6, *same, "--stop", "zzzz", "--stop", "yyyy"))
    other = with_config(base, "devices", "--json")
    check("other commands take what they know", other.code == 0, other)
    words = with_config('{ // mine\n "model": "' + str(SMALL) + '", /* short */ "tokens": 2 }', "run", *PROMPT, *same, "--json")
    check("comments", ids(words) == plain(SMALL, "--tokens", 2, *same))


def test_where_it_is():
    home = scratch / "home"
    folder = home / ".config" / "oriel"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model": str(SMALL), "tokens": 2, "greedy": True}))
    env = {k: v for k, v in environment(HOME=str(home)).items() if k not in ("ORIEL_CONFIG", "XDG_CONFIG_HOME")}
    check("in the home folder", len(ids(oriel("run", *PROMPT, "--json", env=env))) == 2)
    env["XDG_CONFIG_HOME"] = str(scratch / "elsewhere")
    check("elsewhere is none", len(ids(oriel("run", SMALL, *PROMPT, "--json", "--tokens", "3", "--greedy", env=env))) == 3)


def test_presets():
    config = {"model": str(EXACT), "tokens": 6, "greedy": True,
              "presets": {"small": {"model": str(SMALL), "tokens": 3}, "empty": {}}}
    check("a preset counts more than what stands beside it", run(config, "--preset", "small") == plain(SMALL, "--tokens", 3, "--greedy"))
    check("than the environment, too", run(config, "--preset=small", ORIEL_MODEL=str(EXACT)) == plain(SMALL, "--tokens", 3, "--greedy"))
    check("less than an option", run(config, "--preset", "small", "--tokens", "2") == plain(SMALL, "--tokens", 2, "--greedy"))
    check("an empty one", run(config, "--preset", "empty") == plain(EXACT, "--tokens", 6, "--greedy"))
    unknown = with_config(config, "run", *PROMPT, "--preset", "big")
    check("one that is not there", unknown.code == 2 and b"small" in unknown.err, unknown)
    off = with_config(config, "run", *PROMPT, "--preset", "small", "--no-config")
    check("with --no-config", off.code == 2 and b"--no-config" in off.err, off)


def test_faults():
    for name, config, word in (("no JSON", '{"tokens": ', b"line 1"),
                               ("no object", "[1]", b"no JSON object"),
                               ("no such option", {"temprature": 1}, b"did you mean temperature?"),
                               ("a value that is not allowed", {"tokens": "many"}, b"config.json"),
                               ("a flag that is no flag", {"greedy": "perhaps"}, b"config.json"),
                               ("a number for a flag", {"verbose": 3}, b"true or false"),
                               ("an object", {"tokens": {"a": 1}}, b"a text, a number"),
                               ("presets that are none", {"presets": 3, "tokens": 2}, None)):
        done = with_config(config, "run", SMALL, *PROMPT, *(["--tokens", "1"] if word is None else []))
        if word is None:
            check(name, done.code in (0, 2), done)
            continue
        check(name, done.code == 2 and word in done.err and done.err.count(b"\n") == 1, done)
    missing = oriel("run", SMALL, *PROMPT, env=environment(ORIEL_CONFIG=str(scratch / "nowhere.json")))
    check("a file that is not there", missing.code == 2 and b"nowhere.json" in missing.err, missing)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
