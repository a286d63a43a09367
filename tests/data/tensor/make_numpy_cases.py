#!/usr/bin/env python3
"""Writes numpy_cases.json: calls and what NumPy gives for them, for tests/tensor/numpy_test.cpp.

A case is {"f": function, "a": operands, "o": options, "r": result}. An operand is a tensor with
its values ("v"), or one that the test computes itself: a grid ("g", seed), which is exact in every
type and repeats no value, or RandomState(seed).randn ("n"). Of long results that are exact only
the first values and a hash are kept.
References of f32 are computed in f64 and rounded, where the function is not exact.
"""
import itertools
import math
import pathlib

import numpy as np

import encode

F32, F64, I64, BOOL = np.float32, np.float64, np.int64, np.bool_
NUMBERS = (F32, F64, I64)
FLOATS = (F32, F64)
ALL = (F32, F64, I64, BOOL)
PAIRS = [  # of shapes that broadcast
    ((), ()), ((1,), (1,)), ((5,), ()), ((), (2, 3)), ((7,), (1,)), ((3, 4), (3, 4)),
    ((3, 4), (4,)), ((4,), (3, 4)), ((3, 1), (1, 4)), ((5, 1, 4), (3, 1)), ((2, 3, 4), (2, 1, 1)),
    ((2, 1, 4), (1, 3, 1)), ((2, 1, 3, 1, 2), (4, 1, 5, 1)), ((0,), (1,)), ((2, 0, 3), (1, 3)),
    ((2, 1, 2, 1, 3, 1, 1, 2), (1, 3, 1, 2, 1, 1, 2, 1)), ((3, 4), (0, 1, 1))]
SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (3, 1, 5), (2, 3, 1, 4), (2, 1, 3, 1, 2, 1, 1, 2),
          (0,), (2, 0, 3), (0, 1)]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 1e-40, 7e37]
EXTREME = [2**63 - 1, -2**63, -1, 0, 1, 2, 2**62, 3037000500]

ROUNDED = ("div", "pow", "pow_scalar", "div_scalar", "scalar_div", "exp", "log", "sqrt", "tanh", "mean",
           "var", "softmax", "log_softmax", "softmax_vjp", "linspace", "arange", "expm1", "log1p",
           "rsqrt", "reciprocal", "sin", "cos", "chain_div", "std", "prod", "prod_vjp", "norm",
           "logsumexp", "cumsum")

cases = []


class Operand:
    """A tensor, and how the test gets it."""

    def __init__(self, value, text=None):
        self.value = np.asarray(value)
        self.text = text or encode.tensor(self.value)


def head(dtype, shape):
    return {"t": encode.NAMES[np.dtype(dtype).name], "s": list(shape)}


def grid(dtype, shape, seed, positive=False):
    k = (np.arange(math.prod(shape), dtype=np.int64) * 611 + seed * 131) % 997 - 498
    if positive:
        k = np.abs(k) + 1
    value = k % 7 < 3 if dtype == BOOL else k if dtype == I64 else k / 64
    text = {**head(dtype, shape), "g": seed, **({"p": 1} if positive else {})}
    return Operand(np.asarray(value).astype(dtype).reshape(shape), text)


def normal(dtype, shape, seed):
    return Operand(np.random.RandomState(seed).randn(*shape).astype(dtype) if shape else
                   np.asarray(np.random.RandomState(seed).randn(), dtype),
                   {**head(dtype, shape), "n": seed})


def add(name, operands, result, **options):
    result = np.asarray(result)
    exact = name not in ROUNDED and not any("n" in x.text for x in operands)
    text = encode.tensor(result)
    if exact and result.size > 12:
        text = {**encode.digest(result), "s": text["s"]}
    cases.append({"f": name, "a": [x.text for x in operands], "o": options, "r": text})


def wide(x):
    """f32 as f64: references are rounded once, at the end."""
    return x.astype(F64) if x.dtype == F32 else x


def call(name, function, *operands, **options):
    dtype = operands[-1].value.dtype
    result = np.asarray(function(*(wide(x.value) for x in operands)))
    if result.dtype.kind == "f":
        result = result.astype(dtype)
    add(name, operands, result, **options)


def binaries():
    plain = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum,
             "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
             "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal}
    for i, (a, b) in enumerate(PAIRS):
        for dtype in NUMBERS:
            if dtype == F32 and i % 3:
                continue  # the code is one template: fewer cases of the third type
            for name, f in plain.items():
                call(name, f, grid(dtype, a, i), grid(dtype, b, i + 3))
        for dtype in FLOATS:
            call("div", np.divide, grid(dtype, a, i), grid(dtype, b, i + 3, True))
            call("pow", np.power, grid(dtype, a, i, True), normal(dtype, b, i))
        few = Operand(np.abs(grid(I64, b, i).value) % 6)
        call("pow", np.power, grid(I64, a, i), few)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
            call(name, plain[name], grid(BOOL, a, i), grid(BOOL, b, i + 3))
        for name, f in (("logical_and", np.logical_and), ("logical_or", np.logical_or)):
            call(name, f, grid(BOOL, a, i), grid(BOOL, b, i + 3))
    for dtype in FLOATS:
        x = np.array(SPECIAL, dtype)
        for name, f in {**plain, "div": np.divide, "pow": np.power}.items():
            column = Operand(x[:, None])
            exact = f(column.value, x) if name != "pow" else f(wide(column.value), wide(x))
            exact = exact.astype(dtype) if exact.dtype.kind == "f" else exact
            add(name, [column, Operand(x)], exact)
    x = np.array(EXTREME, I64)
    for name, f in plain.items():
        add(name, [Operand(x[:, None]), Operand(x)], f(x[:, None], x))
    add("pow", [Operand(x[:, None]), Operand([0, 1, 2, 3, 62, 63, 64])],
        np.power(x[:, None], np.array([0, 1, 2, 3, 62, 63, 64])))


def scalars():
    forms = {"add_scalar": lambda x, b: x + b, "sub_scalar": lambda x, b: x - b,
             "mul_scalar": lambda x, b: x * b, "div_scalar": lambda x, b: x / b,
             "scalar_sub": lambda x, b: b - x, "scalar_div": lambda x, b: b / x,
             "scale": lambda x, b: x * b, "pow_scalar": lambda x, b: x ** x.dtype.type(b)}
    for name, f in forms.items():
        for i, shape in enumerate(SHAPES):
            for dtype in NUMBERS:
                if dtype == I64 and "div" in name:
                    continue
                x = grid(dtype, shape, i + 5, positive="pow" in name or "div" in name)
                for number in (2, 3) if dtype == I64 else (2, -0.75):
                    value = f(wide(x.value) if name == "pow_scalar" else x.value,
                              x.value.dtype.type(number))
                    add(name, [x], np.asarray(value).astype(dtype), number=number)
    for name in ("add_scalar", "sub_scalar", "scalar_sub", "mul_scalar", "div_scalar"):
        for dtype in FLOATS:
            x = Operand(np.array(SPECIAL, dtype))
            for number in (0.0, -0.0, 2.0):
                add(name, [x], forms[name](x.value, dtype(number)), number=number)


def unaries():
    floats = {"exp": (np.exp, False), "log": (np.log, True), "sqrt": (np.sqrt, True),
              "tanh": (np.tanh, False), "relu": (lambda x: np.where(x < 0, 0, x), False),
              "expm1": (np.expm1, False), "log1p": (np.log1p, True), "sin": (np.sin, False),
              "cos": (np.cos, False), "reciprocal": (np.reciprocal, True),
              "rsqrt": (lambda x: 1 / np.sqrt(x), True)}
    for name, (f, positive) in floats.items():
        for i, shape in enumerate(SHAPES):
            for dtype in FLOATS:
                call(name, f, grid(dtype, shape, i, True) if positive else normal(dtype, shape, i))
        for dtype in FLOATS:
            call(name, f, Operand(np.array(SPECIAL + [88.7, -104.0, 20.0, 1e-8], dtype)))
    for name, f in (("neg", np.negative), ("abs", np.abs), ("sign", np.sign),
                    ("square", np.square)):
        for i, shape in enumerate(SHAPES):
            for dtype in NUMBERS:
                call(name, f, grid(dtype, shape, i))
        for dtype in FLOATS:
            call(name, f, Operand(np.array(SPECIAL, dtype)))
        call(name, f, Operand(np.array(EXTREME)))
    for i, shape in enumerate(SHAPES):
        call("logical_not", np.logical_not, grid(BOOL, shape, i))


def selections():
    for i, (a, b) in enumerate(PAIRS):
        for dtype in ALL:
            for c in (a, b):
                add("where", [grid(BOOL, c, i + 1), grid(dtype, a, i), grid(dtype, b, i + 3)],
                    np.where(grid(BOOL, c, i + 1).value, grid(dtype, a, i).value,
                             grid(dtype, b, i + 3).value))
            value = {F32: -1.5, F64: -1.5, I64: -7, BOOL: 1}[dtype]
            add("masked_fill", [grid(dtype, a, i), grid(BOOL, b, i + 1)],
                np.where(grid(BOOL, b, i + 1).value, np.asarray(value, dtype), grid(dtype, a, i).value),
                number=value)
    add("where", [grid(BOOL, (5, 1, 1), 4), grid(F64, (1, 3, 1), 2), grid(F64, (4,), 1)],
        np.where(grid(BOOL, (5, 1, 1), 4).value, grid(F64, (1, 3, 1), 2).value,
                 grid(F64, (4,), 1).value))
    for low, high in ((-2, 3), (None, 1), (0, None), (2, 2)):
        bounds = {**({} if low is None else {"min": low}), **({} if high is None else {"max": high})}
        for dtype in NUMBERS:
            special = Operand(np.array(EXTREME if dtype == I64 else SPECIAL, dtype))
            for x in [grid(dtype, shape, i) for i, shape in enumerate(SHAPES)] + [special]:
                add("clamp", [x], np.clip(x.value, low, high).astype(dtype), **bounds)
    for dtype in FLOATS:
        a, b = np.array(SPECIAL, dtype)[:, None], np.array(SPECIAL, dtype)
        add("chain_mul", [Operand(a), Operand(b)], np.where(a == 0, dtype(0), a * b))
        add("chain_div", [Operand(a), Operand(b)], np.where(a == 0, dtype(0), a / b))
    close = [([1.0, 2.0], [1.0, 2.00001]), ([1.0], [1.1]), ([np.nan], [np.nan]), ([np.inf], [np.inf]),
             ([np.inf], [-np.inf]), ([np.inf], [1.0]), ([1.0], [np.inf]), ([0.0], [-0.0]),
             ([0.0], [1e-8]), ([1e-8], [0.0]), ([0.0], [2e-8]), ([[1.0], [1.0]], [1.0, 1.0, 1.0]), ([], [1.0]),
             ([100.0], [100.001]), ([100.001], [100.0]), (3.0, [3.0, 3.00003])]
    for a, b in close:
        for options in ({}, {"rtol": 0.2}, {"atol": 1.0, "rtol": 0.0}, {"equal_nan": True}):
            a64, b64 = np.array(a, F64), np.array(b, F64)
            add("allclose", [Operand(a64), Operand(b64)], np.allclose(a64, b64, **options), **options)
    add("allclose", [grid(I64, (3, 4), 1), grid(I64, (3, 4), 1)], True)
    add("allclose", [grid(I64, (3, 4), 1), grid(I64, (3, 4), 2)], False)
    add("allclose", [grid(BOOL, (3, 4), 1), grid(BOOL, (3, 4), 1)], True)


def all_axes(shape):
    rank = len(shape)
    yield None
    for axis in range(-rank, rank):
        yield [axis]
    for pair in itertools.combinations(range(rank), 2):
        if rank <= 4 or pair[0] % 3 == 0:
            yield [pair[1], pair[0] - rank]
    if rank:
        yield list(range(rank))


def reductions():
    def reduce(name, f, x, axes, keep, **options):
        axis = None if axes is None else tuple(axes)
        count = x.value.size if axes is None else math.prod(x.value.shape[a] for a in axes)
        if count == 0 and name not in ("sum", "prod", "norm", "logsumexp") and not (axes and 0 in np.delete(x.value.shape, axes)):
            return
        dtype = x.value.dtype
        with np.errstate(all="ignore"):
            result = np.asarray(f(wide(x.value), axis=axis, keepdims=keep, **options))
        if name in ("var", "std"):
            options = {"correction": options["ddof"]}
        add(name, [x], result.astype(dtype) if dtype.kind == "f" else result,
            **({} if axes is None else {"axes": axes}), **({"keepdims": True} if keep else {}), **options)

    def norm(x, axis, keepdims, ord=2):
        powers = {1: np.abs, 2: np.square}
        if ord == "inf":
            return np.max(np.abs(x), axis=axis, keepdims=keepdims)
        total = np.sum(powers[ord](x), axis=axis, keepdims=keepdims)
        return total if ord == 1 else np.sqrt(total)

    def logsumexp(x, axis, keepdims):
        m = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
        m = np.where(np.isinf(m), 0, m)
        total = np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) + m
        return total if keepdims else np.squeeze(total, axis=axis if axis is not None else tuple(range(x.ndim)))

    def prod_vjp(x, gy, axis):
        result = np.empty(x.shape)
        for at in np.ndindex(x.shape):
            others = [tuple(slice(None) if k in axis else at[k] for k in range(x.ndim))]
            part = x[others[0]].copy()
            part[tuple(at[k] for k in range(x.ndim) if k in axis)] = 1
            result[at] = gy[tuple(at[k] for k in range(x.ndim) if k not in axis)] * np.prod(part)
        return result

    for shape, axes in (((4,), [0]), ((3, 4), [1]), ((3, 4), [0]), ((2, 3, 4), [0, 2]), ((2, 0, 3), [2]),
                        ((2, 3, 4), [1])):
        for dtype in FLOATS:
            x = grid(dtype, shape, 3)
            gy = grid(dtype, tuple(n for k, n in enumerate(shape) if k not in axes), 5)
            add("prod_vjp", [x, gy], prod_vjp(wide(x.value), wide(gy.value), axes).astype(dtype), axes=axes)
    zeros = Operand(np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 4.0], [1.0, 2.0, 5.0], [0.0, 0.0, 0.0]]))
    weights = Operand(np.array([1.0, 2.0, -1.5, 3.0]))
    add("prod_vjp", [zeros, weights], prod_vjp(zeros.value, weights.value, [1]), axes=[1])

    for i, shape in enumerate(SHAPES):
        for axis in range(-len(shape), len(shape)):
            for dtype in ALL:
                x = grid(dtype, shape, i)
                add("cumsum", [x], np.cumsum(wide(x.value), axis).astype(
                    np.int64 if dtype in (I64, BOOL) else dtype), axis=axis)
            x = grid(F64, shape, i)
            add("cumsum", [x], np.flip(np.cumsum(np.flip(x.value, axis), axis), axis), axis=axis, reverse=True)
    add("cumsum", [Operand(np.array([2**63 - 1, 1, 5]))], np.cumsum(np.array([2**63 - 1, 1, 5])), axis=0)

    for i, shape in enumerate(SHAPES + [(3, 5, 7, 2)]):
        for j, axes in enumerate(all_axes(shape)):
            keep = j % 2 == 1
            for dtype in ALL:
                if (j + (dtype == F32)) % 3 or dtype not in (F32, BOOL):
                    reduce("sum", np.sum, grid(dtype, shape, i), axes, keep)
            for dtype in NUMBERS:
                if dtype == F64 or j % 3 == 0:
                    reduce("max", np.max, grid(dtype, shape, i), axes, keep)
                    reduce("min", np.min, grid(dtype, shape, i), axes, not keep)
                if dtype == F64 and j % 2 == 0:
                    reduce("amax", np.amax, grid(dtype, shape, i), axes, keep)
                    reduce("amin", np.amin, grid(dtype, shape, i), axes, not keep)
            for dtype in FLOATS:
                if dtype == F64 or j % 3 == 0:
                    reduce("mean", np.mean, grid(dtype, shape, i), axes, keep)
                    reduce("var", np.var, grid(dtype, shape, i), axes, keep, ddof=0)
                    reduce("std", np.std, grid(dtype, shape, i), axes, keep, ddof=0)
                    reduce("logsumexp", logsumexp, grid(dtype, shape, i), axes, not keep)
                    for ord in (1, 2, "inf"):
                        if ord != "inf" or math.prod(shape):
                            reduce("norm", norm, grid(dtype, shape, i), axes, keep, ord=ord)
                if dtype == F64 or j % 3 == 0:
                    reduce("prod", np.prod, grid(dtype, shape, i), axes, keep)
            if j % 2:
                reduce("prod", np.prod, grid(I64, shape, i), axes, not keep)
                reduce("prod", np.prod, grid(BOOL, shape, i), axes, keep)
        if math.prod(shape) > 1:
            reduce("var", np.var, grid(F64, shape, i), None, False, ddof=1)
            reduce("std", np.std, grid(F64, shape, i), None, False, ddof=1)
        for axis in [None] + list(range(-len(shape), len(shape))):
            if shape and 0 not in shape or axis is None and shape == ():
                for dtype in NUMBERS if axis in (None, -1) else (F64,):
                    x = grid(dtype, shape, i)
                    for keep in (False, True):
                        for name, f in (("argmax", np.argmax), ("argmin", np.argmin)):
                            add(name, [x], f(x.value, axis=axis, keepdims=keep),
                                **({} if axis is None else {"axis": axis}),
                                **({"keepdims": True} if keep else {}))
    nan, inf = np.nan, np.inf
    for row in ([1, nan, 3], [nan, 1, 3], [1, 3, nan], [inf, -inf, 0], [-inf, -inf, -inf],
                [inf, inf, 1], [2, 5, 5], [nan, nan, 1], [-0.0, -0.0, -0.0], [1, -inf, nan]):
        for dtype in FLOATS:
            x = Operand(np.array([row, [4, 4, 7]], dtype))
            for name, f in (("sum", np.sum), ("max", np.max), ("min", np.min), ("mean", np.mean),
                            ("prod", np.prod)):
                reduce(name, f, x, [1], False)
            add("argmax", [x], np.argmax(x.value, axis=1), axis=1)
            add("argmin", [x], np.argmin(x.value, axis=1), axis=1)
            add("cumsum", [x], np.cumsum(wide(x.value), 1).astype(dtype), axis=1)
            add("logsumexp", [x], np.logaddexp.reduce(wide(x.value), 1).astype(dtype), axes=[1])
    reduce("sum", np.sum, Operand(np.array([2**63 - 1, 1, 5])), None, False)
    for shape in ((5000,), (40, 300), (1000, 3), (17, 1, 129)):
        x = normal(F64, shape, len(shape))
        rows = x.value.reshape(x.value.shape[0], -1)
        add("sum", [x], math.fsum(x.value.reshape(-1)))
        add("sum", [x], np.array([math.fsum(c) for c in x.value.reshape(shape[0], -1).T]).reshape(shape[1:]), axes=[0])
        add("mean", [x], math.fsum(x.value.reshape(-1)) / x.value.size)
        add("var", [x], math.fsum((x.value.reshape(-1) - math.fsum(x.value.reshape(-1)) / x.value.size) ** 2) / x.value.size)
        y = normal(F32, shape, len(shape))
        add("sum", [y], F32(math.fsum(y.value.reshape(-1).astype(F64))))
        add("mean", [y], F32(math.fsum(y.value.reshape(-1).astype(F64)) / rows.size))
    x = Operand(np.array([40000, 40001, 40002, 40003], F32))
    add("var", [x], F32(1.25))
    x = Operand(np.array([1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3], F32))
    add("var", [x], F32(1.25))


def save():
    with np.errstate(all="ignore"):
        import make_numpy_shape_cases as shapes
        for family in (binaries, scalars, unaries, selections, reductions, shapes.products,
                       shapes.softmaxes, shapes.movements, shapes.joins, shapes.creations,
                       shapes.axes, shapes.rearrangements, shapes.indexing, shapes.sums_of_products):
            family()
    encode.dump(pathlib.Path(__file__).resolve().parent / "numpy_cases.json", "", cases)
    print(len(cases), "cases")


if __name__ == "__main__":
    import sys
    sys.modules["make_numpy_cases"] = sys.modules["__main__"]
    save()
