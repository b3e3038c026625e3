"""Tests of report.py: test_report.py"""

import json
import sys
import unittest

sys.dont_write_bytecode = True  # nothing appears in the source tree
from stand_ins import CPU, InAFolder  # noqa: E402


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
    unittest.main()
