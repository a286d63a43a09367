#!/usr/bin/env python3
"""Runs of `glassgrad train` that are killed, filled up and told to stop end with the bytes of the
undisturbed run: checkpoints, metrics without doubles or gaps, samples.

A run is started, and then resumed until it is done. Faults come from failio.c, which lies beside
the checkout; what needs it is skipped where it doesn't, or where there is no C compiler.

usage: train_faults_test.py GLASSGRAD TOOLS [--all] [unittest's arguments]

Without --all a run is killed at each third file operation, and each fails in one of six ways.
"""

import concurrent.futures
import errno
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = os.path.abspath(sys.argv.pop(1))
TOOLS = os.path.abspath(sys.argv.pop(1))
ALL = "--all" in sys.argv and sys.argv.remove("--all") is None
SHM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where a sync costs nothing
OUT = "the_run"
TEXT = "the cat sat there, and the mat sat with the cat; there it sat. " * 8
STEPS = 6
# Small enough that a run takes a few hundredths of a second.
TINY = {"steps": STEPS, "d-model": 8, "num-layers": 1, "num-heads": 2, "context-length": 8,
        "batch-size": 2, "micro-batch": 1, "dropout": 0.1, "average-decay": 0.9, "eval-every": 3,
        "eval-batches": 1, "checkpoint-every": 3, "sample-every": 2, "length": 5, "keep-last": 1}


class Folder:
    """A folder with a text, in which the run's folder is made."""

    def __init__(self, settings=None, text=TEXT):
        self.temporary = tempfile.TemporaryDirectory(prefix="glassgrad.", dir=SHM)
        self.path = self.temporary.name
        self.run = os.path.join(self.path, OUT)
        self.settings = {**TINY, **(settings or {})}
        with open(os.path.join(self.path, "text.txt"), "w") as file:
            file.write(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.temporary.cleanup()

    def command(self):
        """Resumes what can be resumed."""
        if self.saved():
            return [COMMAND, "train", "--resume", "--quiet", "--out", OUT]
        flags = [text for name, value in self.settings.items() for text in (f"--{name}", str(value))]
        return [COMMAND, "train", "text.txt", "--quiet", "--out", OUT, *flags]

    def start(self, threads=1, **environment):
        # A test that runs in the background may have been given a SIGINT that is ignored.
        return subprocess.Popen(
            self.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            env={**os.environ, "OMP_NUM_THREADS": str(threads), **environment})

    def go(self, threads=1, **environment):
        process = self.start(threads, **environment)
        output, error = process.communicate(timeout=100)
        assert output == "", output
        return process.returncode, error

    def stop_file(self):
        os.makedirs(self.run, exist_ok=True)
        with open(os.path.join(self.run, "stop"), "w"):
            pass

    def names(self):
        return os.listdir(self.run) if os.path.isdir(self.run) else []

    def read(self, name):
        with open(os.path.join(self.run, name), "rb") as file:
            return file.read()

    def saved(self):
        return [name for name in self.names() if name.endswith(".safetensors")]

    def checkpoints(self):
        return {name: self.read(name) for name in self.saved()}

    def temporaries(self):
        return [name for name in self.names() if ".tmp." in name]

    def steps_logged(self):
        return self.read("metrics.jsonl").count(b"\n") if "metrics.jsonl" in self.names() else 0

    def result(self):
        """What has to be the same, however the run came to its end."""
        last = f"step-{self.settings['steps']:06}.safetensors"
        lines = [json.loads(line) for line in self.read("metrics.jsonl").decode().splitlines()]
        for line in lines:
            del line["seconds"], line["tokens_per_s"]
        assert json.loads(self.read("run.json"))["format"] == "glassgrad-run"
        return {"metrics": lines, **{name: self.read(name) for name in
                                     (last, "best.safetensors", "samples.txt", "config.toml",
                                      "loss.svg")}}


def many(function, items):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, items))


class Reference:
    """What an undisturbed run writes, and the checkpoint of every step."""

    def __init__(self, settings=None, each_step=True):
        with Folder(settings) as folder:
            begin = time.monotonic()
            status, error = folder.go()
            self.seconds = time.monotonic() - begin
            assert (status, error) == (0, ""), error
            self.end = folder.result()
            self.whole = set(folder.checkpoints().values())
        if not each_step:
            return
        # Stopped after each step, and resumed from each.
        with Folder(settings) as folder:
            for step in range(1, folder.settings["steps"] + 1):
                folder.stop_file()
                status, error = folder.go()
                assert (status, error) == (0, ""), error
                self.whole |= set(folder.checkpoints().values())
                assert f"step-{step:06}.safetensors" in folder.names()
            assert folder.go() == (0, "")
            assert folder.result() == self.end


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.reference = Reference()

    def assert_whole(self, folder, where, reference=None):
        """All that has a checkpoint's name is one as the undisturbed run has it at that step."""
        for name, content in folder.checkpoints().items():
            self.assertIn(content, (reference or self.reference).whole, f"{name} {where}")

    def assert_resumes(self, folder, where, reference=None):
        self.assertEqual(folder.go(), (0, ""), where)
        self.assertEqual(folder.result(), (reference or self.reference).end, where)
        self.assertEqual(folder.temporaries(), [], where)


class Runs(Case):
    def test_a_run_goes_on_with_any_number_of_threads(self):
        # Wide enough that its kernels share their work.
        settings = {"d-model": 128, "batch-size": 12, "context-length": 64, "micro-batch": 6,
                    "steps": 3, "sample-every": 2}
        ends = []
        for before, after in [(1, 1), (1, 3), (2, 1)]:
            with Folder(settings, TEXT * 4) as folder:
                folder.stop_file()
                self.assertEqual(folder.go(before), (0, ""))
                self.assertEqual(folder.go(after), (0, ""))
                ends.append(folder.result())
        self.assertEqual(ends[1], ends[0])
        self.assertEqual(ends[2], ends[0])

    def test_killed_at_random_instants(self):
        settings = {"steps": 200, "checkpoint-every": 5, "eval-every": 20, "sample-every": 40}
        generator = random.Random(1)
        reference = Reference(settings, each_step=False)
        longest = min(reference.seconds, Reference(settings, each_step=False).seconds)
        kills = resumed = 0
        while kills < 40:
            with Folder(settings) as folder:
                upper = longest
                while True:
                    process = folder.start()
                    resumed += "--resume" in process.args
                    try:
                        _, error = process.communicate(
                            timeout=generator.uniform(0.1, 0.9) * upper)
                        self.assertEqual((process.returncode, error), (0, ""))
                        break
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.communicate()
                        kills += 1
                        upper *= 1.05  # ends, too, where the machine has become slow
                self.assertEqual(folder.result(), reference.end, f"after kill {kills}")
        self.assertGreater(resumed, 0)  # the instants are those of a run, not of its start

    # Told to stop

    def stopped(self, folder, stop):
        """Calls `stop` while the run is under way; its status, or None where that was too late."""
        process = folder.start()
        while process.poll() is None and folder.steps_logged() < 2:
            time.sleep(0.002)
        stop(folder, process)
        _, error = process.communicate(timeout=100)
        self.assertEqual(error, "")
        return process.returncode if folder.steps_logged() < folder.settings["steps"] else None

    def test_signals_finish_the_step_save_and_end(self):
        def by_signal(number):
            return lambda _, process: process.send_signal(number)

        settings = {"steps": 40, "batch-size": 64, "micro-batch": 64, "checkpoint-every": 0,
                    "eval-every": 50}
        reference = Reference(settings, each_step=False)
        for stop, expected in [(by_signal(signal.SIGINT), 130), (by_signal(signal.SIGTERM), 143),
                               (by_signal(signal.SIGUSR1), 0),
                               (lambda folder, _: folder.stop_file(), 0)]:
            status = None
            while status is None:
                with Folder(settings) as folder:
                    status = self.stopped(folder, stop)
                    if status is None:
                        continue
                    self.assertEqual(status, expected)
                    self.assertIn(f"step-{folder.steps_logged():06}.safetensors", folder.names())
                    self.assert_resumes(folder, expected, reference)

    def test_a_second_signal_ends_at_once(self):
        # A step takes seconds.
        with Folder({"batch-size": 8192, "micro-batch": 8192, "checkpoint-every": 1,
                     "eval-every": 0, "sample-every": 0}) as folder:
            process = folder.start()
            while "step-000001.safetensors" not in folder.names():
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            while process.poll() is None:
                process.send_signal(signal.SIGINT)
                time.sleep(0.02)
            process.communicate()
            self.assertEqual(process.returncode, 130)
            self.assertEqual(folder.saved(), ["step-000001.safetensors"])
            shown = subprocess.run([COMMAND, "generate", OUT, "--length", "5"], cwd=folder.path,
                                   capture_output=True, timeout=60)
            self.assertEqual((shown.returncode, shown.stderr), (0, b""))

    # Two at once

    def test_a_second_run_is_refused_and_a_killed_one_is_followed(self):
        with Folder({"steps": 100000}) as folder:
            first = folder.start()
            while not folder.saved():
                self.assertIsNone(first.poll())
                time.sleep(0.002)
            status, error = folder.go()
            self.assertEqual((status, error), (
                1, f"glassgrad: RunLock: {OUT}: process {first.pid} is working in this folder; "
                "wait for it, stop it, or choose another folder\n"))
            first.kill()
            first.communicate()
            folder.stop_file()
            self.assertEqual(folder.go(), (0, ""))

    # Folders that take nothing

    def mounted(self, *arguments):
        if subprocess.run(["mount", *arguments], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", arguments[-1]], capture_output=True)

    def test_full_and_read_only_folders_are_noticed_before_the_first_step(self):
        folder = Folder()
        self.addCleanup(folder.temporary.cleanup)
        os.mkdir(folder.run)
        self.mounted("-t", "tmpfs", "-o", "size=8k", "tmpfs", folder.run)
        status, error = folder.go()
        self.assertEqual(status, 1)
        self.assertRegex(error, r"\Aglassgrad: probe_folder: .*cannot take room for \d+ bytes: "
                         r"No space left on device\n\Z")
        self.assertEqual(folder.names(), ["lock"])
        subprocess.run(["mount", "-o", "remount,ro", folder.run], check=True)
        status, error = folder.go()
        self.assertEqual(status, 1)
        self.assertIn(f"{OUT}: cannot open its lock: Read-only file system", error)


def preloaded(source, folder):
    """A library made of a C file; skips where that can't be done."""
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang-14")
    if not os.path.exists(source) or compiler is None:
        raise unittest.SkipTest(f"there is no {source} or no C compiler")
    library = os.path.join(folder, "preloaded.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", source, "-o", library, "-ldl"], check=True)
    return library


class Order(unittest.TestCase):
    """What would be left when the power fails, by the order of calls."""

    def calls(self, **environment):
        """The calls, and the files that the run wrote."""
        here = os.path.dirname(os.path.abspath(__file__))
        with Folder() as folder:
            log = os.path.join(folder.path, "log")
            library = preloaded(os.path.join(here, "watch_files.c"), folder.path)
            self.assertEqual(folder.go(LD_PRELOAD=library, WATCH_LOG=log, **environment), (0, ""))
            with open(log) as file:
                return [line.split() for line in file], folder.result()

    def test_calls_that_are_interrupted_or_write_a_part_are_made_again(self):
        calls, written = self.calls()
        more, same = self.calls(WATCH_DISTURB="1")
        self.assertGreater(len(more), 1.5 * len(calls))
        self.assertEqual(same, written)

    def test_a_name_stands_for_bytes_that_are_on_disk(self):
        calls, _ = self.calls()
        paths, unsynced = {}, set()  # what a descriptor is; paths with bytes that may be lost
        unsure = set()               # names that may be lost
        renamed = removed = 0
        for call, *arguments in calls:
            if call in ("write-open", "folder"):
                paths[arguments[0]] = arguments[1]
                self.assertNotRegex(arguments[1] if call == "write-open" else "",
                                    r"\.(safetensors|toml|json|svg)\Z")
            elif call == "write" and arguments[0] in paths:
                unsynced.add(paths[arguments[0]])
            elif call == "sync":
                path = paths[arguments[0]]
                unsynced.discard(path)
                if path == OUT:
                    unsure.clear()
            elif call == "close":
                paths.pop(arguments[0], None)
            elif call == "rename":
                self.assertNotIn(arguments[0], unsynced)
                self.assertNotIn(arguments[0], paths.values())  # closed, and that was checked
                # A checkpoint stands for the lines of the log up to it.
                if arguments[1].endswith(".safetensors"):
                    self.assertFalse({path for path in unsynced if path.endswith(".jsonl")})
                unsure.add(arguments[1])
                renamed += 1
            elif call == "unlink" and arguments[0].endswith(".safetensors"):
                self.assertEqual(unsure, set(), "an old checkpoint goes before the new one is safe")
                removed += 1
        self.assertEqual(unsure, set())
        self.assertGreaterEqual(renamed, 7)
        self.assertGreaterEqual(removed, 1)


class Faults(Case):
    """The N-th file operation fails, or is the last one, for each N until there is none."""

    @classmethod
    def setUpClass(cls):
        cls.build = tempfile.TemporaryDirectory(prefix="glassgrad.")
        cls.addClassCleanup(cls.build.cleanup)
        cls.library = preloaded(os.path.join(TOOLS, "failio.c"), cls.build.name)
        super().setUpClass()
        with Folder() as folder:
            count = os.path.join(cls.build.name, "count")
            cls.with_faults(folder, FAILIO_COUNT=count)
            with open(count) as file:
                cls.operations = int(file.read())

    @classmethod
    def with_faults(cls, folder, **faults):
        return folder.go(LD_PRELOAD=cls.library, FAILIO_PATH=OUT,
                         **{name: str(value) for name, value in faults.items()})

    def test_killed_at_every_operation(self):
        def killed_at(operation):
            with Folder() as folder:
                status, _ = self.with_faults(folder, FAILIO_N=operation, FAILIO_KILL=1)
                self.assertEqual(status, -signal.SIGKILL, operation)
                self.assert_whole(folder, f"killed at {operation}")
                self.assert_resumes(folder, f"killed at {operation}")

        many(killed_at, range(1, self.operations + 1, 1 if ALL else 3))

    def test_every_operation_fails_once_and_for_ever(self):
        def failing(case):
            (number, forever), operation = case
            where = f"{errno.errorcode[number]} at {operation}{', and after' * forever}"
            with Folder() as folder:
                faults = {"FAILIO_FOREVER": 1} if forever else {}
                status, error = self.with_faults(folder, FAILIO_N=operation, FAILIO_ERRNO=number,
                                                 **faults)
                self.assert_whole(folder, where)
                self.assertEqual(folder.temporaries(), [], where)
                if status == 0:
                    self.assertEqual((error, folder.result()), ("", self.reference.end), where)
                    return (number, forever), operation
                self.assertEqual(status, 1, where)
                self.assertRegex(error, r"\Aglassgrad: \w+: " + OUT +
                                 f"[^:]*: cannot [^:]+: {os.strerror(number)}\n\\Z", where)
                if folder.steps_logged() > 3:  # what was saved before is there
                    self.assertTrue({"step-000003.safetensors", "step-000006.safetensors"} &
                                    set(folder.names()), where)
                self.assert_resumes(folder, where)
                return None

        ways = list(itertools.product((errno.ENOSPC, errno.EIO, errno.EROFS), (False, True)))
        cases = [(way, operation) for i, way in enumerate(ways)
                 for operation in range(1, self.operations + 1) if ALL or operation % 6 == i]
        borne = [case for case in many(failing, cases) if case is not None]
        # Closing: the folders of seven files, which are synced by then; at the end the last four.
        for number, forever in ways:
            count = sum(way == (number, forever) for way, _ in borne)
            most = 4 if forever else 7 + 4
            if number == errno.EROFS and not forever:
                most += 4  # what can't be synced because nobody can write there
            self.assertTrue(count == most if ALL else count <= most, (number, forever, count))


if __name__ == "__main__":
    unittest.main()
