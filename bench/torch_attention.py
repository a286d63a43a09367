"""The peer of bench_attention: causal attention written out in PyTorch, with scale and mask in the
product of the scores. Arguments: length, threads. Beyond 4,096 heads are computed one after the other,
for want of memory. Prints seconds forward and backward, 0 for what its tensors held, and the growth of
the process's peak in bytes."""

import resource
import statistics
import sys
import time

from torch_at_its_best import restart_with

HEADS, WIDTH = 8, 64
LENGTH, THREADS = (int(argument) for argument in sys.argv[1:])
restart_with(THREADS)

import torch  # noqa: E402


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def both_passes(q, k, v, mask, cotangent):
    start = time.perf_counter()
    scores = torch.baddbmm(mask, q, k.mT, alpha=WIDTH**-0.5)
    y = torch.softmax(scores, -1) @ v
    del scores
    middle = time.perf_counter()
    torch.autograd.grad(y, (q, k, v), cotangent)
    return middle - start, time.perf_counter() - middle


def main():
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    together = HEADS if LENGTH <= 4096 else 1
    heads = [[torch.rand(together, LENGTH, WIDTH, requires_grad=True) for _ in range(3)]
             for _ in range(HEADS // together)]
    cotangent = torch.ones(together, LENGTH, WIDTH)
    both_passes(*(x[:, :8] for x in heads[0]), torch.zeros(8, 8), cotangent[:, :8])
    mask = torch.full((LENGTH, LENGTH), -torch.inf).triu(1)
    before = resident()
    trials = []
    for _ in range(6 if LENGTH <= 1024 else 2 if LENGTH <= 4096 else 1):
        times = [both_passes(*x, mask, cotangent) for x in heads]
        trials.append([sum(part) for part in zip(*times)])
    # The first is left out, but for lengths whose time it doesn't change.
    forward, backward = zip(*(trials[1:] or trials))
    print(statistics.median(forward), statistics.median(backward), 0, resident() - before)


if __name__ == "__main__":
    main()
