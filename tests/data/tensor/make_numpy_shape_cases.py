"""The families of make_numpy_cases.py about products, shapes and creation."""
import itertools

import numpy as np

from make_numpy_cases import (ALL, BOOL, F32, F64, FLOATS, I64, NUMBERS, PAIRS, SHAPES, SPECIAL, Operand,
                              add, grid, normal, wide)


def flipped(shape):
    return shape[:-2] + (shape[-1], shape[-2])


def products():
    pairs = [((2, 3), (3, 4)), ((1, 5), (5, 1)), ((7, 2), (2, 1)), ((2, 0), (0, 3)), ((0, 2), (2, 3)),
             ((2, 3), (3, 0)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
             ((5, 1, 2, 3), (4, 3, 2)), ((1, 2, 3), (6, 3, 4)), ((2, 1, 4, 3), (1, 5, 3, 2)),
             ((0, 2, 3), (3, 4)), ((2, 1, 2, 1, 2, 1, 3, 4), (1, 3, 1, 1, 1, 2, 4, 5)),
             ((3, 0, 2), (3, 2, 4)), ((2, 3, 0), (2, 0, 4)), ((0, 5, 2, 3), (0, 1, 3, 4)), ((3, 2, 4, 5), (5, 6))]
    for i, (a, b) in enumerate(pairs):
        for dtype in NUMBERS:
            for ta, tb in itertools.product((False, True), repeat=2):
                x = grid(dtype, flipped(a) if ta else a, i)
                y = grid(dtype, flipped(b) if tb else b, i + 4)
                result = np.matmul(np.swapaxes(x.value, -1, -2) if ta else x.value,
                                   np.swapaxes(y.value, -1, -2) if tb else y.value)
                add("matmul", [x, y], result, **({"transpose_a": True} if ta else {}),
                    **({"transpose_b": True} if tb else {}))
    for i, (a, b) in enumerate([((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3,)),
                                ((3,), (5, 3, 4)), ((0,), (0,)), ((0,), (0, 2)), ((3,), (2, 4, 3, 1)), ((1,), (1, 1))]):
        for dtype in NUMBERS:
            x, y = grid(dtype, a, i), grid(dtype, b, i + 4)
            add("matmul", [x, y], np.matmul(x.value, y.value))
    x, y = grid(F64, (3,), 1), grid(F64, (5, 4, 3), 2)
    add("matmul", [x, y], np.matmul(x.value, np.swapaxes(y.value, -1, -2)), transpose_b=True)
    add("matmul", [y, grid(F64, (4,), 3)],
        np.matmul(np.swapaxes(y.value, -1, -2), grid(F64, (4,), 3).value), transpose_a=True)
    for a, b, ta, tb in [((9, 61), (61, 8), False, False), ((61, 9), (61, 8), True, False),
                         ((9, 61), (8, 61), False, True), ((61, 9), (8, 61), True, True), ((3, 9, 17), (3, 17, 5), False, False),
                         ((3, 17, 4), (5, 17), True, True), ((2, 3, 5, 40), (2, 1, 6, 40), False, True)]:
        for dtype in FLOATS:
            x, y = normal(dtype, a, 1), normal(dtype, b, 2)
            result = np.matmul(np.swapaxes(wide(x.value), -1, -2) if ta else wide(x.value),
                               np.swapaxes(wide(y.value), -1, -2) if tb else wide(y.value)).astype(dtype)
            add("matmul", [x, y], result, **({"transpose_a": True} if ta else {}),
                **({"transpose_b": True} if tb else {}))


def softmax(x, axis):
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
        e = np.exp(x - top)
        return np.where(top == -np.inf, 0, e / np.sum(e, axis=axis, keepdims=True))


def log_softmax(x, axis):
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
        result = x - top - np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True))
        return np.where(top == -np.inf, -np.inf, result)


def softmaxes():
    def both(x, axis):
        for name, f in (("softmax", softmax), ("log_softmax", log_softmax)):
            add(name, [x], f(wide(x.value), axis).astype(x.value.dtype), axis=axis)

    for i, shape in enumerate(SHAPES + [(3, 60)]):
        for dtype in FLOATS:
            for axis in range(-len(shape), len(shape)):
                if dtype == F64 or axis in (-1, 0):
                    both(normal(dtype, shape, i), axis)
    inf, nan = np.inf, np.nan
    for row in ([1e4, 0, 1], [-1e4, -1e4, 0], [inf, 0, 1], [-inf, -inf, -inf], [-inf, 2, 1], [nan, 0, -inf],
                [88, 89, 700], [0, 0, 0]):
        for dtype in FLOATS:
            both(Operand(np.array([row, [1, 2, 4]], dtype)), -1)
            both(Operand(np.array([row, [1, 2, 4]], dtype).T), 0)
    for shape in ((4,), (2, 3, 5), (3, 1), (0, 3), (2, 0)):
        for axis in range(-len(shape), len(shape)):
            for dtype in FLOATS:
                y, gy = grid(dtype, shape, 3), grid(dtype, shape, 8)
                a, g = wide(y.value), wide(gy.value)
                add("softmax_vjp", [y, gy], (a * (g - (a * g).sum(axis, keepdims=True))).astype(dtype), axis=axis)


def movements():
    for dtype in ALL:
        for a, b in [((6,), (2, 3)), ((2, 3), (3, 2)), ((2, 3, 4), (4, -1)), ((24,), (2, -1, 1, 3)), ((), (1, 1)), ((1,), ()),
                     ((2, 3, 4), (-1,)), ((0, 3), (3, 0)), ((0, 3), (-1, 3)), ((12,), (2, 1, 1, 3, 1, 1, 2, 1)), ((2, 0), (5, 0, 7))]:
            add("reshape", [grid(dtype, a, 2)], grid(dtype, a, 2).value.reshape(b), shape=list(b))
    for shape in ((), (4,), (3, 4), (2, 3, 4), (2, 3, 1, 4), (0, 2, 3)):
        for order in itertools.permutations(range(len(shape))):
            for dtype in ALL if len(shape) == 3 else (F64,):
                axes = [a - len(shape) if a % 2 else a for a in order]
                add("permute", [grid(dtype, shape, 1)], grid(dtype, shape, 1).value.transpose(order), axes=axes)
    eight = grid(F32, (2, 1, 3, 1, 2, 1, 1, 2), 4)
    add("permute", [eight], eight.value.transpose(7, 2, 0, 5, 4, 3, 6, 1), axes=[7, 2, 0, 5, -4, 3, 6, 1])
    for shape in ((3, 4), (2, 3, 4), (2, 3, 4, 5), (0, 2), (2, 1, 3, 1, 2, 1, 1, 2)):
        for dtype in ALL:
            x = grid(dtype, shape, 6)
            add("transpose", [x], np.swapaxes(x.value, -2, -1))
        for a, b in itertools.product((0, 1, -1), repeat=2):
            add("transpose", [grid(F64, shape, 6)], np.swapaxes(grid(F64, shape, 6).value, a, b), axis0=a, axis1=b)
    bounds = [{}, {"start": 1}, {"stop": 2}, {"start": -2}, {"stop": -1}, {"start": 1, "stop": 3}, {"start": 4, "stop": 1},
              {"start": -100, "stop": 100}, {"step": 2}, {"start": 1, "step": 2}, {"step": -1}, {"step": -2},
              {"start": 3, "stop": 0, "step": -1}, {"start": -1, "stop": -4, "step": -2}, {"start": 100, "step": -3},
              {"start": 0, "stop": 0}, {"step": 100}, {"step": -100}, {"start": 100}, {"stop": -100, "step": -1},
              {"start": -2**63, "stop": 2**63 - 1, "step": 2**63 - 1}, {"start": 2**63 - 1, "stop": -2**63, "step": -2**63}]
    for shape in ((5,), (4, 3), (2, 5, 3), (3, 0, 2), (1, 2, 1, 2, 4, 1, 1, 1)):
        for axis in (0, -1, len(shape) // 2):
            for o in bounds:
                index = [slice(None)] * len(shape)
                index[axis] = slice(o.get("start"), o.get("stop"), o.get("step"))
                for dtype in ALL if len(shape) == 2 and axis == 0 else (F64,):
                    x = grid(dtype, shape, 9)
                    part = x.value[tuple(index)]
                    add("slice", [x], part, axis=axis, **o)
                    y = grid(dtype, part.shape, 12)
                    back = np.zeros(shape, dtype)
                    back[tuple(index)] = y.value
                    add("slice_scatter", [y], back, shape=list(shape), axis=axis, **o)
    for i, (a, b) in enumerate(PAIRS):
        shape = np.broadcast_shapes(a, b)
        for dtype in ALL if i % 3 == 0 else (F64,):
            for part in (a, b):
                x = grid(dtype, part, i)
                add("broadcast_to", [x], np.broadcast_to(x.value, shape), shape=list(shape))
                if dtype != BOOL:
                    y = grid(dtype, shape, i)
                    lead = len(shape) - len(part)
                    axes = tuple(k for k in range(len(shape)) if k < lead or part[k - lead] == 1)
                    add("sum_to", [y], y.value.sum(axis=axes).reshape(part), shape=list(part))


def joins():
    parts = [[(2, 3), (4, 3), (1, 3)], [(2, 3), (2, 1)], [(5,), (0,), (2,)], [(2, 0, 3), (2, 4, 3)], [(3, 4)],
             [(1, 2, 1, 2, 1, 2, 1, 2), (1, 2, 1, 2, 1, 2, 1, 1)], [(0, 2), (0, 2)]]
    axes = [0, 1, 0, 1, -1, -1, 1]
    for shapes, axis in zip(parts, axes):
        for dtype in ALL:
            xs = [grid(dtype, s, k) for k, s in enumerate(shapes)]
            for a in (axis, axis - len(shapes[0]) if axis >= 0 else axis):
                add("concat", xs, np.concatenate([x.value for x in xs], a), axis=a)
    for shape in ((), (3,), (2, 3), (0, 2), (2, 1, 2, 1, 2, 1, 2)):
        for count in (1, 2, 3):
            for dtype in ALL:
                xs = [grid(dtype, shape, k) for k in range(count)]
                for axis in (0, -1, len(shape), -len(shape) - 1):
                    add("stack", xs, np.stack([x.value for x in xs], axis), axis=axis)


def creations():
    for shape in SHAPES:
        for dtype in ALL:
            t = {"shape": list(shape), "dtype": str(np.dtype(dtype))}
            add("zeros", [], np.zeros(shape, dtype), **t)
            add("ones", [], np.ones(shape, dtype), **t)
            add("full", [], np.full(shape, 3, dtype), number=3, **t)
            add("zeros_like", [grid(dtype, shape, 1)], np.zeros(shape, dtype))
            add("ones_like", [grid(dtype, shape, 1)], np.ones(shape, dtype))
    for number in (0.1, -2.5, float(F32(1e-40))):
        for dtype in FLOATS:
            add("full", [], np.full((2, 3), number, dtype), number=number, shape=[2, 3], dtype=str(np.dtype(dtype)))
    for start, stop, step in [(0, 5, 1), (2, 11, 3), (5, 0, -2), (0, 0, 1), (3, 1, 1), (-4, 4, 2), (7, 6, -5), (10**9, 10**9 + 3, 1)]:
        for dtype in NUMBERS if stop < 1e6 else (F64, I64):
            add("arange", [], np.arange(start, stop, step, dtype), start=start, stop=stop, step=step, dtype=str(np.dtype(dtype)))
    for start, stop, step in [(0, 1, 0.1), (1, 2, 0.3), (0.5, 3.2, 0.7), (-1, -3, -0.25), (0, 1, 1 / 3), (1, 1.0001, 0.00003)]:
        for dtype in FLOATS:
            add("arange", [], np.arange(start, stop, step, dtype), start=start, stop=stop, step=step, dtype=str(np.dtype(dtype)))
    for start, stop, count in [(0, 1, 5), (0, 1, 11), (-3, 7.5, 7), (2, 2, 3), (5, -5, 4), (1, 9, 1), (1, 9, 0), (0.1, 0.7, 2), (-1e300, 1e300, 3)]:
        for dtype in FLOATS if abs(start) < 1e30 else (F64,):
            add("linspace", [], np.linspace(start, stop, count).astype(dtype), start=start, stop=stop, count=count, dtype=str(np.dtype(dtype)))
    for n in (0, 1, 2, 5):
        for dtype in ALL:
            add("eye", [], np.eye(n, dtype=dtype), count=n, dtype=str(np.dtype(dtype)))
    for shape in SHAPES:
        for a, b in itertools.product(ALL, repeat=2):
            x = grid(a, shape, 7)
            add("astype", [x], x.value.astype(b), dtype=str(np.dtype(b)))
    x = Operand(np.array([s for s in SPECIAL] + [0.1, 16777217.0, 1e300], F64))
    add("astype", [x], x.value.astype(F32), dtype="float32")
    add("astype", [x], x.value.astype(BOOL), dtype="bool")
    x = Operand(np.array([2.9, -2.9, -0.5, 9e18, -9.2233720368547758e18], F64))
    add("astype", [x], x.value.astype(I64), dtype="int64")
    x = Operand(np.array([2**53 + 1, 2**63 - 1, -2**63, 16777217]))
    add("astype", [x], x.value.astype(F64), dtype="float64")
    add("astype", [x], x.value.astype(F32), dtype="float32")


def axes():
    for dtype in ALL:
        for shape, by in [((1, 3, 1), None), ((1, 3, 1), [0]), ((1, 3, 1), [-1, 0]), ((), None), ((3, 2), None), ((0, 1), [1]),
                          ((1,) * 8, None), ((2, 1, 3, 1, 2, 1, 1, 2), [1, -3]), ((2, 3), [])]:
            x = grid(dtype, shape, 3)
            add("squeeze", [x], np.squeeze(x.value, None if by is None else tuple(by)), **({} if by is None else {"axes": by}))
        for shape, axis in [((), 0), ((), -1), ((2, 3), 0), ((2, 3), 1), ((2, 3), 2), ((2, 3), -3), ((0, 2), -1), ((1, 2, 1, 2, 1, 2, 1), 4)]:
            x = grid(dtype, shape, 4)
            add("unsqueeze", [x], np.expand_dims(x.value, axis), axis=axis)
        for shape, to, result in [((2, 1), (4, -1, 3), (4, 2, 3)), ((3,), (-1,), (3,)), ((), (2, 2), (2, 2)), ((1, 3), (0, -1), (0, 3)),
                                  ((2, 1, 2, 1), (1, 2, 1, 2, -1, 3, 2, 2), (1, 2, 1, 2, 2, 3, 2, 2))]:
            x = grid(dtype, shape, 5)
            add("expand", [x], np.broadcast_to(x.value, result), shape=list(to))
        for shape, sizes, axis in [((5, 2), [2, 2, 1], 0), ((2, 5), [0, 4, 1], -1), ((0, 3), [0], 0), ((2, 3, 4), [1, 2], 1)]:
            x = grid(dtype, shape, 6)
            for part, value in enumerate(np.split(x.value, np.cumsum(sizes)[:-1], axis)):
                add("split_sizes", [x], value, sizes=sizes, axis=axis, part=part)
        for shape, size, axis in [((6, 2), 2, 0), ((2, 5), 2, 1), ((2, 3), 7, -1), ((0, 2), 3, 0), ((2, 1, 2, 1, 3, 1, 1, 2), 2, 4)]:
            x = grid(dtype, shape, 7)
            for part, value in enumerate(np.split(x.value, np.arange(size, shape[axis], size), axis)):
                add("split", [x], value, size=size, axis=axis, part=part)
        for shape, count, axis in [((6, 2), 3, 0), ((2, 6), 4, 1), ((5,), 2, 0), ((2, 3), 1, -1)]:
            x = grid(dtype, shape, 8)
            size = -(-shape[axis] // count)
            for part, value in enumerate(np.split(x.value, np.arange(size, shape[axis], size), axis)):
                add("chunk", [x], value, count=count, axis=axis, part=part)
        add("chunk", [grid(dtype, (0, 2), 9)], np.zeros((0, 2), dtype), count=3, axis=0, part=2)


def rearrangements():
    least = -2**63
    for dtype in ALL:
        for shape, widths in [((), []), ((3,), [(1, 2)]), ((2, 3), [(0, 0), (2, 1)]), ((2, 3, 2), [(1, 0), (0, 2), (3, 1)]), ((0, 2), [(2, 1), (0, 1)]),
                              ((2, 0), [(0, 0), (0, 0)]), ((1, 2, 1, 2, 1, 2, 1, 2), [(0, 1), (0, 0)] * 4)]:
            x = grid(dtype, shape, 1)
            for value in (0, 1, -3):
                add("pad", [x], np.pad(x.value, widths, constant_values=value) if widths else x.value,
                    before=[w[0] for w in widths], after=[w[1] for w in widths], number=value)
        for shape, by in [((), None), ((5,), None), ((2, 3), [1]), ((2, 3, 4), [0, -1]), ((2, 3, 4), []), ((0, 3), None), ((3, 1), [1]),
                          ((2, 1, 3, 1, 2, 1, 1, 2), None), ((2, 1, 3, 1, 2, 1, 1, 2), [2, -1])]:
            x = grid(dtype, shape, 2)
            add("flip", [x], np.flip(x.value, None if by is None else tuple(by)), **({} if by is None else {"axes": by}))
        for shape, shifts, by in [((5,), [2], [0]), ((5,), [-7], [0]), ((2, 3), [1, -1], [0, 1]), ((3, 4), [1, 2], [1, 1]), ((0, 3), [1], [0]),
                                  ((2, 0), [1], [0]), ((), [], []), ((5, 2), [2**63 - 1], [0]), ((5, 2), [least], [-2]),
                                  ((2, 1, 3, 1, 2, 1, 1, 2), [1, 5, 1], [0, 2, -1])]:
            x = grid(dtype, shape, 3)
            add("roll", [x], np.roll(x.value, [s % 60 for s in shifts], by) if shifts else x.value, shifts=shifts, axes=by)
        for shape in ((3, 4), (4, 3), (2, 3, 3), (0, 3), (2, 0), (1, 2, 1, 2, 1, 1, 3, 2)):
            for diagonal in (0, 1, -1, 2, -2, 10, -10, 2**63 - 1, least):
                x = grid(dtype, shape, 4)
                k = max(-50, min(50, diagonal))
                add("tril", [x], np.tril(x.value, k), diagonal=diagonal)
                add("triu", [x], np.triu(x.value, k), diagonal=diagonal)
        for shape, counts in [((), []), ((), [3]), ((3,), [2]), ((2, 3), [2, 1]), ((2, 3), [2, 3, 2]), ((2, 3), [0, 2]), ((0, 2), [2, 2]),
                              ((2, 3), [1, 1]), ((2, 1, 2), [1, 2, 1, 1, 3, 2, 1, 1]), ((2,), [0, 2**40, 3])]:
            x = grid(dtype, shape, 5)
            value = np.tile(x.value, counts) if max(counts, default=0) < 100 else np.zeros((0, 2**40, 6), dtype)
            add("repeat", [x], value, counts=counts)
    x = Operand(np.array([[1.0, np.nan, np.inf], [2.0, -np.inf, np.nan], [-0.0, 3.0, -0.0]], F64))
    for diagonal in (0, -1, 1):
        add("tril", [x], np.tril(x.value, diagonal), diagonal=diagonal)
        add("triu", [x], np.triu(x.value, diagonal), diagonal=diagonal)


def whole(values):
    return Operand(np.array(values, I64))


def indexing():
    none = whole(np.zeros((0,)))
    for dtype in ALL:
        for shape, axis, i in [((3,), 0, 1), ((2, 3), 0, -1), ((2, 3), 1, 2), ((2, 3, 4), -2, -3), ((2, 0), 0, 1), ((2, 1, 3, 1, 2, 1, 1, 2), 4, 1)]:
            x = grid(dtype, shape, 1)
            add("select", [x], x.value.take(i, axis), axis=axis, index=i)
        for shape, at in [((4,), whole(2)), ((4,), whole([3, 0, 3])), ((4, 2), whole([[0, 3, 0], [2, 0, 3]])), ((3, 2), none), ((3, 0), whole([1, 1])),
                          ((2, 1, 3), whole(np.arange(16).reshape(2, 1, 2, 1, 2, 2) % 2))]:
            x = grid(dtype, shape, 2)
            add("index", [x, at], x.value[at.value])
        for shape, axis, at in [((4,), 0, whole([3, 0, 3])), ((2, 4, 3), 1, whole([3, 0, 3, 3, 1])), ((2, 3), -1, whole([2])), ((3, 2), 0, none),
                                ((0, 2), 1, whole([1, 1])), ((2, 1, 3, 1, 2, 1, 1, 2), 2, whole([2, 2, 0]))]:
            x = grid(dtype, shape, 3)
            add("index_select", [x, at], x.value.take(at.value, axis), axis=axis)
        for shape, axis, at in [((4,), 0, whole([3, 0, 3, 1, 1])), ((3, 4), 1, whole([[0, 0], [3, 1], [2, 2]])), ((2, 3, 2), 1, whole([[[2, 0]], [[1, 1]]])),
                                ((3, 4), -2, whole(np.zeros((0, 4)))), ((0, 3), 1, whole(np.zeros((0, 2)))),
                                ((2, 1, 3, 1, 2, 1, 1, 2), 2, whole(np.arange(16).reshape(2, 1, 2, 1, 2, 1, 1, 2) % 3))]:
            x = grid(dtype, shape, 4)
            add("gather", [x, at], np.take_along_axis(x.value, at.value, axis), axis=axis)
        for rows, at in [((4, 2), whole([0, 0, 2, 0])), ((5, 3), whole([[4, 1, 1], [0, 4, 3]])), ((4, 2), whole(3)), ((4, 0), whole([1])),
                         ((4, 2), whole(np.zeros((2, 0)))), ((2, 3), whole(np.arange(8).reshape(1, 2, 1, 2, 1, 2, 1) % 2))]:
            weight = grid(dtype, rows, 5)
            add("embedding", [weight, at], weight.value[at.value])
    x = grid(F64, (3, 4), 6)
    at = whole([[1, 3], [0, 0]])
    add("gather", [x, at], np.take_along_axis(x.value[:2], at.value, 1), axis=1)  # a smaller index
    for dtype in NUMBERS:
        for shape, axis, at in [((4, 2), 0, [1, 3, 1]), ((2, 3, 2), 1, [2, 2]), ((3, 2), -2, []), ((3,), 0, [0, 0, 0, 2]), ((2, 0), 0, [1]),
                                ((2, 1, 3, 1, 2, 1, 1, 2), 4, [1, 1, 0])]:
            index = whole(at)
            narrow = list(shape)
            narrow[axis] = len(at)
            x, source = grid(dtype, shape, 7), grid(dtype, tuple(narrow), 8)
            result = np.moveaxis(x.value.copy(), axis, 0)
            np.add.at(result, index.value, np.moveaxis(source.value, axis, 0))
            add("index_add", [x, index, source], np.moveaxis(result, 0, axis), axis=axis)
        for shape, axis, at in [((3, 4), 1, [[0, 3], [3, 1]]), ((3, 2), 0, [[0, 2], [0, 2], [1, 2], [0, 0]]), ((3, 2), -1, [[1], [0]]),
                                ((4,), 0, [1, 1, 1]), ((3, 2), 0, np.zeros((0, 2))), ((2, 1, 3, 1, 2, 1, 1, 2), 2, np.zeros((1, 1, 4, 1, 2, 1, 1, 1)))]:
            index = whole(at)
            x, source = grid(dtype, shape, 9), grid(dtype, index.value.shape, 10)
            result = x.value.copy()
            for place in np.ndindex(index.value.shape):
                to = list(place)
                to[axis] = index.value[place]
                result[tuple(to)] += source.value[place]
            add("scatter_add", [x, index, source], result, axis=axis)
    x, big = Operand(np.array([2**63 - 1, -2**63])), Operand(np.array([1, -1, 1]))
    add("index_add", [x, whole([0, 1, 0]), big], np.array([-2**63 + 1, 2**63 - 1]), axis=0)
    add("scatter_add", [x, whole([0, 1, 0]), big], np.array([-2**63 + 1, 2**63 - 1]), axis=0)


def sums_of_products():
    for dtype in NUMBERS:
        for a, b in [((2, 3, 4), (2, 4, 5)), ((1, 1, 1), (1, 1, 1)), ((0, 2, 3), (0, 3, 2)), ((2, 3, 0), (2, 0, 2))]:
            x, y = grid(dtype, a, 1), grid(dtype, b, 2)
            add("bmm", [x, y], np.matmul(x.value, y.value))
        for a, b in [(3, 4), (1, 1), (0, 2), (5, 0)]:
            x, y = grid(dtype, (a,), 3), grid(dtype, (b,), 4)
            add("outer", [x, y], np.outer(x.value, y.value))
        for equation, a, b in EINSUMS_OF_TWO:
            x, y = grid(dtype, a, 5), grid(dtype, b, 6)
            add("einsum", [x, y], np.einsum(equation, x.value, y.value), equation=equation)
        for equation, a in EINSUMS_OF_ONE:
            x = grid(dtype, a, 7)
            add("einsum", [x], np.einsum(equation, x.value), equation=equation)


EINSUMS_OF_TWO = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ki", (2, 3), (4, 3)), ("ji,jk->ik", (3, 2), (3, 4)),
    ("bqd,bkd->bqk", (2, 3, 4), (2, 5, 4)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
    ("i,j->ij", (2,), (3,)), ("i,i->i", (3,), (3,)), ("i,i->", (3,), (3,)), ("i,i", (3,), (3,)), (",->", (), ()), (",i->i", (), (3,)),
    ("ij,->ji", (2, 3), ()), ("ij,j->i", (2, 3), (3,)), ("ij,ij->ij", (2, 3), (2, 3)), ("ij,ij->", (2, 3), (2, 3)), ("ijk,jl->il", (2, 3, 4), (3, 5)),
    ("ij,kl->jl", (2, 3), (4, 5)), ("ij,kl->", (2, 3), (4, 5)), ("ii,ij->j", (3, 3), (3, 4)), ("iij,jk->ki", (2, 2, 3), (3, 4)),
    ("ij,jj->ij", (2, 3), (3, 3)), ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("...ij,...jk", (5, 1, 2, 3), (6, 3, 4)),
    ("...ij,jk->...ik", (5, 2, 3), (3, 4)), ("i...,i...->...", (3, 2), (3, 1)), ("i...j,j->...i", (2, 4, 3), (3,)), ("...,...->...", (2, 1), (3,)),
    ("...a,...b->ba...", (1, 2), (4, 3)), ("ij,jk->ki", (0, 3), (3, 2)), ("ij,jk->ik", (2, 0), (0, 3)), ("Ab,bC->CA", (2, 3), (3, 4)),
    ("bA,Ac", (2, 3), (3, 4)), (" i j , j k -> i k ", (2, 3), (3, 4)), ("abcdefgh,h->abcdefg", (1, 2, 1, 2, 1, 2, 1, 3), (3,)),
    ("abcd,efgh->abcdefgh", (1, 2, 1, 2), (2, 1, 2, 1)), ("iji,j->ij", (2, 3, 2), (3,))]
EINSUMS_OF_ONE = [
    ("ij->ji", (2, 3)), ("ij->i", (2, 3)), ("ij->", (2, 3)), ("ij", (2, 3)), ("ba", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("ii->", (3, 3)),
    ("iij->ji", (2, 2, 3)), ("iiij->j", (2, 2, 2, 3)), ("iijj->ij", (2, 2, 3, 3)), ("...ij->...ji", (4, 2, 3)), ("...ii->...i", (4, 3, 3)),
    ("i...->...", (2, 3, 4)), ("...->...", (2, 3)), ("->", ()), ("", ()), ("ij->i", (2, 0)), ("ij->j", (0, 3)), ("abcdefgh->hgfedcba", (1, 2, 1, 3, 1, 2, 1, 2))]
