"""01_worked_example against its outside witnesses.

Figures: tests/data/examples/worked_example.json, values from NumPy and gradients from PyTorch, in
float64. Text: the document that the example reproduces, where it is at hand, else its printed
figures, which the data file holds too.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
ROOT = sys.argv.pop(1)
DOCUMENT = os.path.join(ROOT, "..", "shared", "seed", "worked_example.txt")
STEPS = ["Q", "K", "V", "scores", "scaled", "weights", "output"]
INPUTS = ["X", "W_Q", "W_K", "W_V"]

with open(os.path.join(ROOT, "tests", "data", "examples", "worked_example.json")) as file:
    EXPECTED = json.load(file)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def flat(rows):
    return [value for row in rows for value in row]


def distance(a, b):
    """Largest difference, relative to the larger of the two numbers."""
    a, b = flat(a), flat(b)
    assert len(a) == len(b)
    return max(0 if x == y else abs(x - y) / max(abs(x), abs(y)) for x, y in zip(a, b))


def normal(text):
    """Words and numbers, whatever the spaces and the alignment."""
    return re.sub(r"\s+", " ", text.replace("[ ", "[")).strip()


class Figures(unittest.TestCase):
    def compare(self, arguments, forward, backward):
        got = json.loads(run("--json", *arguments).stdout)
        self.assertEqual(got["tokens"], EXPECTED["tokens"])
        for name in INPUTS + STEPS:
            self.assertLess(distance(got[name], EXPECTED[name]), forward, name)
            self.assertLess(distance(got["grad"][name], EXPECTED["grad"][name]), backward, name)

    def test_f64(self):
        self.compare([], 1e-14, 1e-13)

    def test_f32(self):
        # Entries near zero lose digits to cancellation.
        self.compare(["--dtype", "f32"], 1e-5, 2e-3)


class Text(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        result = run("--out", self.folder.name)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.text = result.stdout

    def step(self, number):
        found = re.search(rf"=== Step {number}: .*?(?=\nSee: )", self.text, re.S)
        self.assertIsNotNone(found)
        return normal(found.group(0))

    def test_printed_figures(self):
        formats = {"scores": "{:.3f}", "scaled": "{:.3f}", "weights": "{:.4f}"}
        for number, name in enumerate(["scores", "scaled", "weights"], start=1):
            lines = ["the cat sat there"]
            for token, row in zip(EXPECTED["tokens"], EXPECTED["printed"][name]):
                lines.append(" ".join([token] + [formats[name].format(x) for x in row]))
            self.assertTrue(self.step(number).endswith(" ".join(lines)), self.step(number))
        for token, row in zip(EXPECTED["tokens"], EXPECTED["printed"]["output"]):
            self.assertIn(f"{token}: [{' '.join(map(str, row))}]", self.step(4))

    def test_document(self):
        if not os.path.exists(DOCUMENT):
            self.skipTest("the document is not beside this checkout")
        with open(DOCUMENT) as file:
            document = normal(file.read())
        for number in range(1, 5):
            self.assertIn(self.step(number), document)

    def test_gradient_check_covers_every_quantity(self):
        table = self.text.split("=== Gradient check")[1]
        for name in INPUTS + STEPS[:-1]:
            found = re.search(rf"^ *{name}  passed .* (\S+)$", table, re.M)
            self.assertIsNotNone(found, name)
            self.assertLess(float(found.group(1)), 1e-9, name)

    def test_trace(self):
        with open(os.path.join(self.folder.name, "worked_example.trace.json")) as file:
            trace = json.load(file)
        tensors = {tensor["name"]: tensor for tensor in trace["tensors"] if tensor["role"] != "grad"}
        names = {"query": "Q", "key": "K", "value": "V"}
        for name in INPUTS + ["query", "key", "value"] + STEPS[3:]:
            tensor = tensors[name]
            figure = names.get(name, name)
            self.assertLess(distance(tensor["value"]["data"], EXPECTED[figure]), 1e-14, name)
            gradient = trace["tensors"][int(tensor["grad"][1:])]
            self.assertLess(
                distance(gradient["value"]["data"], EXPECTED["grad"][figure]), 1e-13, name)
        self.assertEqual(tensors["weights"]["axes"], ["query", "key"])
        self.assertEqual(trace["labels"]["token"], EXPECTED["tokens"])


class Usage(unittest.TestCase):
    def test_wrong_usage_is_status_2(self):
        for arguments in (["--dtype", "f16"], ["--out", "/no/such/folder"], ["--what"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(arguments[-1], result.stderr)


if __name__ == "__main__":
    unittest.main()
