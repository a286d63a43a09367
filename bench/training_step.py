"""The twin of bench_training_step in PyTorch, written for speed: one product for q, k and v, scale and
mask in the product of the scores, updates over lists of tensors. Same works, same ids, same figures.

Arguments: tiny, nano, baby or gpt2, then [--threads N] [--steps S]. --check-loss PROGRAM runs that
bench_training_step for three steps, takes its first weights, and compares the losses."""

import argparse
import json
import math
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from torch_at_its_best import restart_with

WORKS = {  # layers, heads, width, context, batch, vocabulary, steps
    "tiny": (1, 1, 8, 8, 1, 16, 400),
    "nano": (4, 4, 128, 64, 12, 65, 40),
    "baby": (6, 6, 384, 256, 4, 65, 8),
    "gpt2": (12, 12, 768, 64, 4, 50257, 5),
}
LEARNING_RATE, BETAS, DECAY, EPSILON = 6e-4, (0.9, 0.99), 0.1, 1e-8
TOLERANCE = 2e-4


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--check-loss", metavar="PROGRAM")
    return parser.parse_args()


ARGUMENTS = arguments()
restart_with(ARGUMENTS.threads)

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, each in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in each["data_offsets"])
            flat = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
            tensors[name] = flat.reshape(each["shape"])
    return tensors


def random_tensors(work):
    layers, _, width, context, _, vocabulary, _ = work
    torch.manual_seed(1)
    tensors = {"embedding.weight": torch.randn(vocabulary, width) * 0.02,
               "position.weight": torch.randn(context, width) * 0.02}
    shapes = {"linear1": (4 * width, width), "linear2": (width, 4 * width)}
    for part in ("q", "k", "v", "out"):
        shapes[f"self_attn.{part}_proj"] = (width, width)
    for layer in range(layers):
        for name, shape in shapes.items():
            tensors[f"blocks.{layer}.{name}.weight"] = torch.randn(shape) * 0.02
            tensors[f"blocks.{layer}.{name}.bias"] = torch.zeros(shape[0])
        for norm in ("norm1", "norm2"):
            tensors[f"blocks.{layer}.{norm}.weight"] = torch.ones(width)
            tensors[f"blocks.{layer}.{norm}.bias"] = torch.zeros(width)
    tensors["norm.weight"], tensors["norm.bias"] = torch.ones(width), torch.zeros(width)
    return tensors


class Gpt:
    def __init__(self, work, tensors):
        self.layers, self.heads, self.width, context, *_ = work
        self.parameters = {}
        for name, tensor in tensors.items():
            if "k_proj" not in name and "v_proj" not in name and name != "head.weight":
                if "q_proj" in name:
                    parts = [tensors[name.replace("q_proj", part)] for part in ("k_proj", "v_proj")]
                    name, tensor = name.replace("q_proj", "qkv"), torch.cat([tensor, *parts])
                self.parameters[name] = tensor.clone().requires_grad_()
        self.blocks = []
        for layer in range(self.layers):
            start = f"blocks.{layer}."
            self.blocks.append([
                self.parameters[f"{start}{part}.{kind}"]
                for part in ("norm1", "self_attn.qkv", "self_attn.out_proj", "norm2", "linear1", "linear2")
                for kind in ("weight", "bias")])
        self.mask = torch.full((context, context), -torch.inf).triu(1)

    def attention(self, x, batch, length):
        heads, width = self.heads, self.width // self.heads
        q, k, v = x.view(batch, length, 3, heads, width).permute(2, 0, 3, 1, 4).reshape(
            3, batch * heads, length, width)
        scores = torch.baddbmm(self.mask, q, k.transpose(1, 2), alpha=1 / math.sqrt(width))
        y = torch.bmm(torch.softmax(scores, -1), v)
        return y.view(batch, heads, length, width).transpose(1, 2).reshape(
            batch * length, heads * width)

    def loss(self, ids, targets):
        batch, length = ids.shape
        all_, shape = self.parameters, (self.width,)
        x = (F.embedding(ids, all_["embedding.weight"]) + all_["position.weight"]).view(-1, self.width)
        for norm1, bias1, qkv, qkv_bias, out, out_bias, norm2, bias2, up, up_bias, down, down_bias in self.blocks:
            h = F.linear(F.layer_norm(x, shape, norm1, bias1), qkv, qkv_bias)
            x = x + F.linear(self.attention(h, batch, length), out, out_bias)
            h = F.gelu(F.linear(F.layer_norm(x, shape, norm2, bias2), up, up_bias),
                       approximate="tanh")
            x = x + F.linear(h, down, down_bias)
        x = F.layer_norm(x, shape, all_["norm.weight"], all_["norm.bias"])
        return F.cross_entropy(F.linear(x, all_["embedding.weight"]), targets.view(-1))


def clip(parameters):
    gradients = [parameter.grad for parameter in parameters]
    norm = torch.stack(torch._foreach_norm(gradients)).norm().item()
    if norm > 1:
        torch._foreach_mul_(gradients, 1 / (norm + 1e-6))


def draw_ids(work, seed):
    _, _, _, context, batch, vocabulary, _ = work
    ids, state = [], seed
    for _ in range(batch * context):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        ids.append((state >> 33) % vocabulary)
    return torch.tensor(ids).view(batch, context)


def steps(work, tensors, count):
    """The loss and the three times of each step."""
    model = Gpt(work, tensors)
    parameters = list(model.parameters.values())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": DECAY},
         {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0}],
        lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, foreach=True)
    ids, targets = draw_ids(work, 1), draw_ids(work, 2)
    for _ in range(count):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(ids, targets)
        forward = time.perf_counter()
        loss.backward()
        middle = time.perf_counter()
        clip(parameters)
        optimizer.step()
        end = time.perf_counter()
        yield loss.item(), forward - start, middle - forward, end - middle


def flop(work):
    layers, _, width, context, batch, vocabulary, _ = work
    token = 2 * (12 * layers * width**2 + vocabulary * width) + 4 * context * width * layers
    return 3 * token * context * batch


def show(name, value, unit=""):
    print(f"{name:16} {value:12.6g} {unit}")


def check_loss(name, work, program, threads):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/weights.safetensors"
        text = subprocess.run(
            [program, name, "--threads", str(threads), "--steps", "3", "--save", path],
            check=True, capture_output=True, text=True).stdout
        tensors = read_safetensors(path)
    theirs = [float(line.split()[1]) for line in text.splitlines() if line.startswith("loss ")]
    ours = [loss for loss, *_ in steps(work, tensors, 3)]
    print(f"losses of three steps: glassgrad {theirs}, PyTorch {ours}")
    if len(theirs) != 3 or any(abs(a - b) > TOLERANCE * b for a, b in zip(theirs, ours)):
        sys.exit("training_step.py: the losses differ")


def main():
    torch.set_num_threads(ARGUMENTS.threads)
    work = WORKS[ARGUMENTS.work]
    if ARGUMENTS.check_loss:
        check_loss(ARGUMENTS.work, work, ARGUMENTS.check_loss, ARGUMENTS.threads)
        return
    count = ARGUMENTS.steps or work[-1]
    warm_up = count // 10 if count > 10 else 1
    times = [each[1:] for each in steps(work, random_tensors(work), warm_up + count)][warm_up:]
    whole = [sum(each) for each in times]
    step = statistics.median(whole)
    show("threads", torch.get_num_threads())
    show("step", step * 1e3, "ms")
    show("step_least", min(whole) * 1e3, "ms")
    for name, part in zip(("forward", "backward", "update"), zip(*times)):
        show(name, statistics.median(part) * 1e3, "ms")
    show("tokens", work[3] * work[4] / step, "/s")
    show("products", flop(work) / 1e9, "GFLOP")
    show("rate", flop(work) / step / 1e9, "GFLOP/s")
    show("resident_peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, "MB")


if __name__ == "__main__":
    main()
