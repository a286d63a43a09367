#!/usr/bin/env python3
"""Holds traces against their JSON Schema: those of a folder fit it, spoilt ones do not.

usage: schema_test.py SCHEMA FOLDER
"""

import copy
import json
import sys
from pathlib import Path

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("skipped: python3-jsonschema 4 or newer is not installed")
    sys.exit(77)


def refuse_constant(text):
    raise ValueError(f"{text} is no JSON")


def spoilt(base):
    """Pairs of a sentence and a trace that the sentence says is wrong."""

    def case(sentence, change):
        trace = copy.deepcopy(base)
        change(trace)
        return sentence, trace

    def put(trace, value, *path):
        for step in path[:-1]:
            trace = trace[step]
        if value is None and path[-1] in trace and isinstance(path[-1], str):
            del trace[path[-1]]
        else:
            trace[path[-1]] = value

    def row(trace):
        return trace["tensors"][1]["value"]["data"][0]

    yield case("null stands for -Infinity", lambda t: row(t).__setitem__(1, None))
    yield case("a text that is no number", lambda t: row(t).__setitem__(1, "inf"))
    yield case("version 2.0", lambda t: put(t, "2.0", "version"))
    yield case("another format", lambda t: put(t, "trace", "format"))
    yield case("a bwd op without of", lambda t: put(t, None, "ops", 1, "of"))
    yield case("an unknown role", lambda t: put(t, "weight", "tensors", 0, "role"))
    yield case("an unknown pass", lambda t: put(t, "forward", "ops", 0, "pass"))
    yield case("an unknown dtype", lambda t: put(t, "f8", "tensors", 0, "dtype"))
    yield case("an unknown encoding", lambda t: put(t, "zip", "tensors", 0, "value", "enc"))
    yield case("an unknown severity", lambda t: put(t, "bad", "diagnostics", 0, "severity"))
    yield case("a value without data", lambda t: put(t, None, "tensors", 0, "value", "data"))
    yield case("a negative size", lambda t: put(t, -1, "tensors", 0, "shape", 0))
    yield case("rank 9", lambda t: put(t, [1] * 9, "tensors", 0, "shape"))
    yield case("an id with a leading zero", lambda t: put(t, "t01", "tensors", 1, "id"))
    yield case("an op id where a tensor's is due", lambda t: put(t, "o0", "ops", 0, "out", 0, "t"))
    yield case("an attribute that is null", lambda t: put(t, {"a": None}, "ops", 0, "attrs"))
    yield case("statistics without n", lambda t: put(t, None, "tensors", 0, "stats", "n"))
    yield case("bytes that are no hexadecimal",
               lambda t: put(t, {"text": "a", "bytes": "6"}, "labels", "token", 0))
    for name in ("producer", "run", "capture", "scopes", "tensors", "ops", "diagnostics", "end"):
        yield case(f"no {name}", lambda t, name=name: put(t, None, name))
    for name in ("id", "name", "key", "role", "dtype", "shape", "op", "value"):
        yield case(f"a tensor without {name}", lambda t, name=name: put(t, None, "tensors", 0, name))


def main(schema_path, folder):
    schema = json.loads(Path(schema_path).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    failures = 0

    paths = sorted(Path(folder).glob("*.trace.json"))
    if not paths:
        print(f"FAIL no traces in {folder}")
        return 1
    for path in paths:
        trace = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse_constant)
        for error in validator.iter_errors(trace):
            failures += 1
            print(f"FAIL {path.name}: {error.json_path}: {error.message[:200]}")

    sample = json.loads((Path(folder) / "sample.trace.json").read_text(encoding="utf-8"))
    cases = list(spoilt(sample))
    for sentence, trace in cases:
        if validator.is_valid(trace):
            failures += 1
            print(f"FAIL accepted: {sentence}")

    print(f"{len(paths)} traces fit, {len(cases)} spoilt ones are refused, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
