#!/usr/bin/env python3
"""07_names and 08_classifier learn what they say."""

import os
import re
import subprocess
import sys
import unittest

NAMES, CLASSIFIER = sys.argv.pop(1), sys.argv.pop(1)


def run(*arguments):
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})


class Names(unittest.TestCase):
    def test_names(self):
        done = run(NAMES, "--steps", 150, "--count", 12)
        self.assertEqual(done.returncode, 0, done.stderr)
        before, after = map(float, re.search(
            r"train on: ([\d.]+) a letter before, ([\d.]+) after 150 steps", done.stdout).groups())
        self.assertAlmostEqual(before, 3.26, delta=0.3)  # the logarithm of 26 tokens, about
        self.assertLess(after, 2.6)
        lines = done.stdout.split("\n\n")[1].splitlines()
        self.assertEqual(len(lines), 12)
        fresh = sum(not line.endswith("(in the list)") for line in lines)
        self.assertTrue(done.stdout.endswith(f"\n{fresh} of 12 are new.\n"), done.stdout)

    def test_same_seed_same_names(self):
        first = run(NAMES, "--steps", 5, "--seed", 3)
        self.assertEqual(first.stdout, run(NAMES, "--steps", 5, "--seed", 3).stdout)
        self.assertNotEqual(first.stdout, run(NAMES, "--steps", 5, "--seed", 4).stdout)

    def test_wrong_usage(self):
        self.assertEqual(run(NAMES, "no such file").returncode, 2)


class Classifier(unittest.TestCase):
    def test_rows(self):
        done = run(CLASSIFIER, "--steps", 120)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^ *(\d+) +[\d.]* +([\d.]+)$", done.stdout, re.M)
        self.assertEqual((rows[0][0], rows[-1][0]), ("0", "120"))
        self.assertLess(float(rows[0][1]), 0.5)
        self.assertGreater(float(rows[-1][1]), 0.97)
        for letters, *p in re.findall(r"^([abc]{11})   a (\S+)  b (\S+)  c (\S+)$", done.stdout,
                                      re.M):
            most = max("abc", key=letters.count)
            self.assertGreater(float(p["abc".index(most)]), 0.5, done.stdout)


unittest.main()
