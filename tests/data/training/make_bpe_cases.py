"""Writes bpe_cases.json: what the BPE tokenizer has to give.

Witnesses: GPT-2's own pattern run by the Python module `regex`; merges counted anew for each one;
encoding as in OpenAI's encoder.py, one merge at a time over all of a word. Nothing is incremental.
"""

import json
import pathlib
import random

import regex

PATTERN = regex.compile(
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
)

HARD = [
    "",
    " ",
    "a",
    "  a",
    "a  ",
    "a  b   c",
    "\n\n  x\n",
    "\r\n\r\n",
    "\t\ttab",
    "don't can't we're I've I'm she'll he'd it's",
    "DON'T I'M 'S 'llama 'tis ''s '",
    "l'été d'accord",
    "3.14 1,000 x2 2x ½ ² Ⅷ ٣٤ 四",
    " 12 a1 b_2",
    "!!! ... --- (a)[b]{c}",
    " !?a !? a",
    "naïve café Ærø ß ſ",
    "e\u0301 combining \u0301alone",
    "日本語のテキスト、です。",
    "Привет, мир! עברית العربية",
    "🙂🙂 a🙂 👩‍👩‍👧 🇩🇪",
    "a\u00a0b \u00a0c\u2003d\u3000e\u2028f\u2029g\u0085h",
    "x\u180ey \u180e \u200bz \ufeffw",
    "a\x00b\x00 \x1c\x1d\x1e\x1f \x0b\x0c",
    "    indented(code) {\n        return x;\n    }\n",
    "ab" * 40,
    " " * 30 + "x",
    "https://example.org/a?b=c&d=%20",
]

TEXT = (
    "The cat sat on the mat, and the cat's mat sat on the cat. That cat's that!\n"
    "She'd said that they'd sat there; there they'd sat, and the rat that sat with them ate.\n"
    "In 2024 and 2025, 20 cats ate 200 rats: 2 + 20 = 22.\n"
    "Grüße aus Köln: schöne Grüße, größere Größen. 日本の日本語。 🙂🙂\n"
    "aaaa aaaaaaaa aaa bananabanana banana\n"
) * 2


def split(text):
    return [match.group() for match in PATTERN.finditer(text)]


def train(text, vocab_size):
    words = [list(word.encode()) for word in split(text)]
    pieces = [bytes([i]) for i in range(256)]
    merges = []
    while len(pieces) < vocab_size:
        counts = {}
        for word in words:
            for pair in zip(word, word[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        # A piece has one way to be made.
        counts = {p: n for p, n in counts.items() if pieces[p[0]] + pieces[p[1]] not in pieces}
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < 2:
            break
        merges.append(best)
        pieces.append(pieces[best[0]] + pieces[best[1]])
        words = [join(word, best, len(pieces) - 1) for word in words]
    return pieces, merges


def join(word, pair, result):
    out, i = [], 0
    while i < len(word):
        if tuple(word[i : i + 2]) == pair:
            out.append(result)
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


def encode_word(word, ranks):
    tokens = list(word)
    while True:
        known = [pair for pair in zip(tokens, tokens[1:]) if pair in ranks]
        if not known:
            return tokens
        best = min(known, key=ranks.get)
        tokens = join(tokens, best, 256 + ranks[best])


def words_of(data):
    """Of any bytes: what is UTF-8 by the pattern, each run of other bytes as it is."""
    out, bad = [], b""
    i = 0
    text = ""

    def flush_text():
        nonlocal text
        out.extend(word.encode() for word in split(text))
        text = ""

    while i < len(data):
        for length in range(1, 5):
            try:
                character = data[i : i + length].decode()
            except UnicodeDecodeError:
                continue
            if bad:
                out.append(bad)
                bad = b""
            text += character
            i += length
            break
        else:
            flush_text()
            bad += data[i : i + 1]
            i += 1
    if bad:
        out.append(bad)
    flush_text()
    return out


def main():
    rng = random.Random(5)
    some_bytes = [bytes(rng.choices(b"ab \n'\xc3\xa9\xe6\x97\xa5\xff", k=60)) for _ in range(12)]
    some_text = ["".join(rng.choices(" \n'tsaé日1٣!🙂\u00a0\u180e", k=40)) for _ in range(40)]
    pieces, merges = train(TEXT, 400)
    ranks = {pair: i for i, pair in enumerate(merges)}
    encode = lambda data: [t for word in words_of(data) for t in encode_word(word, ranks)]
    texts = [text.encode() for text in [TEXT, *HARD, *some_text]] + some_bytes
    # Real samples that other tokenizers stumbled on.
    texts += [bytes.fromhex("e6ad"), "Værså".encode(), "𒎗𓐍".encode()]
    cases = {
        "witness": f"regex {regex.__version__}",
        "splits": [{"text": t, "words": split(t)} for t in HARD + some_text],
        "train": {"text": TEXT, "vocab_size": 400, "merges": merges},
        "encodings": [{"hex": data.hex(), "ids": encode(data)} for data in texts],
    }
    path = pathlib.Path(__file__).with_name("bpe_cases.json")
    path.write_text(json.dumps(cases, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(len(merges), "merges,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
