"""Linkability: can two partial records of one person be joined through the release?"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools
from synth_audit.audits import _shared as declare
from synth_audit.audits._shared import drawn, named
from synth_audit.audits.privacy import _secrets as secrecy
from synth_audit.encode.codes import column_entropy
from synth_audit.encode.encoded import varies
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import PEOPLE, Findings, Measurement
from synth_audit.neighbours.search import most_queries
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.proportions import Proportion
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_SHARED_OUT = (4, 5, 6)
"""Columns that stand out together, and are shared out between two sources."""

Sides = Sequence[Sequence[Column]]
"""Columns of one source, and of the other."""

RISK = declare.risk_over_control(
    "risk",
    "Linkability risk",
    unit=PEOPLE,
    help="Part of the people in the training data whose two halves only this release joins; 0 is none.",
)
TRAIN_RATE = declare.descriptive(
    "train_rate",
    "Training records whose halves were joined",
    help="Share of attacked training records for which both halves lead to the same synthetic row.",
)
CONTROL_RATE = declare.descriptive(
    "control_rate",
    "Control records whose halves were joined",
    help="The same for people the generator never saw: what belongs to the population, not to the release.",
)
NAIVE_RATE = declare.descriptive(
    "naive_rate",
    "Halves joined by picking rows at random",
    help="An attacker who looks at nothing. An attack that does no better tells little.",
)

EXCESS = declare.excess_over_control(
    "excess_people",
    "People whose partial records the worst of several pairs of sources join",
    unit=PEOPLE,
    proportional=False,  # chance joins control too, and how often differs by what the sources hold
    help="Share of people in the training data whose records in two sources are joined beyond what those of "
    "control people are, for the worst of several pairs of sources; 0 is none.",
)


@dataclass(frozen=True, kw_only=True)
class Linkability:
    """Joins two partial records of one person where both lead to the same synthetic row.

    For a record split into the columns A and B, the k nearest synthetic rows by A and the k nearest by B are
    found (Gower's distance, ties broken at random and apart for A and B); the attack succeeds when they
    share a row. ``risk = (r_train − r_control) / (1 − r_control)`` on the middles of their intervals;
    its interval is that of :func:`~synth_audit.stats.attack_success.risk_interval`.

    Without ``columns_a`` and ``columns_b`` every released column that varies in train is used: by
    descending entropy of its values in train, ties by name, each goes to the side whose entropies add up to
    less so far, so that both halves describe a person about equally well.

    Beside these, other sources are tried: of two, three and five columns each, and random halves of all. Half
    of the pairs of sources are drawn at random; the others share out columns that stand out together on one
    half of the people. ``excess_people = r_train − r_control`` of the worst pair, chosen on one half of the
    people and measured on the other, both ways.

    Fields:
        columns_a, columns_b: what each of the two sources holds; give both or neither.
        n_neighbours: k, synthetic rows that each half may lead to.
        n_attacks: at most this many training records, and as many control records, are attacked; fewer in
            more than 2,000,000 rows of the release, 1,000 at least.
        source_pairs: about how many other pairs of sources are tried; 0 for none.

    Raises:
        ValueError: only one side is given, the sides share a column, or a number is below 1.

    Source: Giomi et al. 2022; contrastive privacy metrics, section 3.4.
    """

    columns_a: tuple[str, ...] = ()
    columns_b: tuple[str, ...] = ()
    n_neighbours: int = 10
    n_attacks: int = 2000
    source_pairs: int = 8

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Linkability",
        question="Can two partial records of one person be joined with the help of the release?",
        threat_model=(
            "An adversary holds two sources about overlapping people, one with some of the columns and one "
            "with others, and takes two of their records for the same person when both are close to the "
            "same synthetic row."
        ),
        not_covered=("Pairs of sources that were not tried, and columns that both sources hold."),
        quantities=(RISK, EXCESS, TRAIN_RATE, CONTROL_RATE, NAIVE_RATE),
        risk="linkability",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="Giomi et al. 2022",
    )

    def __post_init__(self) -> None:
        if bool(self.columns_a) != bool(self.columns_b):
            raise ValueError("give both columns_a and columns_b, or neither")
        declare.different(self, "columns_a", "columns_b")
        declare.at_least(self, n_neighbours=1, n_attacks=1, source_pairs=0)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Attack at most ``n_attacks`` rows of train and of control."""
        rng, level = context.rng, subject.level
        sides = self._sides(subject)
        names = [[c.name for c in side] for side in sides]
        most = most_queries(self.n_attacks, subject.synthetic.n_rows)
        chosen = [drawn(np.arange(t.n_rows), most, rng) for t in subject.real]
        columns = [c for side in sides for c in side]
        # Not under a name, since the release takes a GiB and is encoded again for other sources.
        together = self._joined(
            secrecy.KnownRows.of(secrecy.known_columns(subject, columns), *chosen), names, rng
        )
        joined = np.split(together, [len(chosen[0])])
        exposed = secrecy.exposure(RISK.id(), [name for side in names for name in side], chosen, joined)
        # Of two random sets of k rows, the number in both is hypergeometric.
        n, k = subject.synthetic.n_rows, min(self.n_neighbours, subject.synthetic.n_rows)
        naive = Proportion.of(rng.hypergeometric(k, n - k, k, size=self.n_attacks) > 0)
        quantities = (RISK, TRAIN_RATE, CONTROL_RATE)
        measured = [*secrecy.risk_and_rates(quantities, secrecy.successes(exposed), self.n_attacks, level)]
        measured.append(secrecy.success_rate(NAIVE_RATE, naive, self.n_attacks, level))
        notes = [f"one source holds {', '.join(names[0])}; the other {', '.join(names[1])}"]
        if self.source_pairs:
            worst, told = self._other_pairs(subject, context)
            measured.append(worst)
            notes += told
        return Findings(tuple(measured), notes=tuple(notes), exposures=(exposed,))

    def _sides(self, subject: Subject) -> Sides:
        if not self.columns_a:
            return _halves(subject.train, subject.features)
        settings = {"columns_a": self.columns_a, "columns_b": self.columns_b}
        sides = {setting: named(subject, names, setting) for setting, names in settings.items()}
        for setting, side in sides.items():
            if not any(varies(subject.train, column) for column in side):
                raise NotApplicable(f"no column of {setting} varies in train")
        return list(sides.values())

    def _joined(
        self, known: secrecy.KnownRows, sides: Sequence[Collection[str]], rng: np.random.Generator
    ) -> Bools:
        """Whether the rows nearest by each source's columns meet, for train, then for control rows."""
        asked, n = known.asked(), len(known.release)
        one, other = (known.nearest(side, asked, self.n_neighbours, rng) for side in sides)
        of_record = np.arange(len(one))[:, None] * n
        return np.asarray(np.isin(one + of_record, other + of_record).any(axis=1), dtype=np.bool_)

    def _other_pairs(self, subject: Subject, context: RunContext) -> tuple[Measurement, list[str]]:
        """What the worst of several pairs of sources joins, and what they hold."""
        rng = context.rng
        most = most_queries(self.n_attacks, subject.synthetic.n_rows)
        people = secrecy.AskedPeople.drawn(subject, most, rng)
        columns = secrecy.known_columns(subject, subject.features)
        known = secrecy.KnownRows.of(columns, people.train, people.control)
        draws, sizes = context.child("linkability", "sources").rng, _SHARED_OUT
        pairs, told = secrecy.known_sets(
            subject,
            known.varying,
            people,
            self.source_pairs,
            draws,
            sources=2,
            sizes=sizes if len(known.varying) > 3 else (),
        )
        attacks, everybody = secrecy.Attacks(people), np.ones((len(people.member), 1), dtype=np.bool_)
        for pair in pairs:
            attacks.add(pair, [0], everybody, self._joined(known, pair.known, rng)[:, None])
        worst, best = attacks.worst(subject.level)
        notes = [f"further pairs of sources tried: {told}"]
        if best:
            held = (" and ".join(", ".join(side) for side in pair.known) for pair, _ in best)
            notes.append(f"their excess over control is largest with {'; with '.join(dict.fromkeys(held))}")
        return attacks.excess(EXCESS, worst, self.n_attacks), notes


def _halves(train: Table, columns: Sequence[Column]) -> Sides:
    """Two sets of columns whose entropies in train add up to about the same."""
    # Rounded against noise.
    bits = {column: round(column_entropy(train, column), 9) for column in columns}
    varying = sorted((c for c in columns if bits[c] > 0), key=lambda c: (-bits[c], c.name))
    if len(varying) < 2:
        raise NotApplicable("linking takes two released columns that vary in train")
    sides: list[list[Column]] = [[], []]
    for column in varying:
        min(sides, key=lambda side: sum(bits[c] for c in side)).append(column)
    return sides
