"""05_llama_generate against NumPy's greedy continuation in float64, and its own promises.

The model, its tokenizer and the expected tokens lie beside the checkout; skipped where they don't.
"""

import json
import os
import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)
DATA = os.path.join(sys.argv.pop(1), "..", "shared", "data")
MODEL = os.path.join(DATA, "aidreams260K.bin")
TOKENIZER = os.path.join(DATA, "aidreams_tok512.bin")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=120)


class LlamaGenerate(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(MODEL):
            self.skipTest(f"{MODEL} is not there")

    def generate(self, *arguments):
        result = run(MODEL, TOKENIZER, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_greedy_text(self):
        result = self.generate("--temperature", "0")
        with open(os.path.join(DATA, "aidreams_expected.txt"), "rb") as file:
            self.assertEqual(result.stdout, file.read())
        self.assertRegex(result.stderr.decode(), r"^128 tokens, \d+ a second\n$")

    def test_greedy_ids_and_logits(self):
        with open(os.path.join(DATA, "aidreams_expected.json"), encoding="utf-8") as file:
            expected = json.load(file)
        got = json.loads(self.generate("--json").stdout)
        self.assertEqual(got["ids"], expected["ids"])
        for ours, theirs in [("first_logits", "logits_first_position_first8"),
                             ("last_logits", "logits_last_position_first8")]:
            for a, b in zip(got[ours], expected[theirs]):
                self.assertLess(abs(a - b), 2e-5, theirs)

    def test_prompt_and_seed(self):
        options = ["--prompt", "A gentle", "--tokens", "20", "--temperature", "1", "--top-p", "0.9"]
        one = self.generate(*options, "--seed", "1").stdout
        self.assertTrue(one.startswith(b"A gentle"))
        self.assertEqual(self.generate(*options, "--seed", "1").stdout, one)
        self.assertNotEqual(self.generate(*options, "--seed", "2").stdout, one)

    def test_wrong_files(self):
        result = run(TOKENIZER, TOKENIZER)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr.decode(), r"^05_llama_generate: .*aidreams_tok512")
        self.assertEqual(len(re.findall("\n", result.stderr.decode())), 1)


class Usage(unittest.TestCase):
    def test_wrong_usage_is_status_2(self):
        for arguments in [[], ["/no/such/file", "/no/such/file"], ["--what"]]:
            self.assertEqual(run(*arguments).returncode, 2, arguments)


if __name__ == "__main__":
    unittest.main()
