#!/usr/bin/env python3
"""Proof that the gradient tests prove something: makes derivatives wrong, and looks which tests fail.

    ./dev mutants                       all mutants; writes docs/mutation.md
    ./dev mutants --sample 20 --seed 3  some of them; fails if one survives
    ./dev mutants --list [--only gelu]  what would be changed

A mutant is one change in a rule of autograd/src/ops or in a kernel of a derivative under tensor/src:
a sign, a factor, a term left out, operands exchanged, a reduction skipped, another axis, another
value saved, the branches of a choice swapped, a comparison, a flag, a constant. A file is compiled
once, with all its mutants in it: a variable of the environment says which of them runs. What does
not compile is no mutant. The tests run in turn until one fails: parity, autograd, layers. Survivors
are excused in tests/mutation/survivors.json, by a reason.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import time

from cpp import Source, functions, lambdas
from mutate import mutations, saved_values

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXCUSES = HERE / "survivors.json"
PAGE = ROOT / "docs/mutation.md"
# In the order in which they run: the quickest first.
PROGRAMS = {"parity_test": [[]],
            "autograd_test": [["the derivative of every op*"], ["the second derivative of every op*"],
                              ["~*chain*", "~*thousand*", "~every wrong call*", "~*same bits on*"]],
            "layers_test": [[]]}
# No part of a derivative: what is done where there are no elements, names of types, and how large the
# pieces are that work is cut into.
IGNORED = re.compile(r"numel\(\) (==|>) 0|decltype\(|parallel_threshold")
KERNEL = re.compile(r"_vjp|_adjoint|_grad|_backward|_scatter|scatter_|_slope|derivative")


class Mutant:
    def __init__(self, name, kind, line, where, text):
        self.name, self.kind, self.line, self.where, self.text = name, kind, line, where, text
        self.number = None

    @property
    def family(self):
        return self.name.split(":")[0]


def change_of(before, after):
    """The words that differ, for people."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    start = max(0, max(before.rfind(c, 0, start) for c in "\n;{"))
    a, b = before[start:len(before) - end + 20], after[start:len(after) - end + 20]
    squeeze = lambda x: " ".join(x.strip("\n;{ ").split("\n")[0].split())  # noqa: E731
    return squeeze(a), squeeze(b)


class File:
    """A source, the pieces of it that are part of derivatives, and their mutants."""

    def __init__(self, path):
        self.path = path
        self.family = ("tensor/" if "tensor" in path.parts else "") + path.stem
        self.text = path.read_text()
        self.source = Source(self.text)
        self.mutants = []
        self.units = []  # (start, end, mutants): pieces of the text; they may lie in each other
        self.whole = []  # functions that are such a piece
        names = collections.Counter()

        def add(function, start, end, made):
            unit = []
            for kind, text in made:
                key = f"{self.family}:{function}:{kind.replace(' ', '-')}"
                names[key] += 1
                line = self.text.count("\n", 0, start) + 1
                where = change_of(self.text[start:end], text)
                if not IGNORED.search(where[0]):
                    unit.append(Mutant(f"{key}:{names[key]}", kind, line, where, text))
            if unit:
                self.units.append((start, end, unit))
                self.mutants += unit

        tokens = self.source.tokens
        for function in self.pieces():
            first, last = tokens[function.opening].start, tokens[function.closing].end
            if not is_op(function):
                parameters = parameters_of(function)
                self.whole.append(function)
                add(function.name, first, last, mutations(function.body, parameters))
                continue
            for opening, closing, parameters in rules(self.source, function):
                a, b = tokens[opening].start, tokens[closing].end
                add(function.name, a, b, mutations(self.text[a:b], parameters))
            made = list(saved_values(function.body)) + list(preparations(function))
            add(function.name, first, last, made)

    def pieces(self):
        """Functions that hold a derivative, and those that they call."""
        all_of = functions(self.source)
        if "tensor" in self.path.parts:
            # What only derivatives call is part of them.
            found = [each for each in all_of
                     if KERNEL.search(each.name) and not each.name.startswith("check")]
            rest = [each for each in all_of if each not in found]
            calls = lambda bodies, name: any(  # noqa: E731
                re.search(rf"\b{re.escape(name)}\b", each.body) for each in bodies if each.name != name)
            found += [each for each in rest if not each.name.startswith("check")
                      and calls(found, each.name) and not calls(rest, each.name)]
            return sorted(found, key=lambda each: each.opening)
        helpers = {each.name: each for each in all_of if not is_op(each)
                   and not re.search(r"\b(Samples|OpSample|Attributes|span)\b", each.head_text())}
        found = [each for each in all_of if is_op(each)]
        texts = [self.source.cut(a, b) for each in found for a, b in edges(self.source, each)]
        while texts:
            words = set(re.findall(r"\w+", texts.pop()))
            for name in sorted(words & helpers.keys()):
                found.append(helpers[name])
                texts.append(helpers.pop(name).body)
        return sorted(found, key=lambda each: each.opening)

    def write(self, path, chosen):
        """The source with all chosen mutants, each of them behind its number."""
        # Templates that are mutated themselves also stand as they were, for the mutants that call
        # them: else each would be compiled with all the others in it.
        templates = [each for each in self.whole if "=" not in each.head_text()
                     and re.search(r"\b(template|auto)\b", each.head_text())]
        names = {each.name for each in templates}
        rename = lambda text: re.sub(  # noqa: E731
            rf"\b({'|'.join(sorted(names))})\b(?=[(<])", r"\1_plain", text) if names else text
        edits = []  # (start, end, mutants) and (start, start, text to insert)
        for unit in self.units:
            picked = [each for each in unit[2] if each in chosen]
            if picked:
                edits.append((unit[0], unit[1], picked))
        for each in templates:
            start = self.source.tokens[each.head].start
            text = self.source.cut(each.head, each.closing)
            line = self.text.count("\n", 0, start) + 1
            edits.append((start, start, f'{rename(text)}\n#line {line} "{self.path}"\n'))
        text, grown = self.text, []
        # From the back; an outer piece takes the switches of inner ones along.
        for start, end, what in sorted(edits, key=lambda edit: (-edit[0], edit[1])):
            now = end + sum(more for first, last, more in grown if start <= first and last <= end)
            body = text[start:now]
            line = self.text.count("\n", 0, start) + 1
            if isinstance(what, str):
                new = what
            else:
                numbers = " && ".join(f"glassgrad_mutant() != {each.number}" for each in what)
                parts = [f'{{\nif ({numbers})\n#line {line} "{self.path}"\n{body}\n']
                for each in what:
                    flat = " ".join(re.sub(r"//[^\n]*", "", rename(each.text)).split())
                    parts.append(f"else if (glassgrad_mutant() == {each.number})\n"
                                 f'#line {each.number} "mutant"\n{flat}\n')
                after = self.text.count("\n", 0, end) + 1
                parts.append(f'else __builtin_trap();\n}}\n#line {after} "{self.path}"\n')
                new = "".join(parts)
            text = text[:start] + new + text[now:]
            grown.append((start, end, len(new) - len(body)))
        path.write_text("int glassgrad_mutant() noexcept;\n"
                        f'#line 1 "{self.path}"\n{text}')


def edges(source, function):
    """Calls of edge, and rules that stand before them."""
    for i in range(function.opening, function.closing):
        if source.word(i) == "edge" and source.word(i + 1) == "(":
            yield i, source.tokens[i + 1].match
    for opening, closing, _ in rules(source, function):
        yield opening, closing


def is_op(function):
    """Whether it records, itself or through a helper that gets its row."""
    return bool(re.search(r"\brecord|find\(rows, ", function.body))


def parameters_of(function):
    source, names = function.source, []
    opening = function.head
    while source.word(opening) != "(":
        opening += 1
    for a, b in source.arguments(opening):
        if re.search(r"\b(V|Variable|Tensor|auto|T|double)\b", source.cut(a, b)):
            names.append(source.word(b))
    return names


def rules(source, function):
    """Bodies of the lambdas that are rules, or parts of one: those that are generic."""
    found = []
    for opening, closing, parameters in lambdas(source, function.opening, function.closing):
        body = source.cut(opening, closing)
        if "Attributes" in body or not re.search(r"\bauto\b", source.cut(opening - 8, opening)) and (
                "gy" not in parameters):
            continue
        found.append((opening, closing, parameters))
    return found


def preparations(function):
    """Changes of what a function computes for its rules before it records."""
    body, source = function.body, function.source
    inner = [(source.tokens[a].start, source.tokens[b].end) for a, b, _ in rules(source, function)]
    base = source.tokens[function.opening].start
    stop = body.find("return record")
    for kind, text in mutations(body):
        start = 0
        while text[start] == body[start]:
            start += 1
        if stop < 0 or start >= stop or any(a <= base + start < b for a, b in inner):
            continue
        begin = max(body.rfind(c, 0, start) for c in ";{}")
        end = body.find(";", start)
        statement = body[begin:end]
        if ".value()" in statement or "fail" in statement or "throw" in statement:
            continue
        yield kind, text


class Build:
    """Compiles and links as build/release does, with mutated objects in place of the library's."""

    def __init__(self, build, folder, commands):
        self.build, self.folder, self.commands = build, folder, commands
        folder.mkdir(parents=True, exist_ok=True)
        switch = folder / "switch.cpp"
        switch.write_text("#include <cstdlib>\nint glassgrad_mutant() noexcept {\n"
                          "    static const char* text = std::getenv(\"GLASSGRAD_MUTANT\");\n"
                          "    static const int number = text ? std::atoi(text) : 0;\n"
                          "    return number;\n}\n")
        subprocess.run(["c++", "-O1", "-c", str(switch), "-o", str(folder / "switch.o")], check=True)
        self.objects = [folder / "switch.o"]

    def compile(self, file, chosen):
        """Gives those of the chosen mutants that compile."""
        path = self.folder / f"{file.family.replace('/', '_')}.cpp"
        entry = self.commands[file.path]
        words = [word for word in shlex.split(entry["command"]) if not word.endswith("ccache")]
        keep, skip = [], False
        for word in words:
            if skip or word in ("-c", str(file.path)):
                skip = False
            elif word == "-o":
                skip = True
            elif word == "-Werror" or re.fullmatch(r"-O\d|-flto.*", word):
                continue
            else:
                keep.append(word)
        out = path.with_suffix(".o")
        command = [*keep, "-O0", "-w", "-fmax-errors=0", "-iquote", str(file.path.parent),
                   "-c", str(path), "-o", str(out)]
        chosen = list(chosen)
        for _ in range(8):
            file.write(path, set(chosen))
            run = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
            if run.returncode == 0:
                self.objects.append(out)
                return chosen
            bad = self.blamed(run.stderr)
            left = [each for each in chosen if each.number not in bad]
            if len(left) == len(chosen):
                sys.exit(f"{file.path}: does not compile, whatever the mutants:\n{run.stderr[:3000]}")
            chosen = left
        sys.exit(f"{file.path}: no end of mutants that do not compile")

    @staticmethod
    def blamed(messages):
        """Numbers of the mutants that errors come from: where they are, or where they were needed."""
        bad, context = set(), set()
        for line in messages.splitlines():
            numbers = {int(n) for n in re.findall(r"\bmutant:(\d+)", line)}
            if re.search(r": (fatal )?error: ", line):
                bad |= numbers or context
                context = set()
            elif "required from" in line or "In instantiation" in line:
                context |= numbers
        return bad

    def link(self, program):
        lines = subprocess.check_output(["ninja", "-C", str(self.build), "-t", "commands", program],
                                        text=True).splitlines()
        line = next(each for each in reversed(lines) if f"-o bin/{program}" in each)
        command = re.search(r"(?:^|&& )(\S*(?:c\+\+|g\+\+|clang\+\+)\S* .*?-o bin/\S+.*?)(?: && |$)",
                            line).group(1)
        words = shlex.split(command)
        at = words.index("-o")
        words[at + 1] = str(self.folder / program)
        words[at + 2:at + 2] = map(str, self.objects)
        subprocess.run(words, cwd=self.build, check=True)


def run_tests(folder, number, limits=None):
    """The program and tests that fail, or None; and the seconds that each took."""
    environment = {**os.environ, "GLASSGRAD_MUTANT": str(number), "OMP_NUM_THREADS": "1",
                   "OPENBLAS_NUM_THREADS": "1"}
    times = {}
    for program, filters in PROGRAMS.items():
        for words in filters:
            key = " ".join([program, *words])
            begin = time.time()
            try:
                code = subprocess.run([folder / program, *words, "--abort"], env=environment,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      timeout=limits[key] if limits else 600).returncode
            except subprocess.TimeoutExpired:
                return f"{key} (no end)", times
            times[key] = time.time() - begin
            if code:
                return key, times
    return None, times


def load_excuses():
    """Name of a mutant -> why it may survive."""
    groups = json.loads(EXCUSES.read_text()) if EXCUSES.exists() else []
    return {name: group["reason"] for group in groups for name in group["mutants"]}


def page(results, excuses):
    """docs/mutation.md."""
    families, kinds = (collections.defaultdict(lambda: [0, 0, 0]) for _ in range(2))
    for each in results:
        family, _, kind, _ = each["name"].split(":")
        for count in (families[family], kinds[kind.replace("-", " ")]):
            count[0] += 1
            count[1] += each["killed_by"] is not None
            count[2] += each["killed_by"] is None and each["name"] in excuses
    survivors = [each for each in results if each["killed_by"] is None]
    total, dead = len(results), len(results) - len(survivors)
    same = sum(each["name"] in excuses for each in survivors)
    rate = lambda dead, of: f"{100 * dead / of:.1f} %" if of else "-"  # noqa: E731
    lines = [
        "# Mutation tests", "",
        "Derivatives are made wrong, one change at a time, and the tests have to notice. A page of",
        "`./dev mutants`; how a mutant is made stands in `tests/mutation/run.py`.", "",
        f"{total} mutants, {dead} killed: **{rate(dead, total)}**. Of the {total - dead} survivors "
        f"{same} are explained below: they compute",
        f"the same function, or differ where the tests say nothing. Without those: "
        f"**{rate(dead, total - same)}**.", "",
        "| the first test that fails, in this order | mutants |", "| --- | ---: |"]
    by = collections.Counter(each["killed_by"] for each in results if each["killed_by"])
    keys = [" ".join([program, *words]) for program, runs in PROGRAMS.items() for words in runs]
    order = lambda name: next((i for i, key in enumerate(keys) if name.startswith(key)), 9)  # noqa: E731
    lines += [f"| `{name}` | {by[name]} |" for name in sorted(by, key=order)]
    for title, table in [("file", families), ("change", kinds)]:
        lines += ["", f"| {title} | mutants | killed | explained | rate without those |",
                  "| --- | ---: | ---: | ---: | ---: |"]
        lines += [f"| {key} | {n} | {k} | {e} | {rate(k, n - e)} |"
                  for key, (n, k, e) in sorted(table.items())]
    lines += ["", "## Survivors", ""]
    groups = collections.defaultdict(list)
    for each in survivors:
        groups[excuses.get(each["name"], "Not explained.")].append(each)
    for reason, members in groups.items():
        lines += [reason, ""]
        lines += [f"- `{each['name']}`: `{each['from']}` became `{each['to']}`" for each in members]
        lines.append("")
    return "\n".join(lines if survivors else [*lines, "None.", ""]).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn by --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="mutants whose name matches this expression")
    parser.add_argument("--list", action="store_true", help="only print what would be changed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--json", type=pathlib.Path, help="results go to this file, too")
    parser.add_argument("--page", type=pathlib.Path, help="only write the page, from such a file")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write_text(page(json.loads(arguments.page.read_text()), load_excuses()))
        return 0

    paths = sorted((ROOT / "autograd/src/ops").glob("*.cpp")) + sorted((ROOT / "tensor/src").glob("*.cpp"))
    listed = json.loads((arguments.build / "compile_commands.json").read_text())
    commands = {pathlib.Path(each["file"]).resolve(): each for each in listed}
    files = [file for file in map(File, paths) if file.mutants and file.path in commands]
    everything = [each for file in files for each in file.mutants]
    for number, mutant in enumerate(everything, 1):
        mutant.number = number
    chosen = [each for each in everything if re.search(arguments.only, each.name)]
    if arguments.sample:
        chosen = random.Random(arguments.seed).sample(chosen, min(arguments.sample, len(chosen)))
    if arguments.list:
        for mutant in chosen:
            print(f"{mutant.name} line {mutant.line}: {mutant.where[0]}  ->  {mutant.where[1]}")
        print(f"{len(chosen)} mutants")
        return 0

    begin = time.time()
    build = Build(arguments.build.resolve(), arguments.build.resolve() / "mutants", commands)
    wanted = {file: [each for each in file.mutants if each in set(chosen)] for file in files}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        compiled = list(pool.map(lambda item: build.compile(*item) if item[1] else [], wanted.items()))
        list(pool.map(build.link, PROGRAMS))
    mutants = [each for group in compiled for each in group]
    print(f"{len(mutants)} mutants, {len(chosen) - len(mutants)} more that do not compile; built in "
          f"{time.time() - begin:.0f} s", flush=True)
    failed, times = run_tests(build.folder, 0)
    if failed:
        sys.exit(f"{failed} fails without a mutant")
    limits = {key: 20 + 10 * seconds for key, seconds in times.items()}

    killed, survivors = {}, []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = pool.map(lambda each: run_tests(build.folder, each.number, limits)[0], mutants)
        for mutant, by in zip(mutants, results):
            if by:
                killed[mutant] = by
            else:
                survivors.append(mutant)
                print(f"survives: {mutant.name} line {mutant.line}: {mutant.where[0]}  ->  "
                      f"{mutant.where[1]}", flush=True)
    excuses = load_excuses()
    unexplained = [each for each in survivors if each.name not in excuses]
    print(f"{len(killed)} of {len(mutants)} killed, {len(survivors) - len(unexplained)} survivors with a "
          f"reason, {len(unexplained)} without; {time.time() - begin:.0f} s")
    results = [{"name": each.name, "line": each.line, "from": each.where[0], "to": each.where[1],
                "killed_by": killed.get(each)} for each in mutants]
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1, ensure_ascii=False))
    if not arguments.sample and not arguments.only:
        PAGE.write_text(page(results, excuses))
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
