#!/usr/bin/env python3
"""Writes random_cases.json: draws of NumPy's RandomState that tests/tensor/random_test.cpp repeats.

A case is a seed and steps on one generator. A step is [name, arguments, count, hash, head]: the
bit patterns of its first draws, and a hash (FNV-1a over 8-byte words) of all of them.
"""
import json
import pathlib
import sys

import numpy as np

import encode

HEAD = 6
SEEDS = [0, 1, 2, 3, 5, 7, 11, 42, 123, 1000, 1234, 5489, 65535, 65536, 20240229, 123456789,
         2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]
LISTS = [[0], [7], [1, 2, 3], [2**32 - 1, 0, 5], list(range(700))]


def step(name, arguments, result):
    words = np.ascontiguousarray(result).reshape(-1).view(np.uint64).tolist()
    return [name, arguments, len(words), "%016x" % encode.fnv(words), ["%016x" % w for w in words[:HEAD]]]


def rows(n):
    return np.arange(n * 3, dtype=np.float64).reshape(n, 3) + 0.25


def weights(n):
    return np.arange(1, n + 1) / (n * (n + 1) // 2)


def draw(r, name, arguments):
    a = arguments
    if name in ("rand", "randn"):
        return getattr(r, name)(*a["shape"])
    if name in ("uniform", "normal", "randint"):
        return getattr(r, name)(a["a"], a["b"], a["shape"])
    if name == "permutation":
        return r.permutation(a["n"])
    if name == "permutation_rows":
        return r.permutation(rows(a["n"]))
    if name == "shuffle":
        x = rows(a["n"])
        r.shuffle(x)
        return x
    assert name == "choice"
    return r.choice(a["n"], a["shape"], replace=a["replace"],
                    p=weights(a["n"]) if a["weighted"] else None)


PLANS = {
    "rand": [("rand", {"shape": [4000]})],
    "randn": [("randn", {"shape": [4000]})],
    "sizes": [("randint", {"a": a, "b": b, "shape": [300]}) for a, b in [
        (0, 1), (0, 2), (0, 3), (-5, 5), (0, 256), (0, 50257), (10, 2**31), (0, 2**32 - 1),
        (0, 2**32), (0, 2**32 + 1), (-2**40, 2**41), (-2**63, 2**63 - 1), (7, 2**63 - 1)]],
    "orders": [("permutation", {"n": n}) for n in (0, 1, 2, 10, 1000)] + [
        ("permutation_rows", {"n": 9}), ("shuffle", {"n": 300})],
    "choices": [("choice", {"n": n, "shape": s, "replace": r, "weighted": w}) for n, s, r, w in [
        (10, [200], True, False), (10, [200], True, True), (50, [7, 5], False, False),
        (50, [7, 5], False, True), (40, [40], False, True), (1, [3], True, True),
        (6, [0], False, False)]],
    "mixed": [
        ("randn", {"shape": [3]}), ("rand", {"shape": [2, 3]}),
        ("randint", {"a": 0, "b": 10, "shape": [5]}), ("randn", {"shape": [2, 2]}),
        ("permutation", {"n": 17}), ("normal", {"a": 1.5, "b": 0.02, "shape": [3, 5]}),
        ("uniform", {"a": -0.3, "b": 0.7, "shape": [4, 2]}), ("normal", {"a": 0.0, "b": 0.0, "shape": [1]}),
        ("choice", {"n": 9, "shape": [4], "replace": False, "weighted": True}),
        ("randn", {"shape": [1]}), ("shuffle", {"n": 6}), ("randn", {"shape": [700]}),
        ("uniform", {"a": 5.0, "b": -1e300, "shape": [3]}), ("rand", {"shape": []})],
}


def main():
    cases = []
    for seed in SEEDS + LISTS:
        for plan in PLANS if not isinstance(seed, list) else ["mixed"]:
            r = np.random.RandomState(seed)
            steps = [step(name, a, draw(r, name, a)) for name, a in PLANS[plan]]
            _, key, pos, has_gauss, gauss = r.get_state()
            cases.append({"seed": seed, "plan": plan, "steps": steps, "state": [
                "%016x" % encode.fnv(key.tolist()), pos, has_gauss,
                "%016x" % np.float64(gauss).view(np.uint64)]})
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    out = out if out.suffix == ".json" else out.parent / "random_cases.json"
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    out.write_text('{"numpy":"%s","cases":[\n%s\n]}\n' % (np.__version__, lines))


main()
