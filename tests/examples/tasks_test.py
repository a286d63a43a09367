"""04_tasks: a short run reverses what it has never seen, and says so in checked figures."""

import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


class Tasks(unittest.TestCase):
    def test_reverse(self):
        arguments = ["--task", "reverse", "--steps", "120", "--tests", "500", "--seed", "2"]
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        exact = re.search(r"500 unseen questions, exact: ([\d.]+) %", result.stdout)
        self.assertGreater(float(exact[1]), 99)
        written = re.findall(r"writes (\w{8})=(\w{8})", result.stdout)
        self.assertEqual(len(written), 3)
        self.assertGreaterEqual(sum(question[::-1] == answer for question, answer in written), 2)

    def test_wrong_usage(self):
        for arguments in (["--task", "divide"], ["--steps", "-1"], ["--seed", "x"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2, arguments)


if __name__ == "__main__":
    unittest.main()
