"""Text that others wrote, made fit to show: nothing that misleads a terminal or a page, nothing endless."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

LONGEST_WORD = 255
"""Letters of one word that are shown: as many as a file's name may have."""

LONGEST_LINE = 1000
"""Letters of one part of a message that are shown."""

_REPLACEMENT = "\ufffd"
_HARMLESS = "\n\t\u00ad"
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_BREAKS = str.maketrans(dict.fromkeys("\n\u2028\u2029", _REPLACEMENT))
_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def clean(text: str) -> str:
    """Text without control, bidirectional-override and surrogate characters, which could mislead or break.

    Line feed, tab and soft hyphen stay; an escape sequence, a carriage return or a zero-width character each
    become U+FFFD, so that a reader sees that something stood there.
    """
    if text.isprintable():
        return text
    return "".join(
        _REPLACEMENT if unicodedata.category(c) in _HIDDEN and c not in _HARMLESS else c for c in text
    )


def one_line(text: str) -> str:
    """Cleaned text without line breaks, so that a name cannot pass for a line of its own."""
    return clean(text).translate(_BREAKS)


def meant(word: str, known: Iterable[str]) -> str:
    """A question for the known word that is nearest, in brackets; empty if none is near."""
    near = get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    *first, last = names or [""]
    return f"{', '.join(first)} and {last}" if first else last


def shortened(text: str, most: int = LONGEST_LINE) -> str:
    """At most ``most`` letters: of what is longer the start and the end, which say most, with … between.

    A word longer than :data:`LONGEST_WORD` is cut too, so that what surrounds it stays readable.
    """
    if len(text) <= min(most, LONGEST_WORD):
        return text
    return _cut(_WORD.sub(lambda found: _cut(found[0], LONGEST_WORD), text), most)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return text[: most - 1 - tail] + "…" + text[len(text) - tail :]
