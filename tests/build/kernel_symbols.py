#!/usr/bin/env python3
"""What a kernel shares with the rest of the program.

A kernel's object file is compiled for instructions that the processor may lack. An inline function
or a template that it emits under a common name may be the copy that the linker keeps for all, so
none may have one.  usage: kernel_symbols.py NM SET OBJECT...
"""

import subprocess
import sys


def shared(listing: str, namespace: str) -> list[str]:
    """Names in what nm -C prints that are defined, seen outside and not in the namespace."""
    found = []
    for line in listing.splitlines():
        parts = line.split(maxsplit=2)
        if len(parts) != 3 or len(parts[1]) != 1:
            continue
        _, kind, name = parts
        visible = kind.isupper() or kind in "uvw"
        if visible and kind != "U" and f"glassgrad::detail::{namespace}::" not in name:
            found.append(f"{kind} {name}")
    return found


def main() -> int:
    nm, namespace, *objects = sys.argv[1:]
    bad = 0
    for each in objects:
        listing = subprocess.run([nm, "-C", each], check=True, text=True, capture_output=True).stdout
        for name in shared(listing, namespace):
            print(f"{each}: {name} is shared with other sets of instructions")
            bad = 1
    if not objects:
        print("no object files")
        bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
