"""Tests of the device bundle's program, with run.py and report.py: test_bundle.py BUNDLE [CLASS...]"""

import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # nothing appears in the source tree
from stand_ins import CPU, InAFolder, PATIENCE, ROOT, script, write_manifest

BUNDLE = None  # the folder under test
GROUPS = {"kernels", "models", "streaming", "faults"}


class RealBundle(InAFolder):
    """The built program, in its emulator if it is for another system."""

    def program(self, bundle, *arguments):
        manifest = json.loads((bundle / "manifest.json").read_text())
        return subprocess.run([*manifest["emulator"], bundle / manifest["program"], *map(str, arguments)],
                              capture_output=True, encoding="utf-8", errors="replace", timeout=280 * PATIENCE,
                              stdin=subprocess.DEVNULL, cwd=self.folder)

    def copy(self, name="bundle"):
        bundle = self.folder / name
        shutil.copytree(BUNDLE, bundle)
        return bundle

    def test_the_cpu_passes_and_the_report_shows_every_check(self):
        done = script("run.py", "local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench",
                      "--label", "this <machine>", "--out", self.out)
        self.assertEqual(0, done.returncode, done.stderr)
        result = json.loads(self.out.read_text())
        self.assertEqual(1, len(result["runs"]))
        run = result["runs"][0]
        self.assertEqual(GROUPS, {check["group"] for check in run["checks"]})
        self.assertGreater(run["passed"], 100)
        self.assertEqual(run["passed"], sum(check["status"] == "passed" for check in run["checks"]))
        self.assertTrue([c for c in run["checks"] if c["name"].startswith("oriel-tiny-")], "the bundled model")

        # Exact on one device and wrong on the other, of two.
        result["runs"][0]["checks"][0]["value"] = 0.0
        self.out.write_text(json.dumps(result))
        failing = json.loads(self.out.read_text())
        failing["runs"][0]["checks"][0].update(status="failed", value=9.0, limit=0.002)
        failing["runs"][0]["failed"] = 1
        failing_path = self.folder / "failing.json"
        failing_path.write_text(json.dumps(failing))
        page = self.page_of(self.out, failing_path)
        self.assertGreater(self.rows, len(run["checks"]))
        self.assertIn("this &lt;machine&gt;", page)
        self.assertIn("Oriel on 2 devices: 1 check failed", page)
        self.assertIn('class="failed odd"', page)
        self.assertEqual(0, page.count('class="passed odd"'), "of two devices the one that passed is not the odd one")
        for check in run["checks"]:
            self.assertIn(f"<th>{check['name']}</th>", page)

    def test_a_part_can_be_had_alone(self):
        for only, checks in (("models/llama-q4_", {"llama-q4_0", "llama-q4_1", "llama-q4_k_m"}),
                             ("models/qwen3", {"qwen3"})):
            done = script("run.py", "local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench",
                          "--only", only, "--out", self.out)
            self.assertEqual(0, done.returncode, done.stderr)
            run = json.loads(self.out.read_text())["runs"][0]
            wanted = checks | {f"{name}:batch" for name in checks}
            self.assertEqual(wanted, {check["name"] for check in run["checks"]})

    def test_a_part_that_is_not_there_is_refused_by_both(self):
        for only in ("kernel", "kernels/x", "models/llama-q9", "models/oriel-tiny-q8_0.ggufs"):
            words = f"nothing is called {only}: kernels, models, streaming, faults or models/NAME"
            self.refused(words, "run.py", "local", "--bundle", BUNDLE, "--only", only)
            done = self.program(BUNDLE, "--only", only)
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertIn(words, done.stderr)

    def test_features_are_disabled_by_name(self):
        options = ("local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench", "--only", "models/qwen3")
        done = script("run.py", *options, "--disable", "subgroup,integer_dot", "--out", self.out)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual("subgroup,integer_dot", json.loads(self.out.read_text())["disabled"])
        self.assertIn("subgroup,integer_dot", self.page_of(self.out))
        done = script("run.py", *options, "--out", self.out, ORIEL_DISABLE="all")
        self.assertEqual("all", json.loads(self.out.read_text())["disabled"])
        if self.program(BUNDLE, "--list", "--disable", "no_such").returncode == 2:  # else built without Vulkan
            self.refused('there is no optional Vulkan feature "no_such"', "run.py", *options, "--disable", "no_such")

    def test_the_build_is_named(self):
        script("run.py", "local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench", "--only", "models/qwen3",
               "--out", self.out)
        manifest = json.loads((BUNDLE / "manifest.json").read_text())
        build = hashlib.sha256((BUNDLE / manifest["program"]).read_bytes()).hexdigest()[:12]
        self.assertEqual(build, json.loads(self.out.read_text())["build"])
        self.assertIn(build, self.page_of(self.out))

    def test_a_result_that_is_not_a_number_fails(self):
        bundle = self.copy()
        manifest = json.loads((bundle / "manifest.json").read_text())
        model = bundle / "models" / "llama-f32.gguf"
        data = bytearray(model.read_bytes())
        data[-4096:] = struct.pack("<f", float("nan")) * 1024
        model.write_bytes(data)
        write_manifest(bundle, **{name: manifest[name] for name in ("program", "system", "processor", "emulator")})
        done = script("run.py", "local", "--bundle", bundle, "--devices", "cpu", "--no-bench", "--only",
                      "models/llama-f32", "--out", self.out)
        self.assertEqual(1, done.returncode, done.stderr)
        check = json.loads(self.out.read_text())["runs"][0]["checks"][0]
        self.assertEqual("failed", check["status"])
        self.assertIsNone(check["value"])
        self.assertIn("not a number", self.page_of(self.out))

    def test_a_file_that_cannot_be_read_is_a_failed_check_of_its_group(self):
        bundle = self.copy()
        (bundle / "streaming" / "llama-mqa.json").unlink()
        (bundle / "models" / "llama-q4_0.gguf").unlink()
        for group, file in (("streaming", "llama-mqa.json"), ("faults", "llama-q4_0.gguf")):
            done = self.program(bundle, "--only", group, "--no-bench", "--out", self.out)
            self.assertEqual(1, done.returncode, done.stderr)
            failed = [check for check in json.loads(self.out.read_text())["checks"] if check["status"] == "failed"]
            self.assertEqual(group, failed[-1]["group"])
            self.assertRegex(failed[-1]["detail"], f"cannot read .*{file}")

    def test_it_runs_from_a_folder_with_letters_outside_ascii(self):
        bundle = self.copy("größtes 模 bundle")
        out = bundle / "ergebnis ö.json"
        for only in ("models/qwen3", "streaming", "faults"):
            done = self.program(bundle, "--only", only, "--no-bench", "--out", out)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            self.assertEqual(0, json.loads(out.read_text(encoding="utf-8"))["failed"])
            out.unlink()

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_full_disk_is_an_error(self):
        done = self.program(BUNDLE, "--only", "models/qwen3", "--no-bench", "--out", "/dev/full")
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("cannot write", done.stderr)

    def test_a_damaged_bundle_is_refused(self):
        bundle = self.copy()
        with open(bundle / "models" / "llama-q4_0.gguf", "r+b") as model:
            model.seek(1000)
            model.write(b"damage")
        self.refused("llama-q4_0.gguf is not what the manifest says", "run.py", "local", "--bundle", bundle)

    def test_a_bundle_is_made_below_a_path_with_brackets(self):
        bundle = self.folder / "a [b] ö" / "bundle"
        program = BUNDLE / json.loads((BUNDLE / "manifest.json").read_text())["program"]
        subprocess.run([os.environ.get("CMAKE", "cmake"), "-D", f"FROM={ROOT}", "-D", f"TO={bundle}", "-D",
                        f"PYTHON={sys.executable}", "-D", f"PROGRAM={program}", "-D", "SYSTEM=S", "-D", "PROCESSOR=P", "-D", "EMULATOR=",
                        "-P", ROOT / "tests" / "bundle" / "make_bundle.cmake"], check=True, capture_output=True)
        want = json.loads((BUNDLE / "manifest.json").read_text())["files"]
        self.assertEqual(want, json.loads((bundle / "manifest.json").read_text())["files"])

    def test_a_device_that_is_not_there_is_refused(self):
        self.refused("there is no device vulkan:77", "run.py", "local", "--bundle", BUNDLE, "--devices", "vulkan:77")


class Report(InAFolder):
    def result(self, **fields):
        """The JSON of a run with one check, and these of its fields changed."""
        run = {"device": CPU, "passed": 1, "failed": 0, "skipped": 0,
               "checks": [{"group": "models", "name": "a", "status": "passed", "detail": "d"}]}
        return {"format": 1, "label": "L", "when": "2026-01-01T00:00:00Z", "emulated": False,
                "runs": [{**run, **fields}]}

    def report_of(self, result):
        self.out.write_text(json.dumps(result))
        return self.page_of(self.out)

    def test_files_of_another_structure_are_refused(self):
        good = self.result()
        for bad in ([], {}, {**good, "format": 2}, {**good, "runs": []}, {**good, "runs": [1]}, {**good, "label": 1},
                    self.result(device=None), self.result(passed="1"), self.result(passed=True),
                    self.result(checks={}), self.result(checks=[1]), self.result(checks=[{"group": "x"}]),
                    self.result(figures=[]), self.result(crashed="x"), self.result(candidates=[{"op": "x"}])):
            self.out.write_text(json.dumps(bad))
            done = self.refused("cannot be used (", "report.py", self.out, code=1)
            self.assertIn("): give files that run.py wrote", done.stderr)
        self.out.write_bytes(b"\xff")
        self.refused("cannot be used", "report.py", self.out, code=1)
        self.refused("cannot be used", "report.py", self.folder / "none.json", code=1)
        self.report_of(good)
        self.refused("cannot be written", "report.py", self.out, "--out", self.folder / "none" / "x", code=1)

    def test_odd_values_are_shown(self):
        check = {"group": "models", "name": "<b>", "status": "passed", "detail": "d", "value": None, "limit": None}
        page = self.report_of(self.result(checks=[check, {**check, "name": "c", "status": "<odd>"}]))
        self.assertIn("not a number", page)
        self.assertIn("Oriel on 1 device: 1 check failed", page)
        self.assertIn("<h2>Failures</h2>", page)
        self.assertIn("&lt;odd&gt;", page)
        self.assertNotIn("<b>", page)
        page = self.report_of(self.result(
            figures={"temperatures_before": {"a": 30, "b": None}, "temperatures_after": {}, "device_bytes": "<x>",
                     "first_start": 1, "host_bytes": None},
            candidates=[{"op": "o", "name": "n", "microseconds": None, "chosen": True}],
            peak_resident_bytes=None, system=None))
        self.assertIn("30.0 → –", page)
        self.assertNotIn("<h2>Failures</h2>", page)


if __name__ == "__main__":
    BUNDLE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
