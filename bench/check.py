#!/usr/bin/env python3
"""Compares ratios with those in kept.json and fails on a loss of more than 15 %; --keep writes them.

Ratios hold for one kind of machine, so each kind has its own. What looks like a loss is measured twice
more, and the median counts: a machine that others use loses for a moment, too."""

import argparse
import json
import os
import pathlib
import statistics
import sys

KEPT = pathlib.Path(__file__).resolve().parent / "kept.json"
TOLERANCE = 0.15
ATTEMPTS = 3


def machine_of(cpuinfo, cores):
    """Processor and number of cores.

    >>> machine_of("model name : AMD EPYC\\ncpu family : 26\\nmodel : 2\\nflags : fpu", 2)
    'AMD EPYC (family 26, model 2), 2 cores'
    """
    fields = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return (f"{fields.get('model name', 'unknown')} (family {fields.get('cpu family', '?')}, "
            f"model {fields.get('model', '?')}), {cores} cores")


def machine():
    path = pathlib.Path("/proc/cpuinfo")
    return machine_of(path.read_text() if path.exists() else "", os.cpu_count())


def losses(kept, measured):
    """Names of ratios that fell by more than the tolerance.

    >>> losses({"a": 2.0, "b": 1.0, "gone": 1.0}, {"a": 1.71, "b": 0.84, "new": 5.0})
    ['b']
    """
    return [name for name, value in kept.items()
            if name in measured and measured[name] < (1 - TOLERANCE) * value]


def measure_all(groups, kept, say):
    """Ratios of all groups by name. A group with a loss is measured again; medians count."""
    result = {}
    for group, measure in groups.items():
        say(f"{group} ...")
        runs = [measure()]
        while len(runs) < ATTEMPTS and losses(kept, runs[0]):
            say(f"{group}: again ...")
            runs.append(measure())
        for name in runs[0]:
            result[name] = statistics.median(run[name] for run in runs)
    return result


def report(kept, measured):
    """A line a ratio, and whether none is lost.

    >>> lines, ok = report({"a": 2.0, "gone": 1.0}, {"a": 1.5, "new": 5.0})
    >>> print(*lines, sep="\\n")
      0.75  a: kept 2, now 1.5  LOST
       new  new: 5
            gone: kept 1, not measured
    >>> ok
    False
    """
    lost = losses(kept, measured)
    lines = []
    for name, value in measured.items():
        if name in kept:
            mark = "  LOST" if name in lost else ""
            lines.append(f"{value / kept[name]:6.2f}  {name}: kept {kept[name]:.3g}, "
                         f"now {value:.3g}{mark}")
        else:
            lines.append(f"   new  {name}: {value:.3g}")
    lines += [f"        {name}: kept {value:.3g}, not measured"
              for name, value in kept.items() if name not in measured]
    return lines, not lost


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="write kept.json anew for this machine")
    given = parser.parse_args()
    import ratios

    all_kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept = {} if given.keep else all_kept.get(machine())
    if kept is None:
        sys.exit(f"bench: no ratios are kept for {machine()}; ./dev bench --keep writes them")
    measured = measure_all(ratios.GROUPS, kept, lambda text: print(text, file=sys.stderr))
    if given.keep:
        all_kept[machine()] = {name: float(f"{value:.4g}") for name, value in measured.items()}
        KEPT.write_text(json.dumps(all_kept, indent=2, sort_keys=True) + "\n")
        print(f"bench: {len(measured)} ratios kept for {machine()}")
        return
    lines, ok = report(kept, measured)
    print(*lines, sep="\n")
    if not ok:
        sys.exit(f"bench: lost more than {TOLERANCE:.0%}")
    print("bench: ok")


if __name__ == "__main__":
    main()
