#!/usr/bin/env python3
"""glassgrad train and generate: settings, refusals, exit statuses, resuming.

usage: train_test.py GLASSGRAD
"""

import json
import os
import shutil
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
        return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, errors="replace",
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
        for line in ("# lr = 0.001 ", "steps = 2000 ", "# warmup = 100 ", 'schedule = "cosine" ',
                     "train_share = 0.9 ", "# bias = false ", "# momentum  "):
            self.assertIn("\n" + line, default)
        page = Path(__file__).resolve().parents[2] / "docs" / "training.md"
        self.assertIn(f"```toml\n{default}```\n", page.read_text())
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
                ("[train]\nschedule = 'cosin'\n",
                 ":2:12: schedule is constant, linear, cosine, one_cycle, step or plateau, not "
                 "'cosin'; did you mean 'cosine'?"),
                ("[train]\noptimizer = 'sgd'\nbeta1 = 0.8\n",
                 "beta1 is a setting of optimizer adamw, adam, lion or muon, not of sgd"),
                ("[train]\nnesterov = 1\n", ":2:12: nesterov is true or false, not '1'"),
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
        for problem, *flags in (
                ("momentum is a setting of optimizer sgd or muon, not of adamw", "--momentum", 0.5),
                ("adamw_lr is a setting of optimizer muon, not of lion", "--optimizer", "lion",
                 "--adamw-lr", 0.1),
                ("eps is a setting of optimizer adamw, adam or muon, not of lion", "--optimizer",
                 "lion", "--eps", 1e-6),
                ("warmup is a setting of schedule constant, linear, cosine, step or plateau, not "
                 "of one_cycle", "--schedule", "one_cycle", "--warmup", 2),
                ("min_lr is a setting of schedule linear, cosine or plateau, not of step",
                 "--schedule", "step", "--min-lr", 0),
                ("step_every is a setting of schedule step, not of cosine", "--step-every", 2),
                ("bias is a setting of model gpt, not of llama", "--model", "llama", "--bias",
                 "true"),
                ("num_kv_heads is a setting of model llama, not of gpt", "--num-kv-heads", 1),
                ("vocab_size is a setting of tokenizer bpe, not of char", "--vocab-size", 300),
                ("clip and clip_value exclude each other", "--clip", 1, "--clip-value", 1),
                ("min_delta is a setting of an early stop", "--min-delta", 0.1),
                ("optimizer is adamw, adam, sgd, lion or muon, not 'adamv'; did you mean 'adamw'?",
                 "--optimizer", "adamv"),
                ("llama: num_heads 2 is not a multiple of num_kv_heads 3", "--model", "llama",
                 "--num-kv-heads", 3),
                ("adamw: beta1 2 is outside 0 to 1", "--beta1", 2),
                ("one_cycle_schedule: 8 steps, of which 2 go up", "--schedule", "one_cycle",
                 "--up-share", 2),
                ("step_schedule: every 0 steps", "--schedule", "step", "--step-every", 0),
                ("eval_every 0 leaves nothing for a plateau", "--schedule", "plateau",
                 "--eval-every", 0)):
            self.refused(2, problem, "text.txt", *SMALL, *flags)
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
        start = json.loads((self.folder / "run" / "run.json").read_text())["starts"][0]
        self.assertEqual(start["command"], [COMMAND, "train", "text.txt", *SMALL])
        self.assertIn("adamw, lr 0.001, cosine", start["facts"]["optimizer"])
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

    def test_what_can_be_chosen_trains_and_resumes_with_the_same_bits(self):
        losses = {}
        for number, flags in enumerate((
                ("--optimizer", "adam", "--schedule", "linear", "--clip", 0),
                ("--optimizer", "sgd", "--momentum", 0.8, "--nesterov", "true", "--schedule",
                 "step", "--step-every", 3),
                ("--optimizer", "sgd", "--momentum", 0, "--schedule", "constant", "--warmup", 3),
                ("--optimizer", "lion", "--schedule", "one_cycle", "--up-share", 0.4,
                 "--clip-value", 0.1),
                ("--optimizer", "muon", "--adamw-lr", 0.01, "--average-decay", 0.5,
                 "--micro-batch", 1, "--micro-batches-per-pass", 2),
                ("--model", "llama", "--num-kv-heads", 1, "--schedule", "plateau",
                 "--plateau-patience", 0, "--eval-every", 1, "--patience", 100, "--min-delta", 0.01),
                ("--model", "llama", "--tokenizer", "bpe", "--vocab-size", 257, "--optimizer",
                 "muon", "--tie-head", "true"))):
            with self.subTest(flags=flags):
                whole, parts = f"whole{number}", self.folder / f"parts{number}"
                done = self.run_command("train", "text.txt", *SMALL, *flags, "--out", whole)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                parts.mkdir()
                (parts / "stop").touch()
                for again in ([], ["--resume"]):
                    done = self.run_command(
                        "train", "--out", parts, "--quiet", *again,
                        *([] if again else ["--config", f"{whole}/config.toml"]))
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                rows = [[{key: value for key, value in json.loads(line).items()
                          if key not in ("seconds", "tokens_per_s")}
                         for line in (folder / "metrics.jsonl").read_text().splitlines()]
                        for folder in (self.folder / whole, parts)]
                self.assertEqual(rows[0], rows[1])
                self.assertNotIn(rows[0][-1]["loss"], losses)
                losses[rows[0][-1]["loss"]] = flags
                text = self.run_command("generate", parts, "--length", 5, "--prompt", "the ")
                self.assertEqual((text.returncode, text.stderr), (0, ""))
                told = self.run_command("info", parts / "best.safetensors").stdout
                self.assertIn("llama" if "llama" in flags else "gpt", told)

        # What can't be changed, and what goes when another choice comes.
        for problem, *flags in (("model from llama to gpt", "--model", "gpt"),
                                ("optimizer from muon to sgd", "--optimizer", "sgd"),
                                ("vocab_size from 257 to 258", "--vocab-size", 258),
                                ("average_decay from 0 to 0.9", "--average-decay", 0.9)):
            done = self.run_command("train", "--resume", "--out", "whole6", *flags)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"a run can't be resumed with another {problem}", done.stderr)
        done = self.run_command("train", "--resume", "--out", "whole1", "--schedule", "constant",
                                "--steps", 10, "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("# step_every ", (self.folder / "whole1" / "config.toml").read_text())

    def test_generate_prints_as_it_draws_and_ends_with_its_reader(self):
        done = self.run_command("train", "text.txt", *SMALL)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        call = [COMMAND, "generate", "run", "--prompt", "the ", "--length"]
        whole = subprocess.run([*call, "200"], capture_output=True, cwd=self.folder, timeout=60)
        self.assertEqual((whole.returncode, whole.stderr, len(whole.stdout)), (0, b"", 205))
        # So long that nobody would live to see its end.
        endless = subprocess.Popen([*call, "2000000000"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd=self.folder, bufsize=0)
        came = b""
        while len(came) < 204:
            came += endless.stdout.read(1)
        self.assertEqual(came, whole.stdout[:204])
        endless.stdout.close()
        self.assertEqual((endless.wait(timeout=60), endless.stderr.read()), (0, b""))
        endless.stderr.close()
        with open("/dev/full", "w") as nowhere:
            full = subprocess.run([*call, "10"], stdout=nowhere, cwd=self.folder,
                                  stderr=subprocess.PIPE, timeout=60)
        self.assertEqual((full.returncode, full.stderr),
                         (1, b"glassgrad: cannot write to standard output\n"))
        told = self.run_command("info", "run/best.safetensors").stdout
        self.assertRegex(told, r"\ncheckpoint after step \d, whole by its checksums\n"
                         r'config: \{ "architecture":"gpt", "vocab_size":')
        self.assertIn("\ntokenizer: char of 16 tokens\nrun:\n  [data]\n  file = \"text.txt\"\n",
                      told)

    def test_a_rate_is_searched_for(self):
        done = self.run_command("train", "text.txt", *SMALL, "--find-lr")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\Alr +loss\n(\d\S+  \d+\.\d{4}\n)+"
                         r"The loss falls fastest at --lr 0\.\d+\n\Z")
        self.assertFalse((self.folder / "run").exists())

    def test_a_profile_is_printed_and_written(self):
        done = self.run_command("train", "text.txt", *SMALL, "--profile", "profile.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\nop +share [^$]+\nlayer_norm +[^$]+\nlayer +share ")
        events = json.loads((self.folder / "profile.json").read_text())["traceEvents"]
        self.assertLessEqual({"forward", "backward", "layer_norm"}, {each["name"] for each in events})
        failed = self.run_command("train", "text.txt", *SMALL, "--out", "none", "--profile", "no/p.json")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("no/p.json", failed.stderr)
        self.assertFalse((self.folder / "none").exists())

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
        for words, expected in (
                ("in", "info"), ("train --mi", "--micro-batch --micro-batches-per-pass --min-lr "
                                               "--min-delta"),
                ("train --optimizer a", "adamw adam"), ("train --bias ", "true false"),
                ("train x.txt --schedule one", "one_cycle"), ("train --lr ", ""),
                ("completion ", "bash zsh fish"), ("generate run --te", "--temperature")):
            *before, last = words.split(" ")
            done = subprocess.run(["bash", "-c", script + f"""
                COMP_WORDS=(glassgrad {' '.join(before)} '{last}'); COMP_CWORD={len(before) + 1}
                _glassgrad; echo "${{COMPREPLY[@]}}" """],
                capture_output=True, text=True, timeout=60)
            self.assertEqual((done.stdout, done.stderr), (expected + "\n", ""), words)
        for shell, line in (("zsh", "'--optimizer=[muon\\: Muon for matrices, AdamW for the rest]"
                             ":optimizer:(adamw adam sgd lion muon)'"),
                            ("fish", "-l resume -d 'Go on with the run in --out'")):
            script = self.run_command("completion", shell).stdout
            self.assertIn(line, script)
            program = shutil.which(shell)
            if program is not None:
                done = subprocess.run([program, "-n", "/dev/stdin"], input=script, text=True,
                                      capture_output=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.run_command("completion", "tcsh").returncode, 2)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, text=True,
                                  capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        if shutil.which("man"):
            (self.folder / "glassgrad.1").write_text(page)
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "glassgrad.1"],
                                  cwd=self.folder, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("EXIT STATUS", done.stdout.replace("\b", ""))


unittest.main()
