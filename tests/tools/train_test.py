#!/usr/bin/env python3
"""glassgrad train and generate: settings, refusals, exit statuses, resuming.

usage: train_test.py GLASSGRAD
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

COMMAND = os.path.abspath(sys.argv.pop(1))
TEXT = "the cat sat there, and the mat sat with the cat; there it sat. " * 8
SMALL = ["--steps", "8", "--d-model", "8", "--num-layers", "1", "--num-heads", "2",
         "--context-length", "8", "--batch-size", "2", "--eval-every", "4", "--eval-batches", "1",
         "--quiet"]


class Train(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT)

    def run_command(self, *arguments, **environment):
        return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True,
                              timeout=100, cwd=self.folder, env={**os.environ, "OMP_NUM_THREADS": "1", **environment})

    def refused(self, status, text, *arguments, **environment):
        done = self.run_command("train", *arguments, **environment)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_settings(self):
        def effective(*arguments, **environment):
            done = self.run_command("train", "--print-config", *arguments, **environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        default = effective()
        for line in ("lr = 0.001 ", "steps = 2000 ", "# warmup ", 'schedule = "cosine" ',
                     "train_share = 0.9 ", "bias = false "):
            self.assertIn("\n" + line, default)
        file = self.folder / "a.toml"
        file.write_text(default)
        self.assertEqual(effective("--config", file), default)
        file.write_text('[train]\nlr = 1\nsteps = 5\nwarmup = 2\n[run]\nprompt = "a\\"\\n"\n')
        self.assertIn("\nlr = 1.0 ", effective("--config", file))
        self.assertIn('\nprompt = "a\\"\\u000A" ', effective("--config", file))
        self.assertIn("\nlr = 2.0 ", effective("--config", file, GLASSGRAD_LR="2"))
        self.assertIn("\nlr = 3.0 ", effective("--config", file, "--lr", "3", GLASSGRAD_LR="2"))

        for content, problem in (
                ("[train]\nsteps = 5\nbach_size = 3\n",
                 ":3:1: unknown key 'train.bach_size'; did you mean 'train.batch_size'?"),
                ("[trian]\n", "unknown section 'trian'; did you mean 'train'?"),
                ("lr = 3\n", ":1:1: 'lr' belongs under [train]"),
                ("[train]\nsteps = 5.0\n", ":2:9: steps is a whole number, not '5.0'"),
                ("[train]\nlr = 'x'\n", ":2:6: lr is a number"),
                ("[train]\nschedule = 'cosin'\n", ":2:12: schedule is constant, linear,"),
                ("[train\n", ":1:"), ("[train]\nlr = 1\nlr = 2\n", ":3:")):
            file.write_text(content)
            self.refused(2, f"glassgrad: {file}{problem}" if problem[0] == ":" else problem,
                         "text.txt", "--config", file)

    def test_refusals(self):
        self.refused(2, "--lr: lr is a number, not 'much'", "text.txt", "--lr", "much")
        self.refused(2, "GLASSGRAD_STEPS: steps is a whole number, not 'x'", "text.txt",
                     GLASSGRAD_STEPS="x")
        self.refused(2, "warmup 9 is not within the 8 steps", "text.txt", *SMALL, "--warmup", 9)
        self.refused(2, "num_heads", "text.txt", *SMALL, "--num-heads", 3)
        self.refused(2, "tokenizer is char or bpe, not 'words'", "text.txt", "--tokenizer",
                     "words")
        self.refused(2, "no text to train on")
        self.refused(2, "run is no folder of a run", "text.txt", "--resume")
        self.refused(1, "character", "text.txt", *SMALL, "--prompt", "Ω")
        for content in (b"", "text".encode("utf-16"), b"caf\xe9 and tea", b"ten chars."):
            self.text.write_bytes(content)
            self.refused(1, "glassgrad: ", "text.txt", *SMALL)
        self.refused(1, "glassgrad: ", "no such file", *SMALL)
        self.text.write_bytes(b"caf\xe9 and tea, " * 20)
        done = self.run_command("train", "text.txt", *SMALL, "--any-bytes", "true", "--tokenizer",
                                "bpe", "--vocab-size", 258)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_run(self):
        done = self.run_command("train", "text.txt", *SMALL)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        again = self.run_command("train", "text.txt", *SMALL)
        self.assertEqual(again.returncode, 2)
        self.assertIn("run holds a run already", again.stderr)

        # From its own configuration, stopped after a step and resumed: the same weights.
        other = self.folder / "other"
        other.mkdir()
        (other / "stop").touch()
        begun = self.run_command("train", "--config", "run/config.toml", "--out", other, "--quiet")
        self.assertEqual(begun.returncode, 0, begun.stderr)
        self.assertTrue((other / "step-000001.safetensors").is_file())
        changed = self.run_command("train", "--resume", "--out", other, "--d-model", 16)
        self.assertEqual((changed.returncode, changed.stderr), (
            2, "glassgrad: a run can't be resumed with another d_model from 8 to 16\n"))
        resumed = self.run_command("train", "--resume", "--out", other, "--quiet")
        self.assertEqual((resumed.returncode, resumed.stderr), (0, ""))
        texts = [self.run_command("generate", where, "--newest", "--length", 40, "--prompt", "the")
                 for where in ("run", other)]
        self.assertEqual(texts[0].returncode, 0, texts[0].stderr)
        self.assertEqual(len(texts[0].stdout), 3 + 40 + 1)
        self.assertEqual(texts[0].stdout, texts[1].stdout)
        self.text.write_text(TEXT.upper())
        changed = self.run_command("train", "--resume", "--out", other)
        self.assertEqual((changed.returncode, changed.stderr), (
            2, f"glassgrad: the run in {other} was begun with another text\n"))
        self.text.write_text(TEXT * 2)
        pairs = self.run_command("train", "text.txt", *SMALL, "--tokenizer", "bpe",
                                 "--vocab-size", 260, "--out", "pairs", "--prompt", "Ω")
        self.assertEqual((pairs.returncode, pairs.stderr), (0, ""))
        wrong = self.run_command("generate", "run/config.toml")
        self.assertEqual((wrong.returncode, wrong.stdout), (1, ""))

    def test_divergence_and_interruption(self):
        done = self.run_command("train", "text.txt", *SMALL, "--lr", "1e30", "--clip", 0)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("step", done.stderr)
        # Long enough that it is running when the signal comes.
        process = subprocess.Popen([COMMAND, "train", "text.txt", *SMALL, "--steps", "1000000",
                                    "--out", "long"], cwd=self.folder)
        metrics = self.folder / "long" / "metrics.jsonl"
        for _ in range(600):
            if metrics.exists() and metrics.stat().st_size > 0:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertTrue(list((self.folder / "long").glob("step-*.safetensors")))

    def test_manual_and_completion(self):
        page = self.run_command("man").stdout
        script = self.run_command("completion", "bash").stdout
        for flag in ("--batch-size", "--resume", "--top-k"):
            self.assertIn(flag, script)
            self.assertIn(flag.replace("-", "\\-"), page)
        words = subprocess.run(["bash", "-c", script + """
            COMP_WORDS=(glassgrad train --mi); COMP_CWORD=2; _glassgrad; echo "${COMPREPLY[@]}"
            COMP_WORDS=(glassgrad in); COMP_CWORD=1; _glassgrad; echo "${COMPREPLY[@]}" """],
            capture_output=True, text=True, timeout=60)
        self.assertEqual(words.stdout.splitlines(), ["--micro-batch --min-lr", "info"],
                         words.stderr)
        self.assertEqual(self.run_command("completion", "fish").returncode, 2)


unittest.main()
