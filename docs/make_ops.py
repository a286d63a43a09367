#!/usr/bin/env python3
"""Writes docs/ops.md: every op, from its row, its declaration and what its gradient checks measure.

    ./dev docs                             writes it
    docs/make_ops.py --check [--samples PROGRAM]    whether it is current

Signatures and sentences come from the headers in autograd/include/glassgrad/autograd/ops, options
from those in tensor/include/glassgrad/tensor/ops, the rest from tests/parity/list_samples.cpp.
"""
import argparse
import difflib
import json
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/ops.md"
TITLES = {"elementwise": "Arithmetic, and functions of each element", "reduce": "Reductions",
          "shape": "Shapes", "product": "Products", "normalize": "Softmax and normalization",
          "loss": "Losses", "attention": "Attention and dropout", "index": "Indexing"}
HEAD = """# Ops

Every op that is recorded and differentiated, from its row; `./dev docs` writes this page. A function
has the same name for Tensors. `x` is the input, `y` the result, `gy` and `gx` their gradients.

The derivative of each op passes `gradcheck` and `gradgradcheck` on all its samples; *error* is the
largest difference from differences in f64 that was met, relative to the largest gradient, for the
first and second order. Values and derivatives agree with PyTorch's in f64: first order to 1e-12, second
to 1e-11. *f32* is the largest distance of results in f32 from f64, in units in the last place of the
largest element; gradients stay within four times that.
"""


def declarations(path):
    """Name -> list of (sentences, signature), in order, of the functions that a header declares."""
    found, comment, pending = {}, [], ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("///"):
            comment.append(line[3:].strip())
        elif re.match(r"(Variable|std::\w+(<.*>)?) \w+\(", line) or pending:
            pending = f"{pending} {line.strip()}".strip()
            if pending.endswith(";"):
                name = re.search(r"(\w+)\(", pending).group(1)
                found.setdefault(name, []).append((comment, pending))
                comment, pending = [], ""
        elif not line.strip():
            comment = []
        elif not line.startswith("//"):
            comment = []
    return found


def options(folder):
    """Name -> text of the structs of options."""
    found = {}
    for path in sorted(folder.glob("*.hpp")):
        for match in re.finditer(r"^struct (\w*Options) \{\n.*?^\};", path.read_text(), re.M | re.S):
            found[match.group(1)] = match.group()
    return found


def bound(error):
    """The next power of ten, with room for other machines."""
    return "0" if error == 0 else f"1e{math.ceil(math.log10(3 * error))}"


def entry(row, declared, structs):
    lines = [f"### {row['name']}", ""]
    signatures = [signature for _, signature in declared]
    lines += ["```cpp", *signatures]
    used = {name for text in signatures for name in re.findall(r"\w+Options", text)}
    lines += ["\n" + structs[name] for name in sorted(used & structs.keys())]
    lines += ["```", ""]
    for comment, _ in declared:
        if comment:
            lines += [*comment, ""]
    facts = [("value", row["forward"]), ("derivative", row["backward"] or "none"),
             ("holds", row["holds"]), ("domain", row["domain"]), ("records", row["records"])]
    lines += [f"- {name}: `{text}`" for name, text in facts if text]
    if row["errors"]:
        first, second = map(bound, row["errors"])
        lines.append(f"- {row['samples']} samples, error {first} and {second}; f32 {row['f32_ulp']:g} ulp")
    elif row["samples"]:
        lines.append(f"- {row['samples']} samples; f32 {row['f32_ulp']:g} ulp")
    if row["torch"]:
        lines.append(f"- PyTorch: `{row['torch']}`")
    return [*lines, ""]


def page(rows):
    structs = options(ROOT / "tensor/include/glassgrad/tensor/ops")
    rows = {row["name"]: row for row in rows}
    lines, listed = [HEAD], set()
    headers = sorted((ROOT / "autograd/include/glassgrad/autograd/ops").glob("*.hpp"),
                     key=lambda path: [*TITLES, path.stem].index(path.stem))
    for path in headers:
        declared = declarations(path)
        if not declared:
            continue
        lines += [f"## {TITLES.get(path.stem, path.stem.capitalize())}", ""]
        for name, overloads in declared.items():
            if name in rows:
                lines += entry(rows[name], overloads, structs)
                listed.add(name)
        others = [(name, each) for name, each in declared.items() if name not in rows]
        if others:
            lines += ["### Made of these", "", "```cpp"]
            for _, overloads in others:
                for comment, signature in overloads:
                    lines += [f"/// {text}" for text in comment] + [signature]
            lines += ["```", ""]
    missing = rows.keys() - listed
    if missing:
        sys.exit(f"no header under autograd/ops declares {', '.join(sorted(missing))}")
    return "\n".join(lines).rstrip() + "\n"


ERROR = re.compile(r"error (\S+) and ([^\s;]+);")


def check(text, stored):
    """Sentences about what is not current. Measured errors may be less than the page says."""
    now, then = text.splitlines(), stored.splitlines()
    blank = lambda lines: [ERROR.sub("error;", line) for line in lines]  # noqa: E731
    for line in difflib.unified_diff(blank(then), blank(now), "docs/ops.md", "the sources", lineterm="",
                                     n=1):
        yield line
    errors = [[tuple(map(float, pair)) for line in lines for pair in ERROR.findall(line)]
              for lines in (now, then)]
    for measured, said in zip(*errors):
        if measured[0] > 10 * said[0] or measured[1] > 10 * said[1]:
            yield f"an error of {measured} where the page says {said}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the page")
    parser.add_argument("--samples", default=ROOT / "build/release/bin/list_samples")
    arguments = parser.parse_args()
    listed = subprocess.check_output([arguments.samples, "--errors"])
    text = page(json.loads(listed)["rows"])
    if not arguments.check:
        PAGE.write_text(text, encoding="utf-8")
        print(f"{PAGE.name}: {text.count('### ')} ops")
        return 0
    found = list(check(text, PAGE.read_text(encoding="utf-8")))
    print("\n".join(found[:60]) + "\n./dev docs writes it anew" if found else "docs/ops.md is current")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
