#!/usr/bin/env python3
"""Shows that arrows.py passes a lawful tree and reports each breach of it, and only that."""

import tempfile
import unittest
from pathlib import Path

import arrows

LAWFUL = {
    "tensor/include/glassgrad/tensor.hpp": "#include <glassgrad/tensor/ops.hpp>\n#include <vector>",
    "tensor/include/glassgrad/tensor/xtensor.hpp": "#include <xtensor/xarray.hpp>",
    "tensor/include/glassgrad/tensor/detail/xtensor_shim.hpp": "#include <xtl/xtl_config.hpp>",
    "tensor/src/matmul.cpp": '#include <cblas.h>\n#include "fail.hpp"\n#include <fmt/format.h>',
    "autograd/include/glassgrad/autograd.hpp": "#include <glassgrad/tensor.hpp>",
    "autograd/src/engine.cpp": "#include <glassgrad/version.hpp>\n#include <fmt/format.h>",
    "layers/src/attention.cpp": "#include <glassgrad/autograd/variable.hpp>",
    "training/src/adam.cpp": "#include <glassgrad/layers.hpp>",
    "trace/src/recorder.cpp": "#include <glassgrad/layers.hpp>\n#include <nlohmann/json.hpp>",
    "tools/main.cpp": "#include <glassgrad/trace.hpp>\n#include <CLI/CLI.hpp>",
    "examples/01_a.cpp": "#include <glassgrad/glassgrad.hpp>",
    "tests/tensor/a_test.cpp": '#include "support/catch.hpp"\n#include <xtensor/xarray.hpp>',
    "bench/a.cpp": "#include <cblas.h>",
    "include/glassgrad/glassgrad.hpp": "#include <glassgrad/trace.hpp>",
    **{f"{folder}/README.md": "law\nrecipe\n" for folder in arrows.README_FOLDERS},
}

# file, its whole text, a piece of the one breach it must draw
BREACHES = [
    ("tensor/src/a.cpp", "#include <glassgrad/autograd.hpp>", "may include no other folder"),
    ("tensor/include/glassgrad/tensor/a.hpp", "#  include <glassgrad/layers/a.hpp>",
     "may include no other folder"),
    ("autograd/src/a.cpp", "#include <glassgrad/layers/module.hpp>", "may include tensor"),
    ("autograd/src/a.cpp", "\n#include <glassgrad/trace.hpp>", "a.cpp:2: <glassgrad/trace.hpp>"),
    ("layers/src/a.cpp", "#include <glassgrad/training.hpp>", "may include tensor, autograd"),
    ("layers/src/a.cpp", "#include <glassgrad/trace/recorder.hpp>", "may include tensor"),
    ("training/src/a.cpp", "#include <glassgrad/trace.hpp>", "may include tensor"),
    ("trace/src/a.cpp", "#include <glassgrad/training.hpp>", "may include tensor"),
    ("trace/src/a.cpp", "#include <glassgrad/glassgrad.hpp>", "the header of everything"),
    ("autograd/src/a.cpp", '#include "glassgrad/tensor.hpp"', "included as <glassgrad/tensor.hpp>"),
    ("autograd/src/a.cpp", "#include <xtensor/xarray.hpp>", "under tensor/ only"),
    ("layers/src/a.cpp", "#include <xtensor-blas/xlinalg.hpp>", "under tensor/ only"),
    ("trace/src/a.cpp", "#include <cblas.h>", "under tensor/ only"),
    ("tools/a.cpp", "#include <xtensor/xtensor.hpp>", "under tensor/ only"),
    ("examples/02_b.cpp", "#include <xtensor/xtensor.hpp>", "under tensor/ only"),
    ("layers/src/a.cpp", '#include "../../tensor/src/fail.hpp"', "climbs out"),
    ("tensor/include/glassgrad/tensor/a.hpp", "#include <xtensor/xarray.hpp>", "standard library"),
    ("layers/include/glassgrad/layers.hpp", "#include <fmt/format.h>", "standard library"),
    ("trace/include/glassgrad/trace.hpp", "#include <nlohmann/json.hpp>", "standard library"),
    ("trace/include/glassgrad/trace.hpp", '#include "json.hpp"', "standard library"),
    ("tensor/include/glassgrad/tensor/a.hpp", "#include <omp.h>", "standard library"),
    ("layers/README.md", "a line\n" * 41, "more than 40 lines"),
    ("trace/README.md", None, "trace/README.md: missing"),
]


def breaches_with(change):
    """The breaches of the lawful tree with the files of `change` written over it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in {**LAWFUL, **change}.items():
            if text is not None:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
        return list(arrows.breaches(root))


class Arrows(unittest.TestCase):
    def test_a_lawful_tree_has_no_breach(self):
        self.assertEqual(breaches_with({}), [])

    def test_a_commented_include_is_none(self):
        self.assertEqual(breaches_with({"tensor/src/a.cpp": "// #include <glassgrad/layers.hpp>"}), [])

    def test_each_breach_is_reported_alone(self):
        for name, text, expected in BREACHES:
            with self.subTest(file=name, text=text):
                found = breaches_with({name: text})
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])
                self.assertIn(name, found[0])


if __name__ == "__main__":
    unittest.main()
