#!/usr/bin/env python3
"""Writes npy_cases.json: the bytes that np.save writes and np.load reads, for npy_test.cpp."""
import io
import pathlib

import numpy as np

import encode


def main():
    r = np.random.RandomState(5)
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1e-40, 3.4e38, 1.5])
    saved = [
        np.float32(2.5), np.float64(-0.1), np.int64(-7), np.bool_(True),
        special.astype(np.float32), special, np.array([2**63 - 1, -2**63, 0]),
        np.array([True, False, True]), np.zeros((0,), np.float32), np.zeros((0, 3)),
        np.zeros((2, 0, 3), np.int64), r.randn(3, 5), r.randn(2, 3, 4).astype(np.float32),
        r.randint(-9, 9, (2, 1, 3, 1, 2, 1, 1, 2)), r.randn(130, 1).astype(np.float32),
        np.zeros((1, 100000, 0)), np.zeros((10**17, 0), np.float32),
    ]
    cases = []
    for x in saved:
        file = io.BytesIO()
        np.save(file, np.asarray(x))
        cases.append({"what": "save", "x": encode.tensor(x), "bytes": file.getvalue().hex()})

    def loads(x, y=None, version=None):
        file = io.BytesIO()
        np.lib.format.write_array(file, np.asarray(x), version)
        wide = encode.tensor(x if y is None else y)
        cases.append({"what": "load", "x": wide, "bytes": file.getvalue().hex()})

    grid = (np.arange(24) * 7 % 25 - 11).reshape(2, 3, 4)
    for version in ((1, 0), (2, 0), (3, 0)):
        loads(grid.astype(np.float32), version=version)
    for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"):
        for order in "<>":
            info = np.iinfo(code) if code[0] in "iu" else np.finfo(code)
            x = np.abs(grid) if code[0] == "u" else grid
            x = x.astype(order + code)
            if code != "u8":
                x[0, 0, 0], x[1, 2, 3] = info.min, info.max
            wide = x.astype({"f4": np.float32, "f8": np.float64}.get(code, np.int64))
            loads(x, wide)
            loads(np.asfortranarray(x), wide)
    loads(np.asfortranarray(grid % 3 == 0), grid % 3 == 0)
    half = np.arange(0, 65536, 97).astype(np.uint16).view(np.float16)
    half = half[np.isfinite(half)]
    loads(half, half.astype(np.float32))
    loads(half[:12].astype(">f2"), half[:12].astype(np.float32))
    loads(np.asfortranarray(half[-60:].reshape(3, 20)), half[-60:].reshape(3, 20).astype(np.float32))
    encode.dump(pathlib.Path(__file__).resolve().parent / "npy_cases.json", "", cases)


main()
