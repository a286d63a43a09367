"""Two programs that print figures (a line each: name, value, unit), run in turn so that a busy machine
slows both alike, each time as a process of its own."""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "build/release/bin"


def python_with_torch():
    """The python3 that has torch (Debian's belongs to its own), or None."""
    for candidate in ("python3", "/usr/bin/python3"):
        if shutil.which(candidate) and subprocess.run(
                [candidate, "-c", "import torch"], capture_output=True).returncode == 0:
            return candidate
    return None


def environment(threads):
    """One pool of threads: ours is OpenMP's, and the BLAS inside has none of its own."""
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}


def parse(text):
    """Figures by name.

    >>> parse("step    12.5 ms\\nshare   80 %\\nthreads 2 \\n")
    {'step': 12.5, 'share': 80.0, 'threads': 2.0}
    """
    figures = {}
    for line in text.splitlines():
        name, value, *_ = line.split()
        figures[name] = float(value)
    return figures


def figures_of(command, threads):
    done = subprocess.run([str(part) for part in command], env=environment(threads),
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(part) for part in command)} failed\n{done.stderr or done.stdout}")
    return parse(done.stdout)


def medians(runs):
    """The median of each figure.

    >>> medians([{"step": 3}, {"step": 1}, {"step": 2}])
    {'step': 2}
    """
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def alternate(commands, threads, rounds):
    """Medians of the figures of each command, and for each round the figures of all."""
    rows = [[figures_of(command, threads) for command in commands] for _ in range(rounds)]
    return [medians(column) for column in zip(*rows)], rows


def ratio(rows, name, above, below):
    """The median over rounds of one command's figure over another's: what slows a whole round
    leaves it as it is.

    >>> ratio([[{"step": 2}, {"step": 4}], [{"step": 20}, {"step": 50}], [{"step": 1}, {"step": 3}]], "step", 1, 0)
    2.5
    """
    return statistics.median(row[above][name] / row[below][name] for row in rows)


def markdown(header, rows):
    """A table; the first column holds names, the others numbers.

    >>> print(markdown(["work", "ratio"], [["tiny", 2]]))
    | work | ratio |
    | --- | ---: |
    | tiny | 2 |
    """
    line = "| --- |" + " ---: |" * (len(header) - 1)
    return "\n".join([f"| {' | '.join(header)} |", line,
                      *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)])
