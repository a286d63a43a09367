#!/usr/bin/env python3
"""Values and gradients of layers by torch.nn in f64, for tests/layers/layer_parity_test.cpp.

    python3 tests/parity/make_layer_cases.py [--check]

writes tests/data/layers/layer_cases.json, or with --check compares with it. Needs PyTorch.

A case has a kind and options for our layer, shapes of inputs, masks, and the names and shapes
of torch's state dict. Values of inputs and parameters are not stored: `value` below and its twin in
the test compute them from the name. Stored are y, weights per head where torch gives them, and the
gradients of sum(y * value("gy")) of inputs and parameters under torch's names.

What torch.nn of that version lacks (RMSNorm, grouped heads, rotary positions, ALiBi, windows) is
written out.
"""
import argparse
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

PATH = pathlib.Path(__file__).resolve().parents[1] / "data/layers/layer_cases.json"
WORD = 2**32 - 1


def value(name, shape):
    """Numbers in ±0.5 that f32 holds exactly and that follow from name and index alone."""
    hashed = 2166136261
    for byte in name.encode():
        hashed = (hashed ^ byte) * 16777619 & WORD
    numbers = []
    for i in range(math.prod(shape)):
        z = hashed + i * 2654435761 & WORD
        z = (z ^ z >> 16) * 0x45D9F3B & WORD
        numbers.append(((z ^ z >> 16) >> 16) / 2**16 - 0.5)
    return torch.tensor(numbers).reshape(shape)


class Case:
    def __init__(self, name, kind, options, **fields):
        self.stored = {"name": name, "kind": kind, "options": options, **fields}
        self.leaves = {}

    def input(self, name, *shape):
        self.leaves[name] = value(name, shape).requires_grad_()
        self.stored.setdefault("inputs", {})[name] = list(shape)
        return self.leaves[name]

    def filled(self, layer):
        """`layer` with each parameter filled from its name."""
        with torch.no_grad():
            for name, x in layer.named_parameters():
                x.copy_(value(name, x.shape))
                self.leaves[name] = x
        self.stored["state"] = {name: list(x.shape) for name, x in layer.state_dict().items()}
        self.stored["torch"] = True
        return layer

    def parameter(self, name, *shape):
        self.stored.setdefault("state", {})[name] = list(shape)
        self.leaves[name] = value(name, shape).requires_grad_()
        return self.leaves[name]

    def linear(self, name, x, out):
        return F.linear(x, self.parameter(name + ".weight", out, x.shape[-1]),
                        self.parameter(name + ".bias", out))

    def done(self, y, weights=None):
        (y * value("gy", y.shape)).sum().backward()
        self.stored["y"] = numbers(y)
        if weights is not None:
            self.stored["weights"] = numbers(weights)
        self.stored["grad"] = {name: numbers(x.grad) for name, x in self.leaves.items()}
        return self.stored


def numbers(x):
    return {"s": list(x.shape), "v": x.detach().flatten().tolist()}


def flags(x):
    return {"s": list(x.shape), "v": x.flatten().int().tolist()}


def keep(*lengths, longest=None):
    """True for the first tokens of each row."""
    return torch.arange(longest or max(lengths)) < torch.tensor(lengths)[:, None]


def causal(queries, keys):
    """True where a query may look, aligned at the lower right."""
    return torch.ones(queries, keys).tril(keys - queries).bool()


def allowed(*shape):
    """True where a query may look: about two of three, and always the first key."""
    x = value("allowed", shape) > -0.17
    x[..., 0] = True
    return x


# Each part of torch.nn.

def linear():
    case = Case("linear", "linear", {"in": 5, "out": 7, "bias": True})
    yield case.done(case.filled(nn.Linear(5, 7))(case.input("x", 2, 3, 5)))
    case = Case("linear, square, without a bias", "linear", {"in": 6, "out": 6, "bias": False})
    yield case.done(case.filled(nn.Linear(6, 6, bias=False))(case.input("x", 4, 6)))


def embedding():
    ids = torch.tensor([[3, 0, 3, 2, 8], [2, 2, 5, 3, 1]])
    case = Case("embedding", "embedding", {"rows": 9, "width": 4}, ids=flags(ids))
    yield case.done(case.filled(nn.Embedding(9, 4))(ids))
    case = Case("embedding with a padding row", "embedding",
                {"rows": 9, "width": 4, "padding_idx": 2}, ids=flags(ids))
    yield case.done(case.filled(nn.Embedding(9, 4, padding_idx=2))(ids))


def norms():
    case = Case("layer_norm", "layer_norm", {"width": 6, "eps": 1e-3})
    yield case.done(case.filled(nn.LayerNorm(6, eps=1e-3))(case.input("x", 3, 2, 6)))
    case = Case("rms_norm", "rms_norm", {"width": 6, "eps": 1e-3})
    x = case.input("x", 3, 2, 6)
    root = torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-3)
    yield case.done(x / root * case.parameter("weight", 6))


ATTENTION = {"d_model": 12, "num_heads": 3}


def attention():
    """Batch 2, queries 5, heads 3, width 12; keys 7 of width 8 or 12, values of width 9 or 12."""
    def run(name, options, masks, cross=False, **call):
        case = Case(name, "attention", ATTENTION | options, **masks)
        x = case.input("x", 2, 5, 12)
        key, val = x, x
        if cross:
            key = case.input("key", 2, 7, options.get("kdim", 12))
            val = case.input("value", 2, 7, options.get("vdim", 12))
        if "bias_shape" in call:  # torch joins batch and heads: a head changes with each matrix
            bias = case.input("bias", *call.pop("bias_shape"))
            call["attn_mask"] = bias.flatten(0, 1) if bias.dim() == 4 else bias
        layer = case.filled(nn.MultiheadAttention(
            12, 3, batch_first=True, bias=options.get("bias", True),
            kdim=options.get("kdim"), vdim=options.get("vdim")))
        return case.done(*layer(x, key, val, average_attn_weights=False, **call))

    yield run("attention", {}, {})
    yield run("attention, causal and padding, without a bias", {"bias": False},
              {"causal": True, "keep": flags(keep(5, 3))},
              attn_mask=~causal(5, 5), key_padding_mask=~keep(5, 3))
    mask = allowed(5, 5)
    yield run("attention, boolean mask", {}, {"allowed": flags(mask)}, attn_mask=~mask)
    mask = allowed(2, 3, 5, 5)
    yield run("attention, boolean mask for each sequence and head", {}, {"allowed": flags(mask)},
              attn_mask=~mask.flatten(0, 1))
    mask = allowed(2, 1, 5, 5)
    yield run("attention, boolean mask for each sequence", {}, {"allowed": flags(mask)},
              attn_mask=~mask.repeat_interleave(3, 1).flatten(0, 1))
    yield run("attention, floating mask", {}, {"keep": flags(keep(4, 5))}, bias_shape=(5, 5),
              key_padding_mask=~keep(4, 5))
    yield run("attention, floating mask for each sequence and head", {}, {},
              bias_shape=(2, 3, 5, 5))
    other = {"kdim": 8, "vdim": 9}
    yield run("cross-attention, keys and values as wide as queries", {}, {}, cross=True)
    yield run("cross-attention", other, {"keep": flags(keep(7, 4))}, cross=True,
              key_padding_mask=~keep(7, 4))
    mask = allowed(2, 3, 5, 7)
    yield run("cross-attention, boolean mask, without a bias", other | {"bias": False},
              {"allowed": flags(mask)}, cross=True, attn_mask=~mask.flatten(0, 1))
    yield run("cross-attention, causal at the lower right", other, {"causal": True}, cross=True,
              attn_mask=~causal(5, 7))


def blocks():
    """Batch 2, tokens 5, memory 7, heads 3, width 12, hidden 8."""
    for norm_first in (True, False):
        for activation in ("relu", "gelu"):
            kinds = {"dim_feedforward": 8, "dropout": 0.0, "activation": activation,
                     "norm_first": norm_first, "batch_first": True, "layer_norm_eps": 1e-3}
            options = ATTENTION | {"d_ff": 8, "activation": activation, "norm_eps": 1e-3,
                                   "norm_first": norm_first}
            label = f"{'pre' if norm_first else 'post'}-norm, {activation}"
            case = Case(f"encoder layer, {label}", "block", options, keep=flags(keep(5, 3)))
            x = case.input("x", 2, 5, 12)
            layer = case.filled(nn.TransformerEncoderLayer(12, 3, **kinds))
            yield case.done(layer(x, src_key_padding_mask=~keep(5, 3)))

            case = Case(f"decoder layer, {label}", "block", options | {"cross_attention": True},
                        causal=True, keep=flags(keep(5, 3)), memory_keep=flags(keep(4, 7)))
            x, memory = case.input("x", 2, 5, 12), case.input("memory", 2, 7, 12)
            layer = case.filled(nn.TransformerDecoderLayer(12, 3, **kinds))
            yield case.done(layer(x, memory, tgt_mask=~causal(5, 5),
                                  tgt_key_padding_mask=~keep(5, 3),
                                  memory_key_padding_mask=~keep(4, 7)))
    case = Case("encoder of two layers", "encoder",
                ATTENTION | {"d_ff": 8, "activation": "gelu", "norm_eps": 1e-3, "norm_first": True},
                causal=True)
    layer = nn.TransformerEncoderLayer(12, 3, 8, 0.0, F.gelu, 1e-3, True, True)
    x = case.input("x", 2, 5, 12)
    encoder = case.filled(nn.TransformerEncoder(layer, 2, nn.LayerNorm(12, eps=1e-3)))
    yield case.done(encoder(x, ~causal(5, 5)))


# What torch.nn lacks.

def rotated(x, pairing, base, positions):
    half = x.shape[-1] // 2
    angle = positions[..., None].double() * base ** (-torch.arange(half).double() / half)
    cos, sin = angle.cos(), angle.sin()
    neighbours = pairing == "neighbours"
    a, b = (x[..., ::2], x[..., 1::2]) if neighbours else (x[..., :half], x[..., half:])
    a, b = a * cos - b * sin, a * sin + b * cos
    return torch.stack((a, b), -1).flatten(-2) if neighbours else torch.cat((a, b), -1)


def written_out():
    """Batch 3, tokens 7, heads 4 of width 6, key/value heads 4, 2 or 1, width 10."""
    def run(name, options, **masks):
        case = Case(name, "attention", {"d_model": 10, "num_heads": 4, "head_dim": 6} | options,
                    **masks)
        x = case.input("x", 3, 7, 10)
        kv = options.get("num_kv_heads", 4)
        split = lambda part, n: case.linear(part, x, n * 6) \
            .view(3, 7, n, 6).transpose(1, 2)  # noqa: E731
        q, k, v = split("q_proj", 4), split("k_proj", kv), split("v_proj", kv)
        if "rotary" in options:
            at = torch.tensor(masks["positions"]["v"]).view(masks["positions"]["s"])[:, None] \
                if "positions" in masks else torch.arange(7)
            q, k = (rotated(t, options["rotary"], options["rotary_base"], at) for t in (q, k))
        k, v = (t.repeat_interleave(4 // kv, 1) for t in (k, v))
        scores = q @ k.transpose(-1, -2) * options.get("scale", 1 / math.sqrt(6))
        apart = torch.arange(7)[:, None] - torch.arange(7)
        if options.get("alibi"):
            slopes = torch.tensor([2.0 ** (-8 * (i + 1) / 4) for i in range(4)])
            scores = scores - slopes[:, None, None] * apart.abs()
        if masks.get("causal"):
            scores = scores.masked_fill(apart < 0, -math.inf)
        if "window" in masks:
            scores = scores.masked_fill(apart.abs() >= masks["window"], -math.inf)
        if "keep" in masks:
            seen = torch.tensor(masks["keep"]["v"]).view(3, 1, 1, 7).bool()
            scores = scores.masked_fill(~seen, -math.inf)
        weights = scores.softmax(-1)
        heads = (weights @ v).transpose(1, 2).reshape(3, 7, 24)
        return case.done(case.linear("out_proj", heads, 10), weights)

    yield run("sliding window", {}, window=3)
    yield run("sliding window, causal, grouped heads", {"num_kv_heads": 2}, window=2, causal=True)
    yield run("ALiBi, causal", {"alibi": True}, causal=True)
    yield run("ALiBi both ways, one key head, scale", {"alibi": True, "num_kv_heads": 1,
                                                      "scale": 0.3})
    yield run("rotary, neighbours, causal", {"rotary": "neighbours", "rotary_base": 500.0},
              causal=True)
    places = torch.arange(7) + torch.tensor([[0], [4], [11]])
    yield run("rotary, halves, positions for each sequence, padding, grouped heads",
              {"rotary": "halves", "rotary_base": 10000.0, "num_kv_heads": 2},
              positions=flags(places), keep=flags(keep(7, 5, 2)))


def all_cases():
    for part in (linear, embedding, norms, attention, blocks, written_out):
        yield from part()


def differ(a, b):
    """Whether two values, of any nesting, differ by more than rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() != b.keys() or any(differ(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) != len(b) or any(map(differ, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) > 1e-12
    return a != b


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with what is stored")
    arguments = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    cases = list(all_cases())
    if arguments.check:
        stored = {case["name"]: case for case in json.loads(PATH.read_text())["cases"]}
        wrong = [case["name"] for case in cases if differ(stored.pop(case["name"], None), case)]
        wrong += [f"{name} (stored, but no case)" for name in stored]
        if wrong:
            sys.exit(f"{PATH.name} differs in: {'; '.join(wrong)}")
        print(f"{len(cases)} cases of layers, as stored")
        return
    lines = ",\n".join(json.dumps(each, separators=(",", ":"), allow_nan=False) for each in cases)
    version = torch.__version__.split("+")[0]
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text('{"torch":"%s","cases":[\n%s\n]}\n' % (version, lines))
    print(f"{len(cases)} cases of layers, {PATH.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
