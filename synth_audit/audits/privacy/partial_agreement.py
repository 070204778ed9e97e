"""Partial agreement: do rows keep a part of a person, another in each row, beside other people's values?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits._targets import drawn
from synth_audit.audits.privacy._asked_people import different_people
from synth_audit.audits.privacy._lag_views import NumbersBeside, labels_beside, numbers_beside
from synth_audit.audits.privacy._linked_people import HALVINGS, HARDLY_ANY, linked_share, stranger_limit
from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.audit import AuditInfo, Need
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Findings, Quantity
from synth_audit.core.subject import Subject
from synth_audit.kernels.agreement_columns import THRESHOLDS, AgreementColumn, standing_out
from synth_audit.kernels.digit_bags import a_digit_less, digit_bags, digits_of_numbers, digits_of_times
from synth_audit.kernels.held_out import halved
from synth_audit.kernels.kept_columns import FEWEST_NUMBERS, MOST_COLUMNS, kept_bits, kept_sets
from synth_audit.kernels.lag_spikes import LagColumn

KEPT = Quantity(
    "linked_people",
    "People of whom one row keeps much, whatever stands beside it",
    range=(-1.0, 1.0),
    proportional=False,
    help="Share of people in the training data of whom one row of the release keeps so many values, beside "
    "whatever others, as of hardly any stranger, less the share of strangers; 0 is none.",
)

_MOST_COLUMNS = 50
"""Columns that are compared."""

_WORK, _FEWEST_PEOPLE = 1.2e9, 800
"""Cells compared in one pass over the people, and people looked up in any case."""

_PAIRS, _FEWEST_LOOKED_AT, _SETS = 5.1e6, 400, 8
"""Pairs of people and rows in which sets of columns are looked for, fewer people of whom show none; sets."""

_FEWEST_BY_SETS = 300
"""Control people with fewer of whom sets are not tried: chance alone leads to some by one of them."""

_MOST_BAGS = 512
"""Bags of digits of a column of which any two are compared; of more, only equal ones agree."""


@dataclass(frozen=True, kw_only=True)
class PartialAgreement:
    """Links people to the row that keeps most of their values, whichever these are, and counts the linked.

    A row that keeps half of a person's numbers, moved a little, beside those of somebody else is near to
    the person in no way that asks all columns, and where each row keeps other columns, in no set of columns
    either. So agreement alone counts: ``T_t = Σ_c w_c max(0, e_c − t)``, with
    ``e_c = −log2 P(a row or person is as near as the row is)`` bits for numbers by rank and for labels that
    are equal, 0 where a value is missing; t of 0, 1, 2 and 3 bits leaves out what agrees by luck. Columns
    that agree together among strangers share their weight. Shares are means of the release and of the people
    of both sides.

    Somebody is linked whose best row agrees by more above the mean of the fifth to eighth best (further down
    where the release has more rows than train) than 98 % of the k of control, times ``1 + 60 / k``, and than
    99 % of them. ``linked_people`` is the share of train people who are, less that of control, by the worst
    of twelve ways (the four thresholds; numbers as they are, all mirrored by rank, or as labels that are
    equal if numbers have the same digits but zeros in whatever order, or less if the row's lack one,
    :mod:`digit_bags`) and of up to eight sets of columns, chosen on one half of the people and counted on the
    other, both ways round and on average over several halvings. Sets of four to eight columns, three numbers
    among them, are those in which most pairs of a person and a row are near beyond pairs of two people
    (:mod:`kept_columns`); by a set is linked who is near a row in all of it, and by more bits than 99 % of
    control. They are looked for in 5.1·10⁶ pairs, and not at all where that is fewer than 400 people or
    control has fewer than 300.

    Fields:
        max_people: at most this many train people, and as many control people, are looked up; fewer where
            people times columns times rows is above 1.2·10⁹ (2,049 in Adult, of which half are of control),
            but 800. Of more than 50 columns so many are compared, drawn at random.

    Raises:
        ValueError: the field is out of range.
        NotApplicable: there is only one person on a side, fewer than three release rows or no column that
            differs.

    Source: ours; frequency weights as in Fellegi & Sunter 1969, soft thresholds as in Donoho & Johnstone
    1994.
    """

    max_people: int = 2000

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Partial agreement",
        question="Do rows keep a part of a person's values, another in each row, beside other people's?",
        threat_model=(
            "An adversary who knows a person's record finds the row that agrees with it in more than luck "
            "allows, whatever the others of its values are, and reads off it what he did not know."
        ),
        not_covered=(
            "Parts of a person that tell little more than it takes to find one row among all; the same few "
            "of many columns in every row of a large release, or moved by more than 2 % of their spread."
        ),
        quantities=(KEPT,),
        risk="membership",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="Fellegi & Sunter 1969; Donoho & Johnstone 1994",
    )

    def __post_init__(self) -> None:
        if self.max_people < 1:
            raise ValueError("max_people must be at least 1")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Look people of train and of control up in the release."""
        assert subject.control is not None
        if subject.synthetic.n_rows < 3:
            raise NotApplicable("no row can stand out among fewer than three")
        real = (subject.train, subject.control)
        every = subject.features
        columns = [every[i] for i in drawn(np.arange(len(every)), _MOST_COLUMNS, context.rng)]
        tables = (subject.synthetic, *real)
        numbers = numbers_beside(tables, columns, real)
        labels = labels_beside(tables, columns, real, numbers)
        rows = self._people(subject, len(numbers) + len(labels), context)
        asked = np.concatenate([rows[0], subject.train.n_rows + rows[1]])
        member = np.arange(len(asked)) < len(rows[0])
        second = halved(member, HALVINGS, context.rng)
        repeats = math.ceil(subject.synthetic.n_rows / subject.train.n_rows)
        names, linked = [], []
        for name, beside in _ways(numbers, labels, asked):
            names += [f"{name}, {t:g} bits left out" for t in THRESHOLDS]
            told = standing_out(beside, repeats, context.rng)
            linked.append(told > np.apply_along_axis(stranger_limit, 0, told[~member]))
            if len(linked) == 1 and len(rows[1]) >= _FEWEST_BY_SETS:
                kept = _kept(beside, context.rng)
                names += ["a set of columns"] * kept.shape[1]
                linked.append(kept > np.quantile(kept[~member], HARDLY_ANY, axis=0))
        if not linked:
            raise NotApplicable("no column differs")
        found, worst = linked_share(
            KEPT,
            np.hstack(linked),
            member,
            second,
            subject.level,
            requested=max(self.max_people, len(rows[1])),
            usual="rows keep as much of strangers",
        )
        return Findings((found,), notes=(f"most people were linked by {names[worst[0]]}",))

    def _people(self, subject: Subject, d: int, context: RunContext) -> tuple[Positions, Positions]:
        """Positions in train and control; of either as many, where not all can be looked up."""
        assert subject.control is not None
        train, control = (
            different_people(t, self.max_people, context.rng) for t in (subject.train, subject.control)
        )
        if min(len(train), len(control)) < 2:
            raise NotApplicable("a share needs two people on either side")
        most = max(_FEWEST_PEOPLE, int(_WORK / (subject.synthetic.n_rows * max(1, d))))
        n_control = min(len(control), max(most // 2, most - len(train)))
        n_train = min(len(train), most - n_control)
        return drawn(train, n_train, context.rng), drawn(control, n_control, context.rng)


def _ways(
    numbers: Sequence[NumbersBeside], labels: Sequence[LagColumn], asked: Positions
) -> Iterator[tuple[str, list[AgreementColumn]]]:
    """Columns that differ, numbers as they are, all mirrored by rank, and by their digits."""
    same = [AgreementColumn.of_labels(c.people[asked], c.release) for c in labels]
    for mirrored in (False, True) if numbers else (False,):
        near = [
            AgreementColumn.of_numbers(
                x.known[x.n_release :][asked], x.known[: x.n_release], mirrored=mirrored
            )
            for x in numbers
        ]
        if found := [c for c in (*near, *same) if c.bits.any()]:
            yield "numbers mirrored" if mirrored else "numbers as they are", found
    digits = [_of_digits(x, asked) for x in numbers]
    if any(c.bits.any() for c in digits):
        yield "digits in whatever order", [c for c in (*digits, *same) if c.bits.any()]


def _of_digits(numbers: NumbersBeside, asked: Positions) -> AgreementColumn:
    """Numbers that agree by their digits, as slips of typing leave them."""
    read = digits_of_times if numbers.time else digits_of_numbers
    codes, bags = digit_bags(read(numbers.known, numbers.step), np.isfinite(numbers.known))
    less = a_digit_less(bags) if len(bags) <= _MOST_BAGS else None
    return AgreementColumn.of_labels(codes[numbers.n_release :][asked], codes[: numbers.n_release], less)


def _kept(columns: Sequence[AgreementColumn], rng: np.random.Generator) -> Floats:
    """What rows tell of each person by being near in sets of columns, shape (people, sets)."""
    n, m = (len(x) for x in (columns[0].people, columns[0].release))
    looked_at = drawn(np.arange(n), int(_PAIRS / m), rng)
    numbers = sum(c.bits.ndim == 2 for c in columns)
    if numbers < FEWEST_NUMBERS or len(looked_at) < min(n, _FEWEST_LOOKED_AT):
        return np.empty((n, 0))
    some = columns[:MOST_COLUMNS]
    return kept_bits(some, kept_sets(some, looked_at, _SETS))
