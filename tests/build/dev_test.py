#!/usr/bin/env python3
"""Runs ./dev with stand-ins for dpkg-query, apt-get, id and sudo on the path, and pins what it
says and does about missing packages on each kind of machine. Nothing is installed."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

DEV = Path(__file__).parents[2] / "dev"
# What ./dev may call besides the stand-ins.
PLAIN_TOOLS = ["bash", "cat", "dirname", "env", "mktemp", "nproc", "rm", "sed", "tail", "true"]

NOTHING_INSTALLED = "exit 1"
EVERYTHING_INSTALLED = 'for p in "$@"; do echo "installed $p"; done'
ALL_BUT_FMT = 'for p in "$@"; do [ "$p" = libfmt-dev ] || echo "installed $p"; done; exit 1'


class Dev(unittest.TestCase):
    def run_dev(self, *arguments, tools, environment=()):
        """Runs ./dev where `tools` (name: bash body) are all there is besides PLAIN_TOOLS."""
        with tempfile.TemporaryDirectory() as folder:
            bin_dir = Path(folder)
            for name in PLAIN_TOOLS:
                (bin_dir / name).symlink_to(shutil.which(name))
            for name, body in tools.items():
                (bin_dir / name).write_text(f"#!{shutil.which('bash')}\n{body}\n")
                (bin_dir / name).chmod(0o755)
            log = bin_dir / "log"
            log.touch()
            run = subprocess.run(
                [DEV, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                env={"PATH": folder, "LOG": str(log), "HOME": folder, **dict(environment)},
                timeout=60)
            return run.returncode, run.stdout, run.stderr, log.read_text()

    APT = 'echo "apt-get $*" >>"$LOG"'
    ROOT = "echo 0"
    USER = "echo 1000"

    def test_nothing_missing_calls_nothing(self):
        code, out, _, log = self.run_dev(
            "setup", "test",
            tools={"dpkg-query": EVERYTHING_INSTALLED, "apt-get": self.APT, "id": self.ROOT})
        self.assertEqual((code, log), (0, ""))
        self.assertEqual(out, "everything for test is installed\n")

    def test_root_installs_what_is_missing_and_says_why(self):
        code, out, _, log = self.run_dev(
            "setup", "demo", tools={"dpkg-query": ALL_BUT_FMT, "apt-get": self.APT, "id": self.ROOT})
        self.assertEqual(code, 0)
        self.assertIn("libfmt-dev           formats error texts", out)
        self.assertNotIn("cmake", out)
        calls = log.splitlines()
        self.assertTrue(calls[0].endswith("update"), calls)
        self.assertTrue(
            calls[1].endswith("install -y --no-install-recommends libfmt-dev"), calls)
        self.assertEqual(len(calls), 2)

    def test_a_user_without_sudo_gets_the_exact_command(self):
        code, _, error, log = self.run_dev(
            "demo", tools={"dpkg-query": ALL_BUT_FMT, "apt-get": self.APT, "id": self.USER})
        self.assertEqual((code, log), (1, ""))
        self.assertEqual(error, "dev: these need root to install: "
                                "apt-get install -y --no-install-recommends libfmt-dev\n")

    def test_sudo_that_wants_a_password_stops_with_the_command(self):
        code, _, error, log = self.run_dev(
            "demo", tools={"dpkg-query": ALL_BUT_FMT, "apt-get": self.APT, "id": self.USER,
                           "sudo": "exit 1"})
        self.assertEqual((code, log), (1, ""))
        self.assertIn("run: sudo apt-get install -y --no-install-recommends libfmt-dev", error)

    def test_sudo_without_a_password_is_used(self):
        code, out, _, log = self.run_dev(
            "setup", "demo", tools={"dpkg-query": ALL_BUT_FMT, "apt-get": self.APT, "id": self.USER,
                                    "sudo": 'echo sudo >>"$LOG"; shift; exec "$@"'})
        self.assertEqual(code, 0)
        self.assertIn("installing with sudo -n apt-get", out)
        self.assertEqual(log.count("sudo"), log.count("apt-get") + 1)

    def test_a_failing_apt_get_stops_with_its_output(self):
        code, _, error, _ = self.run_dev(
            "demo", tools={"dpkg-query": ALL_BUT_FMT, "apt-get": "echo no such mirror; exit 100",
                           "id": self.ROOT})
        self.assertEqual(code, 1)
        self.assertIn("no such mirror", error)
        self.assertIn("apt-get failed", error)

    def test_each_verb_wants_its_own_set(self):
        wanted = {"demo": ("libcli11-dev", "catch2"), "test": ("catch2", "clang-tidy-14"),
                  "lint": ("clang-tidy-14", "libomp-14-dev"), "tsan": ("libomp-14-dev", "libbenchmark-dev"),
                  "bench": ("libbenchmark-dev", "catch2"), "format": ("clang-format-14", "cmake")}
        for verb, (inside, outside) in wanted.items():
            with self.subTest(verb=verb):
                _, out, _, _ = self.run_dev(
                    "setup", verb,
                    tools={"dpkg-query": NOTHING_INSTALLED, "apt-get": self.APT, "id": self.ROOT})
                self.assertIn(f"  {inside} ", out)
                self.assertNotIn(f"  {outside} ", out)

    def test_another_distribution_is_told_what_is_needed(self):
        code, out, _, _ = self.run_dev("setup", "demo", tools={"id": self.USER})
        self.assertEqual(code, 0)
        self.assertIn("not a Debian system", out)
        self.assertIn("libopenblas-dev", out)

    def test_no_install_installs_nothing(self):
        code, _, _, log = self.run_dev(
            "setup", "demo", environment={"GLASSGRAD_NO_INSTALL": "1"},
            tools={"dpkg-query": NOTHING_INSTALLED, "apt-get": self.APT, "id": self.ROOT})
        self.assertEqual((code, log), (0, ""))

    def test_unknown_words_stop_with_a_sentence(self):
        for arguments, expected in [
                (["dmeo"], "dev: no verb 'dmeo'"),
                (["setup", "dmeo"], "dev: setup does not know 'dmeo'"),
                (["build", "--preset", "fast"], "dev: no preset 'fast'")]:
            with self.subTest(arguments=arguments):
                code, _, error, log = self.run_dev(
                    *arguments, tools={"dpkg-query": EVERYTHING_INSTALLED, "apt-get": self.APT})
                self.assertEqual((code, log), (1, ""))
                self.assertIn(expected, error)


if __name__ == "__main__":
    unittest.main()
