"""Joins by a validator that has seen real rows, and what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from pydantic import ConfigDict

from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.errors import DataError, PlanError
from synth_audit.core.table import Table
from synth_audit.core.training_course import TrainingCourse
from synth_audit.encoding.fixed_design import FixedDesign
from synth_audit.generators.disjoint.partition import WHERE, Groups
from synth_audit.generators.disjoint.pictures import acceptance, calibration, sweep
from synth_audit.kernels.join_validator import JoinValidator, ValidatorName, learnt
from synth_audit.kernels.validated_join import JoinRules, ValidatedJoin, validated_join

_MOST_ROWS = 20_000
"""Real rows that a validator learns from."""

_AT_ONCE = 50_000
"""Joined rows that are scored at a time."""


@dataclass(frozen=True, kw_only=True)
class Validation:
    """How joins are validated.

    Attributes:
        validator: random forest, gradient boosting, nearest neighbours, support vector machine or network,
            which tell real rows from rows put together at random; or one-class SVM and isolation forest,
            which learn real rows alone.
        tuned: choose settings, and calibrate probabilities, on held-out rows.
        threshold: probability from which on a join is taken; None for that of the best ``share`` of the first
            round.
        share: of the first round.
        decay: what the threshold loses after a round that admits hardly anything.
        patience: such rounds in a row after which the join gives up. rounds: at most.
        oversampling: rows that each part draws for each row wanted.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    validator: ValidatorName = "random_forest"
    tuned: bool = True
    threshold: float | None = None
    share: float = 0.1
    decay: float = 0.1
    patience: int = 20
    rounds: int = 200
    oversampling: float = 3.0

    def __post_init__(self) -> None:
        within = {
            "threshold": self.threshold is None or 0 <= self.threshold <= 1,
            "share": 0 < self.share <= 1,
            "decay": 0 <= self.decay < 1,
            "patience": self.patience >= 1,
            "rounds": self.rounds >= 1,
            "oversampling": 1 <= self.oversampling <= 100,
        }
        if wrong := [name for name, right in within.items() if not right]:
            raise PlanError(
                f"{wrong[0]} is out of range",
                where=f"{WHERE}.validation.{wrong[0]}",
                expected="threshold 0 to 1, share above 0 to 1, decay 0 to below 1, patience and rounds 1 or "
                "more, oversampling 1 to 100",
            )

    @property
    def rules(self) -> JoinRules:
        """When a join is taken."""
        return JoinRules(self.threshold, self.share, self.decay, self.patience, self.rounds)


@dataclass(frozen=True, eq=False)
class Joiner:
    """A validator and the coordinates of each part in which it sees rows.

    Attributes:
        train: real rows that it learnt from. seed: of its draws.
        course: where what came of a join is told; None for nowhere.
    """

    settings: Validation
    train: Table = field(repr=False)
    seed: int
    designs: tuple[FixedDesign, ...]
    validator: JoinValidator = field(repr=False)
    course: TrainingCourse | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        settings: Validation,
        train: Table,
        groups: Groups,
        seed: int,
        course: TrainingCourse | None = None,
    ) -> Self:
        """Learn a validator from real rows."""
        rng = np.random.default_rng(seed)
        designs = tuple(FixedDesign.of(train, group) for group in groups)
        rows = train.sample(_MOST_ROWS, rng)
        parts = [design.rows(rows) for design in designs]
        validator = learnt(parts, settings.validator, rng, tuned=settings.tuned)
        if course is not None:
            course.show(calibration(validator, course.suppression))
        return cls(settings, train, seed, designs, validator, course)

    def pool(self, n: int) -> int:
        """Rows that each part draws for ``n``."""
        return int(np.ceil(n * self.settings.oversampling))

    def joined(self, tables: Sequence[Table], n: int, rng: np.random.Generator) -> list[Table]:
        """Rows of the parts that were admitted together, ``n`` of each.

        Raises:
            DataError: fewer were.
        """
        parts = [design.rows(table) for design, table in zip(self.designs, tables, strict=True)]

        def score(rows: Positions) -> Floats:
            found = [
                self.validator.probability(np.hstack([x[i] for x, i in zip(parts, some.T, strict=True)]))
                for some in np.array_split(rows, max(1, -(-len(rows) // _AT_ONCE)))
            ]
            return np.concatenate(found)

        join = validated_join(n, tables[0].n_rows, len(tables), score, self.settings.rules, rng)
        if self.course is not None and join.rounds:
            self.course.show(acceptance(join, self.course.suppression))
            self.course.show(sweep(join, self.validator, self.course.suppression))
        if len(join.rows) < n:
            raise _short(join, n, tables[0].n_rows, self.settings)
        return [table.take(join.rows[:, i]) for i, table in enumerate(tables)]


def _short(join: ValidatedJoin, n: int, pool: int, settings: Validation) -> DataError:
    admitted, rounds = len(join.rows), len(join.rounds)
    what = (
        f"the validator admitted none of {pool:,} joined rows"
        if not admitted
        else f"the validated join gave {admitted:,} rows instead of {n:,}"
    )
    why = "its rounds" if rounds >= settings.rounds else "its patience"
    return DataError(
        what,
        where=f"{WHERE}.validation",
        expected=f"{n:,} rows before {why} ended, after {rounds} rounds with {pool - admitted:,} rows of "
        "each part left over",
        fix="let the threshold decay more, or lower it; allow more rounds or patience; raise oversampling; "
        "or take `join: concatenate`",
    )
