#!/usr/bin/env python3
"""The mutations are the ones that they say, and an expression is changed as a compiler would read it."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from mutate import mutations, saved_values  # noqa: E402
from run import Build, File  # noqa: E402

OP = """
namespace glassgrad {
Variable f(const Variable& x) {
    return record(find(rows, "f"), f(x.value()),
                  edge(
                      x, [](const auto& gy, const auto& y) { return gy * slope(y); }, result));
}
template <class V>
V slope(const V& y) {
    return 1.0 - y * y;
}
Variable unrelated(const Variable& x) { return x + 1; }
}  // namespace glassgrad
"""


def made(body, *parameters):
    return {(kind, text) for kind, text in mutations(body, parameters)}


class Mutations(unittest.TestCase):
    def test_operands_reach_as_far_as_they_bind(self):
        found = made("{ return a * b + c / d; }")
        for kind, text in [("sign", "{ return a * b - c / d; }"),
                           ("dropped term", "{ return a * b; }"),
                           ("dropped term", "{ return c / d; }"),
                           ("dropped factor", "{ return b + c / d; }"),
                           ("exchanged operand", "{ return a * b + (d) / (c); }"),
                           ("sign", "{ return -(a * b + c / d); }"),
                           ("factor", "{ return (a * b + c / d) * 2.0; }")]:
            self.assertIn((kind, text), found)

    def test_calls_are_changed_by_what_they_mean(self):
        self.assertIn(("branches", "{ return where(m, b, a); }"), made("{ return where(m, a, b); }"))
        self.assertIn(("skipped reduction", "{ return (g * y); }"),
                      made("{ return sum(g * y, {.axes = {axis}, .keepdims = true}); }"))
        self.assertIn(("axis", "{ return sum(g, {.axes = {(axis + 1)}}); }"),
                      made("{ return sum(g, {.axes = {axis}}); }"))
        self.assertIn(("comparison", "{ return less(x, y); }"), made("{ return greater(x, y); }"))
        self.assertIn(("flag", "{ return matmul(a, b, {.transpose_a = !(!t)}); }"),
                      made("{ return matmul(a, b, {.transpose_a = !t}); }"))
        self.assertIn(("constant", "{ return scale(x, 0.25); }"), made("{ return scale(x, 0.5); }"))

    def test_values_are_taken_for_each_other(self):
        self.assertIn(("wrong value", "{ return gy * x; }"), made("{ return gy * y; }", "gy", "y", "x"))
        found = [text for _, text in saved_values("{ edge(x, rule, result); edge(b, rule, x); }")]
        self.assertIn("{ edge(x, rule, x); edge(b, rule, x); }", found)
        self.assertIn("{ edge(x, rule, result); edge(b, rule, result); }", found)

    def test_checks_of_arguments_are_left_alone(self):
        self.assertEqual(made("{ if (a < b) { fail<ShapeError>(1); } }"), set())
        self.assertEqual(made("{ if (a < b) throw 1; }"), set())

    def test_only_what_a_derivative_is_made_of_is_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "op.cpp"
            path.write_text(OP)
            file = File(path)
            self.assertEqual({each.name.split(":")[1] for each in file.mutants}, {"f", "slope"})
            self.assertEqual(len({each.name for each in file.mutants}), len(file.mutants))
            for number, each in enumerate(file.mutants, 1):
                each.number = number
            file.write(path.with_suffix(".out"), set(file.mutants))
            written = path.with_suffix(".out").read_text()
            for each in file.mutants:
                self.assertEqual(written.count(f'#line {each.number} "mutant"'), 1)

    def test_errors_are_blamed_on_the_mutant_that_needs_the_code(self):
        self.assertEqual(Build.blamed("mutant:7:3: error: no\n"), {7})
        self.assertEqual(Build.blamed("x.hpp: In instantiation of 'f':\nmutant:9:1:   required from here\n"
                                      "x.hpp:3:1: error: no\nx.hpp:4:1: error: other\n"), {9})


if __name__ == "__main__":
    unittest.main()
