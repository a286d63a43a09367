#!/usr/bin/env python3
"""Prints docs/speed.md's tables: every program in turn, then what was wanted beside what was measured.
Takes half an hour on a quiet machine. --only WORD leaves out sections without the word in their title;
--write puts what is printed into the page, between its two marks."""

import argparse
import subprocess
import sys

from alternate import PROGRAMS, ROOT, environment, markdown
from check import machine
from ratios import cells, worked_example_of

SECTIONS = {
    "Training steps": ["python3", ROOT / "bench/step_ratios.py"],
    "The worked example": [PROGRAMS / "bench_worked_example"],
    "Attention by length": [PROGRAMS / "bench_attention"],
    "Generation": [PROGRAMS / "bench_generation"],
    "Kernels": [PROGRAMS / "bench_kernels"],
    "Watching for NaN": [PROGRAMS / "bench_watched"],
    "Single ops": [PROGRAMS / "bench_ops"],
    "Compile time": ["python3", ROOT / "bench/compile_time.py"],
}

PAGE = ROOT / "docs/speed.md"
MARKS = "<!-- measured -->", "<!-- end of what is measured -->"

# Work: share of FMA peak in percent and times PyTorch, on one thread and on two.
TRAINING = {
    "tiny": [(None, 50), (None, None)],
    "nano": [(78, 1.6), (70, 2)],
    "baby": [(85, 1.3), (78, 1.3)],
    "gpt2": [(82, 1.4), (72, 1.7)],
}
GPT2_MEMORY, C_BY_HAND, LIBTORCH, ATTENTION, ATTENTION_SHARE, KERNELS = 0.8, 6, 40, 5, 50, 80


def output_of(command):
    done = subprocess.run([str(part) for part in command], env=environment(1), text=True,
                          stdout=subprocess.PIPE)
    if done.returncode != 0:
        print(f"{command[0]} failed", file=sys.stderr)
    return done.stdout


def verdict(measured, wanted):
    if wanted is None:
        return ""
    return "reached" if measured >= wanted else f"{measured / wanted:.2f} of it"


def training_rows(rows):
    """
    >>> training_rows([["tiny", "1", "", "", "", "", "", "", "1", "", "60.00", "", "0.06"]])
    [['tiny, times PyTorch', '1', 50, '60.00', 'reached']]
    """
    result = []
    for row in rows:
        work, threads, share, times, memory = row[0], row[1], row[8], row[10], row[12]
        wanted_share, wanted_times = TRAINING[work][int(threads) - 1]
        if wanted_share:
            result.append([f"{work}, % of FMA peak", threads, wanted_share, share,
                           verdict(float(share), wanted_share)])
        if times:
            result.append([f"{work}, times PyTorch", threads, wanted_times or "", times,
                           verdict(float(times), wanted_times)])
        if work == "gpt2" and memory:
            result.append([f"{work}, memory / PyTorch's", threads, f"at most {GPT2_MEMORY}", memory,
                           verdict(GPT2_MEMORY, float(memory))])
    return result


def worked_example_rows(ratios):
    result = []
    for name, value in ratios.items():
        wanted = 1 / C_BY_HAND if "C / " in name else LIBTORCH
        shown = f"1 / {1 / value:.1f}" if wanted < 1 else f"{value:.1f}"
        asked = f"1 / {C_BY_HAND}" if wanted < 1 else wanted
        result.append([name, 1, asked, shown, verdict(value, wanted)])
    return result


def attention_rows(rows):
    result = []
    for length, threads, form, *_, share, _, _, times, _ in rows:
        if int(length) not in (4096, 16384):
            continue
        if form == "tiled":
            result.append([f"attention {length}, % of FMA peak", threads, ATTENTION_SHARE, share,
                           verdict(float(share), ATTENTION_SHARE)])
        elif form == "PyTorch":
            result.append([f"attention {length}, times PyTorch", threads, ATTENTION, times,
                           verdict(float(times), ATTENTION)])
    return result


def generation_rows(rows):
    return [[f"generation {model}, times {program}", threads, 1, times, verdict(float(times), 1)]
            for model, threads, program, _, times in rows if program != "glassgrad"]


def kernel_rows(rows):
    """On each number of threads, each kernel at 4 kB, where the call counts, and at its weakest size above.

    >>> kernel_rows([["add", "1", "4", "", "", "", "70"], ["add", "1", "64", "", "", "", "90"],
    ...              ["add", "1", "256", "", "", "", "80"]])
    [['add, % of the limit (4 kB)', '1', 80, '70', '0.88 of it'], ['add, % of the limit (256 kB)', '1', 80, '80', 'reached']]
    """
    weakest = {}
    for row in rows:
        key = row[0], row[1], row[2] == "4"
        if key not in weakest or float(row[6]) < float(weakest[key][6]):
            weakest[key] = row
    return [[f"{name}, % of the limit ({row[2]} kB)", threads, KERNELS, row[6],
             verdict(float(row[6]), KERNELS)] for (name, threads, _), row in weakest.items()]


SUMMARIES = {
    "Training steps": lambda text: training_rows(cells(text)),
    "The worked example": lambda text: worked_example_rows(worked_example_of(text)),
    "Attention by length": lambda text: attention_rows(cells(text)),
    "Generation": lambda text: generation_rows(cells(text)),
    "Kernels": lambda text: kernel_rows(cells(text)),
}


def section(title, text):
    """
    >>> print(section("Sizes", "a  1\\nb  2\\n"))
    <BLANKLINE>
    ## Sizes
    <BLANKLINE>
    ```
    a  1
    b  2
    ```
    """
    text = text.strip()
    fenced = text if text.startswith("|") else f"```\n{text}\n```"
    return f"\n## {title}\n\n{fenced}"


def replaced(page, text):
    """The page with `text` between its marks.

    >>> replaced("a\\n<!-- measured -->\\nold\\n<!-- end of what is measured -->\\nb", "new")
    'a\\n<!-- measured -->\\nnew\\n<!-- end of what is measured -->\\nb'
    """
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    summary, parts = [], []
    for title, command in SECTIONS.items():
        if given.only.lower() not in title.lower():
            continue
        text = output_of(command)
        parts.append(section(title, text))
        print(parts[-1], flush=True)
        if title in SUMMARIES:
            summary += SUMMARIES[title](text)
    wanted = section("Wanted and measured",
                     markdown(["work", "threads", "wanted", "measured", ""], summary))
    print(wanted)
    if given.write:
        text = "\n".join([f"The machine: {machine()}.", wanted, *parts])
        PAGE.write_text(replaced(PAGE.read_text(), text))


if __name__ == "__main__":
    main()
