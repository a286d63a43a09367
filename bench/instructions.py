#!/usr/bin/env python3
"""Counts the instructions of small steps under callgrind and holds them against the kept counts.

usage: instructions.py PROGRAM KEPT.json [--write]

Timings of steps that take microseconds say little on a shared machine; their instructions can be
counted exactly. PROGRAM is bench_small_steps. A count may not grow by more than 3 % over the kept
one unless the file is changed with it, by --write. Counts are those of one compiler and one C
library, which the file names: with others, without valgrind, or for a program with instructions
that valgrind doesn't know, nothing is checked, and a message says so.
"""

import json
import os
import re
import shutil
import subprocess
import sys

WORK = ("example", "training")
STEPS_A_TRIAL = 100
LIMIT = 1.03


def skip(why):
    print(f"instructions: not checked: {why}")
    sys.exit(0)


def count(program, work):
    """Instructions of one step, without the program's start."""
    # Kernels of ours and of the BLAS for a processor that valgrind can be.
    fixed = {"GLASSGRAD_ISA": "avx2", "OPENBLAS_CORETYPE": "Haswell",
             "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no",
         "--toggle-collect=counted_steps", "--callgrind-out-file=/dev/null", program, work, "1"],
        env={**os.environ, **fixed}, capture_output=True, text=True, check=False)
    if "GLASSGRAD_ISA is 'avx2'" in ran.stderr:
        skip("the counts are of AVX2, which this processor lacks")
    found = re.search(r"Collected : (\d+)", ran.stderr)
    if ran.returncode != 0 or not found:
        sys.exit(f"instructions: {work} failed with status {ran.returncode}:\n{ran.stderr}")
    return round(int(found[1]) / STEPS_A_TRIAL)


def compare(kept, counts):
    """A line for each kind of work, and whether one has grown too much."""
    lines, failed = [], False
    for work, now in counts.items():
        before = kept[work]
        grown = now > LIMIT * before
        failed = failed or grown
        note = ", which is too many" if grown else ""
        if now * LIMIT < before:
            note = ", fewer: keep it with --write"
        lines.append(f"{work}: {now} instructions a step, kept {before} "
                     f"({100 * (now / before - 1):+.1f} %){note}")
    return lines, failed


def main():
    arguments = [each for each in sys.argv[1:] if each != "--write"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    program, path = arguments
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    made_with = subprocess.run([program, "made-with"], capture_output=True, text=True,
                               check=True).stdout.strip()
    if "--write" in sys.argv:
        kept = {"made_with": made_with, **{work: count(program, work) for work in WORK}}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(kept, file, indent=4)
            file.write("\n")
        print(f"instructions: {path} written: {kept}")
        return
    with open(path, encoding="utf-8") as file:
        kept = json.load(file)
    if kept["made_with"] != made_with:
        skip(f"the counts kept are of {kept['made_with']}, this program is of {made_with}")
    lines, failed = compare(kept, {work: count(program, work) for work in WORK})
    print("\n".join(lines))
    if failed:
        sys.exit("instructions: more than 3 % were added; make it fewer, or keep the new counts "
                 "with ./dev instructions --write and say why")


if __name__ == "__main__":
    main()
