"""Statements of the functions of a C++ file, found by tokens. No state outside of Source."""
import re

TOKEN = re.compile(
    r'''(?P<space>\s+)
      |(?P<comment>//[^\n]*|/\*.*?\*/)
      |(?P<line>\#(?:\\\n|[^\n])*)
      |(?P<text>R"(?P<d>[^()\s\\]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
      |(?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
      |(?P<word>[A-Za-z_]\w*)
      |(?P<sign><=>|<<=|>>=|\.\.\.|->|::|\+\+|--|&&|\|\||[<>=!+*/%&|^-]=|<<|.)''',
    re.VERBOSE | re.DOTALL)
OPEN = {"(": ")", "[": "]", "{": "}"}
# What a call of these gets is text for people, or a promise that only a bug breaks.
UNTOUCHED = ("Err", "Within", "AG_CHECK", "AG_DCHECK", "static_assert")


class Token:
    __slots__ = ("kind", "text", "begin", "end", "line")

    def __init__(self, kind, text, begin, line):
        self.kind, self.text, self.begin, self.line = kind, text, begin, line
        self.end = begin + len(text)


class Range:
    """Tokens [begin, end) of one statement, `role` says what may be done with them.

    Roles: "condition" of an if or a loop, "expression" up to and with its semicolon, "return",
    "declaration", "jump" (break, continue), "other" (only its literals may change).
    `inner` has the ranges of the bodies of its lambdas, which have statements of their own.
    """

    def __init__(self, role, begin, end, inner=()):
        self.role, self.begin, self.end, self.inner = role, begin, end, inner


class Source:
    """The tokens of a file and the ranges of its functions' statements."""

    def __init__(self, text):
        self.text = text
        self.lines = text.split("\n")
        self.tokens = []
        line = 0
        for match in TOKEN.finditer(text):
            if match.lastgroup not in ("space", "comment", "line"):
                self.tokens.append(Token(match.lastgroup, match.group(), match.start(), line))
            line += match.group().count("\n")
        self.partner = self._partners()
        self.ranges = []
        self._declarations(0, len(self.tokens))

    def is_token(self, i, *texts):
        return 0 <= i < len(self.tokens) and self.tokens[i].text in texts

    def _partners(self):
        partner, stack = {}, []
        for i, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in OPEN:
                stack.append(i)
            elif token.text in (")", "]", "}"):
                if not stack or OPEN[self.tokens[stack[-1]].text] != token.text:
                    raise ValueError(f"line {token.line + 1}: '{token.text}' without its partner")
                partner[stack.pop()] = i
        return partner

    # Namespaces and classes: finds the bodies of functions.
    def _declarations(self, i, end):
        start = i
        while i < end:
            text = self.tokens[i].text
            if text in ("(", "["):
                self._lambdas(i + 1, self.partner[i])
                i = self.partner[i]
            elif text == ";" or (text == ":" and i == start + 1 and
                                 self.is_token(start, "public", "private", "protected")):
                start = i + 1
            elif text == "{":
                close = self.partner[i]
                kind = self._kind_of_braces(start, i)
                if kind in ("namespace", "class"):
                    self._declarations(i + 1, close)
                elif kind == "function":
                    self._block(i + 1, close)
                elif kind == "values":
                    self._lambdas(i + 1, close)
                if kind in ("namespace", "function", "skipped"):
                    start = close + 1
                i = close
            i += 1

    def _kind_of_braces(self, start, brace):
        words, has_parentheses, has_colon, i = [], False, False, start
        while i < brace:
            text = self.tokens[i].text
            if text == "template" and self.is_token(i + 1, "<"):
                depth, i = 1, i + 2
                while depth and i < brace:
                    depth += {"<": 1, ">": -1}.get(self.tokens[i].text, 0)
                    i += 1
                continue
            if text == "(":
                has_parentheses = True
            has_colon = has_colon or (text == ":" and has_parentheses)
            words.append(text)
            i = self.partner[i] + 1 if text in OPEN else i + 1
        if not words:
            return "skipped"
        if words[0] in ("namespace", "extern") or words[:2] == ["inline", "namespace"]:
            return "namespace"
        if "enum" in words:
            return "values"
        if words[0] in ("class", "struct", "union"):
            return "class"
        is_table = "=" in words and "operator" not in words
        if not has_parentheses or is_table:
            return "values"
        before = self.tokens[brace - 1]
        if has_colon and (before.kind == "word" or before.text == ">"):
            return "values"  # Of a member: the function's body follows.
        return "skipped" if "constexpr" in words or "consteval" in words else "function"

    def _block(self, i, end):
        while i < end:
            i = self._statement(i, end)

    # Returns the index behind the statement at i.
    def _statement(self, i, end):
        if i >= end:
            return end
        text = self.tokens[i].text
        if text == "{":
            self._block(i + 1, self.partner[i])
            return self.partner[i] + 1
        if text in ("if", "while", "for", "switch", "catch"):
            is_fixed = self.is_token(i + 1, "constexpr")
            open_at = i + (2 if is_fixed else 1)
            close = self.partner[open_at]
            if not is_fixed and text != "catch":
                self._header(text, open_at + 1, close)
            return self._statement(close + 1, end)
        if text in ("else", "do", "try"):
            return self._statement(i + 1, end)
        if text in ("case", "default"):
            while not self.is_token(i, ":"):
                i += 1
            return self._statement(i + 1, end)
        return self._simple(i, end)

    # What stands in the parentheses of if, while, for or switch.
    def _header(self, keyword, begin, end):
        inner = self._lambdas(begin, end)
        parts, i = [begin], begin
        while i < end:
            if self.is_token(i, ";"):
                parts.append(i + 1)
            i = self.partner[i] + 1 if self.tokens[i].text in OPEN else i + 1
        parts.append(end + 1)
        pieces = [(parts[n], parts[n + 1] - 1) for n in range(len(parts) - 1)]
        condition = {"for": 1, "switch": -1}.get(keyword, len(pieces) - 1)
        for n, (first, last) in enumerate(pieces):
            is_condition = n == condition and len(pieces) > (1 if keyword == "for" else 0)
            is_condition = is_condition and first < last and not self._is_declaration(first, last)
            self.ranges.append(Range("condition" if is_condition else "other", first, last, inner))

    def _simple(self, begin, end):
        i = begin
        while i < end and not self.is_token(i, ";"):
            i = self.partner[i] + 1 if self.tokens[i].text in OPEN else i + 1
        stop = min(i + 1, end)
        inner = self._lambdas(begin, stop)
        first = self.tokens[begin].text
        words = {self.tokens[k].text for k in range(begin, min(begin + 4, stop))}
        if words & {"constexpr", "static"} or first in UNTOUCHED + ("using", "struct", "class"):
            return stop
        if first == "return":
            role = "return"
        elif first in ("break", "continue"):
            role = "jump"
        elif first == "AG_LET" or not self.is_token(stop - 1, ";"):
            role = "other"
        else:
            role = "declaration" if self._is_declaration(begin, stop) else "expression"
        self.ranges.append(Range(role, begin, stop, inner))
        return stop

    # Whether tokens begin with a type and a name.
    def _is_declaration(self, begin, end):
        i = begin
        while i + 1 < end:
            now, after = self.tokens[i], self.tokens[i + 1]
            if now.kind == "sign" and now.text in ("=", "(", "{", ".", "->", "++", "--", "!"):
                return False
            is_type = now.kind == "word" or (now.text in ("*", "&", "&&", ">") and i > begin and
                                             now.begin == self.tokens[i - 1].end)
            if is_type and now.text != "delete" and (after.kind == "word" or after.text == "["):
                return after.kind == "word" or now.text in ("auto", "&", "&&")
            i = self.partner[i] + 1 if now.text == "[" else i + 1
        return False

    # Handles the bodies of the lambdas in [begin, end) and returns their ranges.
    def _lambdas(self, begin, end):
        found, i = [], begin
        while i < end:
            if self.is_token(i, "{") and self._is_lambda(i):
                self._block(i + 1, self.partner[i])
                found.append((i, self.partner[i] + 1))
                i = self.partner[i]
            i += 1
        return tuple(found)

    def _is_lambda(self, brace):
        before = self.tokens[brace - 1]
        if before.text in (")", "]", "mutable"):
            return True
        i = brace - 1
        while i > 0 and (self.tokens[i].kind == "word" or
                         self.tokens[i].text in ("::", "<", ">", "*", "&", ",")):
            i -= 1
        return i < brace - 1 and self.is_token(i, "->") and self.is_token(i - 1, ")")
