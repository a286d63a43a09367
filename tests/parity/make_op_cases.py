#!/usr/bin/env python3
"""Values and gradients of all ops by PyTorch in f64, for tests/parity/ops_test.cpp.

    python3 tests/parity/make_op_cases.py

writes tests/data/autograd/op_cases.json. Needs PyTorch and NumPy. Each case is a call with its
inputs, a cotangent gy, the value y, gx of each input, cotangents ggx of those, and the second
derivatives: the gradients of sum(ggx * gx) with respect to the inputs and gy.
"""
import json
import pathlib
import sys

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[1] / "data"
sys.path.insert(0, str(ROOT / "tensor"))
import encode  # noqa: E402

random = np.random.RandomState(20)
cases = []


def real(*shape, low=-2.0, high=2.0):
    """Values of four digits that do not repeat."""
    while True:
        x = np.round(random.uniform(low, high, shape), 4)
        if len(np.unique(x)) == x.size:
            return x


def case(op, f, *inputs, **options):
    leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
    y = f(*leaves)
    gy = torch.tensor(real(*y.shape), requires_grad=True)
    gx = torch.autograd.grad(y, leaves, gy, create_graph=True)
    ggx = [torch.tensor(real(*g.shape)) for g in gx]
    total = sum((g * w).sum() for g, w in zip(gx, ggx))
    wanted = leaves + [gy]
    second = [None] * len(wanted)
    if total.requires_grad:
        second = torch.autograd.grad(total, wanted, allow_unused=True)
    second = [torch.zeros_like(x) if g is None else g for x, g in zip(wanted, second)]
    numbers = lambda list: [encode.tensor(x.detach().numpy()) for x in list]  # noqa: E731
    cases.append({"op": op, "options": options, "x": numbers(leaves), "y": numbers([y])[0],
                  "gy": numbers([gy])[0], "gx": numbers(gx), "ggx": numbers(ggx),
                  "second": numbers(second)})


def binary(op, f, low=-2.0, high=2.0):
    for a, b in [((), ()), ((3,), (2, 3)), ((2, 3), (2, 3)), ((2, 1), (1, 3)), ((2, 3), ()),
                 ((4, 2, 3), (2, 1))]:
        case(op, f, real(*a), real(*b, low=low, high=high))


def unary(op, f, low=-2.0, high=2.0, **options):
    for shape in [(), (3,), (2, 3), (2, 4, 3)]:
        case(op, f, real(*shape, low=low, high=high), **options)


def arithmetic():
    binary("add", lambda a, b: a + b)
    binary("sub", lambda a, b: a - b)
    binary("mul", lambda a, b: a * b)
    binary("div", lambda a, b: a / b, low=0.5)
    unary("neg", lambda x: -x)
    for b in [1.5, -0.25]:
        unary("add number", lambda x: x + b, number=b)
        unary("number sub", lambda x: b - x, number=b)
        unary("scale", lambda x: b * x, number=b)
        unary("div number", lambda x: x / b, number=b)
        unary("number div", lambda x: b / x, number=b, low=0.5)
    for p in [3.0, 2.0, 1.0, 0.5, 0.0, -1.0, -2.5]:
        unary("pow number", lambda x: x ** p, number=p, low=0.4)
    case("pow number", lambda x: x ** 3.0, real(3, 2, low=-2, high=-0.4), number=3.0)
    for a, b in [((), ()), ((3,), (2, 3)), ((2, 1), (1, 3)), ((2, 3), ())]:
        case("pow", torch.pow, real(*a, low=0.4), real(*b))


def elementwise():
    unary("exp", torch.exp)
    unary("log", torch.log, low=0.3, high=3)
    unary("sqrt", torch.sqrt, low=0.3, high=3)
    unary("tanh", torch.tanh)
    unary("relu", torch.relu)
    for c, a, b in [((2, 3), (2, 3), (2, 3)), ((3,), (2, 1), ()), ((4, 1, 1), (2, 3), (2, 1))]:
        mask = real(*c) > 0
        case("where", lambda x, y: torch.where(torch.tensor(mask), x, y), real(*a), real(*b),
             condition=encode.tensor(mask))


def matmul():
    for ta in [False, True]:
        for tb in [False, True]:
            for a, b in [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
                         ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4))]:
                flip = lambda shape, yes: (*shape[:-2], shape[-1], shape[-2]) if yes else shape
                f = lambda x, y: torch.matmul(x.mT if ta else x, y.mT if tb else y)
                case("matmul", f, real(*flip(a, ta)), real(*flip(b, tb)), transpose_a=ta,
                     transpose_b=tb)
    for a, b in [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4))]:
        case("matmul", torch.matmul, real(*a), real(*b), transpose_a=False, transpose_b=False)


def vjp(y, gy, axis):
    return y * (gy - (gy * y).sum(axis, keepdim=True))


def softmax():
    for shape, axis in [((4,), -1), ((2, 3), 1), ((2, 3), 0), ((2, 4, 3), 1), ((5, 2, 4, 3), -1)]:
        case("softmax", lambda x: torch.softmax(x, axis), real(*shape), axis=axis)
        case("log_softmax", lambda x: torch.log_softmax(x, axis), real(*shape), axis=axis)
        case("softmax_vjp", lambda y, gy: vjp(y, gy, axis), real(*shape), real(*shape), axis=axis)
    large = real(3, 4) * 300
    case("softmax", lambda x: torch.softmax(x, -1), large, axis=-1)
    case("log_softmax", lambda x: torch.log_softmax(x, -1), large, axis=-1)


def reductions():
    for shape, axes in [((), []), ((5,), [0]), ((2, 3), [0]), ((2, 3), [1]), ((2, 3), [0, 1]),
                        ((2, 4, 3), [0, 2]), ((5, 2, 4, 3), [1, 3])]:
        for keep in [False, True]:
            settings = {"axes": axes, "keepdims": keep}
            # PyTorch takes an empty list for all axes, as () has none.
            by = {"dim": axes, "keepdim": keep} if axes else {}
            case("sum", lambda x: x.sum(**by), real(*shape), **settings)
            case("mean", lambda x: x.mean(**by), real(*shape), **settings)
            case("max", lambda x: x.amax(**by), real(*shape), **settings)
    ties = np.array([[1.0, 2.5, 2.5, -1.0], [3.0, 3.0, 3.0, 0.5]])
    case("max", lambda x: x.amax(1), ties, axes=[1], keepdims=False)
    for shape, to in [((2, 4, 3), (4, 1)), ((2, 3), ()), ((2, 4, 3), (2, 1, 3)), ((2, 3), (2, 3))]:
        case("sum_to", lambda x: x.sum_to_size(to), real(*shape), shape=to)


def sliced(x, axis, start, stop, step):
    picked = np.arange(x.shape[axis])[slice(start, stop, step)]
    return torch.index_select(x, axis, torch.tensor(picked.copy()))


def scattered(x, shape, axis, start, stop, step):
    picked = np.arange(shape[axis])[slice(start, stop, step)]
    return torch.zeros(shape, dtype=torch.float64).index_add(axis, torch.tensor(picked.copy()), x)


def movement():
    case("reshape", lambda x: x.reshape(3, 4, 2), real(2, 4, 3), shape=(3, 4, 2))
    case("reshape", lambda x: x.reshape(-1, 6), real(2, 4, 3), shape=(-1, 6))
    case("permute", lambda x: x.permute(2, 0, 1), real(2, 4, 3), axes=(2, 0, 1))
    case("permute", lambda x: x.permute(0, 2, 1, 3), real(5, 2, 4, 3), axes=(0, -2, 1, -1))
    case("transpose", lambda x: x.transpose(0, 2), real(2, 4, 3), axis0=0, axis1=2)
    case("transpose", lambda x: x.transpose(-2, -1), real(5, 2, 4, 3), axis0=-2, axis1=-1)
    for shape, axis, start, stop, step in [((5, 3), 0, 1, None, 1), ((3, 5), 1, None, None, -2),
                                           ((2, 6, 3), 1, 1, -1, 2), ((4, 3), 0, -3, -1, 1)]:
        x = real(*shape)
        by = {"axis": axis, "start": start, "stop": stop, "step": step}
        case("slice", lambda v: sliced(v, **by), x, **by)
        narrow = sliced(torch.tensor(x), **by).shape
        case("slice_scatter", lambda v: scattered(v, shape, **by), real(*narrow), shape=shape, **by)
    case("concat", lambda a, b, c: torch.cat([a, b, c], 1), real(2, 1, 3), real(2, 4, 3),
         real(2, 2, 3), axis=1)
    case("concat", lambda a, b: torch.cat([a, b], -1), real(2, 1), real(2, 4), axis=-1)
    for shape, to in [((2, 1), (4, 2, 3)), ((), (2, 3)), ((3,), (5, 3))]:
        case("broadcast_to", lambda x: x.expand(to), real(*shape), shape=to)


def attention(q, k, v, w):
    scores = torch.matmul(q, k.mT) / q.shape[-1] ** 0.5
    mask = torch.ones(q.shape[-2], k.shape[-2]).tril().bool()
    weights = torch.softmax(torch.where(mask, scores, torch.tensor(-1e30, dtype=torch.float64)), -1)
    heads = torch.matmul(weights, v).permute(0, 2, 1, 3)
    return torch.matmul(heads.reshape(q.shape[0], q.shape[2], -1), w)


def layer_norm(x, g, b):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * g + b


def perceptron(x, w1, b1, w2, b2):
    return torch.log_softmax(torch.tanh(x @ w1 + b1) @ w2 + b2, -1).mean(0)


def composed():
    case("attention", attention, real(2, 3, 5, 4), real(2, 3, 5, 4), real(2, 3, 5, 6), real(18, 7))
    case("layer norm", layer_norm, real(2, 3, 5), real(5), real(5))
    case("layer norm", lambda x, g, b: torch.nn.functional.layer_norm(x, (5,), g, b),
         real(2, 3, 5), real(5), real(5))
    case("perceptron", perceptron, real(6, 3), real(3, 5), real(5), real(5, 4), real(4))


for family in [arithmetic, elementwise, matmul, softmax, reductions, movement, composed]:
    family()

lines = ",\n".join(json.dumps(each, separators=(",", ":"), allow_nan=False) for each in cases)
path = ROOT / "autograd" / "op_cases.json"
path.write_text('{"torch":"%s","cases":[\n%s\n]}\n' % (torch.__version__.split("+")[0], lines))
print(f"{len(cases)} cases, {path.stat().st_size // 1024} KiB")
