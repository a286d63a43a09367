#!/usr/bin/env python3
"""NumPy reads an archive that save_npz wrote.

usage: npz_test.py WRITTEN
"""

import sys

import numpy

EXPECTED = {
    "w": numpy.array([[1.5, -0.0, 3], [4, 5, 6]], dtype="<f4"),
    "größe": numpy.array([7, 8], dtype="<i8"),
    "a/b": numpy.array([True, False]),
    "empty": numpy.zeros((0, 3)),
    "scalar": numpy.array(2.5),
}

with numpy.load(sys.argv[1]) as archive:
    assert list(archive) == list(EXPECTED), list(archive)
    for name, expected in EXPECTED.items():
        array = archive[name]
        assert array.dtype == expected.dtype and array.shape == expected.shape, name
        assert array.tobytes() == expected.tobytes(), name
print("ok")
