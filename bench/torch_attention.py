"""The peer of bench_attention: causal attention written out in PyTorch, one length. Prints seconds
forward and backward, 0 for what its tensors held, and the growth of the process's peak in bytes."""

import os
import resource
import statistics
import sys
import time

import torch

HEADS, WIDTH = 8, 64


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    length = int(sys.argv[1])
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
    torch.manual_seed(1)
    q, k, v = (torch.rand(1, HEADS, length, WIDTH, requires_grad=True) for _ in range(3))
    cotangent = torch.ones(1, HEADS, length, WIDTH)
    torch.softmax(q[:, :, :8] @ k[:, :, :8].mT, -1).sum().backward()  # loads what is loaded once
    hidden = torch.ones(length, length).tril().logical_not()
    before = resident()
    forward, backward = [], []
    for trial in range(6 if length <= 1024 else 2):
        start = time.perf_counter()
        scores = (q @ k.mT / WIDTH**0.5).masked_fill(hidden, -torch.inf)
        y = torch.softmax(scores, -1) @ v
        del scores
        middle = time.perf_counter()
        gradients = torch.autograd.grad(y, (q, k, v), cotangent)
        end = time.perf_counter()
        del y, gradients
        if trial > 0:
            forward.append(middle - start)
            backward.append(end - middle)
    print(statistics.median(forward), statistics.median(backward), 0, resident() - before)


if __name__ == "__main__":
    main()
