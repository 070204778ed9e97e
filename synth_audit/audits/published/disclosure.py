"""Replicated uniques and DiSCO: what statistical offices read of a release, beside control's numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools, Codes
from synth_audit.audits._shared import at_least, descriptive, different, named
from synth_audit.encode.cells import column_grouping
from synth_audit.encode.codes import codes
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Findings, Measurement, Quantity, Reference
from synth_audit.neighbours.search import row_kinds
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats.distributions import entropy
from synth_audit.stats.proportions import Proportion
from synth_audit.table.schema import Column, Role, quantitative

REP_U = Quantity(
    "rep_u",
    "Replicated uniques (RepU)",
    proportional=False,  # depends on the sizes of both tables
    help="People whose keys are unique in train and in the release; read it with that of control people.",
)

UNIQUE_IN_ORIGINAL = descriptive(
    "unique_in_original",
    "Uniques in train (UiO)",
    help="People whose keys nobody else in train has: those whom a copy of train would single out.",
)

DISCO = Quantity(
    "disco",
    "Disclosed by the release, and correctly (DiSCO)",
    proportional=False,
    help="People whose keys lead to one value in the release, theirs; read it with that of control people.",
)

DISCLOSIVE_IN_ORIGINAL = descriptive(
    "disclosive_in_original",
    "Disclosed by train itself (Dorig)",
    help="People whose keys lead to one value in train: what a copy of train would disclose.",
)


def unique_rows(keys: Codes) -> Bools:
    """Rows whose key no other row of the table has, shape (n,)."""
    alone: Bools = np.bincount(keys)[keys] == 1
    return alone


def replicated_unique(keys: Codes, original: Codes, synthetic: Codes, *, inside: bool) -> Bools:
    """People whose key is unique in the original and unique in the synthetic table, shape (n,).

    ``d_q = 1 and s_q = 1``, with d and s the rows of the original and the synthetic table that have key q.

    Args:
        keys: of the people asked about, shape (n,). original, synthetic: of all rows of the tables.
        inside: whether these people are in the original; if not, each is asked about as if added to it.
    """
    size = 1 + max(int(x.max(initial=0)) for x in (keys, original, synthetic))
    real, made = (np.bincount(x, minlength=size)[keys] for x in (original, synthetic))
    found: Bools = (real == int(inside)) & (made == 1)
    return found


def disclosed_target(keys: Codes, targets: Codes, of_keys: Codes, of_targets: Codes) -> Bools:
    """People whose target is that of all rows of a table which have their key, shape (n,).

    In the paper's terms ``ps_tq = 1`` at the person's own t and q: disclosive in the table, and correct.

    Args:
        keys, targets: of the people asked about, shape (n,) each, from 0. of_keys, of_targets: of the table.
    """
    n_targets = 1 + max(int(x.max(initial=0)) for x in (targets, of_targets))
    size = 1 + max(int(x.max(initial=0)) for x in (keys, of_keys))
    pairs = np.unique(of_keys.astype(np.int64) * n_targets + of_targets)
    key, target = np.divmod(pairs, n_targets)
    only = np.full(size, -1, dtype=np.int64)
    only[key] = target
    only[np.bincount(key, minlength=size) != 1] = -1
    return np.asarray(only[keys] == targets, dtype=np.bool_)


@dataclass(frozen=True, kw_only=True)
class Disclosure:
    """Counts people whom the release singles out by a few keys, and whose other values it then tells.

    With d_q and s_q the rows of train and of the release that have the combination q of the keys, and d_tq
    and s_tq those of them with value t of a target, as shares of the N rows of train:

    * ``rep_u = Σ_q [d_q = 1 and s_q = 1] / N``, beside ``unique_in_original = Σ_q [d_q = 1] / N``;
    * ``disco = Σ_tq d_tq [s_tq = s_q > 0] / N``, beside
      ``disclosive_in_original = Σ_tq d_tq [d_tq = d_q] / N``.

    The reference of each is the same share of control rows: of a stranger added to train for ``rep_u``
    (``d_q = 0 and s_q = 1``). Nothing of the release can depend on strangers, so that only what exceeds their
    share is due to having been in train; the rest is what the population has in common, and no loss of
    privacy in itself. Missing counts as a value. Numbers of more than ``bins`` values are read in as many
    parts of about equal mass in train: as they are, keys would almost always be unique.

    Fields:
        keys: columns that an intruder knows. Left out, the ``key_size`` columns, neither sensitive nor the
            target, that tell people of train apart best, by entropy.
        key_size: how many columns the keys are where they are left out.
        targets: columns that are attributed; the sensitive ones if left out, else all that are no keys.
        bins: parts of a number, at least 2.

    Raises:
        NotApplicable: a named column is not released, or too few are left to be keys or targets.

    Source: Raab, Nowok & Dibben 2024 (synthpop 1.9), there in percent; control as a reference is ours.
    """

    keys: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    key_size: int = 4
    bins: int = 20

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Replicated uniques and DiSCO",
        question="Whom do a few known values single out in the release, and what does it then tell of them?",
        threat_model=(
            "An intruder takes the release for real, looks up a person by a few known values, and where all "
            "rows found agree on another value takes it for the person's."
        ),
        not_covered=(
            "Other keys, rows that are near but not equal in the keys, and values told as likely and not as "
            "certain. A large number that control people have too is knowledge of the population."
        ),
        quantities=(REP_U, UNIQUE_IN_ORIGINAL, DISCO, DISCLOSIVE_IN_ORIGINAL),
        risk="inference",
        default=False,
        cost="instant",
        source="Raab, Nowok & Dibben 2024",
    )

    def __post_init__(self) -> None:
        at_least(self, key_size=1, bins=2)
        different(self, "keys", "targets")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Count; nothing is drawn."""
        cells, level = _cells(subject, self.bins), subject.level
        names = self._keys(subject, cells)
        joint = row_kinds(np.column_stack([np.concatenate(cells[name]) for name in names]))
        ends = np.cumsum([len(part) for part in cells[names[0]]])[:-1]
        train, synthetic, *control = keys = np.split(joint, ends)
        unique = [replicated_unique(train, train, synthetic, inside=True)]
        unique += [replicated_unique(rows, train, synthetic, inside=False) for rows in control]
        found = [_share(REP_U, unique, level), _share(UNIQUE_IN_ORIGINAL, [unique_rows(train)], level)]
        for column in self._targets(subject, names):
            real, made, *strangers = zip(keys, cells[column.name], strict=True)
            told = [disclosed_target(*rows, *made) for rows in (real, *strangers)]
            itself = [disclosed_target(*real, *real)]
            found.append(_share(DISCO, told, level, column.name))
            found.append(_share(DISCLOSIVE_IN_ORIGINAL, itself, level, column.name))
        how = "" if self.keys else ", which tell people apart best; name those that an intruder would know"
        return Findings(tuple(found), notes=(f"keys: {', '.join(names)}{how}",))

    def _keys(self, subject: Subject, cells: Mapping[str, Sequence[Codes]]) -> tuple[str, ...]:
        if self.keys:
            return tuple(c.name for c in named(subject, self.keys, "keys"))
        kept = {*self.targets, *(c.name for c in subject.features if c.roles & {Role.SENSITIVE, Role.TARGET})}
        known = [c.name for c in subject.features if c.name not in kept]
        size = min(self.key_size, len(known) if kept else len(known) - 1)  # one is left to be attributed
        if size < 1:
            raise NotApplicable("no column is left to be a key")
        # Rounded against noise.
        return tuple(
            sorted(sorted(known, key=lambda name: (-round(entropy(cells[name][0]), 9), name))[:size])
        )

    def _targets(self, subject: Subject, keys: Sequence[str]) -> tuple[Column, ...]:
        if self.targets:
            return named(subject, self.targets, "targets")
        others = tuple(c for c in subject.features if c.name not in keys)
        return tuple(c for c in others if Role.SENSITIVE in c.roles) or others


def _cells(subject: Subject, bins: int) -> dict[str, list[Codes]]:
    """Columns of train, the release and, where there is one, control as cells from 0 on.

    Labels, and numbers as they are or, where they have more values, in so many parts.
    """
    tables = (subject.train, subject.synthetic, *subject.real[1:])
    numbers = quantitative(subject.features)
    found = {}
    for column in subject.features:
        joint = [part + 1 for part in codes(tables, column)]  # missing is a value of its own
        if column in numbers and len(np.unique(joint[0])) > bins:
            groups = column_grouping(subject.train, column, bins=bins)
            joint = [groups.of(table) for table in tables]
        found[column.name] = joint
    return found


def _share(quantity: Quantity, hits: Sequence[Bools], level: float, column: str = "") -> Measurement:
    """The share of train, with that of control as reference where there is one."""
    found, *strangers = (Proportion.of(x) for x in hits)
    reference = None
    if strangers:
        meaning = "the same for people the generator never saw"
        reference = Reference(strangers[0].share, meaning, strangers[0].interval(level))
    return quantity.at(found.estimate(level), column=column, n=len(hits[0]), reference=reference)
