#!/usr/bin/env python3
"""Completions in real shells, and manual pages: test_shell.py ORIEL_BINARY TEST_DATA_DIR

The expected words come from --help."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import EXACT, ORIEL, PATIENCE, check, one_line_failure, oriel, run_tests, scratch, succeeds

FOLDER = scratch / "shell"


def help_of(*command):
    return oriel(*command, "--help", env={**os.environ, "COLUMNS": "80"}).out.decode()


def commands():
    return re.findall(r"^  (\w+)  ", help_of().split("Commands:")[1].split("Options:")[0], re.M)


def options(*command):
    """By their first name, with whether they take a value."""
    found = {}
    for line in re.findall(r"^  (-.*)$", help_of(*command), re.M):
        left = re.split(r"\s{2,}", line)[0]
        for name in re.findall(r"--?[a-zA-Z][\w-]*", left):
            found[name] = bool(re.search(r" [A-Z]", left))
    return found


def script(shell):
    FOLDER.mkdir(exist_ok=True)
    for name in ("one.gguf", "with space.gguf", "notes.txt"):
        (FOLDER / name).touch()
    path = FOLDER / f"oriel.{shell}"
    path.write_bytes(succeeds(f"completions {shell}", "completions", shell).out)
    return path


def shell(*command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd=FOLDER, timeout=60 * PATIENCE)
    check(f"{command[0]} says nothing else", done.returncode == 0, done)
    return done.stdout.decode()


def absent(*programs):
    for program in programs:
        if not shutil.which(program):
            check(f"SKIPPED: {program} is not installed", True)
            return True
    return False


def has_all(name, wanted, got):
    check(name, wanted and not set(wanted) - set(got), f"missing {sorted(set(wanted) - set(got))}")


class Bash:
    """Asks the function as the shell does, many times in one process."""

    def __init__(self, path):
        self.lines = ["set -u", f"source '{path}'"]
        self.names = []

    def ask(self, *words):
        quoted = " ".join("'" + word + "'" for word in ("oriel", *words))
        self.lines += [f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _oriel",
                       'printf "%s\\n" "${COMPREPLY[@]-}"; echo "--"']
        self.names.append(words)

    def replies(self):
        (FOLDER / "ask.bash").write_text("\n".join(self.lines) + "\n")
        parts = shell("bash", "--norc", "ask.bash").split("--\n")
        # Names of options end with a line of their own, too.
        return {words: [line for line in part.splitlines() if line] for words, part in zip(self.names, parts)}


def test_bash():
    if absent("bash"):
        return
    bash = Bash(script("bash"))
    for words in [("",), ("ru",), ("help", "p"), ("plan", "--kv", "k8"), ("plan", "--kv", "=", ""), ("plan", "--kv", "="),
                  ("--json", "plan", "--kv", "f"), ("run", "--prompt", ""), ("run", "--schema", "no"), ("info", ""),
                  ("plan", "--arch", "llama-3.2"), ("devices", "")]:
        bash.ask(*words)
    bash.ask("-")
    for command in commands():
        bash.ask(command, "-")
    got = bash.replies()
    has_all("bash: every command", [*commands(), "help", "version"], got[("",)])
    has_all("bash: help has them, too", ["plan", "parse"], got[("help", "p")])
    check("bash: the begin of a command", got[("ru",)] == ["run"], got[("ru",)])
    has_all("bash: options of the program", options(), got[("-",)])
    for command in commands():
        has_all(f"bash: every option of {command}", options(command), got[(command, "-")])
        check(f"bash: no other of {command}", set(got[(command, "-")]) == set(options(command)), got[(command, "-")])
    check("bash: values", got[("plan", "--kv", "k8")] == ["k8v8", "k8v4"])
    check("bash: values behind =", len(got[("plan", "--kv", "=", "")]) == len(got[("plan", "--kv", "=")]) == 5, got)
    check("bash: options in front of the command", got[("--json", "plan", "--kv", "f")] == ["f16"])
    check("bash: a text is not completed", got[("run", "--prompt", "")] == [])
    check("bash: files", got[("run", "--schema", "no")] == ["notes.txt"])
    store = FOLDER / "store"
    store.mkdir(exist_ok=True)
    (store / "pulled-model.gguf").write_bytes(b"")
    pulled = Bash(script("bash"))
    pulled.lines.insert(0, f"export ORIEL_MODELS='{store}' PATH='{ORIEL.parent}':$PATH")
    pulled.ask("chat", "pul")
    names = pulled.replies()
    check("bash: pulled models", names[("chat", "pul")] == ["pulled-model"], names)
    check("bash: models", sorted(got[("info", "")]) == ["one.gguf", "with space.gguf"], got[("info", "")])
    check("bash: published models", "llama-3.2-1b" in got[("plan", "--arch", "llama-3.2")])
    check("bash: nothing where nothing goes", got[("devices", "")] == [])


def typed(command, lines, keys, wanted):
    """The text that a shell at a terminal shows after keys; returns as soon as `wanted` appears."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(FOLDER)
        environment = {"PATH": f"{FOLDER}:{os.environ['PATH']}", "TERM": "dumb", "HOME": str(FOLDER), "PS1": "$ "}
        os.execvpe(command[0], command, environment)
    screen, end = b"", time.monotonic() + 20 * PATIENCE
    pending = [*(line + "\n" for line in lines), "echo rea''dy\n"]
    try:
        for line in pending:
            os.write(fd, line.encode())
        asked = False
        while time.monotonic() < end and not (asked and wanted in screen):
            if select.select([fd], [], [], 0.1)[0]:
                screen += os.read(fd, 4096)
            if not asked and b"\r\nready" in screen:
                screen, asked = b"", True
                os.write(fd, keys.encode())
    except OSError as error:
        screen += str(error).encode()
    finally:
        os.close(fd)
        os.waitpid(pid, 0)
    return screen


def test_bash_at_a_terminal():
    if absent("bash"):
        return
    path = script("bash")
    (FOLDER / "oriel").unlink(missing_ok=True)
    (FOLDER / "oriel").symlink_to(ORIEL)
    screen = typed(["bash", "--norc", "-i"], [f"source '{path}'"], "oriel tok\t--de\t", b"tokenize --decode ")
    check("bash: Tab completes", b"oriel tokenize --decode " in screen, screen)
    screen = typed(["bash", "--norc", "-i"], [f"source '{path}'"], "oriel info with\t", b"space.gguf")
    check("bash: a name with a space is quoted", b"with\\ space.gguf" in screen, screen)


def test_zsh():
    if absent("zsh"):
        return
    path = script("zsh")
    path.rename(FOLDER / "_oriel")
    shell("zsh", "-n", FOLDER / "_oriel")
    start = [f"fpath=('{FOLDER}' $fpath)", "autoload -Uz compinit", "compinit -u -D", "unsetopt zle_bracketed_paste"]
    zsh = lambda keys, wanted: typed(["zsh", "-f", "-i"], start, keys, wanted)
    screen = zsh("oriel tok\t--de\t", b"--decode")
    check("zsh: Tab completes", b"kenize" in screen and b"code" in screen, screen)
    screen = zsh("oriel plan --kv=k4\t", b"k4v4")
    check("zsh: values", b"v4" in screen, screen)
    screen = zsh("oriel info o\t", b"one.gguf")
    check("zsh: models", b"ne.gguf" in screen, screen)
    text = (FOLDER / "_oriel").read_text()
    for command in commands():
        body = text.split(f"_oriel_{command}() {{")[1].split("\n}\n")[0]
        has_all(f"zsh: every option of {command}", options(command), re.findall(r"[)*](--?[\w-]+)[=+]?\[", body))


def test_fish():
    if absent("fish"):
        return
    path = script("fish")
    asked = [f"oriel {command} {dashes}" for command in commands() for dashes in ("-", "--")] + [
        "oriel ", "oriel -", "oriel --", "oriel plan --kv ", "oriel run --prompt ", "oriel run --schema no", "oriel info o"]
    lines = "\n".join(f"complete -C '{line}'; echo '=='" for line in asked)
    (FOLDER / "ask.fish").write_text(f"source '{path}'\n{lines}\n")
    parts = shell("env", f"HOME={FOLDER}", "fish", "--no-config", "ask.fish").split("==\n")
    got = {line: [row.split("\t")[0] for row in part.splitlines()] for line, part in zip(asked, parts)}
    has_all("fish: every command", commands(), got["oriel "])
    for command in commands():
        has_all(f"fish: every option of {command}", options(command),
                got[f"oriel {command} -"] + got[f"oriel {command} --"])
    check("fish: values", len(got["oriel plan --kv "]) == 5, got["oriel plan --kv "])
    check("fish: a text is not completed", got["oriel run --prompt "] == [], got["oriel run --prompt "])
    check("fish: files", got["oriel run --schema no"] == ["notes.txt"], got["oriel run --schema no"])
    check("fish: models before other files", got["oriel info o"][:1] == ["one.gguf"], got["oriel info o"])


def test_words_are_taken():
    """Each value that is offered is one."""
    text = oriel("completions", "bash").out.decode()
    offered = re.findall(r"^    ([\w:|-]+)\)\n      COMPREPLY=\(\$\(compgen -W '([^']*)'", text, re.M)
    check("there are some", len(offered) > 8, offered)
    for places, words in offered:
        command, option = places.split("|")[0].split(":")
        if option == "--arch":
            for word in words.split():
                check(f"--arch {word}", oriel("plan", "--arch", word, "--memory", "1MiB").code in (0, 3))
            continue
        for word in words.split():
            result = oriel(command, option, word, "--help")
            check(f"{command} {option} {word}: it is offered for an option", result.code == 0, result)
    text = ["run", EXACT, "--prompt", "x", "--tokens", "1", "--memory", "64MiB", "--device", "cpu"]
    for option, words in {"--kv": "auto f16 k8v8 k8v4 k4v4", "--state": "auto f32 f16 int8", "--on-file": "auto none rows",
                          "--evict": "turns tokens", "--date": "today", "--calibration": "auto none"}.items():
        for word in words.split():
            result = oriel(*text, option, word)
            check(f"{option} {word} is taken", result.code != 2, result)


def test_manual():
    folder = scratch / "man1"
    succeeds("all pages", "manual", "--folder", folder)
    pages = {path.name: path for path in folder.iterdir()}
    check("one page each", set(pages) == {"oriel.1", *(f"oriel-{name}.1" for name in commands())}, sorted(pages))
    for command in [[], *([name] for name in commands())]:
        page = succeeds(f"manual {command}", "manual", *command).out
        check("the same as in the folder", page == pages["-".join(["oriel", *command]) + ".1"].read_bytes())
        plain = re.sub(r"\\f[BRI]", "", page.decode()).replace("\\-", "-").replace("\\(aq", "'").replace("\\(ga", "`")
        plain = plain.replace("\\e", "\\")
        has_all(f"every option of {command}", options(*command), re.findall(r"(?<=[ \n])--?[a-zA-Z][\w-]*", plain))
        # What --help says, word for word.
        words = lambda text: " ".join(text.split())
        said = help_of(*command)
        first = re.search(r"--version +(.*)" if not command else r"--help +(.*)", said).group(1)
        check("and what it says", first in words(plain), first)
        if command == ["chat"]:
            has_all("commands and keys of a chat", ["/undo [N]", "Alt-Enter", "Ctrl-C"], re.findall(r"(?m)^(?:/undo \[N\]|Alt-Enter|Ctrl-C)$", plain))
    if not absent("mandoc"):
        for path in pages.values():
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, encoding="utf-8")
            lines = [line for line in done.stdout.splitlines() if "missing date" not in line]
            check(f"{path.name}: mandoc finds nothing", not lines, lines)
    if not absent("man"):
        shown = subprocess.run(["man", "-l", "--warnings", pages["oriel-run.1"]], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, encoding="utf-8",
                               env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        check("man shows it", "--prompt TEXT" in shown.stdout and shown.stderr == "" and shown.returncode == 0, shown)
        check("within 80 columns", all(len(line) <= 80 for line in shown.stdout.splitlines()))


def test_wrong_usage():
    for args in (["completions"], ["completions", "tcsh"], ["manual", "no-such-command"], ["manual", "run", "--folder", "x"]):
        result = oriel(*args)
        check(f"{args}: one line", one_line_failure(result, 2) and result.out == b"", result)
    check("help does not show them", not {"completions", "manual"} & set(commands()))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
