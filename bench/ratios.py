"""The ratios that are kept: each of ours over a peer's or over a limit, larger is better, both sides
measured in turn in one run. Short forms of the programs, a couple of minutes together."""

import re
import subprocess
import sys

import step_ratios
from alternate import PROGRAMS, environment

ONE = 1  # thread


def output_of(name, *arguments):
    done = subprocess.run([PROGRAMS / name, *map(str, arguments)], env=environment(ONE),
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def cells(text):
    """The rows of a Markdown table, without its head.

    >>> cells("| a | b |\\n| --- | ---: |\\n| x | 2 |\\n")
    [['x', '2']]
    """
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


def training(work, threads, rounds, steps):
    def measure():
        ours, _, faster, memory = step_ratios.measure(work, threads, rounds, steps, "step_least")
        name = f"training {work}, threads {threads}"
        ratios = {}
        if work != "tiny":
            rate = ours["products"] / ours["step_least"] * 1e3
            ratios[f"{name}: share of FMA peak"] = rate / ours["fma_peak"]
        if faster:
            ratios[f"{name}: times PyTorch"] = faster
        if memory and work == "baby":
            ratios[f"{name}: PyTorch's memory / ours"] = 1 / memory
        return ratios
    return measure


def worked_example():
    return worked_example_of(output_of("bench_worked_example", 100))


def worked_example_of(text):
    """
    >>> worked_example_of("Attention / C         4.0    8.0   wanted: x\\nlibtorch / Attention   13.2     26.8   wanted: y")
    {'worked example, both passes: C / Attention': 0.125, 'worked example, both passes: libtorch / Attention': 26.8}
    """
    ratios = {}
    for above, below, both in re.findall(r"^(.+?) / (.+?) +[\d.]+ +([\d.]+) +wanted", text, re.M):
        ours_above = below == "C"
        pair = f"{below} / {above}" if ours_above else f"{above} / {below}"
        ratios[f"worked example, both passes: {pair}"] = (
            1 / float(both) if ours_above else float(both))
    return ratios


def attention():
    rows = cells(output_of("bench_attention", 1024, "--threads", ONE))
    return {"attention 1024: times PyTorch": float(row[9]) for row in rows if row[2] == "PyTorch"}


def generation():
    rows = cells(output_of("bench_generation", "--threads", ONE, "--trials", 3))
    return {f"generation {row[0]}: times {row[2]}": float(row[4])
            for row in rows if row[2] != "glassgrad"}


def kernels():
    rows = cells(output_of("bench_kernels", "--threads", ONE, "--kilobytes", 1024,
                           "--trials", 5))
    return {f"{row[0]}, 1 MB: share of the limit": float(row[6]) / 100 for row in rows}


GROUPS = {
    "worked example": worked_example,
    "training tiny": training("tiny", 1, 3, 300),
    "training nano": training("nano", 1, 3, 10),
    "training nano on two threads": training("nano", 2, 3, 10),
    "training baby": training("baby", 1, 3, 2),
    "attention": attention,
    "generation": generation,
    "kernels": kernels,
}
