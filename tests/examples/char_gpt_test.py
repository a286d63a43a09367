#!/usr/bin/env python3
"""06_char_gpt trains, is stopped, resumed with the same bits, and writes."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=100, env=ONE_THREAD)


class CharGpt(unittest.TestCase):
    def test_course_of_a_run(self):
        with tempfile.TemporaryDirectory() as name:
            whole, parts = Path(name, "whole"), Path(name, "parts")
            done = run("--steps", 24, "--length", 20, "--out", whole, "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr, "")
            self.assertTrue(done.stdout.startswith("24 steps, best validation loss "), done.stdout)
            for file in ("best.safetensors", "step-000024.safetensors", "metrics.jsonl",
                         "run.json", "loss.svg"):
                self.assertTrue((whole / file).is_file(), file)
            self.assertEqual(len((whole / "metrics.jsonl").read_text().splitlines()), 24)

            # A stop file ends the run after its first step.
            parts.mkdir()
            (parts / "stop").touch()
            begun = run("--steps", 24, "--length", 20, "--out", parts, "--quiet")
            self.assertEqual((begun.returncode, begun.stdout),
                             (0, "Stopped after 1 steps. Go on with --resume.\n"))
            again = run("--out", parts, "--quiet")
            self.assertEqual(again.returncode, 1)
            self.assertIn("holds a run already", again.stderr)
            resumed = run("--resume", "--length", 20, "--out", parts, "--quiet")
            self.assertEqual(resumed.stdout, done.stdout)
            self.assertEqual((parts / "step-000024.safetensors").read_bytes(),
                             (whole / "step-000024.safetensors").read_bytes())
            self.assertEqual(len((parts / "metrics.jsonl").read_text().splitlines()), 24)

            text = run("--sample", "The cat", "--length", 30, "--out", whole)
            self.assertEqual(text.returncode, 0, text.stderr)
            self.assertTrue(text.stdout.startswith("The cat"))
            self.assertEqual(len(text.stdout), len("The cat") + 30 + 1)
            unknown = run("--sample", "Quartz?", "--out", whole)
            self.assertEqual(unknown.returncode, 1)
            self.assertIn("char_tokenizer", unknown.stderr)

    def test_the_nano_run_is_that_of_a_program_in_pytorch(self):
        root = Path(__file__).resolve().parents[2]
        if importlib.util.find_spec("torch") is None:
            self.skipTest("there is no PyTorch")
        with tempfile.TemporaryDirectory() as name:
            folder, text = Path(name), root / "docs" / "design.md"
            (folder / "stop").touch()
            begun = run(text, "--preset", "nano", "--out", folder, "--quiet")
            self.assertEqual(begun.returncode, 0, begun.stderr)
            metrics = folder / "metrics.jsonl"
            with subprocess.Popen([PROGRAM, text, "--resume", "--out", folder, "--quiet"],
                                  stdout=subprocess.DEVNULL, env=ONE_THREAD) as process:
                while metrics.read_text().count("\n") < 7 and process.poll() is None:
                    time.sleep(0.02)
                (folder / "stop").touch()
            twin = subprocess.run(
                [sys.executable, root / "bench" / "char_gpt_twin.py",
                 folder / "step-000001.safetensors", text, metrics, "--steps", "6"],
                capture_output=True, text=True, timeout=100, env=ONE_THREAD)
            self.assertEqual((twin.returncode, twin.stderr), (0, ""), twin.stdout)
            self.assertEqual(twin.stdout.count("\n"), 7)

    def test_wrong_usage(self):
        self.assertEqual(run("--preset", "huge").returncode, 2)
        self.assertEqual(run("no such file").returncode, 2)


unittest.main()
