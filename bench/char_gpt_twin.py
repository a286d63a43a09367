#!/usr/bin/env python3
"""The nano run of 06_char_gpt in PyTorch: from a checkpoint of the run on, with the same weights,
optimizer and order of data, and compares loss and norm of the gradient step by step.

    06_char_gpt TEXT --preset nano --out RUN      stopped by the file RUN/stop after a step or more,
    06_char_gpt TEXT --resume --out RUN           and resumed
    char_gpt_twin.py RUN/step-000001.safetensors TEXT RUN/metrics.jsonl [--steps 50]

usage: char_gpt_twin.py CHECKPOINT TEXT METRICS [--steps N] [--seed N] [--tolerance X]
Needs PyTorch and NumPy, for example /usr/bin/python3.
"""

import argparse
import json
import math
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 4, 4, 128, 64, 12
STEPS, WARMUP, LR, MIN_LR = 2000, 100, 1e-3, 1e-4
WORD = (1 << 64) - 1


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
    return {name: torch.from_numpy(np.frombuffer(
        data[slice(*entry["data_offsets"])], kinds[entry["dtype"]]).reshape(entry["shape"]).copy())
            for name, entry in header.items() if name != "__metadata__"}


class Order:
    """The order of windows, as training/src/permutation.hpp has it."""

    def __init__(self, size, seed, epoch):
        random = [int(x) for x in
                  np.random.Philox(key=np.array([seed, epoch], np.uint64)).random_raw(9)]
        self.size, self.keys, self.turn = size, random[:8], random[8] % size
        self.half = 1
        while self.half < 31 and 1 << 2 * self.half < size:
            self.half += 1
        self.mask = (1 << self.half) - 1

    def __call__(self, i):
        i = (i + self.turn) % self.size
        while True:
            left, right = i >> self.half, i & self.mask
            for key in self.keys:
                x = (right + key) & WORD
                x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
                x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
                left, right = right, left ^ ((x ^ x >> 31) & self.mask)
            i = left << self.half | right
            if i < self.size:
                return i


def rate(step):
    if step < WARMUP:
        return LR * (step + 1) / (WARMUP + 1)
    return MIN_LR + (LR - MIN_LR) / 2 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def loss_of(p, inputs, targets):
    x = p["embedding.weight"][inputs] + p["position.weight"]
    for layer in range(LAYERS):
        at = f"blocks.{layer}."
        h = F.layer_norm(x, (WIDTH,), p[at + "norm1.weight"])
        q, k, v = (F.linear(h, p[f"{at}self_attn.{part}_proj.weight"])
                   .view(BATCH, CONTEXT, HEADS, -1).transpose(1, 2) for part in "qkv")
        scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH / HEADS)
        hidden = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH)
        x = x + F.linear(mixed, p[at + "self_attn.out_proj.weight"])
        h = F.layer_norm(x, (WIDTH,), p[at + "norm2.weight"])
        h = F.gelu(F.linear(h, p[at + "linear1.weight"]))
        x = x + F.linear(h, p[at + "linear2.weight"])
    logits = F.linear(F.layer_norm(x, (WIDTH,), p["norm.weight"]), p["embedding.weight"])
    return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("text")
    parser.add_argument("metrics")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    flags = parser.parse_args()

    with open(flags.text, encoding="utf-8") as file:
        text = file.read()
    numbers = {character: i for i, character in enumerate(sorted(set(text)))}
    tokens = np.array([numbers[c] for c in text], np.int64)[:int(0.9 * len(text))]
    windows = len(tokens) - CONTEXT
    order = Order(windows, flags.seed, 0)

    stored = read_safetensors(flags.checkpoint)
    parameters = {name[len("model."):]: value.requires_grad_()
                  for name, value in stored.items() if name.startswith("model.")}
    groups = [{"params": [x for x in parameters.values() if (x.dim() >= 2) == matrix],
               "weight_decay": 0.1 * matrix} for matrix in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.99), eps=1e-8)
    first = int(stored["optimizer.steps"])
    for name, x in parameters.items():
        optimizer.state[x] = {"step": torch.tensor(float(first)),
                              "exp_avg": stored[f"optimizer.exp_avg.{name}"],
                              "exp_avg_sq": stored[f"optimizer.exp_avg_sq.{name}"]}
    with open(flags.metrics) as file:
        rows = {row["step"]: row for row in map(json.loads, file)}

    worst = 0.0
    for step in range(first, first + flags.steps):
        starts = [order(step * BATCH + i) for i in range(BATCH)]
        batch = torch.from_numpy(np.stack([tokens[at:at + CONTEXT + 1] for at in starts]))
        loss = loss_of(parameters, batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        ours = rows[step + 1]
        worst = max(worst, abs(loss.item() - ours["loss"]),
                    abs(norm.item() - ours["grad_norm"]) / norm.item())
        print(f"step {step + 1:4}  loss {loss.item():.6f} {ours['loss']:.6f}  "
              f"norm {norm.item():.5f} {ours['grad_norm']:.5f}")
    print(f"largest difference {worst:.2g}, allowed {flags.tolerance:g}")
    return int(worst > flags.tolerance)


if __name__ == "__main__":
    sys.exit(main())
