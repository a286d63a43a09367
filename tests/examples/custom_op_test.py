"""02_custom_op: the right rule passes to second order, the wrong one is refused by name."""

import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)


class CustomOp(unittest.TestCase):
    def test_verdicts(self):
        run = subprocess.run([PROGRAM], capture_output=True, text=True, check=True)
        right, wrong = run.stdout.split("Had the rule been")
        self.assertIn("gradcheck: passed", right)
        self.assertIn("gradgradcheck: passed", right)
        self.assertIn("gradcheck: failed", wrong)
        # x / sqrt(1 + x²) at -2.
        self.assertIn("-0.8944", right)


if __name__ == "__main__":
    unittest.main()
