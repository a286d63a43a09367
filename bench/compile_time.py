#!/usr/bin/env python3
"""Compile time, without optimisation, of the smallest program that uses glassgrad (two tensors, a
product, a gradient), and of one that includes four standard headers. Processor time, the least of
several runs in turn. The argument, or $CXX, is the compiler; g++ otherwise."""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile

WANTED = 2.5
RUNS = 15
PROGRAMS = {
    "standard headers": """\
#include <functional>
#include <memory>
#include <string>
#include <vector>

int main() {}
""",
    "glassgrad": """\
#include <glassgrad/autograd.hpp>

using namespace glassgrad;

int main() {
    const Variable a = parameter(tensor({{1, 2}, {3, 4}}));
    const Variable b = parameter(tensor({{5, 6}, {7, 8}}));
    backward(sum(matmul(a, b)));
    return a.grad().item() > 0;
}
""",
}


def processor_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    compiler = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CXX", "g++")
    root = pathlib.Path(__file__).resolve().parent.parent
    includes = [f"-I{root / folder / 'include'}" for folder in ("tensor", "autograd")]
    times = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in PROGRAMS.items():
            pathlib.Path(folder, name + ".cpp").write_text(text)
        for _ in range(RUNS):
            for name in PROGRAMS:
                times[name].append(processor_seconds(
                    [compiler, "-std=c++20", "-O0", *includes, "-c", f"{folder}/{name}.cpp",
                     "-o", f"{folder}/out.o"]))
    print(f"compile time, {compiler} -O0, processor seconds, least [median] of {RUNS} runs")
    for name, values in times.items():
        print(f"{name:18} {min(values):6.3f} [{sorted(values)[RUNS // 2]:.3f}]")
    ratio = min(times["glassgrad"]) / min(times["standard headers"])
    verdict = "reached" if ratio <= WANTED else "NOT reached"
    print(f"{'ratio':18} {ratio:6.2f}   wanted: at most {WANTED}: {verdict}")


if __name__ == "__main__":
    main()
