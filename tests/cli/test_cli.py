#!/usr/bin/env python3
"""Checks the promises of docs/cli.md for every command, and for plan, info and devices:
test_cli.py ORIEL_BINARY TEST_DATA_DIR
"""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

try:
    import resource
except ImportError:  # Windows
    resource = None

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import (BUNDLED, CPU, DATA, EXACT, FIXED, ORIEL, PATIENCE, SMALL, Result, check,
                     environment, fails, floats, has_fields, interrupt, json_of, one_line_failure,
                     oriel, relative_l2, run_tests, scratch, succeeds, write_ids)

# ---- Usage and sizes ---------------------------------------------------------------------------

COMMANDS = "chat run plan eval calibrate bench tokenize render parse embed info models devices doctor".split()
# Types, checks and ties of options, as parsers write them.
INNARDS = re.compile(r"\b(UINT|INT|FLOAT|NUMBER|BOOLEAN|REQUIRED|SUBCOMMANDS?)\b|TEXT:|"
                     r"\b(Excludes|Needs|Positionals)\b|\{(true|false)\}|:\{| in \[|\(Env")


def test_usage():
    version = succeeds("version", "--version")
    check("version is a line", version.out.startswith(b"oriel ") and version.out.count(b"\n") == 1)
    bare = oriel()
    check("no command is wrong usage", bare.code == 2 and bare.out == b"" and bare.err, bare)
    for args in (["sing"], ["run", "--no-such-option"], ["info", SMALL, "too", "many"],
                 ["run", SMALL], ["eval", SMALL], ["plan", SMALL, "--memory"],
                 ["run", SMALL, "--prompt", "x", "--prompt-file", "y"],
                 ["run", SMALL, "--prompt", "x", "--tokens", "-1"],
                 ["run", SMALL, "--prompt", "x", "--temperature", "hot"],
                 ["run", SMALL, "--prompt", "x", "--temperature", "-1"],
                 ["run", SMALL, "--prompt", "x", "--top-p", "1.5"],
                 ["plan", SMALL, "--kv", "f99"], ["info", SMALL, "--device", "gpu"],
                 ["plan", SMALL, "--memory", "64MiB", "--window", "4194305"],
                 ["run", SMALL, "--prompt", "x", "--tokens", ""],  # 0 would be: without an end
                 ["run", SMALL, "--prompt", "x", "--tokens", "0x10"],
                 ["run", SMALL, "--prompt", "x", "--seed", "-1"],
                 ["run", SMALL, "--prompt", "x", "--seed", "18446744073709551616"],
                 ["plan", SMALL, "--sinks", "4294967295"], ["info", ""], ["plan", "--arch", ""],
                 ["plan", SMALL, "--plot", ""], ["run", SMALL, "--prompt-file", ""],
                 ["plan", SMALL, "--kv", "two\nlines"], ["version", "--json"], ["help", "a", "b"],
                 ["plan", SMALL, "--session-windows", "10,,20"], ["plan", SMALL, "--session-windows", ","],
                 ["run", SMALL, "x", "--think", "--no-think"], ["bench", SMALL, "--sweep", "x", "--sustain", "5"],
                 ["bench", SMALL, "--sweep", "x/"], ["run", BUNDLED.stem.removesuffix("-q8_0")]):
        result = oriel(*args)
        check(f"wrong usage: {' '.join(map(str, args)).replace(str(DATA), '')}",
              one_line_failure(result, 2) and result.out == b"", result)


def test_a_refused_value_is_told_by_the_flag_that_was_written():
    for flag, value, allowed in (("--kv", "k9v9", "auto, f16, k8v8, k8v4 or k4v4"),
                                 ("--state", "f64", "auto, f32, f16 or int8"),
                                 ("--on-file", "some", "auto, none, rows or all"),
                                 ("--activations", "4", "16 or 8"),
                                 ("--threads", "0", "from 1 to 1024"),
                                 ("--prefill-batch", "513", "from 0 to 512"),
                                 ("--recall-tokens", "1025", "from 0 to 1024"),
                                 ("--f16-layers", "1,2", "from 0 to 1"),
                                 ("--window-shares", "1,,2", "from 0 to 255")):
        result = oriel("plan", SMALL, flag, value)
        line = result.err.decode()
        check(f"{flag} {value}", one_line_failure(result, 2) and line.startswith(f"oriel: {flag}: ")
              and allowed in line and (f"'{value}'" in line or "," in value), result)
    failed = oriel("plan", SMALL, "--expert-slot", "3")
    check("the nearest flag is named", one_line_failure(failed, 2) and b"--expert-slots" in failed.err, failed)


def test_the_table_of_options():
    rows = json_of("options", "options")["options"]
    check("every row is described", all({"name", "scope", "type", "default", "help"} <= set(row) for row in rows), rows)
    text = succeeds("options as text", "options").out.decode()
    check("the text has every row", all(f"  {row['name']} (" in text for row in rows), text)


def test_numbers_are_decimal():
    run = json_of("run --tokens 010", "run", SMALL, "--prompt", "x", "--tokens", "010", "--ignore-stop",
                  *FIXED, "--seed", "3")
    check("a zero in front does not make it octal", run["tokens"] == 10, run)


def test_help():
    for command in [[]] + [[command] for command in COMMANDS]:
        name = " ".join(command + ["--help"])
        page = succeeds(name, *command, "--help").out.decode()
        check(f"{name} shows usage" if command else "help names the commands",
              all(word in page for word in command or COMMANDS), page)
        found = INNARDS.search(page)
        check(f"{name}: nothing of how it is parsed", not found, found)
        check(f"{name}: within 80 columns", max(map(len, page.splitlines())) <= 80, page)
        rows = re.findall(r"^  (?:-h, )?--\S+.*(?:\n {10,}\S.*)*", page, re.M)
        silent = [row for row in rows if not re.search(r"(  |\n) *[A-Za-z]+ \S", row)]
        check(f"{name}: says what each option does", rows and not silent, (rows, silent))
    memory = oriel("plan", "--help").out.decode().partition("--memory SIZE")[2].partition("--")[0]
    check("--memory may be left out, and help says so", "default:" in memory, memory)
    succeeds("plan without --memory", "plan", SMALL)


def test_sizes():
    """Most of them: test_plan.py."""
    for text, want in (("3000KB", 3000000), ("4096KiB", 4 << 20), ("0.5GB", 500000000), ("2gib", 2 << 30)):
        got = json_of(f"size {text}", "plan", SMALL, "--memory", text)["memory_bytes"]
        check(f"size {text} is {want}", got == want, got)
    for text in ("1.5", "3MBs", "0x10"):
        result = oriel("plan", SMALL, "--memory", text)
        check(f"size {text!r} is none", one_line_failure(result, 2), result)

# ---- plan, info, devices -----------------------------------------------------------------------

PARTS = "weights_bytes kv_bytes activation_bytes staging_bytes host_bytes".split()


def test_plan():
    plan = json_of("plan", "plan", SMALL, "--memory", "16MiB")
    has_fields("plan", plan,
               "fits memory_bytes total_bytes minimum_bytes window_tokens sink_tokens ring_tokens "
               "chunk_tokens context_train k_format v_format kv_bytes_per_token "
               "weights_read_bytes_per_token predicted alternatives " + " ".join(PARTS))
    has_fields("plan predicted", plan["predicted"],
               "decode_tokens_per_s prefill_tokens_per_s crossover_tokens loss_nats")
    check("plan: the total is the sum of its parts",
          plan["total_bytes"] == sum(plan[part] for part in PARTS), plan)
    check("plan: within the cap", plan["fits"] is True and plan["total_bytes"] <= 16 << 20, plan)
    for other in plan["alternatives"]:
        has_fields("plan alternative", other, "window_tokens total_bytes fits")
    check("plan for people", b"fits" in succeeds("plan text", "plan", SMALL, "--memory", "16MiB").out)

    minimum = plan["minimum_bytes"]
    least = json_of("plan at the minimum", "plan", SMALL, "--memory", minimum)
    check("the minimum fits exactly", least["fits"] and least["total_bytes"] == minimum, least)
    refused = fails("plan below the minimum", 3, "plan", SMALL, "--memory", minimum - 1, "--json")
    check("plan prints its JSON all the same",
          refused.json["fits"] is False and refused.json["minimum_bytes"] == minimum, refused)
    enough = refused.err.split(b"try --memory ")[1].split()[0].decode()
    check("and says what would do", json_of("plan with that", "plan", SMALL, "--memory", enough)["fits"], refused)

    prompt = ["--prompt", "Hello", "--tokens", "4"] + CPU
    succeeds("run at the minimum", "run", SMALL, *prompt, "--memory", minimum)
    below = fails("run below the minimum", 3, "run", SMALL, *prompt, "--memory", minimum - 1)
    check("run says what would do", str(minimum) in below.err.decode() and below.out == b"", below)


def test_info():
    info = json_of("info", "info", EXACT)
    has_fields("info", info, "name architecture n_layers n_heads n_kv_heads head_dim n_embd n_ff "
               "n_vocab context_train parameters file_bytes tensor_types tokenizer chat_template "
               "bos_id eos_id add_bos minimum_bytes")
    check("info: numbers", info["architecture"] == "llama" and info["n_vocab"] == 384
          and info["file_bytes"] == EXACT.stat().st_size
          and info["tensor_types"] == {"F32": 20}, info)
    plan = json_of("plan for info", "plan", EXACT, "--memory", "1GiB")
    check("info: the minimum is that of plan", info["minimum_bytes"] == plan["minimum_bytes"],
          (info, plan))
    people = succeeds("info text", "info", EXACT).out.decode()
    check("info for people", "llama" in people and "runs here      yes" in people
          and max(map(len, people.splitlines())) <= 80, people)
    check("info: it runs", info["runs"] is True and info["missing"] == [] and info["fits"]
          and info["comfortable"]["total_bytes"] >= info["minimum_bytes"]
          and info["comfortable"]["window_tokens"] + info["comfortable"]["sink_tokens"]
          == info["context_train"]
          and sum(t["bytes"] for t in info["tensor_sizes"].values()) < info["file_bytes"], info)
    little = json_of("info in little memory", "info", EXACT, "--memory", "300KB")
    check("info in little memory", little["runs"] and not little["fits"] and little["here"] is None
          and little["minimum_bytes"] == info["minimum_bytes"], little)
    given = json_of("info in given memory", "info", EXACT, "--memory", "8MiB")
    check("info in given memory", given["here"]["memory_bytes"] == 8 << 20
          and given["here"]["total_bytes"] <= 8 << 20, given)
    fast = json_of("info with a least speed", "info", EXACT, "--memory", "8MiB", "--min-speed", "10")
    check("info: speed is not its question", fast == given, fast)

    whole = EXACT.read_bytes()
    strange = scratch / "strange.gguf"
    strange.write_bytes(whole.replace(b"llama", b"mamba"))
    other = json_of("info of an architecture that does not run", "info", strange)
    check("info of an architecture that does not run",
          other["architecture"] == "mamba" and other["runs"] is False and other["n_layers"] == 2
          and other["n_embd"] == info["n_embd"] and other["parameters"] == info["parameters"]
          and other["minimum_bytes"] is None and other["comfortable"] is None
          and "mamba" in other["missing"][0], other)
    people = succeeds("info text of it", "info", strange).out.decode()
    check("info for people says what is missing", "runs here      no" in people
          and "- architecture \"mamba\"" in people
          and max(map(len, people.splitlines())) <= 80, people)
    strange.write_bytes(whole.replace(b"gpt2", b"what"))
    other = json_of("info of a tokenizer that is not known", "info", strange)
    check("info of a tokenizer that is not known", other["runs"] is False
          and other["tokenizer"].startswith("what") and "what" in other["missing"][0], other)
    for name, bad in [("half", whole[:len(whole) // 2]), ("header", whole[:100]), ("empty", b""),
                      ("text", b"hello " * 50)]:
        strange.write_bytes(bad)
        fails(f"info of a bad file ({name})", 1, "info", strange)
    fails("info of no file", 1, "info", scratch / "none.gguf")
    gemma = DATA / "models" / "gemma3.gguf"
    local = json_of("info of gemma", "info", gemma)
    check("info: local layers", (local["local_layers"], local["local_window_tokens"]) == (6, 32)
          and local["rope_scaling"] == "none", local)
    check("info: scaled RoPE", json_of("info of an LFM3", "info", DATA / "models" / "lfm3.gguf")
          ["rope_scaling"] == "llama3")
    check("info for people: local layers",
          b"6 layers see the last 32" in succeeds("info text of gemma", "info", gemma).out)
    plan = json_of("plan of gemma", "plan", gemma, "--memory", "8MiB")
    check("plan: local layers", (plan["local_layers"], plan["local_window_tokens"],
                                 plan["local_ring_tokens"]) == (6, 32, 31 + plan["chunk_tokens"]), plan)
    check("plan for people: local layers", b"6 layers see the last 32 tokens"
          in succeeds("plan text of gemma", "plan", gemma, "--memory", "8MiB", "--explain").out)


def usable_vulkan():
    devices = json_of("devices", "devices")["devices"]
    return [d for d in devices if d["usable"] and d["option"].startswith("vulkan")]


def test_doctor_report():
    path = scratch / "report.json"
    result = oriel("doctor", "--no-timing", *CPU, "--report", path, "--json")
    report = json.loads(path.read_text()) if check("doctor --report: runs", result.code == 0, result) else {}
    has_fields("doctor --report", report, "oriel status devices doctor")
    check("doctor --report: as it prints", report.get("doctor") == result.json and "limits" in report["devices"][0], report)
    failed = fails("a report that cannot be written", 1, "doctor", "--no-timing", *CPU, "--report", scratch / "no" / "report")
    check("a report that cannot be written: names it", b"no/report" in failed.err, failed)


def test_devices():
    devices = json_of("devices", "devices")["devices"]
    for device in devices:
        has_fields("device", device, "option name driver kind usable reason features memory_bytes")
    check("devices: the CPU is the last and always usable",
          devices[-1]["option"] == "cpu" and devices[-1]["usable"] is True, devices)
    unusable = [d for d in devices if not d["usable"]]
    check("devices: a reason for what is not usable", all(d["reason"] for d in unusable), unusable)
    missing = oriel("run", SMALL, "--prompt", "x", "--device", "vulkan:99")
    check("a device that is not there", one_line_failure(missing, 1), missing)


def test_vulkan():
    if not usable_vulkan():
        print("skipped vulkan: no usable Vulkan device")
        return
    golden = json.loads((DATA / "logits.json").read_text())["models"]["llama-mqa"]["prompts"][0]
    out = scratch / "vulkan.bin"
    # The test of a device's kernels: test_faulty_driver.py.
    vulkan = ["--device", "vulkan", "--device-test", "never", "--memory", "16MiB", "--kv", "f16"]
    json_of("eval on Vulkan", "eval", SMALL, "--tokens-file", write_ids(golden["ids"]),
            "--logits-out", out, *vulkan)
    want = floats(base64.b64decode(golden["exact"]["logits_f32_b64"]))
    error = relative_l2(floats(out.read_bytes()), want)
    check("Vulkan equals the reference", error < 2e-3, error)
    check("compiled pipelines are kept in the user's cache folder",
          list((scratch / "cache" / "oriel").glob("*")))
    run = json_of("run on Vulkan", "run", SMALL, "--prompt", "x", "--tokens", "5", *vulkan)
    check("Vulkan answers", run["tokens"] <= 5, run)


# ---- Models, paths, streams --------------------------------------------------------------------


def test_model_choice():
    prompt = ["run", "--prompt", "Hello!", "--tokens", "6", "--greedy", *FIXED]
    want = json_of("the bundled model by name", "run", BUNDLED, *prompt[1:])["token_ids"]
    if ORIEL.name == "oriel-emulated":  # a script in another folder, so the program's own folder is not found
        print("skipped where the model is looked for: the program runs in an emulator")
        return
    installed = scratch / "installed"
    (installed / "bin").mkdir(parents=True)
    models = installed / "share" / "oriel" / "models"
    models.mkdir(parents=True)
    binary = installed / "bin" / "oriel"
    shutil.copy2(ORIEL, binary)
    nowhere = fails("no bundled model to be found", 1, *prompt, binary=binary)
    check("says how to name one", "ORIEL_MODEL" in nowhere.err.decode(), nowhere)
    shutil.copy(BUNDLED, models / BUNDLED.name)
    for cwd in (scratch, "/"):
        got = json_of(f"installed, no model named", *prompt, binary=binary, cwd=cwd)
        check("installed: the bundled model is used from anywhere", got["token_ids"] == want, got)
    if any((parent / "models" / "oriel-tiny").is_dir() for parent in ORIEL.parents):
        got = json_of("in a source tree, no model named", *prompt, cwd="/")
        check("in a source tree: the bundled model is used", got["token_ids"] == want, got)
    other = json_of("ORIEL_MODEL", "info", env=environment(ORIEL_MODEL=str(EXACT)))
    check("ORIEL_MODEL names the model", other["n_vocab"] == 384, other)
    named = json_of("a model named and ORIEL_MODEL", "info", SMALL,
                    env=environment(ORIEL_MODEL=str(EXACT)))
    check("the command line goes first", named["n_vocab"] == 512, named)


def test_paths():
    for strange in ("two\nlines", "red\x1b[31m"):
        missing = fails(f"a file of a strange name: {strange!r}", 1, "run", SMALL, "--prompt-file",
                        scratch / strange)
        check("its name cannot drive a terminal", b"\x1b" not in missing.err, missing)
    folder = scratch / "ein Ordner mit Größe 模型"
    folder.mkdir()
    model = folder / "my 模 model.gguf"
    shutil.copy(SMALL, model)
    check("info of an unusual path", json_of("info, unusual path", "info", model)["n_vocab"] == 512)
    check("a relative path", json_of("info, relative path", "info", model.name, cwd=folder))
    plan = succeeds("plan, unusual path", "plan", model, "--memory", "16MiB")
    check("plan shows the file's name", model.name in plan.out.decode("utf-8"), plan)
    out = folder / "lögits .bin"
    succeeds("eval, unusual paths", "eval", model, "--tokens-file", write_ids([1, 2], "ï ds.json"),
             "--logits-out", out, *FIXED)
    check("logits land there", out.stat().st_size == 4 * 512)
    missing = fails("a missing model", 1, "info", folder / "no such.gguf")
    check("is named", "no such.gguf" in missing.err.decode("utf-8"), missing)
    fails("a folder for a model", 1, "info", folder)
    bad = folder / "bad.gguf"
    bad.write_bytes(SMALL.read_bytes()[:50000])
    for command in (["info", bad], ["plan", bad, "--memory", "16MiB"],
                    ["run", bad, "--prompt", "x", *FIXED], ["tokenize", bad]):
        fails(f"{command[0]} of a truncated model", 1, *command)
    blocked = fails("a place that cannot be written", 1, "eval", SMALL, "--tokens-file",
                    write_ids([1]), "--logits-out", folder / "no" / "such" / "folder", *FIXED)
    check("and nothing on stdout", blocked.out == b"", blocked)


def test_text_that_is_not_utf8():
    bad = scratch / "bad.txt"
    bad.write_bytes(b"caf\xe9 au lait")
    for raw in ([], ["--raw"]):
        result = fails(f"run of broken UTF-8 {raw}", 1, "run", SMALL, "--prompt-file", bad, *raw,
                       *FIXED)
        check("nothing was answered", result.out == b"", result)
    fails("chat with broken UTF-8", 1, "chat", SMALL, *FIXED, stdin=b"caf\xe9\n")


def test_results_have_their_place_before_they_are_measured():
    nowhere = scratch / "nowhere" / "x"
    for args in (["calibrate", SMALL, "--text", __file__, "--out", f"{nowhere}.json"],
                 ["eval", SMALL, "--text", __file__, "--picture", f"{nowhere}.svg"]):
        failed = fails(f"{args[0]} into no folder", 1, *args)
        check("the file is named", str(nowhere) in failed.err.decode(), failed)
    succeeds("--recall 0 keeps nothing", "plan", SMALL, "--memory", "64MiB", "--recall", "0")
    stuck = scratch / "stuck" / "oriel"
    (stuck / "oriel-x.verdict").mkdir(parents=True)
    failed = fails("what cannot be forgotten", 1, "doctor", "--forget-drivers",
                   env=environment(XDG_CACHE_HOME=str(stuck.parent)))
    check("is not said to be", "cannot be removed" in failed.err.decode(), failed)


def test_a_file_that_may_grow_no_more():
    if resource is None:
        return
    out = scratch / "large.bin"
    failed = fails("a limit of the file's size", 1, "eval", SMALL, "--text", __file__, "--max-tokens", "300",
                   "--logits-out", out, "--all-logits",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    check("one line, and nothing half written", str(out) in failed.err.decode() and not out.exists(), failed)


def test_streams():
    def close(descriptor):
        return lambda: os.close(descriptor)

    run = [str(ORIEL), "run", str(SMALL), "--prompt", "x", "--tokens", "5"] + FIXED
    closed = subprocess.run(run, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=close(0), timeout=60 * PATIENCE)
    check("run with stdin closed", closed.returncode == 0 and closed.stdout, closed)
    chat = [str(ORIEL), "chat", str(SMALL)] + FIXED
    closed = subprocess.run(chat, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=close(0), timeout=60 * PATIENCE)
    check("chat with stdin closed ends with one line",
          one_line_failure(Result(closed.returncode, closed.stdout, closed.stderr, chat), 1), closed)
    closed = subprocess.run(run + ["--json"], env=environment(), stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, preexec_fn=close(1), timeout=60 * PATIENCE)
    check("run with stdout closed fails", closed.returncode == 1 and closed.stderr, closed)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            for args in (run, [str(ORIEL), "--help"], [str(ORIEL), "run", "--help"]):
                done = subprocess.run(args, env=environment(), stdin=subprocess.DEVNULL, stdout=full,
                                      stderr=subprocess.PIPE, timeout=60 * PATIENCE)
                check("a full disk is a failure",
                      one_line_failure(Result(done.returncode, b"", done.stderr, args), 1), done)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(run, env=environment(), stdin=subprocess.DEVNULL, stdout=writer,
                          stderr=subprocess.PIPE, timeout=60 * PATIENCE)
    os.close(writer)
    check("a reader that left is none", done.returncode == 0 and done.stderr == b"", done)

# ---- Ctrl-C ------------------------------------------------------------------------------------


def test_interrupt():
    # A model that never stops: its stop tokens have other names.
    model = scratch / "endless.gguf"
    model.write_bytes(SMALL.read_bytes().replace(b"<|im_end|>", b"<|no_end|>")
                      .replace(b"<|endoftext|>", b"<|nooftexts|>")
                      .replace(b"eos_token_id", b"not_token_id"))
    endless = ["run", model, "--raw", "--prompt", "Hello", "--tokens", "0", *FIXED]
    cancelled = interrupt(endless, lambda process: process.stdout.read(1))
    check("Ctrl-C ends run with 130, silently", cancelled.code == 130 and cancelled.err == b"",
          cancelled)
    check("what was generated was shown", cancelled.out.endswith(b"\n"), cancelled)

    def soon(process):
        time.sleep(0.7)
        return b""

    cancelled = interrupt(endless + ["--json"], soon)
    check("Ctrl-C with --json", cancelled.code == 130
          and cancelled.json["stop_reason"] == "cancelled"
          and cancelled.json["tokens"] == len(cancelled.json["token_ids"]) > 0, cancelled)
    sustained = ["bench", SMALL, *FIXED, "--sustain", "1000", "--repeat", "1"]
    cancelled = interrupt(sustained, soon)
    check("Ctrl-C ends bench with 130", cancelled.code == 130 and cancelled.out == b"", cancelled)
    reading = interrupt(["eval", SMALL, "--text", "-"], soon, stdin=subprocess.PIPE)
    # By the signal, where nothing that takes long had begun.
    check("Ctrl-C ends eval that waits for its text", reading.code in (130, -signal.SIGINT) and reading.err == b"",
          reading)
    sweep = scratch / "kept"
    sweep.with_suffix(".csv").write_text("an earlier one")
    cancelled = interrupt(["bench", SMALL, *FIXED, "--sweep", sweep], soon)
    csv = sweep.with_suffix(".csv").read_text()
    check("a sweep without a point leaves the one before", cancelled.code == 130
          and (csv == "an earlier one" or csv.count("\n") > 1), (cancelled, csv))
    for delay in (0.1, 0.2, 0.4):  # it may not have begun, or have ended
        cancelled = interrupt(["doctor", "--device", "cpu"], lambda process: time.sleep(delay * PATIENCE) or b"")
        if cancelled.code == 130:
            break
    check("Ctrl-C ends doctor with 130", cancelled.code == 130 and cancelled.out == b"", cancelled)
    waiting = interrupt(["chat", SMALL, *FIXED], soon, stdin=subprocess.PIPE)
    check("Ctrl-C ends a chat that waits for a line", waiting.code == 130, waiting)


def test_words_for_help_and_what_was_meant():
    version = succeeds("oriel version", "version")
    check("is what --version says", version.out == oriel("--version").out, version)
    check("oriel help", succeeds("oriel help", "help").out == oriel("--help").out)
    check("oriel help COMMAND", succeeds("oriel help plan", "help", "plan").out == oriel("plan", "--help").out)
    for args, meant in ((["chta"], "did you mean chat?"), (["plna", SMALL, "--list"], "did you mean plan?"),
                        (["plan", "--memroy", "1"], "did you mean --memory?"),
                        (["help", "benhc"], "did you mean bench?"), (["plan", "--wieghts=f16"], "--weights?")):
        failed = fails(f"{args} is wrong usage", 2, *args)
        check(f"{args}: the nearest is named", meant in failed.err.decode(), failed)
    for args in (["xyzzy"], ["plan", "--xyzzy"], ["info", SMALL, "more"]):
        failed = fails(f"{args} is wrong usage", 2, *args)
        check(f"{args}: nothing is near", "did you mean" not in failed.err.decode(), failed)


def test_drawings_are_svg_by_name():
    for args in (["plan", SMALL, "--memory", "64MiB", "--plot"], ["eval", SMALL, "--text", __file__, "--picture"]):
        for name in ("x.png", "x", "svg"):
            failed = fails(f"{args[0]}: {name} is no drawing", 2, *args, scratch / name)
            check("SVG is named, and nothing is written", b"SVG" in failed.err and not (scratch / name).exists(), failed)
    for name in ("sweep.svg", "sweep.csv", "sweep.png"):
        fails(f"a sweep's {name} is no stem", 2, "bench", SMALL, "--sweep", scratch / name)


def test_a_format_has_one_colour():
    """f16 in a plan's drawing and in the cache's; the conversation's picture has a break mark if it is not to scale."""
    plot, cache = scratch / "plot.svg", scratch / "cache.svg"
    succeeds("a plot", "plan", BUNDLED, "--memory", "16MiB", "--plot", plot)
    text = scratch / "long.txt"
    text.write_text("One day a fox met a bear in the wood. " * 80)
    base = ["eval", BUNDLED, "--text", text, "--memory", "64MiB", "--kv", "f16", *CPU]
    succeeds("a long text", *base, "--window", "64", "--picture", cache)
    drawn = cache.read_text()
    legend = re.search(r'stroke="(#[0-9a-f]{6})"[^>]*/>\s*<text[^>]*>f16<', plot.read_text())
    box = re.search(r'fill="(#[0-9a-f]{6})"/>\s*<text[^>]*>f16<', drawn)
    check("f16 has the same colour in both", legend and box and legend.group(1) == box.group(1), (legend, box))
    check("a break mark where tokens are left out", "a break: tokens are left out" in drawn)
    succeeds("a short text", *base, "--max-tokens", "50", "--picture", cache)
    check("and none where nothing is", "a break" not in cache.read_text())


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
