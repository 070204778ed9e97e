"""Texts as vectors of n-grams, and texts that hold numbers, dates or quantities read as such."""

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

import numpy as np

from synth_audit.arrays import Floats, Floats32
from synth_audit.table.arrow import microseconds
from synth_audit.table.kind import TIME

WIDTH = 16
"""Numbers of a vector."""

_N_GRAMS = 2, 4
"""Lengths of the runs of letters that are counted, within words."""

_BUCKETS = 2**12
"""Hashed character n-grams: the projection to few dimensions follows, so a collision costs little."""

_LONGEST_TEXT = 2_000
"""Letters of a text that are looked at."""

_SEED = 20_240_301
"""Of the projection, which is the same for every table and run, so that no data move it."""

_BLOCK = 200
"""Texts that are compared at once."""

_MOST_KEPT = 2**17
"""Vectors that are kept in a process: some 30 MiB with the hashes of their texts."""

_KEPT: dict[bytes, Floats32] = {}
"""Vectors of texts met before, by the hash of each; all go when there is no room for more."""

_KEEPING = threading.Lock()

LEAST_READ = 0.9
"""Share of distinct labels that a convention must read."""

_FEWEST_NUMBERS = 3
"""Two numbers are as far apart as two labels."""

_FIRST_LOOK = 200
"""Distinct labels by which a convention may be ruled out at once."""

ReadNumber = tuple[float, str]
"""A number and its unit, with a currency before it; empty where there is none."""

_SIGN = r"(?P<sign>[-+\N{MINUS SIGN}]?)"

_MONEY = r"(?P<money>[$\N{EURO SIGN}\N{POUND SIGN}\N{YEN SIGN}]|usd|eur|gbp|chf)?\s*"

_BOUND = r"[<>~\N{LESS-THAN OR EQUAL TO}\N{GREATER-THAN OR EQUAL TO}]?\s*"

_UNIT = r"(?:\s*(?P<unit>[^\d\s.,:+\-\N{MINUS SIGN}/][^\s,]{0,15}(?: [a-z]{1,10})?))?"

_POWER = r"(?:e[-+]?\d{1,3}(?!\d))?"

_TIME = r"(?:[t ]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?)?"

_GROUPED = re.compile(r"[,' ](?=\d{3}(?!\d))")

_END = r"[-+\N{MINUS SIGN}]?(?:[1-9]\d{0,2}(?:[,' ]\d{3})+|\d+)(?:[.,]\d+)?"

_BEFORE = (
    r"under|below|less than|fewer than|up to|at most|until|over|above|more than|at least|from|older than|"
    r"younger than|[<>]=?|\N{LESS-THAN OR EQUAL TO}|\N{GREATER-THAN OR EQUAL TO}"
)

_AFTER = r"(?:or|and) (?:more|less|over|under|above|below|older|younger|fewer|up|later|earlier)|plus|\+"

_BETWEEN = r"-|\N{EN DASH}|\N{EM DASH}|to|through|until|\.{2,3}|/|;"

_OPEN = r"[-+]?(?:\d+(?:\.\d+)?|inf)"

_INTERVAL = re.compile(rf"[\[(\]] ?({_OPEN}) ?[,;] ?({_OPEN}) ?[\])\[]")

_NAME = r"[a-z%$\N{EURO SIGN}]{1,8}"

_BAND = re.compile(
    rf"(?:(?:{_BEFORE}) ?)?(?P<first>{_END})(?: ?(?P<unit>{_NAME}))??"
    rf"(?: ?(?:{_BETWEEN}) ?(?P<second>{_END})(?: ?(?P<other>{_NAME}))?)?(?: ?(?:{_AFTER}))?"
)

_DAY, _MONTH, _YEAR = r"(?P<day>\d{1,2})", r"(?P<month>\d{1,2})", r"(?P<year>\d{4})"

_DATES = ("ISO dates", "year/month/day", "day.month.year", "day/month/year", "month/day/year")

_NUMBER = re.compile(r"(?:(?<![\w.)])[-+\N{MINUS SIGN}])?\d+(?:[.,]\d+)?")
"""A sign behind a digit or a letter stands between two numbers instead."""

_LONGEST_COMPOSITE = 200
"""Letters of a text that is read; a longer one is no composite."""

FEWEST_LABELS, _MOST_NUMBERS = 30, 6
"""Labels that a composite has more of, fewer being groups such as bands of ages; most numbers of a text."""


def ngram_vectors(texts: Sequence[str]) -> Floats32:
    """Vectors of length 1 (0 for a text without letters), shape (n, :data:`WIDTH`).

    Counts of runs of two to four letters within words are hashed to 4,096 buckets (Weinberger et al. 2009),
    divided by their Euclidean length, and projected on random normal directions (Johnson & Lindenstrauss):
    differences of coordinates have the distance of the counts as scale. The vector of a text is made once:
    one view of a table after the other asks for those of the same notes.

    Args:
        texts: in standard form.
    """
    cut = [text[:_LONGEST_TEXT] for text in texts]
    keys = [hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest() for text in cut]
    with _KEEPING:
        new = {key: text for key, text in zip(keys, cut, strict=True) if key not in _KEPT}
        if len(_KEPT) + len(new) > _MOST_KEPT:
            _KEPT.clear()
            new = dict(zip(keys, cut, strict=True))
        if new:
            _KEPT.update(zip(new, _made(list(new.values())), strict=True))
        found: Floats32 = np.array([_KEPT[key] for key in keys], np.float32).reshape(-1, WIDTH)
        if len(_KEPT) > _MOST_KEPT:
            _KEPT.clear()
    return found


def greatest_similarity(texts: Sequence[str], others: Sequence[str]) -> Floats32:
    """The cosine of the counts of each text with those of the most similar other one, in [-1, 1], shape (n,).

    Of the counts themselves and not of their projection, in which one text among thousands of strangers lies
    as near by chance as a reworded one.

    Args:
        texts, others: in standard form; there is at least one other.
    """
    counts, reference = _counted(texts), _counted(others).T.tocsr()
    found = np.zeros(len(texts), dtype=np.float32)
    for start in range(0, len(texts), _BLOCK):
        rows = slice(start, start + _BLOCK)
        found[rows] = (counts[rows] @ reference).max(axis=1).toarray().ravel()
    return found


def _made(texts: Sequence[str]) -> Floats32:
    """Each vector depends on its own text alone, whatever stands beside it."""
    counted = _counted(texts)
    directions = np.random.default_rng(_SEED).standard_normal((_BUCKETS, WIDTH)).astype(np.float32)
    vectors = np.asarray(counted @ directions, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: Floats32 = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return made


def _counted(texts: Sequence[str]) -> Any:
    """Signed counts in their buckets, of length 1 each; a sparse matrix."""
    from sklearn.feature_extraction.text import HashingVectorizer  # here: a code location must not load it

    return HashingVectorizer(
        analyzer="char_wb", ngram_range=_N_GRAMS, n_features=_BUCKETS, lowercase=False, dtype=np.float32
    ).transform([text[:_LONGEST_TEXT] for text in texts])


def _number_pattern(point: str, comma: str) -> re.Pattern[str]:
    grouped = rf"[1-9]\d{{0,2}}(?:[{comma}' ]\d{{3}})+(?:{point}\d+)?"
    plain = rf"\d+(?:{point}\d*)?{_POWER}|{point}\d+{_POWER}"
    return re.compile(rf"{_BOUND}{_MONEY}{_SIGN}\s*(?P<digits>{grouped}|{plain}){_UNIT}")


def _quantity(text: str, pattern: re.Pattern[str], point: str) -> ReadNumber | None:
    found = pattern.fullmatch(text)
    if not found:
        return None
    digits = re.sub(r"[' ]", "", found["digits"])
    digits = digits.replace(".", "").replace(",", ".") if point == "," else digits.replace(",", "")
    number = float(digits) * (1 if found["sign"] in ("", "+") else -1)
    return (number, f"{found['money'] or ''} {found['unit'] or ''}") if np.isfinite(number) else None


def _date(text: str, pattern: re.Pattern[str]) -> ReadNumber | None:
    found = pattern.fullmatch(text)
    if not found:
        return None
    named = {name: int(part) for name, part in found.groupdict().items() if part}
    try:
        return microseconds(datetime(**named, tzinfo=UTC)), ""
    except ValueError:
        return None


def _iso(text: str) -> ReadNumber | None:
    if not re.match(r"\d{4}-\d{2}(-\d{2}|$)", text):
        return None
    whole = f"{text}-01" if len(text) == len("2024-03") else text
    try:
        return microseconds(datetime.fromisoformat(whole.upper())), ""
    except ValueError:
        return None


def _clock(text: str) -> ReadNumber | None:
    found = re.fullmatch(r"(\d{1,2}):([0-5]\d)(?::([0-5]\d))?", text)
    return (3600.0 * int(found[1]) + 60.0 * int(found[2]) + int(found[3] or 0), "") if found else None


def _band(text: str) -> ReadNumber | None:
    """The middle of a band, or the bound of an open one."""
    if found := _INTERVAL.fullmatch(text):
        ends = [x for x in map(float, found.groups()) if np.isfinite(x)]
        return (sum(ends) / len(ends), "") if ends else None
    if not (found := _BAND.fullmatch(text)):
        return None
    units = {found[name] for name in ("unit", "other") if found[name]}
    if len(units) > 1:
        return None
    ends = [_plain_number(found[name]) for name in ("first", "second") if found[name]]
    return sum(ends) / len(ends), units.pop() if units else ""


def _plain_number(text: str) -> float:
    """A number whose comma or point is followed by three digits where it groups, and by others elsewhere."""
    return float(_GROUPED.sub("", text.replace("\N{MINUS SIGN}", "-")).replace(",", "."))


def _code(text: str) -> ReadNumber | None:
    """A letter and a number, as codes of diagnoses have: neighbours have neighbouring codes."""
    found = re.fullmatch(r"([a-z])(\d{2,3}(?:\.\d{1,4})?)", text)
    return (1000.0 * (ord(found[1]) - ord("a")) + float(found[2]), "") if found else None


def _roman(text: str) -> ReadNumber | None:
    """A Roman numeral up to 39, with a letter behind it: stages and grades."""
    found = re.fullmatch(
        r"(?P<what>[a-z]{2,10} )?(?P<tens>x{0,3})(?P<ones>ix|iv|v?i{0,3})(?P<part>[a-d]?)", text
    )
    if not found or not (found["tens"] or found["ones"]):
        return None
    ones = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix").index(found["ones"])
    part = " abcd".index(found["part"] or " ") / 5
    return 10 * len(found["tens"]) + ones + part, (found["what"] or "").strip()


CONVENTIONS: Mapping[str, Callable[[str], ReadNumber | None]] = {
    "ISO dates": _iso,
    "year/month/day": partial(_date, pattern=re.compile(rf"{_YEAR}/{_MONTH}/{_DAY}{_TIME}")),
    "day.month.year": partial(_date, pattern=re.compile(rf"{_DAY}\.{_MONTH}\.{_YEAR}{_TIME}")),
    "day/month/year": partial(_date, pattern=re.compile(rf"{_DAY}/{_MONTH}/{_YEAR}{_TIME}")),
    "month/day/year": partial(_date, pattern=re.compile(rf"{_MONTH}/{_DAY}/{_YEAR}{_TIME}")),
    "hours:minutes": _clock,
    "decimal point": partial(_quantity, pattern=_number_pattern(r"\.", ","), point="."),
    "decimal comma": partial(_quantity, pattern=_number_pattern(",", "."), point=","),
    "bands": _band,
    "letter and number": _code,
    "Roman numerals": _roman,
}
"""Each reads a text in standard form as a number, None where it is none. Dates are microseconds since 1970
(UTC), times of day seconds; a band is its middle, an open one its bound."""


@dataclass(frozen=True)
class Reading:
    """How the labels of a column are read.

    Attributes:
        convention: one of :data:`CONVENTIONS`.
        unit: of every number, as it stands in the text; a text with another one is not read.
    """

    convention: str
    unit: str

    @property
    def dates(self) -> bool:
        """Whether it reads dates, as microseconds."""
        return self.convention in _DATES

    @property
    def middles(self) -> bool:
        """Whether it reads bands, of whose two ends it keeps the middle alone."""
        return self.convention == "bands"

    @property
    def difference_unit(self) -> str | None:
        """What differences to other columns are in; None for what only stands in an order."""
        if self.dates:
            return TIME
        return self.unit if self.convention.startswith("decimal") else None

    @classmethod
    def of(cls, labels: Sequence[str]) -> "Reading | None":
        """The reading of most labels, at least 90 % of the distinct ones; None where there is none.

        Of conventions that read equally many the first one holds.

        Args:
            labels: those of real rows, in standard form.
        """
        distinct = list(dict.fromkeys(labels))
        readings = [r for r in (_common_unit(name, distinct) for name in CONVENTIONS) if r is not None]
        numbers = [(r, r.numbers(distinct)) for r in readings]
        read = [(int(np.sum(~np.isnan(x))), len(np.unique(x[~np.isnan(x)])), r) for r, x in numbers]
        able = [(n, r) for n, k, r in read if n >= LEAST_READ * len(distinct) and k >= _FEWEST_NUMBERS]
        return max(able, key=lambda found: found[0])[1] if able else None

    def numbers(self, labels: Sequence[str | None]) -> Floats:
        """The labels, in standard form, as numbers; NaN for what is none, shape (n,)."""
        read = CONVENTIONS[self.convention]
        found = [None if label is None else read(label) for label in labels]
        return np.array([np.nan if x is None or x[1] != self.unit else x[0] for x in found], dtype=np.float64)


def _common_unit(convention: str, labels: Sequence[str]) -> Reading | None:
    """The reading with the most frequent unit, unless a first look rules the convention out."""
    step = max(1, len(labels) // _FIRST_LOOK)
    units = Counter(x[1] for x in map(CONVENTIONS[convention], labels[::step]) if x is not None)
    if not units:
        return None
    unit, n = units.most_common(1)[0]
    return Reading(convention, unit) if n >= len(labels[::step]) * LEAST_READ / 2 else None


@dataclass(frozen=True)
class Composite:
    """How texts of several numbers are read.

    Attributes:
        form: what stands between the numbers, each of which is a ``#``; a text of another form is not read.
    """

    form: str

    @property
    def width(self) -> int:
        """How many numbers a text has."""
        return self.form.count("#")

    @classmethod
    def of(cls, labels: Sequence[str]) -> Self | None:
        """The form of at least 90 % of the distinct labels, with two to six numbers; None without one.

        Args:
            labels: those of real rows, in standard form.
        """
        distinct = dict.fromkeys(labels)
        if len(distinct) <= FEWEST_LABELS:
            return None
        form, n = Counter(map(_form_of, distinct)).most_common(1)[0]
        able = n >= LEAST_READ * len(distinct) and 2 <= form.count("#") <= _MOST_NUMBERS
        return cls(form) if able else None

    def number(self, place: int, labels: Sequence[str | None]) -> Floats:
        """One number of each label; see :meth:`numbers`; shape (n,)."""
        return self.numbers(labels)[:, place]

    def numbers(self, labels: Sequence[str | None]) -> Floats:
        """The numbers of labels in standard form; NaN for those of another form, shape (n, width)."""
        found = np.full((len(labels), self.width), np.nan)
        for i, label in enumerate(labels):
            if label is not None and _form_of(label) == self.form:
                found[i] = [_value(text) for text in _NUMBER.findall(label)]
        return found


def _form_of(text: str) -> str:
    """What stands between a text's numbers, each of which is a ``#``; empty for what is too long."""
    return "" if len(text) > _LONGEST_COMPOSITE or "#" in text else _NUMBER.sub("#", text)


def _value(text: str) -> float:
    value = float(text.replace("\N{MINUS SIGN}", "-").replace(",", "."))
    return value if np.isfinite(value) else np.nan
