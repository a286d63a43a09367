#!/usr/bin/env python3
"""cheatsheet.py fails where a cell, a block or a table is wrong.

usage: cheatsheet_test.py COMPILER
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).parent / "cheatsheet.py"
PAGE = """```cpp
inline int f(int x) { return x; }
```

| PyTorch | here |
| --- | --- |
| `f(1)` | `f(1)` |

With `int n = 2`:

| PyTorch | here |
| --- | --- |
| `f(n)` | `f(n)` |

```cpp
int g() { return f(3); }
```
"""


class Cheatsheet(unittest.TestCase):
    def run_on(self, page):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write(page)
            file.flush()
            run = subprocess.run([sys.executable, CHECK, file.name, COMPILER], capture_output=True,
                                 text=True)
            return run.returncode, run.stdout + run.stderr

    def test_what_compiles_passes(self):
        self.assertEqual(self.run_on(PAGE), (0, "2 rows compile\n"))

    def test_what_does_not_compile_fails(self):
        for good, bad in [("| `f(1)` |\n", "| `h(1)` |\n"), ("int n = 2", "int m = 2"),
                          ("return f(3)", "return h(3)"), ("| `f(n)` |\n", "| nothing |\n")]:
            with self.subTest(bad=bad):
                code, out = self.run_on(PAGE.replace(good, bad))
                self.assertNotEqual(code, 0, out)


if __name__ == "__main__":
    COMPILER = sys.argv.pop(1)
    unittest.main()
