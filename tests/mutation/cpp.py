"""As much C++ as the mutations need: tokens, brackets, functions, the operands of an operator.

It relies on clang-format: a binary operator has blanks on both sides, a sign or a bracket of a
template has not.
"""
import re

TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>(?:0x[0-9a-fA-F]+|\d+\.?\d*(?:e[-+]?\d+)?)[fuUlL]*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign>::|->|\+\+|--|<<=|>>=|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|\.\.\.|.)
""", re.X | re.S)
OPENING = {"(": ")", "[": "]", "{": "}"}
# How tightly binary operators bind.
LEVEL = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5,
         "*": 6, "/": 6, "%": 6}


class Token:
    def __init__(self, kind, text, start):
        self.kind, self.text, self.start, self.end = kind, text, start, start + len(text)
        self.match = None  # index of the other bracket

    def __repr__(self):
        return self.text


class Source:
    """A text, its tokens without blanks and comments, and which brackets belong together."""

    def __init__(self, text):
        self.text = text
        self.tokens = [Token(found.lastgroup, found.group(), found.start())
                       for found in TOKEN.finditer(text) if found.lastgroup != "space"]
        stack = []
        for i, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in OPENING:
                stack.append(i)
            elif token.text in OPENING.values() and stack:
                token.match = stack.pop()
                self.tokens[token.match].match = i

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def find(self, i, stops):
        """The first token from i on that is one of `stops`, brackets and all in them passed over."""
        while i < len(self.tokens) and self.word(i) not in stops:
            i = self.tokens[i].match + 1 if self.opens(i) else i + 1
        return i

    def opens(self, i):
        return self.word(i) in OPENING and self.tokens[i].match is not None

    def is_binary(self, i):
        """Whether token i is an operator between two operands."""
        token = self.tokens[i]
        if token.text not in LEVEL or i == 0:
            return False
        return (self.text[token.start - 1].isspace() and token.end < len(self.text)
                and self.text[token.end].isspace() and self.word(i - 1) not in ("return", "(", ","))

    def left(self, i):
        """First token of the left operand of the operator i."""
        level, at = LEVEL[self.word(i)], i - 1
        while at >= 0:
            token = self.tokens[at]
            if token.kind == "sign":
                if token.text in OPENING.values() and token.match is not None:
                    at = token.match - 1
                    continue
                if token.text in OPENING or token.text in (",", ";", "?", ":", "=", "+=", "-=",
                                                           "*=", "/="):
                    break
                if self.is_binary(at) and LEVEL[token.text] < level:
                    break
            elif token.text == "return":
                break
            at -= 1
        return at + 1

    def right(self, i):
        """Last token of the right operand of the operator i."""
        level, at = LEVEL[self.word(i)], i + 1
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.kind == "sign":
                if token.text in OPENING and token.match is not None:
                    at = token.match + 1
                    continue
                if token.text in OPENING.values() or token.text in (",", ";", "?", ":"):
                    break
                if self.is_binary(at) and LEVEL[token.text] <= level:
                    break
            at += 1
        return at - 1

    def arguments(self, opening):
        """Pairs of first and last token of the arguments in the brackets that open here."""
        closing, found, first, at = self.tokens[opening].match, [], opening + 1, opening + 1
        while at < closing:
            if self.word(at) in OPENING:
                at = self.tokens[at].match
            elif self.word(at) == ",":
                found.append((first, at - 1))
                first = at + 1
            at += 1
        if first < closing:
            found.append((first, closing - 1))
        return found

    def cut(self, first, last):
        return self.text[self.tokens[first].start:self.tokens[last].end]


class Function:
    """A function at namespace scope: its name and the tokens of its head and its body."""

    def __init__(self, source, name, head, opening):
        self.source, self.name, self.head = source, name, head
        self.opening, self.closing = opening, source.tokens[opening].match

    @property
    def body(self):
        return self.source.cut(self.opening, self.closing)

    def head_text(self):
        return self.source.cut(self.head, self.opening - 1)


def functions(source):
    """All functions outside of classes and tables, and lambdas with a name."""
    found, at, head = [], 0, 0
    while at < len(source.tokens):
        token = source.tokens[at]
        if token.text == "#":  # a line of the preprocessor
            end = source.text.find("\n", token.start)
            while at < len(source.tokens) and source.tokens[at].start < end:
                at += 1
            head = at
            continue
        if token.text == ";":
            head = at + 1
        elif token.text in ("(", "[") and token.match is not None:
            at = token.match
        elif token.text == "{":
            words = [each.text for each in source.tokens[head:at]]
            if "namespace" in words:
                head = at + 1
            elif token.match is None:
                head = at + 1
            else:
                if ")" in words and "=" not in words and not {"struct", "class", "enum"} & set(
                        words[:1] + words[4:5]):
                    bracket = head + words.index("(")
                    # operator+ and the like have no word before their bracket
                    found.append(Function(source, source.word(bracket - 1), head, at))
                elif "auto" in words[:2] and "[" in words and words[-1] == ")":
                    found.append(Function(source, words[words.index("=") - 1], head, at))
                at = token.match
                head = at + 1
        elif token.text == "}":
            head = at + 1
        at += 1
    return found


def lambdas(source, first, last):
    """Opening and closing braces, and the names of the parameters, of lambdas between two tokens."""
    found, at = [], first
    while at <= last:
        token = source.tokens[at]
        before = source.tokens[at - 1] if at else None
        starts = token.text == "[" and token.match is not None and not (
            before and (before.kind == "word" and before.text != "return" or before.text in (")", "]")))
        if starts:
            after = token.match + 1
            names = []
            if source.word(after) == "(":
                for a, b in source.arguments(after):
                    names.append(source.word(b))
                after = source.tokens[after].match + 1
            if source.word(after) == "{":
                found.append((after, source.tokens[after].match, names))
                at = source.tokens[after].match
        at += 1
    return found
