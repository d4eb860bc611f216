"""RE2 patterns of failure policy rules (decision 3): whether one can be used, and whether it is found in a message.

Called by rules.policies at admission and by the reconciler's failure policy. The library is RE2 itself, so a match
takes time linear in the message, whatever the pattern. It is imported when the first pattern is met: few JobSets have
one.
"""

from functools import lru_cache
from typing import Any

COMPILED_MAX = 256
"""Patterns that are kept compiled. A JobSet may have as many, so that none is compiled twice."""
MEMORY_BYTES_MAX = 256 * 1024
"""Of one pattern. It bounds the time to compile it, too: a millisecond or two, where RE2's own limit allows 50."""


def why_not(pattern: str) -> str | None:
    """What RE2 says against the pattern, or None when it can be used."""
    compiled = _compiled(pattern)
    return compiled if isinstance(compiled, str) else None


def is_found(pattern: str, text: str) -> bool | None:
    """Anywhere in the text. None: the pattern is none, which admission refuses and old JobSets may have."""
    compiled = _compiled(pattern)
    return None if isinstance(compiled, str) else compiled.search(_storable(text)) is not None


@lru_cache(COMPILED_MAX)
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError:
        return "it has a character that no UTF-8 text has"
    except re2.error as error:
        said = error.args[0] if error.args else "it is none"
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _storable(text: str) -> str:
    """Half a surrogate pair, which JSON can carry and RE2 cannot, becomes a question mark."""
    return text.encode(errors="replace").decode()
