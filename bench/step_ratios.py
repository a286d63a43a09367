#!/usr/bin/env python3
"""Training steps of ours and PyTorch's, in turn, as a Markdown table.

Arguments: works (all if none are given), --threads 1 2, --rounds N, --steps N for a short run."""

import argparse
import pathlib
import sys

from alternate import PROGRAMS, alternate, markdown, python_with_torch, ratio

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = {"tiny": 5, "nano": 5, "baby": 3, "gpt2": 3}
HEADER = ["work", "threads", "step, ms", "forward", "backward", "update", "tokens/s", "GFLOP/s",
          "of FMA peak, %", "PyTorch, ms", "times PyTorch", "resident, MB", "of PyTorch's"]


def measure(work, threads, rounds, steps=None, time="step"):
    """Medians of ours and theirs, and the ratios of times and of memory; theirs are None without
    PyTorch. `time` may be step_least, for a machine that others use."""
    options = [work, "--threads", threads, *(["--steps", steps] if steps else [])]
    commands = [[PROGRAMS / "bench_training_step", *options]]
    if python := python_with_torch():
        commands.append([python, HERE / "training_step.py", *options])
    figures, rows = alternate(commands, threads, rounds)
    if not python:
        return figures[0], None, None, None
    return (*figures, ratio(rows, time, 1, 0), ratio(rows, "resident_peak", 0, 1))


def row(work, threads, measured):
    ours, theirs, faster, memory = measured
    times = [f"{ours[name]:.3g}" for name in ("step", "forward", "backward", "update")]
    peer = ["", "", "", ""]
    if theirs:
        peer = [f"{theirs['step']:.3g}", f"{faster:.2f}", f"{memory:.2f}"]
    return [work, threads, *times, f"{ours['tokens']:,.0f}", f"{ours['rate']:.3g}",
            f"{ours['share']:.0f}", *peer[:2], f"{ours['resident_peak']:,.0f}", peer[2]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("works", nargs="*", metavar="WORK", help=", ".join(ROUNDS))
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--steps", type=int)
    given = parser.parse_args()
    if unknown := [work for work in given.works if work not in ROUNDS]:
        parser.error(f"no work called {unknown[0]}; there are {', '.join(ROUNDS)}")
    rows = []
    for work in given.works or ROUNDS:
        for threads in given.threads:
            print(f"{work}, {threads} thread(s) ...", file=sys.stderr)
            rows.append(row(work, threads, measure(
                work, threads, given.rounds or ROUNDS[work], given.steps)))
    print(markdown(HEADER, rows))


if __name__ == "__main__":
    main()
