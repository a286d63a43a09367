#!/usr/bin/env python3
"""The comparison behind `./dev bench --check`: the examples in its modules, and what noise does."""

import doctest
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import alternate  # noqa: E402
import check  # noqa: E402
import ratios  # noqa: E402
import tables  # noqa: E402


def says(*values):
    """A measurement that gives these values of the ratio `a`, one after the other."""
    left = list(values)
    return lambda: {"a": left.pop(0)}


class Comparison(unittest.TestCase):
    def measured(self, kept, measure):
        return check.measure_all({"group": measure}, kept, lambda text: None)

    def test_a_moment_of_noise_is_no_loss(self):
        found = self.measured({"a": 1.0}, says(0.5, 0.99, 1.01))
        self.assertEqual(found, {"a": 0.99})
        self.assertTrue(check.report({"a": 1.0}, found)[1])

    def test_a_loss_that_stays_fails(self):
        found = self.measured({"a": 1.0}, says(0.8, 1.0, 0.82))
        self.assertFalse(check.report({"a": 1.0}, found)[1])

    def test_what_is_not_lost_is_measured_once(self):
        self.assertEqual(self.measured({"a": 1.0}, says(0.86)), {"a": 0.86})

    def test_gains_and_new_ratios_pass(self):
        self.assertTrue(check.report({"a": 1.0}, {"a": 3.0, "b": 0.1})[1])


def load_tests(loader, tests, pattern):
    for module in (alternate, check, ratios, tables):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


if __name__ == "__main__":
    unittest.main()
