"""What an audit looks at: the three tables and the circumstances of the release."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synth_audit.core.accounting.guarantee import PrivacyGuarantee
from synth_audit.core.accounting.terms import NO_BUDGET, FitTerms
from synth_audit.core.arrays import Bools
from synth_audit.core.coarsening import NO_COARSENING, Coarsening
from synth_audit.core.entities import chance_equals
from synth_audit.core.schema import Column, Schema
from synth_audit.core.table import Table, joined

if TYPE_CHECKING:
    from synth_audit.core.generator import Generator


@dataclass(frozen=True)
class RandomSplit:
    """That chance alone decided which entities are in train, and which in control.

    Attributes:
        train: probability of train, by an independent coin for each entity, in (0, 1); None where the sizes
            were fixed and every division of these sizes was equally likely.
        ours: this program tossed the coins; else that chance did is somebody's word.
        apart: equal rows of a table without keys had coins of their own where chance explains them, see
            :func:`~synth_audit.core.entities.chance_equals`.
    """

    train: float | None = None
    ours: bool = False
    apart: bool = False


@dataclass(frozen=True, eq=False)
class Subject:
    """One candidate release under audit.

    Attributes:
        train: the real rows the generator saw.
        control: real rows of the same population it never saw; None when there are none.
        synthetic: the candidate.
        generator: its configuration, for audits that refit it; None for a table made elsewhere.
        level: confidence level of every interval, in (0, 1).
        suppression: no count below this may appear in findings.
        planted: whether the release holds planted leaks: then only measurements that have a direction are
            asked for, and an audit may leave the others out.
        terms: under which the generator may spend on privacy. base: where paths in its settings start.
        random_split: how train and control were divided; None where it is not known to have been by chance.
        guarantee: what differential privacy promises of the candidate; None where nothing does.
        coarsening: what was done to the rows that the generator drew, as everybody may know.
        column_groups: names of columns that the generator drew together, apart from the others; whoever
            attacks knows them. Empty where it drew all together, or nothing is known.
    """

    train: Table
    control: Table | None
    synthetic: Table
    generator: Generator | None = None
    level: float = 0.95
    suppression: int = 10
    planted: bool = False
    terms: FitTerms = NO_BUDGET
    base: Path = field(default_factory=Path.cwd)
    random_split: RandomSplit | None = None
    guarantee: PrivacyGuarantee | None = None
    coarsening: Coarsening = NO_COARSENING
    column_groups: tuple[tuple[str, ...], ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema inferred from train and the plan."""
        return self.train.schema

    @property
    def features(self) -> tuple[Column, ...]:
        """The columns that audits compare: all but identifiers and split keys."""
        return self.schema.features

    @cached_property
    def own_coins(self) -> Bools:
        """Rows of train with equals that had coins of their own all the same, shape (n_train,)."""
        n = self.train.n_rows
        if self.random_split is None or not self.random_split.apart:
            return np.zeros(n, dtype=bool)
        return chance_equals(joined([t for t in (self.train, self.control) if t is not None]))[:n]
