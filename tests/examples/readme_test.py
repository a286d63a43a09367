"""The program in README.md compiles, runs and prints what README.md says that it prints."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

COMPILER, README, INCLUDES, LIBRARIES = sys.argv[1:5]
del sys.argv[1:5]


class Readme(unittest.TestCase):
    def test_program(self):
        with open(README, encoding="utf-8") as file:
            text = file.read()
        program = next(block for block in re.findall(r"```cpp\n(.*?)```", text, re.S)
                       if "int main" in block)
        output = re.search(r"```text\n(.*?)```", text, re.S).group(1)
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "readme.cpp")
            with open(source, "w", encoding="utf-8") as file:
                file.write(program)
            binary = os.path.join(folder, "readme")
            subprocess.run([COMPILER, "-std=c++20", source, "-o", binary]
                           + ["-I" + path for path in INCLUDES.split(";") if path]
                           + [path for path in LIBRARIES.split(";") if path], check=True)
            run = subprocess.run([binary], capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout, output)
        self.assertLessEqual(len(text.splitlines()), 150)


if __name__ == "__main__":
    unittest.main()
