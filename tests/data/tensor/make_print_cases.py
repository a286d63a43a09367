#!/usr/bin/env python3
"""Writes print_cases.json: texts of np.array2string that tests/tensor/print_test.cpp compares."""
import pathlib

import numpy as np

import encode

FLOATS = [
    [], [1], [0], [-0.0], [1, 2, 3], [1.5, 2, -3.25], [0.1, 0.12, 0.123, 0.1234, 0.12345],
    [1 / 3, 2 / 3], [0.00005], [0.0001], [0.00012345, 0.1], [0.0009, 0.9], [0.001, 1.0],
    [0.001, 1.0001], [1e-5, 2], [12345.678, 1.5], [999.9999, 1], [99999999.0], [1e8], [123456789.0],
    [1e8, 1], [1e10, -2.5e-10], [1e100, 1e-100], [1.5e300, 0], [2e-308, -5e-310],
    [np.nan], [np.inf], [-np.inf], [np.nan, 1.5], [np.inf, 1], [-np.inf, 1], [np.nan, np.inf, -np.inf],
    [np.nan, 1e-10, 2], [-np.inf, 1e10], [np.nan, np.inf, 123456], [np.nan, -1.25, np.inf],
    [0.99995], [0.99994], [9.99999, 1], [0.00015, 0.00025, 0.00035], [0.03125, 0.15625],
    [1.00005, 1.00015, 1.00025], [-0.00001, 0.3], [-1, 10, -100], [1e3, 1], [1001, 1], [1e15, 1e15 + 2],
    [123.4, -0.5678, 9], [5e-5, 5.00001e-5], [1.23456e-7, -4.5e3, 6], [1e7, 12345.5], [-0.0, 0.0, 2],
    [3.14159265, 2.71828183, -1.41421356], [0.1 + 0.2, 0.3], [65504, 6.1e-5], [1e-45, 1], [1.1e38],
]
INTS = [[], [0], [1, -1], [7, 1234567, -89], [2**63 - 1, -2**63], list(range(12)), [10, 200, 3]]


def grid(shape, dtype):
    """Values that the test computes itself, so that large tensors need no room in the file."""
    n = int(np.prod(shape))
    x = (np.arange(n) * 37 % 101 - 29) / (8 if np.dtype(dtype).kind == "f" else 1)
    return (x % 2 < 1 if dtype == np.bool_ else x).astype(dtype).reshape(shape)


SHAPES = [
    (), (1,), (3,), (30,), (100,), (1001,), (2, 3), (3, 1), (1, 3), (2, 40), (4, 3, 2), (2, 1, 2, 3),
    (1, 1, 1, 1, 1), (2, 1, 2, 1, 2, 1, 2, 1), (40, 30), (1100, 2), (2, 1100), (7, 1, 200), (5, 300, 4),
    (11, 11, 11), (0, 3), (2, 0, 4), (7, 7, 7, 7), (1, 5000), (5000, 1), (6, 6, 6, 6, 2)]


def main():
    cases = []

    def add(x, **options):
        text = np.array2string(x, separator=" ", prefix="", **{
            "precision": 4, "max_line_width": 75, "threshold": 1000, "edgeitems": 3, **options})
        cases.append({"x": encode.tensor(x), "options": options, "text": text})

    def add_grid(shape, dtype, **options):
        add(grid(shape, dtype), **options)
        del cases[-1]["x"]["v"]

    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            for values in FLOATS:
                add(np.array(values, dtype))
                if values:
                    add(np.array(values[0], dtype))
        for precision in (0, 1, 2, 6, 8, 12):
            for values in FLOATS[5:10] + FLOATS[24:26] + [[1e-3, 2.5, np.pi, -np.inf]]:
                add(np.array(values, dtype), precision=precision)
        for seed in range(20):
            r = np.random.RandomState(seed)
            scale = 10.0 ** r.randint(-6, 9)
            add((r.randn(*r.randint(1, 5, size=r.randint(1, 5))) * scale).astype(dtype))
    for values in INTS:
        add(np.array(values, np.int64))
    for value in (5, -2**63):
        add(np.array(value, np.int64))
    for values in (True, False, [True], [False, False], [[True, False], [False, True]]):
        add(np.array(values))
    for dtype in (np.float64, np.float32, np.int64, np.bool_):
        for shape in SHAPES:
            add_grid(shape, dtype)
    for shape in ((5, 6), (50,), (3, 4, 5), (21, 1)):
        add_grid(shape, np.float64, threshold=20, edgeitems=2)
        add_grid(shape, np.int64, threshold=10, edgeitems=1, max_line_width=20)
        add_grid(shape, np.float32, max_line_width=10)
        add_grid(shape, np.float64, precision=1, max_line_width=8)
    encode.dump(pathlib.Path(__file__).resolve().parent / "print_cases.json", "", cases)


main()
