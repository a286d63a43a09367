#!/usr/bin/env python3
"""Compiles every public header on its own, twice in one file; prints those that fail.

usage: headers.py [--system=DIR,DIR]... COMPILER DIR...

Each DIR is a folder of public headers, <DIR>/glassgrad/**; all are on the include path. Headers
under a detail/ folder are held to the same.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
         "-Wconversion", "-Werror"]


def failures(compiler, folders, system=()):
    """The compiler's output for each header under `folders` that does not stand alone."""
    paths = [f"-I{folder}" for folder in folders]
    # -isystem /usr/include would hide the compiler's own headers from #include_next.
    for folder in system:
        if folder not in ("", "/usr/include"):
            paths += ["-isystem", folder]
    headers = sorted({header.relative_to(folder).as_posix()
                      for folder in folders for header in Path(folder).rglob("*.hpp")})

    def compile_alone(header):
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
            source.write(f"#include <{header}>\n#include <{header}>\n")
            source.flush()
            command = [compiler, *FLAGS, *paths, source.name]
            run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            return f"<{header}>\n{run.stderr}" if run.returncode else None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [text for text in pool.map(compile_alone, headers) if text]
    return found, len(headers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("compiler")
    parser.add_argument("--system", action="append", default=[])
    parser.add_argument("folders", nargs="+")
    arguments = parser.parse_args()
    system = ",".join(arguments.system).split(",")
    found, count = failures(arguments.compiler, arguments.folders, system)
    for text in found:
        print(text)
    print(f"headers: {len(found)} of {count} do not compile alone" if found
          else f"headers: ok, {count}")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
