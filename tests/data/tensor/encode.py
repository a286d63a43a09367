"""Tensors as JSON that tests/tensor/support/data.hpp reads back exactly."""
import json
import math

import numpy as np

NAMES = {"float32": "f32", "float64": "f64", "int64": "i64", "bool": "boolean"}


def number(x):
    if isinstance(x, (np.bool_, bool)):
        return int(x)
    if isinstance(x, (np.integer, int)):
        return int(x)
    if not math.isfinite(x):
        return str(float(x))  # nan, inf, -inf: strings, since JSON has no such numbers
    short = float(repr(float(x))) if x.dtype == np.float64 else float(str(x))
    assert x.dtype.type(short) == x, x
    return short


def tensor(x):
    x = np.asarray(x)
    return {"t": NAMES[str(x.dtype)], "s": list(x.shape), "v": [number(v) for v in x.reshape(-1)]}


def fnv(words):
    """FNV-1a over whole 8-byte words."""
    value = 0xCBF29CE484222325
    for word in words:
        value = ((value ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def digest(x, first=6):
    """The first values of a tensor, and a hash of the bit patterns of all."""
    x = np.ascontiguousarray(x).reshape(-1)
    bits = x.view({1: np.uint8, 4: np.uint32, 8: np.uint64}[x.dtype.itemsize])
    return {"t": NAMES[str(x.dtype)], "v": [number(v) for v in x[:first]],
            "h": "%016x" % fnv(bits.tolist())}


def dump(path, head, cases):
    lines = ",\n".join(json.dumps(case, separators=(",", ":"), allow_nan=False) for case in cases)
    path.write_text('{"numpy":"%s",%s"cases":[\n%s\n]}\n' % (np.__version__, head, lines))
