"""Which patterns are RE2, and what is found. Every line of RE2 was checked with Go's regexp too: both must take it."""

import pytest

from pyjobset.rules.patterns import is_found, why_not

RE2 = [
    "",
    "oom",
    "^exit code (1|2|137)$",
    "(?i)out of memory",
    "a(?i)b(?-i)c",
    "(?)a",
    "(?U)a+",
    "(?:ab)+?",
    "(?P<code>[0-9]+)",
    "(?<code>[0-9]+)",
    "(?P<n>a)(?P<n>b)",
    "a|b||c",
    "()",
    "^*",
    "a*?b+?c??",
    "a{2}b{2,}c{2,3}d{0,1000}",
    "(a{500}){2}",
    "a{2}(?i){2}",
    "a{,2}",
    "a{x}",
    "{",
    "}",
    "]",
    "[]a]",
    "[^]a]",
    "[a-]",
    "[-a]",
    "[a\\-z]",
    "[[:alpha:][:^digit:]]",
    "[\\d\\PL.]",
    "[\\x{41}-\\x{5A}]",
    "\\d\\D\\s\\S\\w\\W\\b\\B\\A\\z",
    "\\pL\\p{Lu}\\p{^Greek}\\PN",
    "\\x41\\x{10FFFF}\\012\\0\\12",
    "\\a\\f\\t\\n\\r\\v",
    "\\.\\*\\_\\-\\ ",
    "\\Qa(b*[\\E+",
    "\\Q(?=",
    "é+",
]

NOT_RE2 = [
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "(?<!a)",
    "(?>a)",
    "(?(1)a|b)",
    "(?#c)",
    "(a)\\1",
    "(?P<n>a)(?P=n)",
    "(?R)",
    "(?|a|b)",
    "(?x)a",
    "(?-)a",
    "(?",
    "a*+",
    "a{2}+",
    "a**",
    "a{2}{3}",
    "a???",
    "*a",
    "(+a)",
    "a|?",
    "(?i)*",
    "{2}",
    "a{3,2}",
    "a{1001}",
    "(a{500}){3}",
    "((a{10}){10}){11}",
    "(a",
    "\\d(",
    "[\\d",
    "\\Qa\\E(",
    "a)",
    "[a",
    "[]",
    "[a-",
    "[z-a]",
    "[[:foo:]]",
    "[a-\\d]",
    "[\\b]",
    "\\p{foo}",
    "\\pX{",
    "\\p",
    "\\Z",
    "\\u0041",
    "\\é",
    "\\x{110000}",
    "\\x4",
    "\\8",
]


@pytest.mark.parametrize("pattern", RE2)
def test_re2(pattern: str) -> None:
    assert why_not(pattern) is None
    assert is_found(pattern, "") is not None


@pytest.mark.decision(3)
@pytest.mark.parametrize("pattern", NOT_RE2)
def test_not_re2(pattern: str) -> None:
    assert why_not(pattern)
    assert is_found(pattern, "") is None


@pytest.mark.decision(3)
@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("exit code", "pod failed with exit code 137", True),
        ("^exit", "pod failed with exit code 137", False),
        ("", "anything", True),
        ("(?i)OOM", "oomkilled", True),
        ("a.b", "a\nb", False),
        ("(?s)a.b", "a\nb", True),
        ("é$", "caf\u00e9", True),
        ("x", "half \ud800 a pair x", True),
    ],
)
def test_a_pattern_is_searched_anywhere(pattern: str, text: str, found: bool) -> None:
    assert is_found(pattern, text) is found


@pytest.mark.decision(3)
def test_a_pattern_that_would_backtrack_takes_linear_time() -> None:
    """With a backtracking engine this one never ends: it doubles with every x."""
    assert is_found("^(x+x+)+y", "x" * 100_000) is False


def test_a_pattern_that_takes_long_to_compile_is_none() -> None:
    """RE2's own limit allows seven megabytes and a tenth of a second for each."""
    assert [why_not(pattern) for pattern in (".{0,1000}", r"(node|pod) \pL{9}", "a" * 9000)] == [None] * 3
    assert "too large" in (why_not(r"(\pL{50}){7}") or "")
