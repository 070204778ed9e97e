"""Rows as vectors that a network learns and draws: how generators by networks are fitted, and the model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeGuard

import numpy as np

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.encode.univariate import number_domain
from synth_audit.execution.context import one_thread, torch_device
from synth_audit.generators._deep import torch
from synth_audit.generators._deep.private_gradient import GradientNoise
from synth_audit.generators._deep.training import Kept, Resumption, ShuffledBatches, Training, steps_of_epochs
from synth_audit.generators._deep.transforms import (
    ColumnTransform,
    LabelTransform,
    ModeTransform,
    RangeTransform,
    RankTransform,
    RowLayout,
    Weights,
)
from synth_audit.generators._marginal import binning
from synth_audit.generators._model_files import read_model, write_model
from synth_audit.plugins.generator import CheckedSettings, FitContext
from synth_audit.table.kind import Bounds
from synth_audit.table.schema import Column, PublicDomain, Schema
from synth_audit.table.table import Table, assemble

OfNumbers = Callable[[str, Floats, Bounds], ColumnTransform]
"""How a column of numbers is read: from name, values (NaN where missing) and ends, which differ."""

NO_NOISE = "the networks are trained on the rows without clipping and noise"

_DRAWN = 40_000
"""Rows that are drawn to see how far margins are off."""


_FEWEST = 64
"""Rows of a batch without protection, where there are as many."""

UNPAID_STEPS = "the plan declares no privacy budget, so it was trained without clipping and noise"


@dataclass(frozen=True, eq=False)
class Transformer:
    """All columns of a table as one vector per row.

    Attributes:
        schema: of the table that is drawn.
        columns: in the schema's order.
    """

    schema: Schema
    columns: tuple[ColumnTransform, ...]

    @property
    def layout(self) -> RowLayout:
        """Where numbers and labels lie."""
        numbers: list[int] = []
        slices: list[tuple[int, int]] = []
        choices: list[int] = []
        place = 0
        for column in self.columns:
            numbers += range(place, place + column.numbers)
            place += column.numbers
            for width in column.slices:
                choices += [len(slices)] if column.choice else []
                slices.append((place, place + width))
                place += width
        return RowLayout(tuple(numbers), tuple(slices), place, tuple(choices))

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """Vectors, shape (n, width)."""
        return np.hstack([column.encode(table, rng) for column in self.columns])

    def decode(self, vectors: Floats32) -> Table:
        """Rows from vectors of shape (n, width), whose slices hold any scores: the largest wins."""
        return assemble(self.schema, {column.name: column.decode(own) for column, own in self._own(vectors)})

    @property
    def knows_margins(self) -> bool:
        """Whether :meth:`calibrated` would change anything."""
        return any(map(_known, self.columns))

    def calibrated(self, vectors: Floats32) -> "Transformer":
        """One that decodes vectors like these, which a network drew, to the margins that are known."""
        calibrated = (
            column.calibrated(own) if _known(column) else column for column, own in self._own(vectors)
        )
        return Transformer(self.schema, tuple(calibrated))

    def _own(self, vectors: Floats32) -> Iterator[tuple[ColumnTransform, Floats32]]:
        """Each column and its own coordinates."""
        place = 0
        for column in self.columns:
            width = column.numbers + sum(column.slices)
            yield column, vectors[:, place : place + width]
            place += width


def _known(
    column: ColumnTransform,
) -> TypeGuard[RankTransform | LabelTransform]:
    """Whether its margin was counted."""
    return isinstance(column, RankTransform) or (isinstance(column, LabelTransform) and bool(column.shares))


def on_train(
    train: Table, of_numbers: OfNumbers | None = None, domain: PublicDomain | None = None
) -> Transformer:
    """Ranges, labels and gaps as train has them, or as they are declared.

    Args:
        of_numbers: how numbers are read; None for a range between their ends.
        domain: what is declared; gaps are then wherever it does not rule them out. Of what it leaves out all
            is read off train, and nothing can be claimed.

    Raises:
        DataError: a column holds free text.
    """

    def transform(column: Column, known: binning.ColumnDomain) -> ColumnTransform:
        name, ends = column.name, known.bounds
        if known.labels is not None:
            return LabelTransform(name, known.labels, known.gap)
        if of_numbers is None or ends is None or ends[0] == ends[1]:
            return RangeTransform(name, ends, known.gap)
        return of_numbers(name, train.numbers(name), ends)

    known = binning.column_domains(train, domain, "learnt by a network")
    return Transformer(train.schema, tuple(map(transform, train.schema, known)))


def with_margins(transformer: Transformer, train: Table, context: FitContext, share: float) -> Transformer:
    """Numbers as ranks, and shares of labels, by counts of every column.

    Under a budget the counts are Gaussian mechanisms, or Laplace's where δ is 0, all bought before the first
    is made.

    Args:
        share: of ε, for all counts together; with 0 everything stays as it is.

    Raises:
        BudgetSpent: the budget does not bear it.
    """
    if not share:
        return transformer
    private = context.accountant.budget is not None
    domains = {  # of columns of numbers that can differ
        column.name: number_domain(
            column, known.bounds, column.declared_resolution if private else column.resolution
        )
        for column, known in zip(transformer.schema, transformer.columns, strict=True)
        if isinstance(known, RangeTransform) and known.numbers and known.bounds
    }

    def queries(column: ColumnTransform) -> int:
        if isinstance(column, LabelTransform):
            return len(column.slices)
        if isinstance(column, RangeTransform) and column.name in domains:
            return RankTransform.queries(domains[column.name], gap=column.gap)
        return 0

    def counted(column: ColumnTransform) -> ColumnTransform:
        context.deadline.check()
        if isinstance(column, LabelTransform) and column.slices:
            counts = column.encode(train, context.rng).sum(axis=0, dtype=np.float64)
            return replace(
                column, shares=tuple(binning.settled(counting.noisy(counts), counting.least).tolist())
            )
        if isinstance(column, RangeTransform) and (domain := domains.get(column.name)):
            values = train.numbers(column.name)
            return RankTransform.counted(column.name, domain, values, counting, gap=column.gap)
        return column

    if not (total := sum(map(queries, transformer.columns))):
        return transformer
    counting = binning.bought_counts(context, train.n_rows, total, share)
    return replace(transformer, columns=tuple(map(counted, transformer.columns)))


@dataclass(frozen=True)
class Steps:
    """Steps over random batches of ``n_rows`` rows.

    Attributes:
        count: how many. rate: the chance of each row to be in a batch.
        noise_multiplier: of every step, over the clipping norm; None where nothing was bought.
    """

    n_rows: int
    count: int
    rate: float
    noise_multiplier: float | None
    context: FitContext

    def batch(self) -> Positions:
        """Rows of the next batch: by a secret coin for each row, or without protection a seeded share."""
        if self.noise_multiplier is not None:
            return self.context.noise.poisson_sample(self.n_rows, self.rate)
        size = min(self.n_rows, max(_FEWEST, round(self.rate * self.n_rows)))
        return np.sort(self.context.rng.choice(self.n_rows, size, replace=False))


def bought(
    context: FitContext, n_rows: int, *, count: int, rate: float, what: str, epsilon: float | None = None
) -> Steps:
    """Buy ``count`` steps over Poisson samples, with the least noise that the budget bears.

    Number, rate and noise are fixed before the first step, so that what is spent is what was debited. Without
    a declared budget nothing is bought, and the accountant is told that nothing can be claimed.

    Args:
        what: what the steps train, for a reader.
        epsilon: how much all spendings up to and with these may reach; the whole budget if left out.

    Raises:
        BudgetSpent: no noise is enough.
    """
    accountant = context.accountant
    if accountant.unpaid(UNPAID_STEPS):
        return Steps(n_rows, count, rate, None, context)
    noise = accountant.least_noise(sampling_rate=rate, steps=count, epsilon=epsilon)
    accountant.poisson_subsampled_gaussian(rate, noise, count, what=what)
    return Steps(n_rows, count, rate, noise, context)


class NetworkGenerator(CheckedSettings):
    """A generator whose rows are drawn by a network; its settings are the fields of a subclass."""

    def learn(self, training: Training) -> Weights:
        """Train the network.

        Raises:
            PluginError: a loss is not a number any more.
        """
        raise NotImplementedError

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors, shape (n, width)."""
        raise NotImplementedError

    def load(self, folder: Path) -> "NetworkModel":
        """The model that was saved there."""
        transformer, weights = read_model(folder, tuple)
        return NetworkModel(transformer, weights, self)


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """Weights, how rows are drawn with them, and what the vectors mean.

    Attributes:
        generator: that fitted it, and draws with them.
    """

    transformer: Transformer = field(repr=False)
    weights: Weights = field(repr=False)
    generator: NetworkGenerator = field(repr=False)

    def calibrated(self, rng: np.random.Generator) -> "NetworkModel":
        """One whose rows have the margins that the transformer knows, as far as it knows any."""
        if not self.transformer.knows_margins:
            return self
        return replace(self, transformer=self.transformer.calibrated(self._drawn(_DRAWN, rng)))

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        return self.transformer.decode(self._drawn(n, rng))

    def _drawn(self, n: int, rng: np.random.Generator) -> Floats32:
        layout = self.transformer.layout
        if not layout.width:  # no column can differ
            return np.zeros((n, 0), dtype=np.float32)
        with one_thread(), torch.no_grad():
            return self.generator.draw(self.weights, layout, n, rng)

    def save(self, folder: Path) -> None:
        """Write columns and weights."""
        write_model(folder, (self.transformer, self.weights))


@dataclass(frozen=True, eq=False)
class RowsToLearn:
    """What all trainings of one fit share.

    Attributes:
        vectors: the rows, shape (n, width). layout: of their coordinates.
        rng: first weights and draws; its seed is secret under a budget.
    """

    context: FitContext
    vectors: Floats32
    layout: RowLayout
    rng: np.random.Generator
    device: str

    def training(
        self,
        what: str,
        steps: int,
        sample: Callable[[], Positions],
        noise: GradientNoise | None = None,
        **moved: Kept,
    ) -> Training:
        """So many steps; where nothing private depends on it, a training that is broken off goes on from its
        checkpoint.

        Args:
            what: is trained, in a word or two. sample: positions of the rows of the next batch.
            moved: what ``sample`` moves beside the context's draws.
        """

        def told(done: int, loss: float) -> None:
            self.context.trained(what, done, steps, loss)

        def said(text: str) -> None:
            self.context.progress(f"{what}: {text}", 0, steps)

        resumption = None
        if (folder := self.context.resumable) is not None:
            parts = {"rng": self.context.rng, "course": self.context.course, **moved}
            resumption = Resumption(folder, parts, said)
        whole = (self.vectors, self.layout, steps, sample, told)
        return Training(*whole, self.rng, self.device, noise, resumption)

    def bought_training(self, what: str, steps: Steps, clip: float) -> Training:
        """The steps that were bought, with the noise that was."""
        noise = None
        if steps.noise_multiplier is not None:
            noise = GradientNoise(clip, steps.noise_multiplier, self.context.noise.gaussian)
        return self.training(what, steps.count, steps.batch, noise)


class ProtectedNetwork(NetworkGenerator):
    """A network whose fit pays for all that looks at rows; without a budget nothing is bought.

    Attributes:
        margins: share of ε for counts of the values of each column.
        steps, sampling_rate, clip: of the training, unless a method buys and teaches in a way of its own.
        trained: what these steps train, for a reader.
    """

    margins: float
    steps: int
    sampling_rate: float
    clip: float
    trained: ClassVar[str]

    def buy(self, context: FitContext, n_rows: int, layout: RowLayout) -> Any:
        """Buy what the training costs, before a row is looked at: all steps, on Poisson samples.

        Raises:
            BudgetSpent: the budget does not bear it.
        """
        what, rate = f"training of the {self.trained}", self.sampling_rate
        return bought(context, n_rows, count=self.steps, rate=rate, what=what)

    def teach(self, rows: RowsToLearn, bought: Any) -> Weights:
        """Train with what was bought."""
        return rows.bought_training("train", bought, self.clip).run(self.learn)

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Buy all that looks at rows, then learn; numbers of steps and noise are fixed beforehand.

        Under a budget what the plan declares is all that rows are read by; what it leaves out is read off
        train, and no guarantee follows.

        Raises:
            DataError: a column holds free text.
            BudgetSpent: the budget does not bear it.
        """
        device = torch_device(context.device, "this generator")
        train = train.released_only()
        transformer = on_train(train, domain=binning.declared_domain(context))
        transformer = with_margins(transformer, train, context, self.margins)
        layout = transformer.layout
        bought = self.buy(context, train.n_rows, layout)
        weights: Weights = {}
        if layout.width:
            # The rows of a batch share one stream of draws. Were it known, one row more would change what
            # every row after it is given, and with it their gradients too, which the noise does not cover.
            private = context.accountant.budget is not None
            rng = np.random.default_rng(context.noise.bits(256)) if private else context.rng
            rows = RowsToLearn(context, transformer.encode(train, rng), layout, rng, device)
            weights = self.teach(rows, bought)
        return NetworkModel(transformer, weights, self).calibrated(context.rng)


class OpenNetwork(NetworkGenerator):
    """A network that is trained on shuffled batches of the rows as they are.

    Its settings say how often every row is seen (``epochs``), or how many batches are (``steps``). Epochs of
    small tables have smaller batches: too few steps would be taken else to learn anything.
    """

    batch: int
    epochs: int = 0
    steps: int = 0

    @property
    def all_steps(self) -> int:
        """Gradient steps in all; 0 where epochs say how many."""
        return self.steps

    def of_numbers(self, rng: np.random.Generator) -> OfNumbers:
        """How numbers are read: by their modes, where a method says nothing else."""
        return lambda name, values, ends: ModeTransform.of(name, values, ends, rng)

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train on ``train``; the accountant hears that nothing can be claimed."""
        device = torch_device(context.device, "this generator")
        context.accountant.void(NO_NOISE)
        train, rng = train.released_only(), context.rng
        transformer = on_train(train, self.of_numbers(rng))
        layout, size, steps = transformer.layout, min(self.batch, train.n_rows), self.all_steps
        if not steps:
            size, steps = steps_of_epochs(self.epochs, size, train.n_rows)
        weights: Weights = {}
        if layout.width:
            rows = RowsToLearn(context, transformer.encode(train, rng), layout, rng, device)
            sample = ShuffledBatches(train.n_rows, size, rng)
            weights = rows.training("train", steps, sample, order=sample).run(self.learn)
        return NetworkModel(transformer, weights, self)
