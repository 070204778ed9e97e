"""Parts of the columns drawn by generators of their own, and joined."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from operator import or_
from pathlib import Path
from typing import Any, ClassVar, Literal

from synth_audit.errors import PlanError
from synth_audit.execution.seeds import as_int_seed
from synth_audit.generators._model_files import read_model
from synth_audit.generators.disjoint.join import FEWEST, Joiner, Validation
from synth_audit.generators.disjoint.partition import (
    WHERE,
    Partition,
    number_of_parts,
    partition_pictures,
    partitioned,
)
from synth_audit.generators.disjoint.parts import TRAIN, DisjointModel, Part, fit_parts, part_folder
from synth_audit.plugins.generator import (
    FitContext,
    Generator,
    GeneratorInfo,
    Needs,
    needs_of,
    refits,
    repeats,
)
from synth_audit.plugins.plugin_config import build_generator
from synth_audit.table.table import Table, load_table

_BY_VALIDATION = "the validated join has seen real rows, which ends what the parts guarantee"
_BY_CORRELATION = "the parts were chosen by the real rows' correlations, without noise"


@dataclass(frozen=True, kw_only=True)
class Disjoint:
    """P(x) = Π_p P_p(x_p): each part of the columns by a generator of its own, rows joined at random.

    What relates columns of different parts is lost, and no row that leaves was drawn whole. Who knows which
    columns belong together meets each part as its generator made it: the audits that know a few columns are
    told the parts, and attack them one by one.

    Under a budget the parts are fitted one after the other and spend from one account: their mechanisms
    compose as those of one fit, over the same people. A part that buys nothing ends the claim, and so does
    ``correlated``, which looks at real rows.

    Attributes:
        generators: of each part, by name or ``{name: {setting: value}}``; one alone fits all parts. Another
            ``disjoint`` may be among them.
        partition: ``correlated`` puts the columns of the strongest relation into different parts, again and
            again, which leaves most to a validated join; ``random`` at equal sizes; ``explicit`` as in
            ``columns``.
        parts: how many; as many as generators where left out, or 2 (1 for fewer than four columns).
        columns: names of the columns of each part, for ``explicit``.
        shares: of ε for each part, under a budget; equal where left out.
        join: ``concatenate`` puts rows of the parts beside one another at random; ``validated`` keeps those
            in which a model that has seen real rows finds that the parts belong together, and with that voids
            any guarantee of theirs.
        validation: of a validated join.

    Raises:
        PlanError: an unknown generator, one that refuses its settings or cannot be fitted anew; numbers of
            parts, generators and shares that do not agree; a column twice.

    Source: Lautrup, Rajabinasab, Hyrup, Zimek & Schneider-Kamp 2025.
    """

    generators: tuple[str | dict[str, Any], ...]
    partition: Partition = "correlated"
    parts: int | None = None
    columns: tuple[tuple[str, ...], ...] = ()
    shares: tuple[float, ...] = ()
    join: Literal["concatenate", "validated"] = "concatenate"
    validation: Validation = field(default_factory=Validation)
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Disjoint models",
        summary="Divides the columns among generators of any kind and joins what they draw.",
        source="Lautrup et al. 2025",
        trial={"generators": ["independent"]},
    )

    def __post_init__(self) -> None:
        if not self.generators:
            raise _wrong("no generator is named", "one for each part, or one for all", "generators")
        known = number_of_parts(self.partition, self.parts, self.columns, len(self.generators))
        for name, given in (("generators", self.generators), ("shares", self.shares)):
            if len(given) not in (0, 1, known or len(given)) or (name == "shares" and len(given) == 1):
                raise _wrong(
                    f"{len(given)} {name} for {known} parts", "as many as parts, or one generator", name
                )
        if self.shares and (known is None or min(self.shares) <= 0 or abs(sum(self.shares) - 1) > 1e-9):
            raise _wrong("the shares of the budget do not add up", "shares above 0 that sum to 1", "shares")
        if self.join == "concatenate" and self.validation != Validation():
            raise _wrong("a join at random has nothing to validate", "`join: validated`", "validation")
        for i, generator in enumerate(self._inner(len(self.generators))):
            if not refits(generator):
                raise _wrong(
                    "a finished table cannot be a part", "a generator that is fitted", f"generators[{i}]"
                )

    @property
    def minimum_people(self) -> int:
        """Each part is learnt as its generator learns."""
        return 1

    @property
    def needs(self) -> Needs:
        """What any of the parts cannot do without."""
        own = Needs(rows=FEWEST if self.join == "validated" else 1)
        return reduce(or_, map(needs_of, self._inner(len(self.generators))), own)

    @property
    def repeats(self) -> bool:
        """Whether every part does."""
        return all(map(repeats, self._inner(len(self.generators))))

    def fit(self, train: Table, context: FitContext) -> DisjointModel:
        """Divide the columns and fit each part to its own, apart from the others.

        Raises:
            PlanError: a column has no part, or there are more parts than columns, or one of the target alone.
            DataError: train has too few rows for a part, or for a validated join.
            BudgetSpent: the budget does not bear the parts.
        """
        train = train.released_only()
        if self.partition == "correlated":
            context.accountant.void(_BY_CORRELATION)
        if self.join == "validated":
            context.accountant.void(_BY_VALIDATION)
        groups = partitioned(train, self.partition, self._count(train), self.columns, context.rng)
        reached = self._reached(len(groups), context)
        parts = [Part(i, self._name(i), self._choice(i), group, reached[i]) for i, group in enumerate(groups)]
        models = fit_parts(parts, train, context)
        if len(groups) > 1 and context.accountant.budget is None:
            for series in partition_pictures(train, groups, context.course.suppression, context.rng):
                context.course.show(series)
        joiner = None
        if self.join == "validated" and len(groups) > 1:
            joiner = Joiner.of(self.validation, train, groups, as_int_seed(context.rng), context.course)
        return DisjointModel(train.schema, groups, models, joiner)

    def load(self, folder: Path) -> DisjointModel:
        """The model that was saved there."""
        schema, groups, seed = read_model(folder, tuple)
        models = tuple(
            generator.load(part_folder(folder, i)) for i, generator in enumerate(self._inner(len(groups)))
        )
        joiner = None
        if seed is not None:
            joiner = Joiner.of(self.validation, load_table(folder, TRAIN), groups, seed)
        return DisjointModel(schema, groups, models, joiner)

    def _count(self, train: Table) -> int:
        known = number_of_parts(self.partition, self.parts, self.columns, len(self.generators))
        return known or (2 if len(train.names) > 3 else 1)

    def _inner(self, n_parts: int) -> tuple[Generator, ...]:
        return tuple(_built(self._choice(i), f"{WHERE}.generators[{i}]") for i in range(n_parts))

    def _choice(self, i: int) -> str | dict[str, Any]:
        return self.generators[i if len(self.generators) > 1 else 0]

    def _name(self, i: int) -> str:
        choice = self._choice(i)
        return choice if isinstance(choice, str) else next(iter(choice), "")

    def _reached(self, n_parts: int, context: FitContext) -> list[float | None]:
        """The ε that all spendings may reach with each part; None without a budget."""
        accountant = context.accountant
        if accountant.budget is None:
            return [None] * n_parts
        before = accountant.spent().epsilon if accountant.mechanisms else 0.0
        left = accountant.budget.epsilon - before
        sums = [*accumulate(self.shares or [1 / n_parts] * n_parts)]
        return [*(before + left * share for share in sums[:-1]), accountant.budget.epsilon]


def _built(choice: str | dict[str, Any], place: str) -> Generator:
    """The generator of a part; an error of its own says which part it is of."""
    try:
        return build_generator(choice, place)
    except PlanError as error:
        if not error.where.startswith(place):
            error.where = f"{place}: {error.where}"
        raise


def _wrong(what: str, expected: str, key: str) -> PlanError:
    return PlanError(what, where=f"{WHERE}.{key}", expected=expected)
