"""03_train_projections against the same training written out in NumPy: derivatives by hand, Adam as
its paper has it. Weights before and after, the losses, and the two traces."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

PROGRAM = sys.argv.pop(1)
WANTED = np.array([[0, 1, 0, 0], [0, 0.5, 0, 0.5]])
ROWS = [0, 2]


def train(steps=300, lr=0.05):
    rng = np.random.RandomState(7)
    x = rng.randn(4, 6)
    w = [0.5 * rng.randn(6, 3) for _ in range(3)]
    mean, square = [np.zeros((6, 3)) for _ in w], [np.zeros((6, 3)) for _ in w]
    losses, weights, start = [], [], [each.copy() for each in w]
    for step in range(steps + 1):
        q, k, v = (x @ each for each in w)
        scores = q @ k.T / np.sqrt(3)
        a = np.exp(scores - scores.max(1, keepdims=True))
        a /= a.sum(1, keepdims=True)
        error = (a @ v)[ROWS] - WANTED @ x[:, :3]
        losses.append(-0.5 * (WANTED * np.log(a[ROWS])).sum() + (error**2).mean())
        weights.append(a)
        gy, ga = np.zeros((4, 3)), np.zeros((4, 4))
        gy[ROWS] = 2 * error / error.size
        ga[ROWS] = -0.5 * WANTED / a[ROWS]
        ga += gy @ v.T
        gs = a * (ga - (ga * a).sum(1, keepdims=True)) / np.sqrt(3)
        gradients = [x.T @ (gs @ k), x.T @ (gs.T @ q), x.T @ (a.T @ gy)]
        moved = []
        for i, g in enumerate(gradients):
            mean[i] = 0.9 * mean[i] + 0.1 * g
            square[i] = 0.999 * square[i] + 0.001 * g * g
            t = step + 1
            root = np.sqrt(square[i] / (1 - 0.999**t))
            moved.append(w[i] - lr * (mean[i] / (1 - 0.9**t)) / (root + 1e-8))
        if step < steps:
            w = moved
    return losses, weights, (start, w)


class Training(unittest.TestCase):
    def test_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([PROGRAM, "--out", folder], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            traces = []
            for when in ("before", "after"):
                with open(os.path.join(folder, f"train_projections.{when}.trace.json")) as file:
                    traces.append(json.load(file))
        losses, weights, w = train()
        printed = np.array([[float(n) for n in re.findall(r"\d\.\d{4}", line)]
                            for line in run.stdout.splitlines()
                            if re.match(r" *(the|cat|sat|there) +\d\.", line)])
        self.assertEqual(printed.shape, (8, 4))
        self.assertLess(abs(printed[:4] - weights[0]).max(), 6e-5)
        self.assertLess(abs(printed[4:] - weights[-1]).max(), 6e-5)
        self.assertIn(f"From {losses[0]:.4f} to {losses[-1]:.4f}.", run.stdout)
        rows = [[float(n) for n in re.findall(r"-?\d+\.\d{4}", line)] for line in run.stdout.splitlines()]
        rows = np.array([row for row in rows if len(row) == 6]).reshape(3, 6, 2, 3)
        for i in range(3):
            self.assertLess(abs(rows[i, :, 0] - w[0][i]).max(), 6e-5)
            self.assertLess(abs(rows[i, :, 1] - w[1][i]).max(), 6e-5)
        # What was asked for.
        self.assertGreater(weights[-1][0, 1], 0.95)
        self.assertLess(abs(weights[-1][2, [1, 3]] - 0.5).max(), 0.05)
        for each in traces:
            self.assertIn("weights", {tensor.get("name") for tensor in each["tensors"]})

    def test_wrong_usage(self):
        self.assertEqual(subprocess.run([PROGRAM, "--steps", "0"], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
