"""Is a text a regular expression of RE2? Says what is wrong and what RE2 has not, in plain words.

A failure policy's message patterns are RE2, so that matching takes linear time whatever the message (decision 3). This
reads the syntax that both RE2 and Go's regexp take, in one pass without recursion. It never matches anything.
"""

import re
from dataclasses import dataclass

REPEAT_MAX = 1000
DEPTH_MAX = 1000

_NOT_IN_RE2 = {
    "=": "lookahead (?=...)",
    "!": "negative lookahead (?!...)",
    "<=": "lookbehind (?<=...)",
    "<!": "negative lookbehind (?<!...)",
    ">": "an atomic group (?>...)",
    "(": "a conditional (?(...)...)",
    "#": "a comment (?#...)",
    "P=": "a backreference (?P=name)",
    "P>": "a call of a group (?P>name)",
    "|": "a branch reset (?|...)",
    "&": "a call of a group (?&name)",
    "R": "recursion (?R)",
}
_NAMED_GROUP = re.compile(r"P?<[A-Za-z0-9_]+>")
_FLAGS = re.compile(r"([imsU]*)(-[imsU]+)?([:)])")
_REPEAT = re.compile(r"\{(\d+)(,(\d*))?\}", re.ASCII)
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,8})\})")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_UNICODE_CLASS = re.compile(r"[pP](?:([A-Z])|\{\^?([A-Za-z_]+)\})")
_POSIX_CLASS = re.compile(r"\[:\^?([a-z]*):\]")
_POSIX_NAMES = re.compile("alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit")
_UNICODE_NAMES = re.compile(
    "Any|C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?"  # categories
    "|[A-Z][a-z]{2,}(_[A-Z][a-z]+)*"  # scripts; which there are depends on the version of Unicode
)
_PERL_CLASSES = frozenset("dDsSwW")
_CONTROLS = frozenset("afnrtv")
_ANCHORS = frozenset("AbBz")
_RUNE_MAX = 0x10FFFF


class _Bad(Exception):
    """What is wrong with the pattern."""


@dataclass(slots=True)
class _Level:
    """An open group, or the pattern itself. `repeats` is the largest product of counted repeats inside it."""

    repeats: int = 1
    can_repeat: bool = False
    last: int = 1
    """The same of the last item, which a repeat would multiply."""


def why_not_re2(pattern: str) -> str | None:
    """None, or what is wrong with it, as the end of a sentence that starts with the pattern."""
    try:
        _Reader(pattern).read()
    except _Bad as bad:
        return str(bad)
    return None


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._levels = [_Level()]

    def read(self) -> None:
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "(":
                self._open()
            elif char == ")":
                self._close()
            elif char == "[":
                self._class()
                self._item()
            elif char == "\\":
                self._escape()
            elif char in "*+?" or (char == "{" and _REPEAT.match(self._text, self._at)):
                self._repeat()
            else:
                self._at += 1
                self._item(is_item=char != "|")
        if len(self._levels) > 1:
            raise _Bad("has a '(' that is not closed")

    def _item(self, *, is_item: bool = True, repeats: int = 1) -> None:
        level = self._levels[-1]
        level.can_repeat, level.last = is_item, repeats
        level.repeats = max(level.repeats, repeats)

    def _open(self) -> None:
        if not self._text.startswith("(?", self._at):
            self._at += 1
            self._push()
            return
        rest = self._at + 2
        named = _NAMED_GROUP.match(self._text, rest)
        if named:
            self._at = named.end()
            self._push()
            return
        flags = _FLAGS.match(self._text, rest)
        if flags:
            self._at = flags.end()
            if flags[3] == ":":
                self._push()
            return
        for mark, words in _NOT_IN_RE2.items():
            if self._text.startswith(mark, rest):
                raise _Bad(f"has {words}, which RE2 has not")
        raise _Bad("has a group '(?' of a kind that RE2 has not")

    def _push(self) -> None:
        if len(self._levels) > DEPTH_MAX:
            raise _Bad(f"nests groups more than {DEPTH_MAX} deep")
        self._levels.append(_Level())

    def _close(self) -> None:
        if len(self._levels) == 1:
            raise _Bad("has a ')' without '('")
        self._at += 1
        self._item(repeats=self._levels.pop().repeats)

    def _repeat(self) -> None:
        level = self._levels[-1]
        if not level.can_repeat:
            raise _Bad(f"has {self._text[self._at]!r} with nothing before it to repeat")
        times = 1
        counted = _REPEAT.match(self._text, self._at)
        if counted:
            times = self._times(counted)
        self._at = counted.end() if counted else self._at + 1
        if self._text.startswith("?", self._at):
            self._at += 1  # as few as possible
        if self._text.startswith("+", self._at):
            raise _Bad("has a possessive repeat such as '*+', which RE2 has not")
        if self._text.startswith(("*", "?"), self._at) or _REPEAT.match(self._text, self._at):
            raise _Bad("repeats a repeat; put the inner one in a group (?:...)")
        self._item(repeats=level.last * times)

    def _times(self, counted: re.Match[str]) -> int:
        digits = [counted[1], counted[3] or counted[1]]
        low, high = (int(d) if len(d) < 10 else REPEAT_MAX + 1 for d in digits)
        if low > high:
            raise _Bad(f"has a repeat {counted[0][:40]!r} whose bounds are the wrong way round")
        if high * self._levels[-1].last > REPEAT_MAX:
            raise _Bad(f"repeats something more than {REPEAT_MAX} times in all")
        return max(high, 1)

    def _escape(self) -> None:
        rest = self._at + 1
        if self._text.startswith("Q", rest):
            end = self._text.find("\\E", rest)
            literal = self._text[rest + 1 : end if end >= 0 else None]
            self._at = end + 2 if end >= 0 else len(self._text)
            if literal:
                self._item()
            return
        if self._text[rest : rest + 1] in _ANCHORS | _PERL_CLASSES:
            self._at += 2
        elif not self._unicode_class():
            self._rune_escape()
        self._item()

    def _unicode_class(self) -> bool:
        """Takes `\\pL` or `\\p{Greek}`, if that is what is here."""
        if self._text[self._at + 1 : self._at + 2] not in ("p", "P"):
            return False
        found = _UNICODE_CLASS.match(self._text, self._at + 1)
        name = (found[1] or found[2]) if found else None
        if found is None or name is None or not _UNICODE_NAMES.fullmatch(name):
            raise _Bad("has a character class \\p that Unicode has not")
        self._at = found.end()
        return True

    def _rune_escape(self) -> int:
        """Takes an escape that stands for one character and returns that character's code."""
        rest = self._at + 1
        char = self._text[rest : rest + 1]
        if not char:
            raise _Bad("ends with a single backslash")
        code = _HEX.match(self._text, rest) or _OCTAL.match(self._text, rest)
        if code:
            self._at = code.end()
            if char != "x":
                return int(code[0], 8)
            value = int(code[1] or code[2], 16)
            if value > _RUNE_MAX:
                raise _Bad("has an escape beyond the last character of Unicode")
            return value
        if char in "123456789":
            raise _Bad(f"has a backreference \\{char}, which RE2 has not")
        if char in _CONTROLS or (char.isascii() and not char.isalnum()):
            self._at += 2
            return ord(char)
        raise _Bad(f"has an escape \\{char if char.isprintable() else ''} that RE2 has not")

    def _class(self) -> None:
        """Takes a bracket expression."""
        start = self._at
        self._at += 2 if self._text.startswith("[^", self._at) else 1
        is_first = True
        while not self._text.startswith("]", self._at) or is_first:
            is_first = False
            if self._at >= len(self._text):
                raise _Bad(f"has a '[' that is not closed, at character {start + 1}")
            if self._class_set():
                continue
            low = self._class_rune()
            if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                if low > self._class_rune():
                    raise _Bad("has a range in '[...]' whose bounds are the wrong way round")
        self._at += 1

    def _class_set(self) -> bool:
        """Takes a set inside brackets, `[:alpha:]`, `\\d` or `\\pL`, if that is what is here."""
        posix = _POSIX_CLASS.match(self._text, self._at)
        if posix:
            if not _POSIX_NAMES.fullmatch(posix[1]):
                raise _Bad(f"has a class {posix[0][:40]!r} that RE2 has not")
            self._at = posix.end()
            return True
        if not self._text.startswith("\\", self._at):
            return False
        if self._text[self._at + 1 : self._at + 2] in _PERL_CLASSES:
            self._at += 2
            return True
        return self._unicode_class()

    def _class_rune(self) -> int:
        if self._at >= len(self._text):
            raise _Bad("has a '[' that is not closed")
        if self._text[self._at] == "\\":
            return self._rune_escape()
        self._at += 1
        return ord(self._text[self._at - 1])
