"""Every command and sample of README and of the quick starts is run: test_blocks.py ORIEL

BLOCKS has a row for each block of these pages. A block without a row fails, and so does a row without a block. This test runs
the blocks of the functions below. Other tests run the rest: the row names the file, and the file names the page.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
ORIEL = str(pathlib.Path(sys.argv[1]).resolve())
MODEL = ROOT / "models/oriel-tiny/oriel-tiny-q8_0.gguf"
# Calls of Android, Kotlin, Swift and Apple's systems in the samples of docs/integrations.md.
FOREIGN = {"append", "collect", "quote", "openFileDescriptor", "use", "isNotEmpty", "first", "JSONObject", "File", "withContext",
           "NSSearchPathForDirectoriesInDomains", "run", "show", "while", "for", "in"}
CLIENT = """import json, types, urllib.request
class OpenAI:
    def __init__(self, base_url, api_key):
        def create(**fields):
            request = urllib.request.Request(base_url + "/chat/completions", json.dumps(fields).encode(), {
                "Content-Type": "application/json", "Authorization": "Bearer " + api_key})
            with urllib.request.urlopen(request) as reply:
                return json.loads(reply.read(), object_hook=lambda fields: types.SimpleNamespace(**fields))
        self.chat = types.SimpleNamespace(completions=types.SimpleNamespace(create=create))
"""


def blocks(page):
    """(first line, whole block) of fenced and indented blocks."""
    lines = (ROOT / page).read_text(encoding="utf-8").split("\n")
    at, found = 0, []
    while at < len(lines):
        begin = at
        if re.match(r"```\w*$", lines[at]):
            at = next(i for i in range(at + 1, len(lines)) if lines[i] == "```")
            found.append("\n".join(lines[begin + 1:at]))
        elif lines[at].startswith("    ") and not lines[at - 1].strip():
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            found.append("\n".join(line[4:] for line in lines[begin:at]).rstrip())
        at += 1
    return [(block.split("\n")[0], block) for block in found]


class Scratch:
    """A folder, and an environment in which `oriel` is this build's."""

    def __init__(self, test):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "oriel").symlink_to(ORIEL)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("ORIEL_")}
        self.env.update(HOME=folder.name, XDG_CACHE_HOME=folder.name, XDG_CONFIG_HOME=folder.name, ORIEL_MODEL=str(MODEL),
                        PATH=f"{programs}:{self.env['PATH']}")

    def shell(self, test, lines, given=""):
        done = subprocess.run(["sh", "-ec", lines], cwd=self.folder, env=self.env, input=given, capture_output=True, text=True)
        test.assertEqual(0, done.returncode, f"{lines}\n{done.stdout}{done.stderr}")
        return done.stdout


def run_commands(test, block):
    """Lines for a shell. Downloads of a model are left out (cli.pull serves one)."""
    scratch = Scratch(test)
    for line in re.sub(r"(\||\\)\n", r"\1 ", block).split("\n"):
        if "smollm2" not in line:
            test.assertNotEqual("", scratch.shell(test, line, "Hello!\n"), line)


def demo(test):
    """A checkout with a finished build, for scripts/demo.sh."""
    scratch = Scratch(test)
    shutil.copytree(ROOT / "scripts", scratch.folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "CMakePresets.json", scratch.folder)
    build = scratch.folder / "build/release"
    (build / "apps").mkdir(parents=True)
    (build / "apps/oriel").symlink_to(ORIEL)
    (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={scratch.folder.resolve()}\n")
    (build / "build.ninja").write_text("")
    (scratch.folder / "bin/cmake").write_text('#!/bin/sh\n[ "$1" = --build ]\n')
    (scratch.folder / "bin/cmake").chmod(0o755)
    return scratch


def run_demo(test, block):
    """scripts/test.sh is the script that runs this test."""
    test.assertEqual(["scripts/demo.sh", "scripts/test.sh"], re.findall(r"^scripts/\S+", block, re.M))
    scratch = demo(test)
    begin = time.monotonic()
    test.assertRegex(scratch.shell(test, block.split("\n")[0], "What is your name?\n"), "[A-Za-z]{2,}")
    print(f"scripts/demo.sh with a finished build: {time.monotonic() - begin:.1f} s")


def run_config(test, block):
    scratch = Scratch(test)
    (scratch.folder / "config.json").write_text(block)
    scratch.env["ORIEL_CONFIG"] = str(scratch.folder / "config.json")
    test.assertIn("Answer in one sentence.", scratch.shell(test, "oriel options --config oriel-tiny || cat config.json"))
    scratch.shell(test, 'oriel run oriel-tiny --tokens 4 "Hello!"')


def serve(test):
    """The address of a server: scripts/demo.sh serve."""
    scratch = demo(test)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(["scripts/demo.sh", "serve", "--port", str(port)], cwd=scratch.folder, env=scratch.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    test.addCleanup(server.communicate)
    test.addCleanup(server.terminate)
    for _ in range(6000):
        if server.poll() is not None:
            test.skipTest(server.stderr.read().strip())  # built without the server
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=60).close()
            return scratch, f"127.0.0.1:{port}"
        except OSError:
            time.sleep(0.01)
    test.fail("the server does not answer")


def run_server(test, block):
    test.assertEqual("scripts/demo.sh serve", block)
    serve(test)


def run_curl(test, block):
    if not shutil.which("curl"):
        test.skipTest("curl is not installed")
    scratch, address = serve(test)
    for command in block.replace("\\\n", " ").split("\n"):
        said = scratch.shell(test, command.replace("127.0.0.1:8080", address).replace("curl ", "curl -sSf "))
        test.assertNotEqual("", said, command)


def run_client(test, block):
    """The package openai is not installed: a stand-in with the sample's calls sends the request."""
    scratch, address = serve(test)
    (scratch.folder / "openai.py").write_text(CLIENT)
    (scratch.folder / "sample.py").write_text(block.replace("127.0.0.1:8080", address))
    test.assertRegex(scratch.shell(test, f"{sys.executable} sample.py"), "[A-Za-z]{2,}")


def check_error(test, block):
    scratch, address = serve(test)
    body = json.dumps({"messages": [{"role": "user", "content": "Hello!"}], "temperature": 3}).encode()
    request = urllib.request.Request(f"http://{address}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with test.assertRaises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    with refused.exception as reply:
        test.assertEqual(json.loads(block), json.loads(reply.read()))


def check_calls(test, block):
    """Needs Android or Xcode: here, every call of the sample is a function of the binding."""
    sources = [path for folder in ("android", "apple") for suffix in ("kt", "java", "swift")
               for path in (ROOT / "integrations" / folder).rglob(f"*.{suffix}")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    for name in set(re.findall(r"\b(\w+)\(", re.sub(r'"(?:\\.|[^"\\])*"', '""', block))) - FOREIGN:
        test.assertRegex(text, rf"\b{name}\b", "the bindings have no such call")


def synopsis(test, block):
    """Usage, not a command: test_cli_page.py checks the options."""
    test.assertRegex(block, r"^oriel \w+ (\[|[A-Z])")


def check_packages(test, block):
    """Packages of the page are packages of scripts/lib/install.sh or of the scripts; the rest are steps of other rows."""
    known = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "scripts").rglob("*.sh"))
    names = re.findall(r"[a-z][\w.+-]+", re.search(r"apt-get install((?:.*\\\n)*.*)", block).group(1))
    test.assertGreater(len(names), 4)
    for name in names:
        test.assertRegex(known, rf"\b{re.escape(name)}(?=\s|$)", "scripts/lib/install.sh has no such package")


# Page: (the first words of a block, its function or the file that runs it). A row may hold for several blocks.
BLOCKS = {
    "README.md": [("scripts/demo.sh", run_demo), ("#include <oriel", "tests/package/test_linking.py"),
                  ("$ oriel plan", "tests/cli/test_plan.py")],
    "docs/quick-start.md": [("sudo apt-get", check_packages), ("", "tests/docs/test_quick_start.py")],
    "docs/python.md": [("sudo apt-get", check_packages), ("", "python/tests/test_wheel.py")],
    "docs/web.md": [("<script", "web/test/addon.test.mjs"), ("Cross-Origin", "web/test/browser.test.mjs"),
                    ("import { cachedModel", "web/test/cache.test.mjs"), ("scripts/web.sh", "scripts/web.sh"),
                    ("node web/serve.mjs", "web/test/browser.test.mjs"), ("", "web/test/addon.test.mjs")],
    "docs/integrations.md": [("", check_calls)],
    "docs/cli.md": [("{", run_config), ("oriel chat  ", run_commands), ("oriel ", synopsis), ("", run_commands)],
    "docs/serve.md": [("scripts/demo.sh serve", run_server), ("curl", run_curl), ("{", check_error),
                      ("import OpenAI", "tests/serve/openai.test.mjs"), ("from openai", run_client)],
    "contrib/desktop/README.md": [("sudo apt-get", check_packages)],
}


class Blocks(unittest.TestCase):
    def test_pages_are_the_quick_starts(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        table = readme.split("| from | start here |")[1].split("\n\n")[0]
        pages = {path for path in re.findall(r"\]\(([\w/.-]+\.md)\)", table)}
        self.assertEqual(pages | {"README.md"}, set(BLOCKS))

    def test_every_block_runs(self):
        for page, rows in BLOCKS.items():
            unused = {first for first, _ in rows}
            for line, block in blocks(page):
                row = next(((first, runner) for first, runner in rows if line.startswith(first)), None)
                with self.subTest(page=page, block=line):
                    self.assertIsNotNone(row, "no row of BLOCKS: say how it is run")
                    first, runner = row
                    unused.discard(first)
                    if callable(runner):
                        runner(self, block)
                    else:
                        text = (ROOT / runner).read_text(encoding="utf-8")
                        self.assertTrue(pathlib.Path(page).name in text, f"{runner} does not name the page")
            self.assertEqual(set(), unused, f"rows without a block: {page}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
