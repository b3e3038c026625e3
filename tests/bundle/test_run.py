"""Tests of run.py with bundles whose program is a script: test_run.py"""

import json
import os
import platform
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True  # nothing appears in the source tree
from stand_ins import (CPU, DEAD, GPU, PYTHON, SCRIPTS, WithStandIns, executable, is_alive,  # noqa: E402
                       script, write_manifest)


class Run(WithStandIns):
    # ---- Targets ---------------------------------------------------------------------------------

    def test_other_targets_are_refused(self):
        self.bundle()
        for target in ("ADB", "loca", "local:x", "adb:", "ssh", "ssh:", "ssh:-oProxyCommand=x", "base"):
            self.refused(f"{target} is no target: local, adb[:SERIAL], ssh:HOST or one of release, debug",
                         "run.py", target, "--bundle", self.folder / "bundle")

    def test_a_preset_takes_its_bundle(self):
        self.bundle()
        done = script("run.py", "linux-aarch64", "--bundle", self.folder / "bundle", cwd=self.folder)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual("linux-aarch64", json.loads((self.folder / "device-linux-aarch64.json").read_text())["label"])

    def test_emulated_is_what_an_emulator_started(self):
        self.bundle()
        self.assertTrue(self.local(0)[1]["emulated"])
        self.bundle(emulator=["/none/emulate"], processor=platform.machine())
        self.assertFalse(self.local(0)[1]["emulated"])
        self.bundle(emulator=["/none/emulate"], processor="riscv64", system="Plan9")
        self.refused("the bundle's emulator /none/emulate is not there", "run.py", "local", "--bundle",
                     self.folder / "bundle")
        self.bundle()
        self.over("ssh:board", 0, "--out", self.out)
        self.assertFalse(json.loads(self.out.read_text())["emulated"])

    def test_a_bundle_for_another_machine_is_refused(self):
        self.bundle(processor="aarch64")
        said = self.over("adb", 2)
        self.assertIn("for aarch64 and the device is x86_64: --bundle build/android-x64/device-bundle", said)
        said = self.over("ssh:board", 2)
        self.assertIn("for aarch64 and the device is x86_64: --bundle build/release/device-bundle", said)
        self.assertNotIn("copying", said)
        # On a machine that fits, the next problem is reported instead.
        for processor, machine, fits in (("aarch64", "arm64", 1), ("armv7l", "aarch64", 1), ("AMD64", "x86_64", 1),
                                         ("armv7-a", "armv8l", 1), ("aarch64", "armv7l", 0), ("x", "riscv64", 1)):
            self.bundle(processor=processor)
            said = "--patience must be" if fits else "for aarch64 and the device is armv7l"
            self.refused(said, "run.py", "ssh:board", "--bundle", self.folder / "bundle", "--folder",
                         self.folder / "phone", "--out", self.out, "--patience", 0, **self.machine(machine))

    # ---- Through adb and ssh ---------------------------------------------------------------------

    def test_a_phone_is_a_folder_behind_adb(self):
        self.bundle()
        self.over("adb:emulator-1", 0)
        result = json.loads((self.folder / "device-Google-Pixel-7.json").read_text())
        self.assertEqual(("Google Pixel [7]", 2), (result["label"], result["passed"]))
        self.assertEqual([], self.left())
        said = self.over("adb", 0, "--keep")
        self.assertEqual(1, len(self.left()))
        self.assertIn("is kept on the phone", said)

    def test_without_a_phone_it_is_said_what_to_do(self):
        self.bundle()
        for said, todo in (("adb: more than one device/emulator", "adb:SERIAL (see `adb devices`)"),
                           ("error: device unauthorized.\nThis adb", "confirm this machine on the phone's screen"),
                           ("adb: no devices/emulators found", "connect a phone and allow USB debugging")):
            self.refused(todo, "run.py", "adb", "--bundle", self.folder / "bundle",
                         **{**self.machine(), "ADB_SAYS": said})
        self.refused("see `adb devices`", "run.py", "adb:other", "--bundle", self.folder / "bundle", **self.machine())
        self.refused("set ADB", "run.py", "adb", "--bundle", self.folder / "bundle", ADB="/none/adb")
        self.refused("Permission denied (publickey)", "run.py", "ssh:other", "--bundle", self.folder / "bundle",
                     **self.machine())
        self.refused("install it", "run.py", "ssh:board", "--bundle", self.folder / "bundle", PATH=str(self.folder))

    def test_a_machine_behind_ssh_may_greet(self):
        self.bundle()
        said = self.over("ssh:board", 0, "--out", self.out)
        self.assertIn("2 passed", said)
        self.assertEqual([], self.left())
        options = set((self.folder / "phone" / "options").read_text().split())
        self.assertEqual({"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15"}, options)

    def test_a_damaged_copy_is_refused_and_removed(self):
        self.bundle()
        said = self.over("ssh:board", 2, **self.tools_with("tar", "#!/bin/sh\ncat >/dev/null\n"))
        self.assertIn("failed on board", said)
        self.assertEqual([], self.left())
        said = self.over("ssh:board", 2, **self.tools_with("tar", "#!/bin/sh\necho tar: No space left >&2; exit 2\n"))
        self.assertIn("copying to board failed: tar: No space left", said)
        self.assertEqual([], self.left())

    def tools_with(self, name, text):
        environment = self.machine()
        executable(self.folder / "phone" / "bin" / name, text)
        return environment

    def test_a_lost_connection_is_said(self):
        self.bundle("print('models/a ... passed (x)\\nmodels/b ... ', end='', flush=True)\n"
                    "open(os.environ['PHONE'] + '/gone', 'w').close()\nos.abort()\n", [CPU, GPU])
        said = self.over("ssh:board", 2, "--out", self.out)
        self.assertIn("the connection was lost in models/b", said)
        self.assertIn(f"{self.left()[0]} is left on board", said)
        result = json.loads(self.out.read_text())
        self.assertEqual(1, len(result["runs"]))
        self.assertTrue(result["runs"][0]["crashed"]["connection_lost"])
        self.assertIn("the connection was lost in models/b", self.page_of(self.out))

    # ---- Runs that end early ---------------------------------------------------------------------

    def test_a_crash_keeps_what_was_reported(self):
        for printed, during in (("models/first ... passed (x)\nmodels/2nd ... skipped (y)\nmodels/the third ... ",
                                 "models/the third"),
                                ("models/first ... passed (x)\nmodels/2nd ... noise\nskipped (y)\n",
                                 "what follows models/2nd"),
                                ("", "its start")):
            self.bundle(f"print({printed!r}, end='', flush=True)\nos.abort()\n")
            said, result = self.local(1)
            run = result["runs"][0]
            self.assertEqual(during, run["crashed"]["during"])
            ended = f"crashed in {during} (exit code {-signal.SIGABRT})"
            self.assertIn(ended, said)
            counts = (1, 1, 1) if printed else (0, 1, 0)
            self.assertEqual(counts, tuple(run[count] for count in ("passed", "failed", "skipped")))
            self.assertEqual(["first", "2nd"] if printed else [], [check["name"] for check in run["checks"]])
            self.assertIn(ended, self.page_of(self.out))

    def test_a_silent_program_is_killed(self):
        self.bundle("print('kernels/slow ... ', end='', flush=True)\nprint(os.getpid(), file=open('pid', 'w'))\n"
                    "time.sleep(600)\n")
        for target in ("local", "ssh:board"):
            (self.folder / "pid").unlink(missing_ok=True)
            if target == "local":
                said, _ = self.local(1, "--limit", "1.5")
                pid = int((self.folder / "pid").read_text())
            else:
                said = self.over(target, 1, "--limit", "1.5", "--keep", "--out", self.out)
                pid = int((self.folder / "phone" / self.left()[0] / "pid").read_text())
            ended = "no answer for 1.5 s in kernels/slow: it was killed"
            self.assertIn(ended, said)
            crash = json.loads(self.out.read_text())["runs"][0]["crashed"]
            self.assertEqual(("kernels/slow", 1.5), (crash["during"], crash["silent_s"]))
            self.assertFalse(is_alive(pid))
        self.assertIn(ended, self.page_of(self.out))

    def interrupted(self, number, *arguments, ready, **environment):
        """The output of run.py when it is interrupted as soon as the file `ready` exists."""
        with subprocess.Popen(
                [sys.executable, SCRIPTS / "run.py", *map(str, arguments)], cwd=self.folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment},
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as process:
            until = time.monotonic() + 60
            while not list(self.folder.rglob(ready)) and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(0.1)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        self.assertEqual(130, process.returncode, said)
        self.assertNotIn("Traceback", said)
        return said

    def test_an_interrupt_keeps_what_is_finished_and_ends_the_rest(self):
        self.bundle("if device['option'] == 'cpu':\n    finish(check('a'))\n"
                    f"print(os.getpid(), file=open({str(self.folder / 'pid')!r}, 'w'))\n"
                    f"open({str(self.folder / 'ready')!r}, 'w')\ntime.sleep(600)\n", [CPU, GPU])
        scratch = self.folder / "scratch"
        scratch.mkdir()
        for target, number in (("local", signal.SIGINT), ("local", signal.SIGTERM), ("ssh:board", signal.SIGINT)):
            (self.folder / "ready").unlink(missing_ok=True)
            place = ["--folder", self.folder / "phone"] if target != "local" else []
            said = self.interrupted(number, target, "--bundle", self.folder / "bundle", "--out", self.out, *place,
                                    ready="ready", **{**self.machine(), "TMPDIR": str(scratch)})
            self.assertIn("interrupted: 1 of 2 devices are in", said)
            result = json.loads(self.out.read_text())
            self.assertEqual((True, 1, 1), (result["interrupted"], len(result["runs"]), result["passed"]))
            self.assertFalse(is_alive(int((self.folder / "pid").read_text())))
            self.assertEqual([], self.left() + list(scratch.iterdir()))
        self.assertIn("interrupted", self.page_of(self.out))

    def test_an_interrupt_before_a_device_is_finished_writes_nothing(self):
        self.bundle(f"open({str(self.folder / 'ready')!r}, 'w')\ntime.sleep(600)\n")
        said = self.interrupted(signal.SIGINT, "local", "--bundle", self.folder / "bundle", "--out", self.out,
                                ready="ready")
        self.assertIn("interrupted: nothing was written", said)
        self.assertFalse(self.out.exists())

    def test_a_crash_leaves_no_files(self):
        self.bundle("import tempfile\nopen(os.path.join(tempfile.mkdtemp(), 'left'), 'w')\nos.abort()\n")
        scratch = self.folder / "scratch"
        scratch.mkdir()
        self.local(1, TMPDIR=str(scratch))
        self.assertEqual([], list(scratch.iterdir()))

    def test_a_result_that_cannot_be_read_is_no_crash(self):
        for body, reason in (("sys.exit(1)\n", "result.json"), ("write('[]')\n", "it is no object"),
                             ("write('{')\n", "Expecting"), ("write('{\"device\": 1}')\n", "device is no object")):
            self.bundle(body)
            said, result = self.local(2)
            self.assertRegex(said, f"ended with exit code [01], but its result cannot be read: .*{reason}")
            self.assertNotIn("crashed", said)
            self.assertIn("its result cannot be read", self.page_of(self.out))

    # ---- Options and output ----------------------------------------------------------------------

    def test_a_terminal_shows_the_current_check_in_one_line(self):
        self.bundle("print('models/the first ... passed (x)\\nmodels/the second ... ', flush=True)\n"
                    "finish(check('a'))\n")
        ours, theirs = os.openpty()
        done = subprocess.run([sys.executable, SCRIPTS / "run.py", "local", "--bundle", self.folder / "bundle",
                               "--out", self.out], stderr=theirs, stdout=subprocess.DEVNULL, timeout=60, check=True)
        os.close(theirs)
        said = os.read(ours, 65536).decode()
        os.close(ours)
        self.assertEqual(0, done.returncode)
        self.assertRegex(said, r"\r\x1b\[Kmodels/the second\r\x1b\[K")

    def test_patience_reaches_the_program(self):
        self.bundle("finish(check(os.environ['ORIEL_TEST_PATIENCE']))\n")

        def name(result):
            return result["runs"][0]["checks"][0]["name"]

        self.assertEqual("20", name(self.local(0, ORIEL_TEST_PATIENCE="")[1]))
        self.assertEqual("7", name(self.local(0, ORIEL_TEST_PATIENCE="7")[1]))
        self.assertEqual("3", name(self.local(0, "--patience", 3, ORIEL_TEST_PATIENCE="7")[1]))
        for target, given, want in (("ssh:board", ["--patience", 5], "5"), ("adb", [], "1")):
            self.over(target, 0, *given, "--out", self.out, ORIEL_TEST_PATIENCE="")
            self.assertEqual(want, name(json.loads(self.out.read_text())))
        for arguments, said in ((["--patience", "0"], "--patience must be"), (["--limit", "0"], "--limit must be"),
                                (["--limit", "nan"], "--limit must be")):
            self.assertIn(said, self.local(2, *arguments)[0])
        self.assertIn("ORIEL_TEST_PATIENCE must be", self.local(2, ORIEL_TEST_PATIENCE="long")[0])

    def test_disabled_features_reach_the_program(self):
        self.bundle("finish(check(str(option('--disable'))))\n")
        for arguments, want in ((["--disable", "subgroup"], "subgroup"), ([], "None")):
            result = self.local(0, *arguments, ORIEL_DISABLE="")[1]
            self.assertEqual(want, result["runs"][0]["checks"][0]["name"])

    def test_what_is_not_tested_is_said(self):
        self.bundle(devices=[GPU, DEAD, CPU])
        said, result = self.local(0)
        self.assertIn("not tested: vulkan:1 <Old>: no compute queue", said)
        self.assertEqual(["vulkan:0", "cpu"], [run["device"]["option"] for run in result["runs"]])
        page = self.page_of(self.out)
        self.assertIn("Not tested", page)
        self.assertIn("&lt;Old&gt;", page)
        self.assertNotIn("no Vulkan device was found", page)
        self.assertNotIn("not tested", self.local(0, "--devices", "cpu")[0])
        self.bundle()
        self.assertIn("no Vulkan device was found: only the CPU is tested", self.local(0)[0])
        self.assertIn("no Vulkan device was found", self.page_of(self.out))
        self.assertNotIn("no Vulkan device", self.local(0, "--devices", "cpu")[0])

    def test_out_is_checked_before_anything_runs(self):
        self.bundle("sys.exit(9)\n")
        for out, said in (("none/x.json", "there is no folder"), (self.folder, "is a folder")):
            self.refused(said, "run.py", "local", "--bundle", self.folder / "bundle", "--out", out)

    def test_the_folder_on_the_other_machine_is_chosen_there_only(self):
        self.bundle()
        self.refused("are for adb and ssh", "run.py", "local", "--bundle", self.folder / "bundle", "--keep")
        self.refused("must begin with a slash", "run.py", "ssh:board", "--bundle", self.folder / "bundle", "--folder", "x")

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_result_that_cannot_be_written_goes_to_stdout(self):
        self.bundle()
        done = script("run.py", "local", "--bundle", self.folder / "bundle", "--out", "/dev/full")
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertEqual(2, json.loads(done.stdout)["passed"])
        self.assertIn("/dev/full cannot be written (No space left on device)", done.stderr)

    # ---- Files that are not as they should be ----------------------------------------------------

    def test_an_odd_manifest_is_one_line(self):
        bundle = self.bundle()
        good = json.loads((bundle / "manifest.json").read_text())
        for manifest, said in (("{", "is not JSON"), ("[]", "lacks program"),
                               ({**good, "files": {}}, "has no sum of its program"),
                               ({**good, "files": {"program.py": 1}}, "that are not text"),
                               ({**good, "files": {**good["files"], "x": "y"}}, "x is not what the manifest says"),
                               ({**good, "emulator": "x"}, "lacks emulator"),
                               ({name: good[name] for name in good if name != "system"}, "lacks system")):
            text = manifest if isinstance(manifest, str) else json.dumps(manifest)
            (bundle / "manifest.json").write_text(text)
            self.refused(said, "run.py", "local", "--bundle", bundle)
        self.refused("is no device bundle", "run.py", "local", "--bundle", self.folder)

    def test_an_odd_list_of_devices_is_one_line(self):
        for devices in ("no list", "[1]", "[]", "[{'option': 'cpu'}]", "{}"):
            bundle = self.bundle()
            text = (bundle / "program.py").read_text()
            executable(bundle / "program.py", text.replace("json.dumps(DEVICES)", repr(devices).replace("\\'", '"')))
            write_manifest(bundle, program="program.py", system="x", processor="x", emulator=PYTHON)
            self.refused("list of devices cannot be read", "run.py", "local", "--bundle", bundle)
        executable(bundle / "program.py", "import sys; sys.exit('libvulkan is too old')\n")
        write_manifest(bundle, program="program.py", system="x", processor="x", emulator=PYTHON)
        self.refused("does not list devices on this machine: libvulkan is too old", "run.py", "local", "--bundle",
                     bundle)


if __name__ == "__main__":
    unittest.main()
