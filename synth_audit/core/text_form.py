"""When two texts are the same label."""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import normalize


def standard_form(text: str) -> str:
    """What texts that are the same label have in common: Unicode form NFKC, case folded, trimmed.

    The forms of "Ｍale", " male" and "MALE" are equal; accents and inner spaces count.
    """
    if text.isascii():
        return text.lower().strip()
    return normalize("NFKC", normalize("NFKC", text).casefold()).strip()


def standard_forms(texts: Iterable[str | None]) -> list[str | None]:
    """The form of each text, made once for those that repeat; None stays."""
    known: dict[str, str] = {}
    found: list[str | None] = []
    for text in texts:
        if text is not None and text not in known:
            known[text] = standard_form(text)
        found.append(None if text is None else known[text])
    return found
