#!/usr/bin/env python3
"""Logits, losses and all gradients of small models by PyTorch in f64, for model_parity_test.cpp.

    python3 tests/parity/make_model_cases.py [--check]

writes tests/data/layers/model_cases.json, or with --check compares with it. Needs PyTorch.

The twins are torch.nn's own transformer layers where there are such, with parameters under
glassgrad's names (q_proj, k_proj and v_proj are joined to in_proj); LLaMA is written out. Values of
parameters are not stored: `value` below and its twin in the test compute them from the name.
"""
import argparse
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

try:
    from torch.func import functional_call
except ImportError:  # before 2.0
    from torch.nn.utils.stateless import functional_call

PATH = pathlib.Path(__file__).resolve().parents[1] / "data/layers/model_cases.json"
WORD = 2**32 - 1


def value(name, shape):
    """Exact numbers in ±0.5 that follow from name and index alone, around 1 for a norm's weight."""
    hashed = 2166136261
    for byte in name.encode():
        hashed = (hashed ^ byte) * 16777619 & WORD
    numbers = []
    for i in range(math.prod(shape)):
        z = hashed + i * 2654435761 & WORD
        z = (z ^ z >> 16) * 0x45D9F3B & WORD
        numbers.append((z ^ z >> 16) / 2**32 - 0.5)
    x = torch.tensor(numbers).reshape(shape)
    return 1 + x / 2 if "norm" in name and name.endswith(".weight") else x


class Parameters(dict):
    """Leaves by name, made when first asked for."""

    def get(self, name, *shape):
        if name not in self:
            self[name] = value(name, shape).requires_grad_()
        assert self[name].shape == shape, name
        return self[name]

    def linear(self, name, x, out, bias=True):
        weight = self.get(name + ".weight", out, x.shape[-1])
        return F.linear(x, weight, self.get(name + ".bias", out) if bias else None)

    def layer_norm(self, name, x, eps):
        width = x.shape[-1]
        weight, bias = self.get(name + ".weight", width), self.get(name + ".bias", width)
        return F.layer_norm(x, (width,), weight, bias, eps)

    def torch_layer(self, prefix, layer, *inputs, **options):
        """One of torch.nn's transformer layers with the parameters under `prefix`."""
        state = {}
        for name, old in layer.named_parameters():
            if "in_proj_" in name:
                width = old.shape[0] // 3
                parts = [self.get(prefix + name.replace("in_proj_", part + "_proj."),
                                  width, *old.shape[1:]) for part in "qkv"]
                state[name] = torch.cat(parts)
            else:
                state[name] = self.get(prefix + name, *old.shape)
        return functional_call(layer, state, inputs, options)


def options_of(c, activation):
    return {"d_model": c["d_model"], "nhead": c["num_heads"], "dim_feedforward": c["d_ff"],
            "dropout": 0.0, "activation": activation, "layer_norm_eps": c["norm_eps"],
            "batch_first": True, "norm_first": c["norm_first"]}


def causal(length):
    """True where a query must not look, as torch.nn has it."""
    return torch.ones(length, length).triu(1).bool()


def gpt(c, p, x):
    ids, keep = torch.tensor(x["ids"]), torch.tensor(x["keep"])
    embedding = p.get("embedding.weight", c["vocab_size"], c["d_model"])
    position = p.get("position.weight", c["context_length"], c["d_model"])
    h = embedding[ids] + position[torch.arange(ids.shape[1])]
    gelu = lambda t: F.gelu(t, approximate="tanh")  # noqa: E731
    for i in range(c["num_layers"]):
        layer = nn.TransformerEncoderLayer(**options_of(c | {"norm_first": True}, gelu))
        h = p.torch_layer(f"blocks.{i}.", layer, h, src_mask=causal(ids.shape[1]),
                          src_key_padding_mask=~keep)
    h = p.layer_norm("norm", h, c["norm_eps"])
    if c["tie_head"]:
        return {"logits": h @ embedding.T}
    return {"logits": p.linear("head", h, c["vocab_size"], bias=False)}


def rotate(x, c):
    """Rotary positions of x (batch, heads, tokens, head_dim)."""
    half = x.shape[-1] // 2
    angle = torch.outer(torch.arange(x.shape[-2]).double(),
                        c["rotary_base"] ** (-torch.arange(half).double() / half))
    cos, sin = angle.cos(), angle.sin()
    neighbours = c["rotary_pairing"] == "neighbours"
    a, b = (x[..., ::2], x[..., 1::2]) if neighbours else (x[..., :half], x[..., half:])
    a, b = a * cos - b * sin, a * sin + b * cos
    return torch.stack((a, b), -1).flatten(-2) if neighbours else torch.cat((a, b), -1)


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def llama(c, p, x):
    ids, keep = torch.tensor(x["ids"]), torch.tensor(x["keep"])
    batch, tokens = ids.shape
    embedding = p.get("embedding.weight", c["vocab_size"], c["d_model"])
    heads, kv_heads = c["num_heads"], c["num_kv_heads"]
    head_dim = c["d_model"] // heads
    norm = lambda name, t: rms_norm(t, p.get(name + ".weight", c["d_model"]), c["norm_eps"])  # noqa: E731
    hidden = causal(tokens) | ~keep[:, None, None, :]
    h = embedding[ids]
    for i in range(c["num_layers"]):
        at = f"blocks.{i}."
        y = norm(at + "norm1", h)
        split = lambda name, n: p.linear(at + "self_attn." + name, y, n * head_dim, bias=False) \
            .view(batch, tokens, n, head_dim).transpose(1, 2)  # noqa: E731
        q, k = rotate(split("q_proj", heads), c), rotate(split("k_proj", kv_heads), c)
        k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, split("v_proj", kv_heads)))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(head_dim)).masked_fill(hidden, -math.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, -1)
        h = h + p.linear(at + "self_attn.out_proj", y, c["d_model"], bias=False)
        y = norm(at + "norm2", h)
        gate = F.silu(p.linear(at + "linear1", y, c["d_ff"], bias=False))
        y = gate * p.linear(at + "linear3", y, c["d_ff"], bias=False)
        h = h + p.linear(at + "linear2", y, c["d_model"], bias=False)
    h = norm("norm", h)
    if c["tie_head"]:
        return {"logits": h @ embedding.T}
    return {"logits": p.linear("head", h, c["vocab_size"], bias=False)}


def encoder(c, p, x):
    ids, keep = torch.tensor(x["ids"]), torch.tensor(x["keep"])
    width = c["d_model"]
    embedding = p.get("embedding.weight", c["vocab_size"], width)
    h = embedding[ids] + p.get("position.weight", c["context_length"], width)[:ids.shape[1]] \
        + p.get("segment.weight", c["num_segments"], width)[torch.tensor(x["segments"])]
    if not c["norm_first"]:
        h = p.layer_norm("embedding_norm", h, c["norm_eps"])
    for i in range(c["num_layers"]):
        layer = nn.TransformerEncoderLayer(**options_of(c, F.gelu))
        h = p.torch_layer(f"blocks.{i}.", layer, h, src_key_padding_mask=~keep)
    if c["norm_first"]:
        h = p.layer_norm("norm", h, c["norm_eps"])
    y = F.gelu(p.linear("masked_head.dense", h, width))
    y = p.layer_norm("masked_head.norm", y, c["norm_eps"])
    logits = y @ embedding.T + p.get("masked_head.bias", c["vocab_size"])
    pooled = torch.tanh(p.linear("pooler", h[:, 0], width))
    return {"logits": logits, "classes": p.linear("classifier", pooled, c["num_classes"])}


def sinusoids(length, width):
    angle = torch.arange(length).double()[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


def seq2seq(c, p, x):
    width, shared = c["d_model"], c["share_embeddings"]
    source, target = torch.tensor(x["ids"]), torch.tensor(x["target_ids"])
    keep, target_keep = torch.tensor(x["keep"]), torch.tensor(x["target_keep"])
    table = p.get("source_embedding.weight", c["source_vocab_size"], width)
    target_table = table if shared else p.get(
        "target_embedding.weight", c["target_vocab_size"], width)
    options = options_of(c, F.relu)
    memory = table[source] * math.sqrt(width) + sinusoids(source.shape[1], width)
    for i in range(c["num_encoder_layers"]):
        memory = p.torch_layer(f"encoder.{i}.", nn.TransformerEncoderLayer(**options), memory,
                               src_key_padding_mask=~keep)
    if c["norm_first"]:
        memory = p.layer_norm("encoder_norm", memory, c["norm_eps"])
    h = target_table[target] * math.sqrt(width) + sinusoids(target.shape[1], width)
    for i in range(c["num_decoder_layers"]):
        h = p.torch_layer(f"decoder.{i}.", nn.TransformerDecoderLayer(**options), h, memory,
                          tgt_mask=causal(target.shape[1]), tgt_key_padding_mask=~target_keep,
                          memory_key_padding_mask=~keep)
    if c["norm_first"]:
        h = p.layer_norm("decoder_norm", h, c["norm_eps"])
    if shared:
        return {"logits": h @ table.T}
    return {"logits": p.linear("head", h, c["target_vocab_size"], bias=False)}


def rows_of(*lengths):
    longest = max(lengths)
    return [[j < n for j in range(longest)] for n in lengths]


def conv1d(p, name, x, out):
    """Hugging Face's Conv1D: a weight (in, out)."""
    return x @ p.get(name + ".weight", x.shape[-1], out) + p.get(name + ".bias", out)


def hugging_face_gpt2(c, p, x):
    """GPT-2 on the names and layouts of Hugging Face's files."""
    ids, width, heads = torch.tensor(x["ids"]), c["d_model"], c["num_heads"]
    batch, tokens = ids.shape
    embedding = p.get("transformer.wte.weight", c["vocab_size"], width)
    h = embedding[ids] + p.get("transformer.wpe.weight", c["context_length"], width)[:tokens]
    for i in range(c["num_layers"]):
        at = f"transformer.h.{i}."
        y = conv1d(p, at + "attn.c_attn", p.layer_norm(at + "ln_1", h, c["norm_eps"]), 3 * width)
        q, k, v = (t.view(batch, tokens, heads, -1).transpose(1, 2) for t in y.split(width, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // heads)
        y = scores.masked_fill(causal(tokens), -math.inf).softmax(-1) @ v
        h = h + conv1d(p, at + "attn.c_proj", y.transpose(1, 2).reshape(batch, tokens, -1), width)
        y = conv1d(p, at + "mlp.c_fc", p.layer_norm(at + "ln_2", h, c["norm_eps"]), c["d_ff"])
        h = h + conv1d(p, at + "mlp.c_proj", F.gelu(y, approximate="tanh"), width)
    return {"logits": p.layer_norm("transformer.ln_f", h, c["norm_eps"]) @ embedding.T}


def hugging_face_llama(c, p, x):
    """LLaMA on the names of Hugging Face's files, whose rotary pairs are halves."""
    renamed = {"embedding": "model.embed_tokens", "norm": "model.norm", "head": "lm_head",
               "norm1": "input_layernorm", "norm2": "post_attention_layernorm",
               "self_attn.out_proj": "self_attn.o_proj", "linear1": "mlp.gate_proj",
               "linear2": "mlp.down_proj", "linear3": "mlp.up_proj"}

    class Renamed(Parameters):
        def get(self, name, *shape):
            layer, kind = name.rsplit(".", 1)
            if layer.startswith("blocks."):
                _, number, part = layer.split(".", 2)
                layer = f"model.layers.{number}.{renamed.get(part, part)}"
            else:
                layer = renamed[layer]
            return p.get(f"{layer}.{kind}", *shape)

    return llama(c | {"rotary_pairing": "halves"}, Renamed(), x | {"keep": rows_of(5, 5)})


# Targets of -100 are padding. All sizes of a case differ.
DECODER = {"ids": [[3, 7, 0, 10, 5], [9, 2, 2, 4, 0]], "keep": rows_of(5, 4),
           "targets": [[7, 0, 10, 5, 1], [2, 2, 4, -100, -100]]}
ENCODER = DECODER | {"segments": [[0, 0, 2, 1, 1], [2, 2, 1, 0, 0]],
                     "targets": [[-100, 4, -100, 8, 3], [10, -100, 6, -100, -100]],
                     "class_targets": [4, 1]}
SEQ2SEQ = DECODER | {"target_ids": [[1, 6, 3, 8], [1, 0, 9, 0]], "target_keep": rows_of(4, 3),
                     "targets": [[6, 3, 8, 2], [0, 9, 2, -100]]}
GPT = {"vocab_size": 11, "context_length": 7, "d_model": 12, "num_layers": 2, "num_heads": 3,
       "d_ff": 20, "norm_eps": 1e-4}
LLAMA = GPT | {"d_model": 24, "num_heads": 4, "num_kv_heads": 2, "d_ff": 10,
               "rotary_base": 500.0}
BERT = GPT | {"num_segments": 3, "num_classes": 6}
VASWANI = {"source_vocab_size": 11, "target_vocab_size": 11, "context_length": 7, "d_model": 12,
           "num_encoder_layers": 2, "num_decoder_layers": 1, "num_heads": 3, "d_ff": 20,
           "norm_eps": 1e-4}
CASES = [
    ("gpt, tied head", gpt, GPT | {"tie_head": True}, DECODER),
    ("gpt, own head", gpt, GPT | {"tie_head": False}, DECODER),
    ("llama, neighbours", llama,
     LLAMA | {"tie_head": False, "rotary_pairing": "neighbours"}, DECODER),
    ("llama, halves, one key head, tied head", llama,
     LLAMA | {"num_kv_heads": 1, "tie_head": True, "rotary_pairing": "halves"}, DECODER),
    ("encoder, post-norm", encoder, BERT | {"norm_first": False}, ENCODER),
    ("encoder, pre-norm", encoder, BERT | {"norm_first": True}, ENCODER),
    ("seq2seq, shared embedding", seq2seq,
     VASWANI | {"share_embeddings": True, "norm_first": False}, SEQ2SEQ),
    ("seq2seq, pre-norm", seq2seq,
     VASWANI | {"target_vocab_size": 13, "share_embeddings": False, "norm_first": True}, SEQ2SEQ),
]
HUGGING_FACE = [
    ("gpt2", hugging_face_gpt2, GPT),
    ("llama", hugging_face_llama, LLAMA | {"tie_head": False}),
]


def case_of(name, model, config, inputs):
    parameters = Parameters()
    outputs = model(config, parameters, inputs)
    loss = F.cross_entropy(outputs["logits"].flatten(0, 1), torch.tensor(inputs["targets"]).flatten())
    if "classes" in outputs:
        loss = loss + F.cross_entropy(outputs["classes"], torch.tensor(inputs["class_targets"]))
    loss.backward()
    numbers = lambda x: {"s": list(x.shape), "v": x.detach().flatten().tolist()}  # noqa: E731
    return {"name": name, "model": model.__name__, "config": config, **inputs,
            "outputs": {key: numbers(x) for key, x in outputs.items()}, "loss": loss.item(),
            "grad": {key: numbers(x.grad) for key, x in parameters.items()}}


def file_case_of(name, model, config):
    """The logits of a model whose weights lie in a file under other names."""
    parameters = Parameters()
    inputs = {"ids": DECODER["ids"]}
    logits = model(config, parameters, inputs)["logits"]
    return {"name": "Hugging Face's " + name, "model": name, "config": config, **inputs,
            "shapes": {key: list(x.shape) for key, x in parameters.items()},
            "outputs": {"logits": {"s": list(logits.shape), "v": logits.flatten().tolist()}}}


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
    cases = [case_of(*each) for each in CASES]
    files = [file_case_of(*each) for each in HUGGING_FACE]
    if arguments.check:
        data = json.loads(PATH.read_text())
        stored = {case["name"]: case for case in data["cases"] + data["files"]}
        wrong = [case["name"] for case in cases + files
                 if differ(stored.pop(case["name"], None), case)]
        wrong += [f"{name} (stored, but no case)" for name in stored]
        if wrong:
            sys.exit(f"{PATH.name} differs in: {'; '.join(wrong)}")
        print(f"{len(cases + files)} models, as stored")
        return
    lines = lambda list: ",\n".join(  # noqa: E731
        json.dumps(each, separators=(",", ":"), allow_nan=False) for each in list)
    version = torch.__version__.split("+")[0]
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text('{"torch":"%s","cases":[\n%s\n],"files":[\n%s\n]}\n'
                    % (version, lines(cases), lines(files)))
    print(f"{len(cases + files)} models, {PATH.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
