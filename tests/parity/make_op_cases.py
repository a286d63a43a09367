#!/usr/bin/env python3
"""Values and derivatives of all ops by PyTorch in f64, for tests/parity/ops_test.cpp.

    python3 tests/parity/make_op_cases.py [--check] [--samples build/release/bin/list_samples]

asks list_samples for the samples of all rows, evaluates the text that each has for PyTorch, and
writes tests/data/autograd/op_cases.json; with --check compares it instead. Needs PyTorch and NumPy.

A case has the value y, a cotangent gy, gx of each floating input, cotangents ggx of those, and the
second derivatives: the gradients of sum(ggx * gx) with respect to the floating inputs and gy.

In the text the inputs are a, b, c, ... (`inputs` all of them), F is torch.nn.functional, np is
NumPy; numbers are f64 by default. Where PyTorch has no second derivative, or decides otherwise and
no other expression agrees, the text ends in `# no second derivative` or `# value only`, and why.
"""
import argparse
import json
import math
import pathlib
import string
import subprocess
import sys
import zlib

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = ROOT / "tests/data/autograd/op_cases.json"
sys.path.insert(0, str(ROOT / "tests/data/tensor"))
import encode  # noqa: E402

TYPES = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64, "boolean": torch.bool}


def decode(item):
    values = [float(v) if isinstance(v, str) else v for v in item["v"]]
    return torch.tensor(values, dtype=TYPES[item["t"]]).reshape(item["s"])


def cotangent(shape, random):
    """Signed values of four digits that do not repeat."""
    while True:
        x = np.round(random.uniform(-2, 2, tuple(shape)), 4)
        if len(np.unique(x)) == x.size:
            return torch.tensor(x, dtype=torch.float64)


def gradients(y, wanted, gy, **options):
    if not y.requires_grad:
        return [torch.zeros_like(x) for x in wanted]
    found = torch.autograd.grad(y, wanted, gy, allow_unused=True, **options)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(wanted, found)]


def evaluate(sample):
    """The case of a sample."""
    text = sample["torch"]
    inputs = [decode(x) for x in sample["x"]]
    leaves = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    names = {"inputs": inputs, "torch": torch, "F": torch.nn.functional, "np": np, "math": math}
    y = eval(text, {**names, **dict(zip(string.ascii_lowercase, inputs))})
    # + 0: the memory of a gradient that PyTorch knows to be zero is not written.
    numbers = lambda list: [encode.tensor((x.detach() + 0).numpy()) for x in list]  # noqa: E731
    case = {"op": sample["op"], "label": sample["label"], "torch": text, "y": numbers([y])[0]}
    if not sample["differentiable"] or "# value only" in text:
        return case
    # Each case has numbers of its own, whatever others there are.
    random = np.random.RandomState(zlib.crc32(f"{sample['op']}: {sample['label']}".encode()))
    gy = cotangent(y.shape, random).requires_grad_()
    gx = gradients(y, leaves, gy, create_graph="# no second derivative" not in text)
    case |= {"gy": numbers([gy])[0], "gx": numbers(gx)}
    if "# no second derivative" in text:
        return case
    ggx = [cotangent(g.shape, random) for g in gx]
    total = sum((g * w).sum() for g, w in zip(gx, ggx))
    second = gradients(total, [*leaves, gy], None)
    return case | {"ggx": numbers(ggx), "second": numbers(second)}


def cases_of(samples):
    cases, failed = [], 0
    for sample in samples:
        try:
            if not sample["torch"]:
                raise ValueError("no text for PyTorch")
            cases.append(evaluate(sample))
        except Exception as error:
            failed += 1
            print(f"{sample['op']}: {sample['label']}: {sample['torch']}\n"
                  f"    {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
    return cases, failed


def differ(a, b, tolerance=1e-12):
    """Whether two tensors differ by more than rounding."""
    if (a["t"], a["s"]) != (b["t"], b["s"]):
        return True
    x, y = np.array(a["v"], dtype=float), np.array(b["v"], dtype=float)
    with np.errstate(invalid="ignore"):
        near = np.abs(x - y) <= tolerance * max(1e-4, np.abs(x[np.isfinite(x)]).max(initial=0))
    return not np.all(near | (x == y) | (np.isnan(x) & np.isnan(y)))


def compare(cases, stored):
    """Sentences about what differs."""
    key = lambda case: f"{case['op']}: {case['label']}"  # noqa: E731
    old = {key(case): case for case in stored}
    for case in cases:
        was = old.pop(key(case), None)
        if was is None:
            yield f"{key(case)} is not stored"
        elif was.keys() != case.keys() or was["torch"] != case["torch"]:
            yield f"{key(case)} is stored for another call"
        else:
            for part in ["y", "gy", "gx", "ggx", "second"]:
                now, then = case.get(part, []), was.get(part, [])
                if isinstance(now, dict):
                    now, then = [now], [then]
                if len(now) != len(then) or any(map(differ, now, then)):
                    yield f"{key(case)}: {part} differs"
    for gone in old:
        yield f"{gone} is stored, but no sample"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with what is stored")
    parser.add_argument("--samples", default=ROOT / "build/release/bin/list_samples")
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.samples).exists():
        sys.exit(f"no program {arguments.samples}; ./dev build list_samples makes it")
    listed = json.loads(subprocess.check_output([arguments.samples]))
    torch.set_default_dtype(torch.float64)
    cases, failed = cases_of(listed["samples"])
    if arguments.check:
        found = list(compare(cases, json.loads(PATH.read_text())["cases"]))
        if found:
            sys.exit("\n".join(found[:20]) + f"\n{len(found)} differences from {PATH.name}; "
                     "make_op_cases.py without --check writes it anew")
        print(f"{len(cases)} cases, as stored")
        return failed
    lines = ",\n".join(json.dumps(each, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
                       for each in cases)
    version = torch.__version__.split("+")[0]
    PATH.write_text('{"torch":"%s","cases":[\n%s\n]}\n' % (version, lines))
    print(f"{len(cases)} cases, {PATH.stat().st_size // 1024} KiB; {failed} samples without")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
