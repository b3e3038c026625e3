"""Tests of the device bundle's scripts: test_bundle.py BUNDLE"""

import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "device"
BUNDLE = None  # the folder under test
PATIENCE = int(os.environ.get("ORIEL_TEST_PATIENCE", "1"))  # in emulators: times longer


def script(name, *arguments, **environment):
    return subprocess.run([sys.executable, SCRIPTS / name, *map(str, arguments)],
                          capture_output=True, text=True, timeout=280 * PATIENCE,
                          env={**os.environ, **environment})


class Parser(html.parser.HTMLParser):
    """Counts tags and checks that they are closed in order."""

    VOID = {"meta", "br", "link", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.links = [], 0, []

    def handle_starttag(self, tag, attrs):
        self.rows += tag == "tr"
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"


class DeviceBundle(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_the_cpu_passes_and_the_report_shows_every_check(self):
        result_path = self.folder / "cpu.json"
        done = script("run.py", "local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench",
                      "--label", "this <machine>", "--out", result_path)
        self.assertEqual(0, done.returncode, done.stderr)
        result = json.loads(result_path.read_text())
        self.assertEqual(1, len(result["runs"]))
        run = result["runs"][0]
        self.assertEqual({"kernels", "models", "streaming", "faults"}, {c["group"] for c in run["checks"]})
        self.assertGreater(run["passed"], 100)
        self.assertEqual(run["passed"], sum(c["status"] == "passed" for c in run["checks"]))

        # Exact on one device and wrong on the other, of two.
        result["runs"][0]["checks"][0]["value"] = 0.0
        result_path.write_text(json.dumps(result))
        failing = json.loads(result_path.read_text())
        failing["runs"][0]["checks"][0].update(status="failed", value=9.0, limit=0.002)
        failing["runs"][0]["failed"] = 1
        failing_path = self.folder / "failing.json"
        failing_path.write_text(json.dumps(failing))
        report = self.folder / "report.html"
        done = script("report.py", result_path, failing_path, "--out", report)
        self.assertEqual(0, done.returncode, done.stderr)
        page = report.read_text()
        parser = Parser()
        parser.feed(page)
        self.assertEqual([], [tag for tag in parser.open if tag != "html"])
        self.assertEqual([], parser.links, "the page must work offline")
        self.assertGreater(parser.rows, len(run["checks"]))
        self.assertIn("this &lt;machine&gt;", page)
        self.assertIn("1 checks failed", page)
        self.assertIn('class="failed odd"', page)
        self.assertEqual(0, page.count('class="passed odd"'), "of two devices the one that passed is not the odd one")
        for check in run["checks"]:
            self.assertIn(f"<th>{check['name']}</th>", page)

    def test_a_part_can_be_had_alone(self):
        for only, checks in (("models/llama-q4_", {"llama-q4_0", "llama-q4_1", "llama-q4_k", "llama-q4_k_m"}),
                             ("models/qwen3", {"qwen3"})):
            out = self.folder / "part.json"
            done = script("run.py", "local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench",
                          "--only", only, "--out", out)
            self.assertEqual(0, done.returncode, done.stderr)
            run = json.loads(out.read_text())["runs"][0]
            self.assertEqual(checks, {check["name"] for check in run["checks"]})

    def crash_behind(self, printed):
        """What run.py and report.py say of a program that ends itself when it has printed that."""
        bundle = self.folder / "bundle"
        bundle.mkdir(exist_ok=True)
        program = bundle / "crasher.py"
        program.write_text(
            "import os, sys\n"
            "if '--list' in sys.argv:\n"
            "    print('[{\"option\": \"cpu\", \"name\": \"C\", \"driver\": \"\", \"kind\": \"cpu\","
            " \"usable\": true, \"features\": \"\"}]')\n"
            "else:\n"
            f"    print({printed!r}, end='', flush=True)\n"
            "    os.abort()\n")
        (bundle / "manifest.json").write_text(json.dumps(
            {"program": program.name, "system": "Linux", "processor": "x", "files": {},
             "emulator": [sys.executable]}))
        out = self.folder / "crash.json"
        done = script("run.py", "local", "--bundle", bundle, "--out", out)
        self.assertEqual(1, done.returncode, done.stderr)
        run = json.loads(out.read_text())["runs"][0]
        self.assertEqual(1, run["failed"])
        done = script("report.py", out, "--out", self.folder / "report.html")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("crashed in " + run["crashed"]["during"], (self.folder / "report.html").read_text())
        return run["crashed"]["during"]

    def test_a_crash_is_a_result_that_names_the_check(self):
        self.assertEqual("models/the second",
                         self.crash_behind("models/first ... passed (x)\nmodels/the second ... "))
        self.assertEqual("what follows models/first", self.crash_behind("models/first ... passed (x)\n"))

    @unittest.skipIf(os.name == "nt", "the stand-in for adb is a shell script")
    def test_a_phone_is_a_folder_behind_adb(self):
        if json.loads((BUNDLE / "manifest.json").read_text()).get("emulator"):
            self.skipTest("the stand-in is this machine, which runs the program in an emulator only")
        phone = self.folder / "phone"
        phone.mkdir()
        adb = self.folder / "adb"
        adb.write_text("#!/bin/sh\n"
                       "# A phone on this machine: its /data/local/tmp is a folder here.\n"
                       "[ \"$1 $2\" = \"-s emulator-1\" ] || exit 9\n"
                       "shift 2\n"
                       "there() { printf '%s' \"$1\" | sed \"s:/data/local/tmp:$PHONE:g\"; }\n"
                       "case $1 in\n"
                       "  shell) exec sh -c \"$(there \"$2\")\" ;;\n"
                       "  push) exec cp -R \"$2\" \"$(there \"$3\")\" ;;\n"
                       "esac\n"
                       "exit 9\n")
        adb.chmod(0o755)
        out = self.folder / "phone.json"
        done = script("run.py", "adb:emulator-1", "--bundle", BUNDLE, "--devices", "cpu",
                      "--no-bench", "--out", out, ADB=str(adb), PHONE=str(phone))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertGreater(json.loads(out.read_text())["passed"], 35)
        done = script("run.py", "adb:another", "--bundle", BUNDLE, ADB=str(adb), PHONE=str(phone))
        self.assertEqual(2, done.returncode, done.stderr)

    def test_a_damaged_bundle_is_refused(self):
        bundle = self.folder / "bundle"
        shutil.copytree(BUNDLE, bundle)
        with open(bundle / "models" / "llama-q4_0.gguf", "r+b") as model:
            model.seek(1000)
            model.write(b"damage")
        done = script("run.py", "local", "--bundle", bundle)
        self.assertEqual(2, done.returncode)
        self.assertIn("llama-q4_0.gguf is not what the manifest says", done.stderr)

    def test_wrong_use_is_explained(self):
        done = script("run.py", "local", "--bundle", BUNDLE, "--devices", "vulkan:77")
        self.assertEqual(2, done.returncode)
        self.assertIn("there is no device vulkan:77", done.stderr)
        done = script("run.py", "local", "--bundle", self.folder)
        self.assertEqual(2, done.returncode)
        self.assertIn("is no device bundle", done.stderr)
        done = script("report.py", self.folder / "none.json")
        self.assertEqual(1, done.returncode)
        self.assertIn("cannot be used", done.stderr)


if __name__ == "__main__":
    BUNDLE = pathlib.Path(sys.argv.pop(1))
    unittest.main()
