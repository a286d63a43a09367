"""Wrong versions of a piece of C++: each changes one thing that makes a derivative wrong."""
from cpp import LEVEL, Source

OPERATOR = {"+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
            "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
COMPARISON = {"greater": "less", "greater_equal": "greater", "less": "greater",
              "less_equal": "less", "equal": "not_equal", "not_equal": "equal",
              "logical_and": "logical_or", "logical_or": "logical_and"}
OF_ONE = {"exp", "log", "tanh", "sqrt", "abs", "sin", "cos", "tan", "sigmoid", "erf", "erfc", "sign",
          "square", "reciprocal", "log1p", "expm1", "log2", "rsqrt", "sinh", "cosh", "neg", "softplus",
          "normal_pdf", "normal_cdf", "relu", "flip", "transpose"}
REDUCTION = {"sum", "mean", "max", "sum_to", "cumsum", "sum_last"}
KIND = {"sum": "skipped reduction", "scale": "dropped factor"}
EXCHANGE = {"where": (1, 2), "matmul": (0, 1), "sub": (0, 1), "div": (0, 1), "pow": (0, 1)}
AXES = {"axis", "axis0", "axis1", "dim", "at_axis"}


def number(text):
    """Another constant in place of this."""
    known = {"0": "1", "1": "2", "2": "3", "0.5": "0.25", "1.0": "2.0", "0.0": "1.0", "2.0": "3.0"}
    if text in known:
        return known[text]
    if text.startswith("0x") or text[-1] in "uUlL":
        return None
    return f"({text} * 2)" if "." in text or "e" in text else f"({text} + 1)"


def skipped(source):
    """Tokens that check arguments: they are no part of a derivative."""
    out = set()
    for i, token in enumerate(source.tokens):
        if token.text == "if" and source.word(i + 1) == "(":
            after = source.tokens[i + 1].match + 1
            end = after
            if source.word(after) == "{":
                end = source.tokens[after].match
            else:
                end = source.find(end, ";")
            words = {each.text for each in source.tokens[after:end + 1]}
            if words & {"fail", "throw"}:
                out |= set(range(i, end + 1))
        if token.text.startswith("require_") or token.text in ("fail", "static_cast", "assert"):
            opening = source.find(i + 1, "(")
            if token.text != "static_cast" and opening < len(source.tokens):
                out |= set(range(i, source.tokens[opening].match + 1))
    return out


def mutations(text, parameters=()):
    """Pairs of a kind and the text with one change; `text` is a body with its braces.
    `parameters` are the values that a rule gets."""
    source = Source(text)
    if "#" in text:
        return
    done = {text}
    skip = skipped(source)
    loops = [(i + 1, source.tokens[i + 1].match) for i, token in enumerate(source.tokens)
             if token.text == "for" and source.word(i + 1) == "("]
    tokens, word = source.tokens, source.word

    def change(first, last, by):
        return text[:tokens[first].start] + by + text[tokens[last].end:]

    def each():
        for i, token in enumerate(tokens):
            if i in skip:
                continue
            if source.is_binary(i):
                a, b = source.left(i), source.right(i)
                left, right = source.cut(a, i - 1), source.cut(i + 1, b)
                kind = {5: "sign", 6: "inverted factor"}.get(LEVEL[token.text], "comparison")
                if token.text in ("<", "<=") and any(p < i < q for p, q in loops):
                    # One more would leave the array, which is for the sanitizers to find.
                    yield "loop", change(a, b, f"{left} {token.text} ({right}) - 1")
                elif token.text in OPERATOR:
                    yield kind, change(i, i, OPERATOR[token.text])
                if token.text in "+-":
                    yield "dropped term", change(a, b, left)
                    yield "dropped term", change(a, b, right if token.text == "+" else f"-({right})")
                if token.text in "*/":
                    yield "dropped factor", change(a, b, left)
                    yield "dropped factor", change(a, b, right)
                if token.text in "-/":
                    yield "exchanged operand", change(a, b, f"({right}) {token.text} ({left})")
            elif token.text == "-" and token.end < len(text) and not text[token.end].isspace():
                yield "sign", change(i, i, "+")
            elif token.text in ("+=", "-="):
                yield "sign", change(i, i, "-=" if token.text == "+=" else "+=")
                yield "dropped term", change(i, i, "=")
            elif token.kind == "number" and word(i - 1) != "<":
                other = number(token.text)
                if other:
                    yield "constant", change(i, i, other)
            elif token.text in ("true", "false"):
                yield "flag", change(i, i, "false" if token.text == "true" else "true")
            elif token.text in ("transpose_a", "transpose_b") and word(i + 1) == "=":
                end = source.find(i + 2, (",", "}"))
                yield "flag", change(i + 2, end - 1, f"!({source.cut(i + 2, end - 1)})")
            elif token.text == "if" and word(i + 1) == "(":
                yield "condition", change(i + 1, tokens[i + 1].match,
                                          f"(!{source.cut(i + 1, tokens[i + 1].match)})")
            elif token.text == "if" and word(i + 1) == "constexpr":
                close = tokens[i + 2].match
                yield "condition", change(i + 2, close, f"(!{source.cut(i + 2, close)})")
            elif token.text == "return" and word(i + 1) not in ("{", "[", ";"):
                end = source.find(i + 1, ";")
                value = source.cut(i + 1, end - 1)
                yield "sign", change(i + 1, end - 1, f"-({value})")
                yield "factor", change(i + 1, end - 1, f"({value}) * 2.0")
            elif token.text == "?":
                end = source.find(i + 1, ":")
                last = source.find(end + 1, (",", ";", ")", "}"))
                yield "branches", change(i + 1, last - 1, f"{source.cut(end + 1, last - 1)} : "
                                                          f"{source.cut(i + 1, end - 1)}")
            elif token.kind == "word":
                yield from named(i)

    def named(i):
        name, previous = word(i), word(i - 1)
        if word(i + 1) == "(" and previous not in (".", "->"):
            arguments = [source.cut(*pair) for pair in source.arguments(i + 1)]
            close = tokens[i + 1].match
            if name in COMPARISON:
                yield "comparison", change(i, i, COMPARISON[name])
            if name in EXCHANGE or name.endswith("_vjp"):
                p, q = EXCHANGE.get(name, (0, 1))
                if q < len(arguments):
                    swapped = list(arguments)
                    swapped[p], swapped[q] = swapped[q], swapped[p]
                    kind = "branches" if name == "where" else "exchanged operand"
                    yield kind, change(i, close, f"{name}({', '.join(swapped)})")
            if name in REDUCTION and arguments:
                yield "skipped reduction", change(i, close, f"({arguments[0]})")
            if name == "scale" and arguments:
                yield "dropped factor", change(i, close, f"({arguments[0]})")
            if name in OF_ONE and arguments:
                yield "dropped function", change(i, close, f"({arguments[0]})")
        elif name in AXES and previous != ".":
            yield "axis", change(i, i, f"({name} + 1)")
            yield "axis", change(i, i, f"({name} - 1)")
        # Both values of an op have the same shape and type, mostly.
        about = word(i + 1) == "." and word(i + 2) in ("shape", "rank", "dtype", "numel", "size",
                                                       "defined")
        if name in parameters and not about and previous not in (".", "->", "::"):
            for other in parameters:
                if other != name:
                    yield "wrong value", change(i, i, other)

    for kind, mutated in each():
        if mutated not in done:
            done.add(mutated)
            yield kind, mutated


def saved_values(text):
    """Wrong values saved: another name in the place of one that an edge keeps for its rule."""
    source = Source(text)
    edges = [i for i, token in enumerate(source.tokens)
             if token.text == "edge" and source.word(i + 1) == "("]
    parsed = [source.arguments(i + 1) for i in edges]
    names = {"result"}
    for arguments in parsed:
        names |= {source.cut(*pair) for pair in arguments if pair[0] == pair[1]}
    names = sorted(name for name in names if name.isidentifier())
    done = {text}
    for arguments in parsed:
        for first, last in arguments[2:]:
            for other in names:
                changed = (text[:source.tokens[first].start] + other
                           + text[source.tokens[last].end:])
                if changed not in done:
                    done.add(changed)
                    yield "wrong value", changed
