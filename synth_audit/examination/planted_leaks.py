"""Releases with a known leak: part copies of training rows, part people the generator never saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.core.arrays import Positions
from synth_audit.core.audit import Leak
from synth_audit.core.entities import key_columns, split
from synth_audit.core.errors import DataError
from synth_audit.core.generator import FitContext
from synth_audit.core.seeds import as_int_seed, child_rng, public_key
from synth_audit.core.sensitivity import PlantedLeaks
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table, joined
from synth_audit.examination.planted_generator import (
    PlantedGenerator,
    telling_columns,
    with_shifted,
    with_subset,
)

FEWEST_ROWS = 20
"""Fewer rows than this on either side of train make no release worth measuring."""

_WORTHWHILE = 500
"""Neither train nor release is scaled down below this many rows while there are as many at hand."""


@dataclass(frozen=True, eq=False)
class LeakInjector:
    """Where leaks are planted: one half of train plays train, the other the people never seen.

    Only half of train can be train when no other new people are at hand, for control is needed as control.
    The ratio of release to train is kept as far as both keep some hundreds of rows, and so is control, so
    that an audit meets the circumstances it meets on the candidate, with fewer rows. But train is no larger
    than the release: a full copy is one of everybody, or shares of people could not show it.

    Attributes:
        subject: the real circumstances. seed: of the draws.
        known: rows that play train. control: rows that play control. fresh: rows of new people, as many as
            the release has. copied: positions in ``known`` of what is copied, as many as the release has.
    """

    subject: Subject
    seed: int
    known: Table
    control: Table | None
    fresh: Table
    copied: Positions

    def leaks(self, share: float) -> Table:
        """The copied rows of a release, ``share`` of it (rounded to whole rows, at least one if above 0).

        Leaks are nested: what is copied at a share is copied at every larger one.
        """
        n = len(self.copied)
        leaked = min(n, max(round(share * n), 1 if share > 0 else 0))
        return self.known.take(self.copied[:leaked]).released_only()

    def partial_leaks(self, share: float) -> Table:
        """New people with a few columns of the copied rows, the same few at every share."""
        copies = self.leaks(share)
        others = self.fresh.take(np.arange(copies.n_rows)).released_only()
        return with_subset(others, copies, telling_columns(self.known))

    def shifted_leaks(self, share: float) -> Table:
        """New people with a few numbers of the copied rows, each moved by a constant of its column."""
        copies = self.leaks(share)
        others = self.fresh.take(np.arange(copies.n_rows)).released_only()
        return with_shifted(others, copies, self.known)

    def release(self, share: float, leaks: Table | None = None) -> Table:
        """A release of which ``share`` are copies and the others new people.

        Args:
            leaks: what became of the copies, as many rows as there are; the copies themselves if left out.
        """
        copies = leaks or self.leaks(share)
        others = self.fresh.take(np.arange(copies.n_rows, len(self.copied))).released_only()
        return joined([copies, others])

    def planted(self, share: float, leak: Leak) -> Subject:
        """The subject with a release, and a generator, that leak this share and no more."""
        generator = self.generator(share, leak)
        if leak is Leak.COPIES:
            return self.leaky(self.release(share), generator)
        if leak is Leak.SUBSETS:
            return self.leaky(self.release(share, self.partial_leaks(share)), generator)
        if leak is Leak.SHIFTED:
            return self.leaky(self.release(share, self.shifted_leaks(share)), generator)
        rng = child_rng(self.seed, "known answer", "release", f"{share:g}")
        return self.leaky(
            generator.fit(self.known, FitContext(rng=rng)).sample(len(self.copied), rng), generator
        )

    def leaky(self, release: Table, generator: PlantedGenerator | None = None) -> Subject:
        """The subject in which this release stands for the candidate, and this generator for the plan's.

        Where chance divided train and control it also divided these parts of them, whose sizes are fixed.
        """
        return replace(
            self.subject,
            train=self.known,
            control=self.control,
            synthetic=release,
            generator=generator,
            random_split=self.subject.random_split and replace(self.subject.random_split, train=None),
            guarantee=None,
            planted=True,
        )

    def generator(self, share: float, leak: Leak) -> PlantedGenerator:
        """A generator that leaks this share of what it is given, and is clean otherwise."""
        return PlantedGenerator(share, self.fresh, leak)

    def planted_leaks(self, shares: Sequence[float]) -> PlantedLeaks:
        """What the evidence says of it."""
        n_control = self.control.n_rows if self.control else 0
        return PlantedLeaks(self.known.n_rows, n_control, len(self.copied), tuple(shares))


def prepare_injection(subject: Subject, max_rows: int, seed: int) -> LeakInjector | PlantedLeaks:
    """Halve train, rows of one entity together, in the candidate's own sizes as far as the rows go.

    Args:
        max_rows: no part gets more rows than this, which bounds the cost of the check.

    Returns:
        The injector, or why there is none.
    """
    rng = child_rng(seed, "known answer", "ground")
    try:
        known, fresh = _halves(subject.train, rng)
    except DataError:
        return PlantedLeaks(reason="the training rows cannot be halved by entity")
    if min(known.n_rows, fresh.n_rows) < FEWEST_ROWS:
        return PlantedLeaks(
            reason=f"half of train has fewer than {FEWEST_ROWS} rows; {2 * FEWEST_ROWS} are needed in all"
        )
    n_train, n_made = subject.train.n_rows, subject.synthetic.n_rows
    scale = min(
        known.n_rows / n_train, fresh.n_rows / max(n_made, fresh.n_rows), max_rows / max(n_train, n_made)
    )
    least = min(n_train, known.n_rows, max_rows, _WORTHWHILE)
    n_known = max(min(round(scale * n_train), known.n_rows), least)
    n_release = max(round(scale * n_made), min(n_made, fresh.n_rows, _WORTHWHILE))
    n_known = max(min(n_known, n_release), min(FEWEST_ROWS, known.n_rows))
    copied = np.resize(rng.permutation(n_known), n_release)
    return LeakInjector(
        subject=subject,
        seed=seed,
        known=_some(known, n_known, rng),
        control=None if subject.control is None else _some(subject.control, max_rows, rng),
        fresh=_some(fresh, n_release, rng),
        copied=copied,
    )


def _halves(train: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    if key_columns(train.schema):
        # A public key, unlike that of the real split: no release rests on these halves.
        return split(train, 0.5, public_key(as_int_seed(rng), "known answer", "halves"))
    aside = rng.permutation(train.n_rows) < train.n_rows // 2
    return train.take(~aside), train.take(aside)


def _some(table: Table, n: int, rng: np.random.Generator) -> Table:
    """At most n rows, in random order."""
    return table.take(rng.permutation(table.n_rows)[:n])
