#!/usr/bin/env python3
"""The comparison of instruction counts fails when it should, and not before."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench" / "instructions.py"
SPEC = importlib.util.spec_from_file_location("instructions", SCRIPT)
INSTRUCTIONS = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(INSTRUCTIONS)


class Instructions(unittest.TestCase):
    def compare(self, now):
        return INSTRUCTIONS.compare({"example": 1000, "training": 50000},
                                    {"example": now, "training": 50000})

    def test_three_percent_pass_and_more_fails(self):
        self.assertFalse(self.compare(1030)[1])
        lines, failed = self.compare(1031)
        self.assertTrue(failed)
        self.assertEqual(lines[0], "example: 1031 instructions a step, kept 1000 (+3.1 %), "
                                   "which is too many")
        self.assertEqual(lines[1], "training: 50000 instructions a step, kept 50000 (+0.0 %)")

    def test_fewer_pass_and_are_to_be_kept(self):
        lines, failed = self.compare(900)
        self.assertFalse(failed)
        self.assertEqual(lines[0], "example: 900 instructions a step, kept 1000 (-10.0 %), fewer: "
                                   "keep it with --write")

    def test_counts_of_another_compiler_are_not_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            stand_in = Path(folder) / "program"
            stand_in.write_text("#!/bin/sh\necho other compiler\n")
            stand_in.chmod(0o755)
            (Path(folder) / "valgrind").write_text("#!/bin/sh\nexit 1\n")
            (Path(folder) / "valgrind").chmod(0o755)
            kept = Path(folder) / "kept.json"
            kept.write_text('{"made_with": "this compiler", "example": 1, "training": 1}')
            run = subprocess.run([sys.executable, SCRIPT, stand_in, kept],
                                 env={"PATH": folder + ":/usr/bin:/bin"}, capture_output=True,
                                 text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stdout, "instructions: not checked: the counts kept are of this "
                                         "compiler, this program is of other compiler\n")


if __name__ == "__main__":
    unittest.main()
