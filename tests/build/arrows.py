#!/usr/bin/env python3
"""Holds the source tree against the law of the arrows; prints each breach and exits with 1.

usage: arrows.py [ROOT]

It reads #include lines only. What a folder may include follows from SEES; xtensor and BLAS stay
under tensor/; a public header (<folder>/include/**) needs nothing but the standard library and
<glassgrad/...>; each folder explains itself in a README.md of at most 40 lines. A folder that
does not exist yet is no breach. arrows_test.py shows that each rule can fail.
"""

import re
import sys
from pathlib import Path

# Which folders' headers a folder may include, besides its own.
SEES = {
    "tensor": [],
    "autograd": ["tensor"],
    "layers": ["tensor", "autograd"],
    "training": ["tensor", "autograd", "layers"],
    "trace": ["tensor", "autograd", "layers"],
}
# Programs: they see everything, trace/ included.
PROGRAMS = ["tools", "examples", "tests", "bench"]
README_FOLDERS = [*SEES, "tools", "examples", "tests", "bench"]
README_LINES = 40

# The only public header of ours that pulls in xtensor, with what lies under it.
XTENSOR_DOOR = re.compile(r"^tensor/include/glassgrad/tensor/(xtensor\.hpp|detail/xtensor[^/]*)$")
ARRAY_LIBRARY = re.compile(r"^(xtensor(-blas)?|xtl|xsimd|xflens)/|^(cblas|lapacke)\.h$")
XTENSOR_USERS = ["tensor", "tests", "bench"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# <sys/single_threaded.h> is glibc's and included behind __has_include.
STANDARD = re.compile(r"^([a-z0-9_]+|sys/single_threaded\.h)$")


def folder_of(header):
    """The folder that a <glassgrad/...> header belongs to; None for those of the top."""
    name = header.removeprefix("glassgrad/").split("/")[0].removesuffix(".hpp")
    return name if name in SEES else None


def breaches_of_include(path, quote, header):
    """What is wrong with one include of the file `path`, a path relative to the root."""
    text = path.as_posix()
    folder = path.parts[0]
    public = len(path.parts) > 1 and path.parts[1] == "include" and folder in SEES
    mark = f"<{header}>" if quote == "<" else f'"{header}"'

    if header.startswith("glassgrad/"):
        target = folder_of(header)
        if folder in SEES and target is None and header != "glassgrad/version.hpp":
            yield f"{mark}: only programs include the header of everything"
        if folder in SEES and target and target != folder and target not in SEES[folder]:
            sees = ", ".join(SEES[folder]) or "no other folder"
            yield f"{mark}: {folder}/ may include {sees}"
        if quote == '"':
            yield f'{mark}: public headers are included as <{header}>'
        return
    if ARRAY_LIBRARY.search(header) and folder not in XTENSOR_USERS:
        yield f"{mark}: xtensor and BLAS are included under tensor/ only"
    if quote == '"' and ".." in Path(header).parts:
        yield f"{mark}: a path that climbs out of its folder"
    elif public and not XTENSOR_DOOR.match(text) and not (quote == "<" and STANDARD.match(header)):
        yield f"{mark}: a public header includes the standard library and <glassgrad/...> only"


def breaches(root):
    """All breaches under `root`, as printable lines, in the order of the files."""
    for folder in [*SEES, *PROGRAMS, "include"]:
        files = sorted(p for p in (root / folder).rglob("*") if p.suffix in (".hpp", ".cpp", ".h"))
        for file in files:
            path = file.relative_to(root)
            lines = file.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, start=1):
                match = INCLUDE.match(line)
                if match:
                    for text in breaches_of_include(path, *match.groups()):
                        yield f"{path.as_posix()}:{number}: {text}"
    for folder in README_FOLDERS:
        if not (root / folder).is_dir():
            continue
        readme = root / folder / "README.md"
        if not readme.is_file():
            yield f"{folder}/README.md: missing; it states the folder's law and recipe"
        elif len(readme.read_text(encoding="utf-8").splitlines()) > README_LINES:
            yield f"{folder}/README.md: more than {README_LINES} lines"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2])
    found = list(breaches(root))
    for line in found:
        print(line)
    print("arrows: ok" if not found else f"arrows: {len(found)} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
