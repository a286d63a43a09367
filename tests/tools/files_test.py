#!/usr/bin/env python3
"""`glassgrad info` on every file of the folder beside the checkout, well-formed or not.

usage: files_test.py GLASSGRAD SHARED FORMAT [--asan] [--valgrind]
"""

import shlex
import subprocess
import sys
from pathlib import Path

command, shared, kind, *rest = sys.argv[1:]
check = Path(shared) / "reliability" / "tools" / "check_files.py"
if not check.exists():
    print(f"skipped: no {check}")
    sys.exit(77)

call = [shlex.quote(str(Path(command).resolve())), "info", "{file}"]
limits = ["--mem-mb", "64"]
if "--asan" in rest:
    limits = ["--asan"]
if "--valgrind" in rest:
    call = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", *call]
    limits = ["--seconds", "60", "--mem-mb", "1000"]
sys.exit(subprocess.run([sys.executable, str(check), "--cmd", " ".join(call), "--format", kind,
                         *limits], timeout=1200, check=False).returncode)
