"""Runs that are killed, filled up and told to stop end with the bytes of the undisturbed run.

The worker is started by the same command until it is done. Faults come from failio.c, which lies
beside the checkout; what needs it is skipped where it doesn't, or where there is no C compiler.
"""

import concurrent.futures
import errno
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WORKER = sys.argv.pop(1)
TOOLS = sys.argv.pop(1)
STEPS, EVERY = 8, 4
SHM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where a sync costs nothing


def new_folder():
    return tempfile.TemporaryDirectory(prefix="glassgrad.", dir=SHM)


def command(folder, steps=STEPS, every=EVERY, pause=0, die_at=-1, linger=0, width=6):
    return [WORKER, folder, *map(str, (steps, every, pause, die_at, linger, width))]


def environment(threads=1, **extra):
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1", **extra}


def run(folder, threads=1, env=None, **options):
    return subprocess.run(command(folder, **options), capture_output=True, text=True, timeout=60,
                          env=environment(threads, **(env or {})))


def start(folder, **options):
    # A test that runs in the background may have been given a SIGINT that is ignored.
    return subprocess.Popen(command(folder, **options), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment(),
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def files(folder):
    """Name and bytes of all that has a final name."""
    return {name: read(os.path.join(folder, name)) for name in os.listdir(folder)
            if name.endswith(".safetensors")}


def temporaries(folder):
    return [name for name in os.listdir(folder) if ".tmp." in name]


def many(function, items):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, items))


class Reference:
    """What an undisturbed run writes, at every step."""

    def __init__(self, steps, every):
        self.whole = set()
        with new_folder() as folder:
            process = start(folder, steps=steps, every=every)
            process.communicate()
            assert process.returncode == 0
            self.end = files(folder)
        # The runs that are killed there leave each checkpoint that the undisturbed one removes.
        with new_folder() as folder:
            for step in range(every, steps + 1, every):
                run(folder, steps=steps, every=every, die_at=step)
                self.whole |= set(files(folder).values())
            run(folder, steps=steps, every=every)
            assert files(folder)["final.safetensors"] == self.end["final.safetensors"]
        self.whole |= set(self.end.values())


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.reference = Reference(STEPS, EVERY)

    def assert_whole(self, folder, where, reference=None):
        """All that has a final name is a checkpoint as the undisturbed run wrote it."""
        whole = (reference or self.reference).whole
        for name, content in files(folder).items():
            self.assertIn(content, whole, f"{name} {where}")

    def assert_resumes(self, folder, where, **options):
        result = run(folder, **options)
        self.assertEqual(result.returncode, 0, f"{where}: {result.stderr}")
        for name in ("final.safetensors", "best.safetensors"):
            self.assertEqual(files(folder)[name], self.reference.end[name], f"{name} {where}")
        if "step" in result.stdout:  # and so saved: what the killed run left is gone
            self.assertEqual(temporaries(folder), [], where)


class Runs(Case):
    # Any step, any number of threads

    def test_a_run_goes_on_from_any_step(self):
        with new_folder() as folder:
            reference = run(folder, steps=20, every=1)
            self.assertEqual(reference.returncode, 0, reference.stderr)
            final = files(folder)["final.safetensors"]

        def killed_at(step):
            with new_folder() as folder:
                killed = run(folder, steps=20, every=1, die_at=step)
                resumed = run(folder, steps=20, every=1)
                return killed.returncode, resumed.stdout, files(folder)["final.safetensors"]

        for step, (status, told, content) in enumerate(many(killed_at, range(1, 20)), 1):
            self.assertEqual(status, -signal.SIGKILL)
            self.assertEqual(told.splitlines()[:2], [f"resumed at {step}", f"step {step + 1}"])
            self.assertEqual(content, final, step)

    def test_a_run_goes_on_with_any_number_of_threads(self):
        # Wide enough that its kernels share their work.
        options = {"steps": 6, "every": 2, "width": 20000}
        finals = []
        for threads in [(1, 1), (1, 3), (2, 1)]:
            with new_folder() as folder:
                run(folder, threads[0], die_at=2, **options)
                self.assertEqual(run(folder, threads[1], **options).returncode, 0)
                finals.append(files(folder)["final.safetensors"])
        self.assertEqual(finals[1], finals[0])
        self.assertEqual(finals[2], finals[0])

    # Killed

    def test_killed_at_random_instants(self):
        steps, every = 400, 10
        generator = random.Random(1)
        durations = []
        for _ in range(3):
            with new_folder() as folder:
                begin = time.monotonic()
                run(folder, steps=steps, every=every)
                durations.append(time.monotonic() - begin)
        reference = Reference(steps, every)
        kills = resumed = 0
        while kills < 40:
            with new_folder() as folder:
                longest = min(durations)
                while True:
                    process = start(folder, steps=steps, every=every)
                    try:
                        _, error = process.communicate(
                            timeout=generator.uniform(0.1, 0.9) * longest)
                        break
                    except subprocess.TimeoutExpired:
                        process.kill()
                        told, _ = process.communicate()
                        kills += 1
                        longest *= 1.05  # ends, too, where the machine has become slow
                        resumed += "resumed at" in told
                        self.assert_whole(folder, f"after kill {kills}", reference)
                self.assertEqual(process.returncode, 0, error)
                self.assertEqual(files(folder)["final.safetensors"],
                                 reference.end["final.safetensors"])
        self.assertGreater(resumed, 0)  # the instants are those of a run, not of its start

    # Told to stop

    def test_signals_finish_the_step_save_and_end(self):
        def by_file(folder, _):
            open(os.path.join(folder, "stop"), "w").close()

        def by_signal(number):
            return lambda _, process: process.send_signal(number)

        for stop, status in [(by_signal(signal.SIGINT), 130), (by_signal(signal.SIGTERM), 143),
                             (by_signal(signal.SIGUSR1), 0), (by_file, 0)]:
            with new_folder() as folder:
                process = start(folder, pause=150000)
                while process.stdout.readline() != "step 2\n":
                    pass
                stop(folder, process)
                rest, error = process.communicate(timeout=20)
                self.assertEqual((process.returncode, error), (status, ""))
                steps = 2 + rest.count("step")
                self.assertLess(steps, STEPS)
                self.assertIn("stopping", rest)
                self.assertIn(f"step-{steps:06}.safetensors", files(folder))
                self.assert_resumes(folder, status)

    def test_a_second_signal_ends_at_once(self):
        with new_folder() as folder:
            process = start(folder, pause=150000, linger=60000000)
            while process.stdout.readline() != f"step {EVERY + 1}\n":
                pass
            process.send_signal(signal.SIGINT)
            while process.stdout.readline() != "stopping\n":
                pass
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, 130)
            self.assert_whole(folder, "after the second signal")
            self.assert_resumes(folder, "after the second signal")

    # Two at once

    def test_a_second_run_is_refused_and_a_killed_one_is_followed(self):
        with new_folder() as folder:
            first = start(folder, pause=10000000)
            first.stdout.readline()
            second = run(folder)
            self.assertEqual(second.returncode, 1)
            self.assertEqual(
                second.stderr, f"checkpoint_worker: RunLock: {folder}: process {first.pid} is "
                "working in this folder; wait for it, stop it, or choose another folder\n")
            self.assertEqual(second.stdout, "")
            first.kill()
            first.communicate()
            self.assert_resumes(folder, "after the first was killed")

    # Folders that take nothing

    def mounted(self, *arguments):
        if subprocess.run(["mount", *arguments], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", arguments[-1]], capture_output=True)

    def test_full_and_read_only_folders_are_noticed_before_the_first_step(self):
        place = tempfile.mkdtemp(prefix="glassgrad.", dir=SHM)
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        self.mounted("-t", "tmpfs", "-o", "size=8k", "tmpfs", place)
        result = run(place)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("cannot take room for 16384 bytes: No space left on device", result.stderr)
        self.assertEqual(os.listdir(place), ["lock"])
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        result = run(place)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(f"{place}: cannot open its lock: Read-only file system", result.stderr)


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
        """The folder, the calls, and the files that the run wrote."""
        here = os.path.dirname(os.path.abspath(__file__))
        with new_folder() as folder, new_folder() as other:
            log = os.path.join(other, "log")
            library = preloaded(os.path.join(here, "watch_files.c"), other)
            result = run(folder, steps=12, every=3,
                         env={"LD_PRELOAD": library, "WATCH_LOG": log, **environment})
            self.assertEqual(result.returncode, 0, result.stderr)
            calls = [line.split() for line in read(log).decode().splitlines()]
            return folder, calls, files(folder)

    def test_calls_that_are_interrupted_or_write_a_part_are_made_again(self):
        _, calls, written = self.calls()
        _, more, same = self.calls(WATCH_DISTURB="1")
        self.assertGreater(len(more), 2 * len(calls))
        self.assertEqual(same, written)

    def test_a_name_stands_for_bytes_that_are_on_disk(self):
        folder, calls, _ = self.calls()
        paths, unsynced = {}, set()  # what a descriptor is; paths with bytes that may be lost
        unsure = set()               # names that may be lost
        renamed = removed = 0
        for call, *arguments in calls:
            if call in ("write-open", "folder"):
                paths[arguments[0]] = arguments[1]
                self.assertFalse(call == "write-open" and arguments[1].endswith(".safetensors"))
            elif call == "write" and arguments[0] in paths:
                unsynced.add(paths[arguments[0]])
            elif call == "sync":
                path = paths[arguments[0]]
                unsynced.discard(path)
                if path == folder:
                    unsure.clear()
            elif call == "close":
                paths.pop(arguments[0], None)
            elif call == "rename":
                self.assertNotIn(arguments[0], unsynced)
                self.assertNotIn(arguments[0], paths.values())  # closed, and that was checked
                unsure.add(arguments[1])
                renamed += 1
            elif call == "unlink" and arguments[0].endswith(".safetensors"):
                self.assertEqual(unsure, set(), "an old checkpoint goes before the new one is safe")
                removed += 1
        self.assertEqual(unsure, set())
        self.assertGreaterEqual(renamed, 5)
        self.assertEqual(removed, 2)


class Faults(Case):
    """The N-th file operation fails, or is the last one, for each N until there is none."""

    @classmethod
    def setUpClass(cls):
        cls.build = new_folder()
        cls.addClassCleanup(cls.build.cleanup)
        cls.library = preloaded(os.path.join(TOOLS, "failio.c"), cls.build.name)
        super().setUpClass()
        with new_folder() as folder:
            count = os.path.join(cls.build.name, "count")
            cls.with_faults(folder, FAILIO_COUNT=count)
            cls.operations = int(read(count))

    @classmethod
    def with_faults(cls, folder, **faults):
        return run(folder, env={"LD_PRELOAD": cls.library, "FAILIO_PATH": folder,
                                **{name: str(value) for name, value in faults.items()}})

    def test_killed_at_every_operation(self):
        def killed_at(operation):
            with new_folder() as folder:
                result = self.with_faults(folder, FAILIO_N=operation, FAILIO_KILL=1)
                self.assertEqual(result.returncode, -signal.SIGKILL, operation)
                self.assert_whole(folder, f"killed at {operation}")
                self.assert_resumes(folder, f"killed at {operation}")

        many(killed_at, range(1, self.operations + 1))

    def test_every_operation_fails_once_and_for_ever(self):
        def failing(case):
            number, forever, operation = case
            where = f"{errno.errorcode[number]} at {operation}{', and after' * forever}"
            with new_folder() as folder:
                faults = {"FAILIO_FOREVER": 1} if forever else {}
                result = self.with_faults(folder, FAILIO_N=operation, FAILIO_ERRNO=number, **faults)
                self.assert_whole(folder, where)
                self.assertEqual(temporaries(folder), [], where)
                if result.returncode == 0:
                    self.assertEqual(files(folder)["final.safetensors"],
                                     self.reference.end["final.safetensors"], where)
                    return forever, operation
                self.assertEqual(result.returncode, 1, where)
                self.assertRegex(result.stderr, r"\Acheckpoint_worker: \w+: " + folder +
                                 f"[^:]*: cannot [^:]+: {os.strerror(number)}\n\\Z", where)
                saved = [int(line.split()[1]) for line in result.stdout.splitlines()]
                for step in [s for s in saved[:-1] if s % EVERY == 0]:
                    self.assertIn(f"step-{step:06}.safetensors", files(folder), where)
                if number == errno.ENOSPC and not forever:
                    self.assert_resumes(folder, where)
                return None

        cases = itertools.product((errno.ENOSPC, errno.EIO, errno.EROFS), (False, True),
                                  range(1, self.operations + 1))
        borne = [case for case in many(failing, cases) if case is not None]
        # Closing: the folder of each of five files, which is synced by then, the probe, the lock.
        self.assertEqual(sum(not forever for forever, _ in borne), 3 * (5 + 2))
        last = {self.operations - 1, self.operations}
        self.assertEqual({operation for forever, operation in borne if forever}, last)


if __name__ == "__main__":
    unittest.main()
