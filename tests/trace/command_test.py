#!/usr/bin/env python3
"""Runs the glassgrad command and holds exit status, output and error text against what they are.

usage: command_test.py GLASSGRAD DATA
"""

import json
import os
import struct
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

COMMAND, DATA = sys.argv[1], Path(sys.argv[2])
failures = []


def run(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def check(sentence, holds, seen=""):
    if not holds:
        failures.append(sentence)
        print(f"FAIL {sentence}\n{seen}")


def check_refused(sentence, arguments, status, text):
    code, out, err = run(*arguments)
    check(sentence, code == status and out == "" and err == text, f"{code}\n{out}{err}")


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)

    array = folder / "a.npy"
    numpy.save(array, numpy.array([[1.5, -2, numpy.inf], [0, numpy.nan, 4]], dtype="<f4"))
    code, out, err = run("info", array)
    check("an array is described", (code, err) == (0, "") and out.splitlines() == [
        "array f32 (2, 3), 6 elements",
        "min -2  max 4  mean 0.875  std 2.19018  NaN 1  +inf 1",
        "first 1.5 -2 inf 0 nan 4"], out + err)

    numpy.save(array, numpy.arange(1000))
    check("integers show their range and the first eight", run("info", array)[1].splitlines() == [
        "array i64 (1000,), 1000 elements", "min 0  max 999", "first 0 1 2 3 4 5 6 7 ..."])

    numpy.save(array, numpy.zeros((0, 3)))
    check("an array without elements has no statistics",
          run("info", array)[1] == "array f64 (0, 3), 0 elements\n")

    (folder / "bad.npy").write_bytes(b"nonsense")
    code, out, err = run("info", folder / "bad.npy")
    check("a malformed array is one sentence on standard error, status 1",
          code == 1 and out == "" and err.startswith("glassgrad: load_npy: ")
          and err.count("\n") == 1, err)

    archive = folder / "a.npz"
    numpy.savez(archive, w=numpy.arange(6.0).reshape(2, 3), größe=numpy.array([True, False]))
    code, out, err = run("info", archive)
    check("an archive is described", (code, err) == (0, "") and out.splitlines() == [
        "archive of 2 arrays, 8 elements",
        "w      f64 (2, 3)    min 0  max 5  mean 2.5  std 1.70783",
        "größe  boolean (2,)  true 1"], out + err)

    header = (b'{"__metadata__":{"format":"pt"},"w":{"dtype":"BF16","shape":[2,1],'
              b'"data_offsets":[0,4]},"n":{"dtype":"I64","shape":[1],"data_offsets":[4,12]}}')
    weights = folder / "a.safetensors"
    weights.write_bytes(struct.pack("<Q", len(header)) + header
                        + struct.pack("<HHq", 0x3F80, 0x7FC0, -5))
    code, out, err = run("info", weights)
    check("safetensors are described and NaN is warned of", (code, err) == (
        0, "glassgrad: warning: w has NaN, the first at (1, 0)\n") and out.splitlines() == [
        "safetensors of 2 tensors, 3 elements",
        "metadata format: pt",
        "w  BF16 (2, 1)  min 1  max 1  mean 1  std 0  NaN 1",
        "n  I64 (1,)     min -5  max -5"], out + err)

    model = folder / "model.bin"
    model.write_bytes(struct.pack("<7i", 2, 3, 1, 1, 1, 4, 5) + b"\0" * 4 * (8 + 2 + 16 + 2 + 18 + 2 + 10))
    code, out, err = run("info", model)
    check("a checkpoint of llama2.c is described", (code, err) == (0, "")
          and out.splitlines()[:3] == [
              "llama2.c checkpoint of 11 tensors, 48 parameters",
              "d_model 2, d_ff 3, 1 layer, 1 head, 1 key/value head, vocabulary 4, context 5, "
              "the head is the embedding",
              "embedding.weight                    f32 (4, 2)  min 0  max 0  mean 0  std 0"],
          out + err)
    pieces = [b"<unk>", b"\n<s>\n", b"a", b"b"]
    tokens = folder / "tokens.bin"
    tokens.write_bytes(struct.pack("<i", 5) + b"".join(
        struct.pack("<fi", -number, len(text)) + text for number, text in enumerate(pieces)))
    code, out, err = run("info", tokens)
    check("a tokenizer of llama2.c is described", (code, err) == (0, "") and out.splitlines() == [
        "llama2.c tokenizer of 4 pieces, as many as model.bin needs",
        "longest piece 5 bytes, scores -3 to 0",
        "first '<unk>' '\\x0a<s>\\x0a' 'a' 'b'"], out + err)
    tokens.write_bytes(tokens.read_bytes()[:-9])
    check_refused("a tokenizer that fits no model beside it is refused", ["info", tokens], 1,
                  f"glassgrad: info: {tokens}: a tokenizer of 3 pieces, but model.bin beside it "
                  "has a vocabulary of 4\n")

    unnamed = folder / "weights"
    unnamed.write_bytes(weights.read_bytes())
    check("the first bytes tell what a file without an ending is",
          run("info", unnamed)[1].startswith("safetensors of 2"))
    unnamed.write_bytes(b"nonsense")
    check_refused("a file of no known kind is refused", ["info", unnamed], 1,
                  f"glassgrad: info: {unnamed}: neither its name nor its first bytes tell what it "
                  "is; files end in .npy, .npz, .safetensors, .json, .jsonl or .bin\n")

    for ending in [".npy", ".npz", ".safetensors", ".bin", ".json", ""]:
        odd_one = folder / f"odd{ending}"
        for sentence, make in [("a pipe", os.mkfifo), ("a folder", os.mkdir),
                               ("a device", lambda path: os.symlink("/dev/zero", path))]:
            make(odd_one)
            code, out, err = run("info", odd_one)
            check(f"{sentence} is no {ending} file",
                  code == 1 and out == "" and "not a regular file" in err, err)
            if sentence == "a folder":
                odd_one.rmdir()
            else:
                odd_one.unlink()

    bad = folder / "bad.trace.json"
    bad.write_text('{"format": "glassgrad-trace",\n "version": "2.0"}')
    check_refused("a later major version is refused with both versions", ["info", bad], 1,
                  f"glassgrad: read_trace: {bad}: line 2, column 13: version: format version 2.0 "
                  "is not known; this library reads 1.0 and later 1.x\n")

    odd = json.loads((DATA / "sample.trace.json").read_text(encoding="utf-8"))
    odd["tensors"][1]["key"] = "evil\x1b[31m\nkey"
    path = folder / "odd.trace.json"
    path.write_text(json.dumps(odd), encoding="utf-8")
    code, out, err = run("info", path)
    check("control characters of a file do not reach the terminal",
          code == 0 and "evil\\x1b[31m\\x0akey" in out and "\x1b" not in out, out + err)

code, out, err = run("info", DATA / "sample.trace.jsonl")
check("a trace is described", (code, err) == (0, "") and out.splitlines() == [
    "trace glassgrad-trace 1.0 by hand 1.2",
    "run mask, train, step 3, seed 18446744073709551615, f32",
    "token: 4 labels",
    "incomplete: stopped by hand",
    "3 tensors: 1 activation, 1 grad, 1 param; 1 without values; 1 with NaN or infinity",
    "2 ops: 1 forward, 1 backward",
    "  forward: mask",
    "  backward: mask_vjp",
    "o0    mask                 model.head/masked (2, 3)",
    "o1    mask_vjp             model.head/scores:grad (2, 3)",
    "warning nonfinite.born in o0 mask model.head/masked: not declared"], out + err)

code, out, err = run("schema")
check("schema prints the schema", json.loads(out)["$id"] == "urn:glassgrad-trace:1")
code, out, err = run("version")
check("version names library and format",
      code == 0 and re.fullmatch(r"glassgrad \S+, traces glassgrad-trace 1\.0, kernels \w+\n", out),
      out)

check_refused("a file that is not there is named", ["info", "absent.trace.json"], 1,
              "glassgrad: read_trace: absent.trace.json: cannot open: No such file or directory\n")
hint = "Run glassgrad --help for the verbs.\n"
check_refused("a call without a verb is a usage error", [], 2,
              "glassgrad: A subcommand is required\n" + hint)
for sentence, arguments in [("an unknown verb", ["frobnicate"]), ("info without a file", ["info"]),
                            ("an unknown flag", ["info", "--wat", "x"])]:
    code, out, err = run(*arguments)
    check(f"{sentence} is a usage error", code == 2 and out == "" and err.endswith(hint), err)

print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
