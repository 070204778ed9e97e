"""When two texts are the same label."""

from collections.abc import Iterable
from unicodedata import normalize

import pyarrow as pa
import pyarrow.compute as pc

_BLANK = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
"""What counts as blank in ASCII."""


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


def column_forms(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The form of each text of a column, as large_string; null stays. ASCII, which most is, takes no loop."""
    texts = texts.cast(pa.large_string())
    # In this order: of a part of a longer array Arrow 26 lowers other bytes; what was trimmed is whole again.
    forms = pc.ascii_lower(pc.ascii_trim(texts, _BLANK))
    others = pc.invert(pc.string_is_ascii(texts)).fill_null(False).combine_chunks()
    if not pc.any(others).as_py():
        return forms
    made = pa.array(standard_forms(texts.filter(others).to_pylist()), pa.large_string())
    return pa.chunked_array([pc.replace_with_mask(forms.combine_chunks(), others, made)])
