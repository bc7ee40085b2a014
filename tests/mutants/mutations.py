"""The mutants of a source: one change on one line each, chosen at run time by AgMutant(number)."""
import hashlib
import os
import re

from source import OPEN, UNTOUCHED

SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "&&": "||", "||": "&&", "+": "-", "-": "+", "*": "/", "/": "*", "%": "/",
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|=",
}
PREFIXES = {"++": "--", "--": "++"}
NAMES = {"min": "max", "max": "min"}
# Calls that cost or save time and memory only.
COSTS = re.compile(r"[.>](reserve|shrink_to_fit)\(")
# A value that a function returns already as {}.
EMPTY = re.compile(r"(OkStatus\(\)|[\w:<>]*(\(\)|\{\})|nullptr|std::nullopt|false|0|\"\")$")


class Mutant:
    """A change of `line`; `code` is the text that replaces [begin, end), with @ as its number."""

    def __init__(self, path, line, original, mutated, begin, end, code):
        self.path, self.line, self.original, self.mutated = path, line, original, mutated
        self.begin, self.end, self.code = begin, end, code

    def rank(self, seed, repetition):
        """A number that depends on seed and content alone, so that a file may move."""
        words = [str(seed), os.path.basename(self.path), self.original, str(repetition)]
        return hashlib.sha256("\0".join(words).encode()).hexdigest()

    def key(self):
        return os.path.basename(self.path), self.original, self.mutated


class Maker:
    """Makes all mutants of a source."""

    def __init__(self, path, source):
        self.path, self.source, self.mutants = path, source, []
        self.untouched = self._untouched()
        for r in source.ranges:
            self._literals(r)
            {"condition": self._condition, "return": self._return, "expression": self._expression,
             "declaration": self._declaration, "jump": self._jump}.get(r.role, lambda r: None)(r)

    # Tokens in the arguments of calls whose text is for people.
    def _untouched(self):
        found = set()
        for i, token in enumerate(self.source.tokens):
            if token.text in UNTOUCHED and self.source.is_token(i + 1, "("):
                found.update(range(i, self.source.partner[i + 1]))
        return found

    def _own(self, r):
        inner = {i for begin, end in r.inner for i in range(begin, end)}
        return [i for i in range(r.begin, r.end) if i not in inner and i not in self.untouched]

    # The tokens [begin, end) on one line, token `at` replaced by `other`.
    def _flat(self, begin, end, at=None, other=None):
        tokens, text = self.source.tokens, ""
        for i in range(begin, end):
            if i > begin and tokens[i - 1].end != tokens[i].begin:
                text += " "
            text += other if i == at else tokens[i].text
        return text

    def _text(self, begin, end):
        tokens = self.source.tokens
        return self.source.text[tokens[begin].begin:tokens[end - 1].end] if begin < end else ""

    def _add(self, token, mutated, begin, end, code):
        if "\n" in code.replace(self._text(begin, end), ""):
            return  # A raw string in the changed copy would move the lines.
        tokens = self.source.tokens
        line = tokens[token].line
        self.mutants.append(Mutant(self.path, line, self.source.lines[line].strip(), mutated,
                                   tokens[begin].begin, tokens[end - 1].end, code))

    # The line with token i replaced.
    def _line_with(self, i, other):
        token = self.source.tokens[i]
        line = self.source.lines[token.line]
        column = token.begin - (self.source.text.rfind("\n", 0, token.begin) + 1)
        return (line[:column] + other + line[column + len(token.text):]).strip()

    def _literals(self, r):
        tokens = self.source.tokens
        for i in self._own(r):
            token = tokens[i]
            if token.text in ("true", "false"):
                code = "!AgMutant(@)" if token.text == "true" else "AgMutant(@)"
                other = "false" if token.text == "true" else "true"
            elif token.kind == "number":
                # A template's argument cannot be chosen at run time.
                if (tokens[i - 1].text == "<" and tokens[i - 1].end == token.begin) or \
                        (self.source.is_token(i + 1, ">") and tokens[i + 1].begin == token.end):
                    continue
                match = re.fullmatch(r"([\d']+)(\.\d*)?([a-zA-Z]*)", token.text)
                if match:
                    whole = int(match.group(1).replace("'", "")) + 1
                    other = f"{whole}{match.group(2) or ''}{match.group(3)}"
                else:
                    other = f"({token.text} + 1)"
                code = f"(AgMutant(@) ? {other} : {token.text})"
            else:
                continue
            self._add(i, self._line_with(i, other), i, i + 1, code)

    # Yields (token, other, the expression with it) for [begin, end) of r.
    def _operators(self, r, begin, end):
        tokens = self.source.tokens
        for i in self._own(r):
            if not begin <= i < end:
                continue
            text = tokens[i].text
            is_spaced = begin < i < end - 1 and tokens[i - 1].end != tokens[i].begin and \
                tokens[i].end != tokens[i + 1].begin
            if text in SWAPS and is_spaced:
                other = SWAPS[text]
            elif text in PREFIXES and tokens[i].kind == "sign":
                other = PREFIXES[text]
            elif text in NAMES and self.source.is_token(i - 1, "::"):
                other = NAMES[text]
            else:
                continue
            yield i, other, self._flat(begin, end, i, other)

    def _condition(self, r):
        original = self._text(r.begin, r.end)
        for i, other, changed in self._operators(r, r.begin, r.end):
            self._add(i, self._line_with(i, other), r.begin, r.end,
                      f"AgMutant(@) ? ({changed}) : ({original})")
        flat = self._flat(r.begin, r.end)
        self._add(r.begin, f"not: {flat}", r.begin, r.end,
                  f"AgMutant(@) ? !({flat}) : static_cast<bool>({original})")
        self._add(r.begin, f"never: {flat}", r.begin, r.end, f"!AgMutant(@) && ({original})")

    def _return(self, r):
        original = self._text(r.begin, r.end)
        begin, end = r.begin + 1, r.end - 1
        if begin >= end or self.source.is_token(begin, "{"):
            return
        for i, other, changed in self._operators(r, begin, end):
            self._add(i, self._line_with(i, other), r.begin, r.end,
                      f"{{ if (AgMutant(@)) return {changed}; {original} }}")
        flat = self._flat(begin, end)
        if self.source.tokens[begin].text in UNTOUCHED or EMPTY.search(flat) or flat == "true":
            return
        self._add(r.begin, f"return {{}} for: {flat}", r.begin, r.end,
                  f"{{ if (AgMutant(@)) return std::decay_t<decltype({flat})>{{}}; {original} }}")

    def _expression(self, r):
        original = self._text(r.begin, r.end)
        for i, other, changed in self._operators(r, r.begin, r.end):
            self._add(i, self._line_with(i, other), r.begin, r.end,
                      f"{{ if (AgMutant(@)) {{ {changed} }} else {{ {original} }} }}")
        flat = self._flat(r.begin, r.end)
        if r.end - r.begin > 1 and not COSTS.search(flat):
            self._add(r.begin, f"dropped: {flat}", r.begin, r.end,
                      f"{{ if (!AgMutant(@)) {{ {original} }} }}")

    def _jump(self, r):
        self._expression(r)

    # T name = E; with one name.
    def _declaration(self, r):
        tokens, begin = self.source.tokens, None
        i = r.begin
        while i < r.end - 1:
            if tokens[i].text == "," and tokens[i].kind == "sign":
                return
            if tokens[i].text == "=" and begin is None:
                begin = i + 1
            i = self.source.partner[i] + 1 if tokens[i].text in OPEN else i + 1
        if begin is None or self.source.is_token(begin, "{"):
            return
        original = self._text(begin, r.end - 1)
        for i, other, changed in self._operators(r, begin, r.end - 1):
            self._add(i, self._line_with(i, other), begin, r.end - 1,
                      f"AgMutant(@) ? ({changed}) : ({original})")


def draw(makers, seed):
    """Mutants in an order that depends on the seed: at most one a line, no two that overlap."""
    by_line = {}
    for maker in makers:
        for mutant in maker.mutants:
            by_line.setdefault((mutant.path, mutant.line), []).append(mutant)
    repetitions, order = {}, []
    for (path, line), mutants in sorted(by_line.items(), key=lambda item: item[0]):
        content = os.path.basename(path), mutants[0].original
        repetitions[content] = repetitions.get(content, 0) + 1
        rank = mutants[0].rank(seed, repetitions[content])
        order.append((rank, mutants[int(rank[-8:], 16) % len(mutants)]))
    order.sort(key=lambda item: item[0])
    taken = []
    for _, mutant in order:
        if not any(other.path == mutant.path and other.begin < mutant.end and
                   mutant.begin < other.end for other in taken):
            taken.append(mutant)
            yield mutant
