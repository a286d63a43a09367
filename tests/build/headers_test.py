#!/usr/bin/env python3
"""Shows that headers.py fails on headers that do not stand alone. Argument: the compiler."""

import sys
import tempfile
import unittest
from pathlib import Path

import headers

COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "c++"


def failures_of(text):
    with tempfile.TemporaryDirectory() as folder:
        header = Path(folder) / "glassgrad" / "a.hpp"
        header.parent.mkdir()
        header.write_text(text, encoding="utf-8")
        return headers.failures(COMPILER, [folder])[0]


class Headers(unittest.TestCase):
    def test_a_header_that_stands_alone_passes(self):
        self.assertEqual(failures_of("#pragma once\n#include <vector>\nstd::vector<int> f();\n"), [])

    def test_a_forgotten_include_fails(self):
        self.assertIn("<glassgrad/a.hpp>", failures_of("#pragma once\nstd::vector<int> f();\n")[0])

    def test_a_forgotten_pragma_once_fails(self):
        self.assertIn("redefinition", failures_of("struct A {};\n")[0])

    def test_a_warning_fails(self):
        text = "#pragma once\ninline int f(double x) { return x; }\n"
        self.assertIn("conversion", failures_of(text)[0])


if __name__ == "__main__":
    unittest.main()
