"""One iteration of the membership game: shadow models, challenges, and the attacker's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.accounting import PrivacyGuarantee
from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable
from synth_audit.core.fitting import FitRecipe, Fitted, draw, fit_shared
from synth_audit.core.generator import Model
from synth_audit.core.seeds import as_int_seed, child_rng
from synth_audit.core.table import Table
from synth_audit.encoding.coded_rows import coded, label_counts
from synth_audit.kernels.games import iteration_rng, reference_rows
from synth_audit.kernels.parallel import single_threaded_algebra
from synth_audit.kernels.shadow_features import (
    Classifier,
    FeatureSet,
    ReferenceScaler,
    gathered,
    guesses,
    parts_of,
)

Parts = dict[FeatureSet, Floats]

GAME = "membership_game"
"""Names the streams of draws that all candidates of a sweep share."""

LARGEST_PART = 0.8
"""A sample takes no more than this of the rows it is drawn from, so that two samples differ."""

FEWEST_ROWS = 20
"""With fewer rows to draw from, a sample says nothing of how the generator behaves."""

_BLOCK = 2**23
"""Values of coded sets held at a time: 64 MiB."""


@dataclass(frozen=True)
class Sizes:
    """How large the samples and sets of a game are.

    Attributes:
        attacker, evaluation: reference rows of the attacker and of the challenger. shadow: rows that each
            shadow model is fitted to, drawn from the attacker's. sets, evaluated: sets drawn from each shadow
            model and from each model under attack. rows: of a set. shadows: models with, and as many without.
    """

    attacker: int
    evaluation: int
    shadow: int
    shadows: int
    sets: int
    evaluated: int
    rows: int

    @classmethod
    def within(
        cls, n: int, *, attacker: int, evaluation: int, shadows: int, sets: int, evaluated: int, rows: int
    ) -> Sizes:
        """The sizes asked for, as far as ``n`` rows that are no targets allow.

        Shadow models are fitted to as many rows as the models under attack, which the attacker knows, but to
        no more than :data:`LARGEST_PART` of the attacker's.

        Raises:
            NotApplicable: too few rows.
        """
        if n * LARGEST_PART * LARGEST_PART < FEWEST_ROWS:
            raise NotApplicable("too few training rows besides the targets to draw samples from")
        evaluation = min(evaluation, int(LARGEST_PART * n))
        attacker = min(attacker, n)
        shadow = min(evaluation, int(LARGEST_PART * attacker))
        return cls(attacker, evaluation, shadow, shadows, sets, evaluated, rows)


@dataclass(frozen=True, eq=False)
class Scores:
    """How surely the attacker calls each set one whose model had learnt the target.

    Attributes:
        inside, outside: sets of models with and without the target, by feature set, shape (T, E) each.
        guarantee: what the accountant says of a model under attack; None for nothing.
    """

    inside: Mapping[FeatureSet, Floats]
    outside: Mapping[FeatureSet, Floats]
    guarantee: PrivacyGuarantee | None


@dataclass(frozen=True, eq=False)
class _Sides:
    """Features of sets from a model of some rows, and from one more model with each target added.

    Attributes:
        without, held: by part of the features, shape (T, sets, F) each.
        guarantee: of the model without a target.
    """

    without: Parts
    held: Parts
    guarantee: PrivacyGuarantee | None


@dataclass(frozen=True, eq=False)
class ShadowGame:
    """The membership game of Stadler et al. about fixed targets.

    Attributes:
        train: the rows, without identifiers. targets: positions in it, shape (T,).
        context: its seed decides what all candidates share: reference rows and fits. draws: seed of what is
            drawn from the models and of the classifiers.
    """

    recipe: FitRecipe
    train: Table
    targets: Positions
    sizes: Sizes
    features: Sequence[FeatureSet]
    classifier: Classifier
    context: RunContext
    draws: int

    def play(self, iteration: int) -> Scores:
        """One iteration: the attacker trains on its own reference rows and is then challenged."""
        with single_threaded_algebra():  # here, since it holds for one process
            return self._play(iteration)

    def _play(self, iteration: int) -> Scores:
        rng = iteration_rng(self.context.seed, GAME, iteration)
        own = reference_rows(self.train.n_rows, self.targets, self.sizes.attacker, rng)
        challenge = reference_rows(self.train.n_rows, self.targets, self.sizes.evaluation, rng)
        samples = [
            np.sort(rng.choice(own, self.sizes.shadow, replace=False)) for _ in range(self.sizes.shadows)
        ]
        columns = self.train.schema.columns
        scaler = ReferenceScaler.of(coded(self.train.take(own), columns), label_counts(columns))
        place = f"iteration {iteration}"
        shadows = [
            self._sides(scaler, rows, f"{place}, shadow {i}", self.sizes.sets)
            for i, rows in enumerate(samples)
        ]
        asked = self._sides(scaler, challenge, f"{place}, challenge", self.sizes.evaluated)
        return self._scores(shadows, asked, place)

    def _sides(self, scaler: ReferenceScaler, rows: Positions, place: str, sets: int) -> _Sides:
        """Fit without and with each target, and draw from every model."""
        apart = f"{place}, without"
        fitted = self._fit(rows, apart)
        held = []
        for i, target in enumerate(self.targets):
            joined = f"{place}, with {i}"
            added = self._fit(np.sort(np.append(rows, target)), joined).model
            held.append(self._parts(scaler, added, self.targets[i : i + 1], joined, sets))
        return _Sides(
            without=self._parts(scaler, fitted.model, self.targets, apart, sets),
            held={part: np.concatenate([h[part] for h in held]) for part in held[0]},
            guarantee=fitted.guarantee,
        )

    def _fit(self, rows: Positions, place: str) -> Fitted:
        seed = as_int_seed(child_rng(self.context.seed, GAME, place))
        return fit_shared(self.recipe, self.train.take(rows), seed, self.context)

    def _parts(
        self, scaler: ReferenceScaler, model: Model, targets: Positions, place: str, sets: int
    ) -> Parts:
        """Features of sets from a model towards these targets, shape (targets, sets, F) each."""
        columns = self.train.schema.columns
        wanted = coded(self.train.take(targets), columns)
        rng = child_rng(self.draws, GAME, place)
        at_once = max(1, _BLOCK // (self.sizes.rows * len(columns)))
        found = []
        for start in range(0, sets, at_once):
            drawn = [self._set(model, rng) for _ in range(min(at_once, sets - start))]
            found.append(parts_of(np.stack(drawn), scaler, wanted, self.features))
        return {part: np.concatenate([f[part] for f in found], axis=1) for part in found[0]}

    def _set(self, model: Model, rng: np.random.Generator) -> Floats:
        """One synthetic set, coded, shape (rows, C).

        Raises:
            PluginError: the generator failed, or returned other columns, another number of rows, or infinite
                numbers.
        """
        drawn = draw(model, self.sizes.rows, self.train.schema, rng)
        return coded(drawn, self.train.schema.columns)

    def _scores(self, shadows: Sequence[_Sides], asked: _Sides, place: str) -> Scores:
        """Train one classifier for each target and feature set on all shadow sets, and let it judge."""
        half = self.sizes.shadows * self.sizes.sets
        learnt = np.arange(2 * half) >= half
        own = [*(s.without for s in shadows), *(s.held for s in shadows)]
        inside: dict[FeatureSet, Floats] = {}
        outside: dict[FeatureSet, Floats] = {}
        for name in self.features:
            known = np.concatenate([gathered(parts, name) for parts in own], axis=1)
            both = np.concatenate([gathered(asked.without, name), gathered(asked.held, name)], axis=1)
            judged = []
            for i in range(len(self.targets)):
                seed = as_int_seed(child_rng(self.draws, GAME, place, f"classifier {i}", name))
                judged.append(guesses(self.classifier, known[i], learnt, both[i], seed))
            outside[name], inside[name] = np.split(np.array(judged), 2, axis=1)
        return Scores(inside, outside, asked.guarantee)
