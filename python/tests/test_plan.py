"""Plans, and their pictures."""

import unittest
import xml.etree.ElementTree as xml

from support import TINY, needs_program, program

import oriel

MEMORY = "10.8MB"


class Plans(unittest.TestCase):
    @needs_program
    def test_is_the_programs_plan(self):
        for arguments, options in (
            ([TINY, "--memory", MEMORY], {"model": TINY, "memory": MEMORY}),
            ([TINY, "--memory", "1MB"], {"model": TINY, "memory": "1MB"}),
            ([TINY, "--memory", "40MB", "--sessions", 3], {"model": TINY, "memory": "40MB", "sessions": 3}),
            (["--arch", "llama-3.2-1b", "--memory", "1GB"], {"shape": "llama-3.2-1b", "memory": "1GB"}),
            (["--arch", "llama-3.2-1b", "--memory", "4GB"], {"shape": "llama-3.2-1b", "memory": "4GB"}),
            (["--arch", "llama-3.2-1b", "--memory", "4GB", "--window", "max"],
             {"shape": "llama-3.2-1b", "memory": "4GB", "window": "max"}),
            (["--arch", "gemma-3-1b", "--memory", "1GB"], {"shape": "gemma-3-1b", "memory": "1GB"}),
        ):
            said, plan = program("plan", *arguments), oriel.plan(**options)
            reasons = [choice.pop("why") for choice in said["choices"]]
            self.assertEqual({name: said.get(name) for name in plan}, plan, arguments)
            self.assertEqual([plan.why_not(choice) for choice in plan.choices], reasons)

    @needs_program
    def test_the_picture_is_the_programs(self):
        """Every line of print(plan) is a line of `oriel plan`, except for the unit of the memory."""
        import subprocess

        from support import PROGRAM

        said = subprocess.run([PROGRAM, "plan", TINY, "--memory", MEMORY], capture_output=True, text=True, check=True).stdout
        first, *theirs = said.splitlines()
        title, *lines = str(oriel.plan(TINY, memory=MEMORY)).splitlines()
        self.assertEqual(title.replace("10.3 MiB", "10.8 MB"), first)
        self.assertGreater(sum("█" in line for line in lines), 2)
        self.assertEqual([line.rstrip("█▏▎▍▌▋▊▉") for line in lines if line.rstrip("█▏▎▍▌▋▊▉") not in
                          [other.rstrip("█▏▎▍▌▋▊▉") for other in theirs]], [])

    def test_bars(self):
        from oriel._plan import bar

        self.assertEqual([bar(share, 2) for share in (0, 0.001, 0.5, 0.75, 1, 2)], ["", "▏", "█", "█▌", "██", "██"])

    def test_it_is_what_is_loaded(self):
        plan = oriel.plan(TINY, memory=MEMORY, device="cpu")
        with oriel.Model(TINY, memory=MEMORY, device="cpu") as model:
            self.assertEqual(model.plan, plan)
        self.assertEqual(sum(size for _, size in plan.parts), plan.total_bytes)
        self.assertEqual(plan["total_bytes"], plan.total_bytes)
        with self.assertRaisesRegex(AttributeError, "no field 'total_bites': use one of .*total_bytes"):
            plan.total_bites
        self.assertEqual(plan.kv, "k8v4")
        self.assertIn(plan.choice, plan.choices)

    def test_one_that_does_not_fit(self):
        plan = oriel.plan(memory="1MB")
        self.assertFalse(plan.fits)
        self.assertIsNone(plan.choice)
        self.assertIn("does not fit", str(plan))
        self.assertIn("does not fit", repr(plan))
        self.assertTrue(oriel.plan(memory=plan.minimum_bytes).fits)
        xml.fromstring(plan._repr_svg_())

    def test_drawings_are_well_formed(self):
        plans = [oriel.plan(memory=MEMORY), oriel.plan(memory="1MB"), oriel.plan(memory="40MB", sessions=3, constraints=True)]
        plans += [oriel.plan(shape=shape.name, memory="2GB") for shape in oriel.shapes()]
        for plan in plans:
            root = xml.fromstring(plan._repr_svg_())
            bars = [item for item in root if item.tag.endswith("rect") and len(item)]
            right = max(float(item.get("x")) + float(item.get("width")) for item in bars)
            self.assertLessEqual(right, 630.1)
            xml.fromstring(plan._repr_html_())
            self.assertTrue(str(plan))
            self.assertIn(plan.title, repr(plan))

    def test_speed(self):
        with self.assertRaises(oriel.StateError):
            oriel.plan(memory=MEMORY).predict()
        with self.assertRaises(TypeError):
            oriel.plan(TINY, shape="llama-3.2-1b")
        with self.assertRaises(oriel.ArgumentError):
            oriel.plan(shape="nothing-known", memory="1GB")
        speed = oriel.measure_speed(TINY, device="cpu")
        self.assertIn("CPU", repr(speed))
        plan = oriel.plan(TINY, memory=MEMORY, device="cpu", speed=speed)
        near, full = plan.predict(64), plan.predict()
        self.assertGreater(near.decode_tokens_per_s, full.decode_tokens_per_s)
        self.assertIn("tokens/s", str(plan))
        with self.assertRaises(oriel.SpeedError):
            oriel.plan(TINY, memory=MEMORY, device="cpu", speed=speed, min_speed=1e9)

    def test_calibration(self):
        given = oriel.Calibration(keys_int4=0.5, layers=[(1, 1, 1, 1)] * 6)
        self.assertEqual(oriel.plan(memory=MEMORY, calibration=given).choices[0].refused, "quality")
        self.assertFalse(oriel.plan(memory=MEMORY, calibration="none").calibrated)
        with self.assertRaises(oriel.FileError):
            oriel.plan(memory=MEMORY, calibration="nowhere")


if __name__ == "__main__":
    unittest.main()
