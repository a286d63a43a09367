#!/usr/bin/env python3
"""Every relative link of the Markdown pages leads to a file, and README.md has at most 150 lines.

usage: docs.py ROOT
"""

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def problems(root, pages):
    found = []
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        for link in LINK.findall(prose):
            if "://" in link or link.startswith("mailto:"):
                continue
            if not ((root / page).parent / link).exists():
                found.append(f"{page}: the link {link} leads nowhere")
        if page == Path("README.md") and len(text.splitlines()) > 150:
            found.append(f"{page}: {len(text.splitlines())} lines, at most 150")
    return found


def pages_of(root):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=root,
                            capture_output=True, text=True)
    if listed.returncode == 0:
        return [Path(line) for line in listed.stdout.splitlines() if (root / line).exists()]
    return [path.relative_to(root) for path in root.rglob("*.md")
            if "build" not in path.relative_to(root).parts[:1]]


def main():
    root = Path(sys.argv[1])
    pages = pages_of(root)
    found = problems(root, pages)
    print("\n".join(found) if found else f"{len(pages)} pages, all links lead somewhere")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
