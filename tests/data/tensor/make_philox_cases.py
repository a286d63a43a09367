#!/usr/bin/env python3
"""Writes philox_cases.json: numbers of NumPy's Philox that tests/tensor/counter_rng_test.cpp repeats.

A case is a key, the first raw numbers, and a hash (FNV-1a over 8-byte words) of 4,001 doubles of
`Generator.random` after them.
"""
import json
import pathlib

import numpy as np

import encode

KEYS = [(0, 0), (7, 0), (7, 3), (2**32, 1), (2**64 - 1, 2**64 - 1), (123456789, 2**63)]

cases = []
for key in KEYS:
    philox = np.random.Philox(key=np.array(key, np.uint64))
    raw = [int(x) for x in philox.random_raw(9)]
    drawn = np.random.Generator(philox).random(4001)
    cases.append({"key": ["%016x" % k for k in key], "raw": ["%016x" % x for x in raw],
                  "hash": "%016x" % encode.fnv(drawn.view(np.uint64).tolist()),
                  "first": ["%016x" % x for x in drawn.view(np.uint64)[:3].tolist()]})
path = pathlib.Path(__file__).resolve().parent / "philox_cases.json"
path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
