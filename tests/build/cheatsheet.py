#!/usr/bin/env python3
"""Compiles what docs/cheatsheet.md says: its blocks of C++ as they stand, and the code in the last
column of its tables as statements of a function.

usage: cheatsheet.py PAGE COMPILER INCLUDE_DIR...
"""
import re
import subprocess
import sys
from pathlib import Path


def program(text):
    blocks = re.findall(r"^```cpp\n(.*?)^```", text, re.M | re.S)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    lines, number = [blocks[0]], 0
    given = ""
    for line in prose.splitlines():
        # With `a declaration`: the rows below use it.
        found = re.match(r"With `([^`]+)`", line)
        if found:
            given = f"{found.group(1)};"
        elif line.startswith("#"):
            given = ""
        if line.startswith("|") and not re.match(r"\| (PyTorch|transformers|---)", line):
            cell = line.rstrip("| ").rsplit(" | ", 1)[-1].strip()
            if not re.fullmatch(r"`[^`]+`", cell):
                raise SystemExit(f"no code in the last column: {line}")
            number += 1
            lines.append(f"[[maybe_unused]] void row_{number}() {{ {given} {cell.strip('`')}; }}")
    return "\n".join(lines + blocks[1:]) + "\n", number


def main():
    page, compiler, *includes = sys.argv[1:]
    text, rows = program(Path(page).read_text(encoding="utf-8"))
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-value", "-x",
               "c++", *[f"-I{folder}" for each in includes for folder in each.split(";")], "-"]
    run = subprocess.run(command, input=text, capture_output=True, text=True)
    if run.returncode or not rows:
        numbered = "\n".join(f"{n:4} {line}" for n, line in enumerate(text.splitlines(), 1))
        print(numbered, run.stderr[:6000], sep="\n")
        return 1
    print(f"{rows} rows compile")
    return 0


if __name__ == "__main__":
    sys.exit(main())
