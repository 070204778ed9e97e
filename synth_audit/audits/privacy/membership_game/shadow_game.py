"""One iteration of the membership game: targets, shadow models, challenges, and the attacker's scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Floats, Integers, Positions
from synth_audit.audits._shared import ISOLATED_FROM, drawn, most_isolated, named_or_sensitive
from synth_audit.dp.guarantee import PrivacyGuarantee
from synth_audit.encode.codes import by_frequency, coded, label_counts
from synth_audit.encode.univariate import outlying_rows
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import single_threaded_algebra
from synth_audit.execution.seeds import as_int_seed, child_rng
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.fitting import FitRecipe, Fitted, draw, fit_shared
from synth_audit.plugins.generator import Model
from synth_audit.stats.resampling import reference_rows
from synth_audit.table.schema import Column, quantitative
from synth_audit.table.table import Table

MOST_LABELS = 64
"""Labels with a frequency of their own: the most frequent of the reference; the others share one."""

_FAR = 1e6
"""Standard deviations beyond which a number is as good as infinitely far, so that no square overflows."""

FeatureSet = Literal["naive", "histogram", "correlations", "target_distance", "all"]

Classifier = Literal["random_forest", "logistic", "nearest_neighbours"]

PARTS: tuple[FeatureSet, ...] = ("naive", "histogram", "correlations", "target_distance")

FEATURE_SETS: tuple[FeatureSet, ...] = (*PARTS, "all")

CLASSIFIERS: tuple[Classifier, ...] = ("random_forest", "logistic", "nearest_neighbours")

BINS = 10
"""Bins of equal width between the least and the largest value of the reference; two more lie beyond."""

NEIGHBOURS = (1, 2, 5, 10)
"""Which of the nearest synthetic rows of a target are measured."""

_DECIMALS = 9
"""Of features, beyond which digits are rounding."""

_DECIMALS_OF_GUESSES = 6
"""An iterative fit is no more exact than this."""

Parts = dict[FeatureSet, Floats]

GAME = "membership_game"
"""Names the streams of draws that all candidates of a sweep share."""

LARGEST_PART = 0.8
"""A sample takes no more than this of the rows it is drawn from, so that two samples differ."""

FEWEST_ROWS = 20
"""With fewer rows to draw from, a sample says nothing of how the generator behaves."""

_BLOCK = 2**23
"""Values of coded sets held at a time: 64 MiB."""

MOST_SEARCHED = 20_000
"""At most this many rows are looked at, drawn at random, for those farthest from all others."""


@dataclass(frozen=True, eq=False)
class ReferenceScaler:
    """The attacker's units, read off the reference rows, which hold no target.

    Attributes:
        centre, scale: mean and standard deviation of each numeric column; 0 and 1 for labels. A numeric
            column without spread has its size as unit.
        numeric: which columns are numbers; graded: which of them vary in the reference, shape (C,) each.
            Numbers that do not are compared as labels are, for a distance in them has no unit.
        low, high: least and largest value of each numeric column in those units.
        ranked: for each column of labels the bin of each code, the last bin shared by rare ones.
    """

    centre: Floats
    scale: Floats
    numeric: Bools
    graded: Bools
    low: Floats
    high: Floats
    ranked: Mapping[int, Integers]

    @classmethod
    def of(cls, reference: Floats, n_labels: Sequence[int | None]) -> Self:
        """Read it off coded reference rows.

        Args:
            reference: shape (n, C). n_labels: how many labels each column has; None for numbers.
        """
        numeric = np.array([n is None for n in n_labels], dtype=bool)
        moments = [
            _moments(reference[:, j]) if n is None else (0.0, 1.0, True) for j, n in enumerate(n_labels)
        ]
        centre, scale, varies = (np.array(part) for part in zip(*moments, strict=True))
        inside = _scaled(reference, centre, scale)
        known = ~np.isnan(inside)
        ranked = {j: _bins_of_labels(reference[:, j], n) for j, n in enumerate(n_labels) if n is not None}
        return cls(
            centre=centre,
            scale=scale,
            numeric=numeric,
            graded=numeric & varies.astype(bool),
            low=np.min(inside, axis=0, where=known, initial=np.inf),
            high=np.max(inside, axis=0, where=known, initial=-np.inf),
            ranked=ranked,
        )

    def measured(self, rows: Floats) -> Floats:
        """Coded rows in the attacker's units, shape (…, C); codes stay as they are."""
        return _scaled(rows, self.centre, self.scale)


def _moments(values: Floats) -> tuple[float, float, bool]:
    """Mean, standard deviation and whether there is any, in units of the largest, so that none overflows."""
    known = values[~np.isnan(values)]
    if not len(known):
        return 0.0, 1.0, False
    unit = float(np.abs(known).max()) or 1.0
    if known.min() == known.max():
        return float(known[0]), unit, False
    return unit * float((known / unit).mean()), unit * float((known / unit).std()), True


def _scaled(rows: Floats, centre: Floats, scale: Floats) -> Floats:
    with np.errstate(over="ignore"):
        scaled: Floats = np.clip((rows - centre) / scale, -_FAR, _FAR)
    return scaled


def _bins_of_labels(codes: Floats, n_labels: int) -> Integers:
    """Bin of each code 0 … n_labels, the most frequent first, ties by code; the rare ones share the last."""
    known = codes[~np.isnan(codes)].astype(np.int64)
    return np.minimum(by_frequency([np.arange(n_labels + 1)], known)[0], MOST_LABELS - 1)


def naive(sets: Floats, scaler: ReferenceScaler) -> Floats:
    """Summaries of every column, shape (S, F), of S sets in the attacker's units, shape (S, n, C).

    Numbers: mean, median, variance; labels: how many there are, the code of the most frequent and that of the
    least frequent one present; both: share missing. Source: Stadler et al. 2022.
    """
    found = [np.isnan(sets).mean(axis=1)]
    numbers = sets[:, :, scaler.numeric]
    known = ~np.isnan(numbers)
    n = np.maximum(known.sum(axis=1), 1)
    mean = np.sum(numbers, axis=1, where=known) / n
    spread = np.sum((numbers - mean[:, None]) ** 2, axis=1, where=known) / n
    found += [mean, _medians(numbers, n), spread]
    for j, bins in scaler.ranked.items():
        counts = _counted(sets[:, :, j], len(bins))
        present = np.where(counts > 0, counts, np.iinfo(np.int64).max)
        found.append(
            np.column_stack([(counts > 0).sum(axis=1), counts.argmax(axis=1), present.argmin(axis=1)])
        )
    return _rounded(found)


def histogram(sets: Floats, scaler: ReferenceScaler) -> Floats:
    """Share of rows in each bin of each numeric column and with each label, shape (S, F).

    Missing values are in no bin. Source: Stadler et al. 2022; the bins beyond the reference's range are ours.
    """
    found = []
    for j in range(len(scaler.numeric)):
        values = sets[:, :, j]
        bins = scaler.ranked.get(j)
        if bins is None:
            width = max(scaler.high[j] - scaler.low[j], np.finfo(np.float64).tiny)
            with np.errstate(over="ignore"):
                place = np.clip(np.floor((values - scaler.low[j]) / width * BINS), -1, BINS)
            place = np.where(values == scaler.high[j], BINS - 1, place) + 1
            found.append(_counted(place, BINS + 2) / values.shape[1])
        else:
            place = np.where(np.isnan(values), np.nan, bins[np.nan_to_num(values).astype(np.int64)])
            found.append(_counted(place, int(bins.max()) + 1) / values.shape[1])
    return _rounded(found)


def correlations(sets: Floats, scaler: ReferenceScaler) -> Floats:
    """Pearson's correlation of every pair of columns, labels by their codes, shape (S, C (C − 1) / 2).

    A missing value counts as the mean of its set; a column without spread correlates with none.
    """
    known = ~np.isnan(sets)
    mean = np.sum(sets, axis=1, where=known) / np.maximum(known.sum(axis=1), 1)
    apart = np.where(known, sets - mean[:, None], 0.0)
    size = np.sqrt(np.sum(apart**2, axis=1))
    flat = size <= 1e-9 * np.sqrt(sets.shape[1])
    unit = np.where(flat[:, None], 0.0, apart / np.where(flat, 1.0, size)[:, None])
    with single_threaded_algebra():
        together = np.matmul(unit.transpose(0, 2, 1), unit)
    row, column = np.triu_indices(sets.shape[2], 1)
    return _rounded([together[:, row, column]])


def target_distance(sets: Floats, scaler: ReferenceScaler, target: Floats) -> Floats:
    """How near the rows of each set come to a target, shape (S, 6): **ours**.

    Distances to the nearest rows (:data:`NEIGHBOURS`; the farthest where a set has fewer), the most columns
    in which a row agrees, and the share of rows that agree in all. The distance is Euclidean in standard
    deviations; labels that differ, and numbers that are constant in the reference, are at squared distance 2,
    a missing value from a present one at 1.

    Args:
        target: in the attacker's units, shape (C,).
    """
    squared = np.zeros(sets.shape[:2])
    agreeing = np.zeros(sets.shape[:2], dtype=np.int64)
    for j, value in enumerate(target.tolist()):
        values = sets[:, :, j]
        missing, gone = np.isnan(values), bool(np.isnan(value))
        same = missing if gone else values == value
        agreeing += same
        if scaler.graded[j]:
            apart = np.zeros_like(values) if gone else np.where(missing, 0.0, values - value)
            squared += apart**2 + (missing != gone)
        else:
            squared += np.where(same, 0.0, np.where(missing == gone, 2.0, 1.0))
    n = sets.shape[1]
    most = min(max(NEIGHBOURS), n)
    least = np.sort(np.partition(squared, most - 1, axis=1)[:, :most], axis=1)
    ranks = [min(k, n) - 1 for k in NEIGHBOURS]
    whole = (agreeing == len(target)).mean(axis=1)
    return _rounded([np.sqrt(least[:, ranks]), agreeing.max(axis=1)[:, None], whole[:, None]])


_COMMON: Mapping[FeatureSet, Callable[[Floats, ReferenceScaler], Floats]] = {
    "naive": naive,
    "histogram": histogram,
    "correlations": correlations,
}


def parts_of(sets: Floats, scaler: ReferenceScaler, targets: Floats, names: Sequence[FeatureSet]) -> Parts:
    """Every part of the named feature sets, shape (T, S, F) each, towards each of T targets.

    Args:
        sets: coded rows of S sets, shape (S, n, C). targets: coded rows, shape (T, C).
    """
    inside, towards = scaler.measured(sets), scaler.measured(targets)
    found: Parts = {}
    for part in PARTS if "all" in names else names:
        if part in _COMMON:
            common = _COMMON[part](inside, scaler)
            found[part] = np.broadcast_to(common, (len(targets), *common.shape))
        else:
            found[part] = np.stack([target_distance(inside, scaler, t) for t in towards])
    return found


def gathered(parts: Mapping[FeatureSet, Floats], name: FeatureSet) -> Floats:
    """One feature set out of its parts, the last axis joined."""
    return np.concatenate([parts[p] for p in PARTS], axis=-1) if name == "all" else parts[name]


def guesses(classifier: Classifier, known: Floats, learnt: Bools, asked: Floats, seed: int) -> Floats:
    """Probability that the target was learnt, for each set asked about, shape (m,), in [0, 1].

    Args:
        known, learnt: features of the attacker's own sets, shape (n, F), and whether the target was among the
            rows behind each, shape (n,); both answers must occur.
        asked: features of the sets to be judged, shape (m, F).
    """
    from sklearn.ensemble import RandomForestClassifier  # here, since a code location must not load it
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model: Any
    match classifier:
        case "random_forest":  # on resampled rows such leaves bring the gain from 0.50 to the best, 0.38
            model = RandomForestClassifier(50, min_samples_leaf=0.05, n_jobs=1, random_state=seed)
        case "logistic":
            model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=5000))
        case "nearest_neighbours":  # a tree, since distances by products of matrices break ties by rounding
            model = make_pipeline(StandardScaler(), KNeighborsClassifier(5, algorithm="kd_tree"))
    with single_threaded_algebra():
        found: Floats = np.round(model.fit(known, learnt).predict_proba(asked)[:, 1], _DECIMALS_OF_GUESSES)
    return found


def _medians(numbers: Floats, n: Integers) -> Floats:
    """Medians of the present values along the second axis, 0 where there is none; NaN sorts last."""
    ordered = np.sort(numbers, axis=1)
    middle = [np.take_along_axis(ordered, k[:, None, :], axis=1)[:, 0] for k in ((n - 1) // 2, n // 2)]
    return np.nan_to_num((middle[0] + middle[1]) / 2)


def _counted(places: Floats, n_bins: int) -> Integers:
    """How many rows of each set are in each bin, shape (S, n_bins), from bins with NaN, shape (S, n)."""
    known = ~np.isnan(places)
    shifted = places + n_bins * np.arange(len(places))[:, None]
    flat = shifted[known].astype(np.int64)
    return np.bincount(flat, minlength=n_bins * len(places)).reshape(len(places), n_bins)


def _rounded(parts: Sequence[npt.NDArray[np.generic]]) -> Floats:
    """The parts side by side, rounded, so that no last bit of a product decides a split of a classifier."""
    joined = np.concatenate(parts, axis=1).astype(np.float64)
    return np.asarray(np.round(joined, _DECIMALS), dtype=np.float64)


@dataclass(frozen=True)
class Sizes:
    """How large the samples and sets of a game are.

    Attributes:
        attacker, evaluation: reference rows of the attacker and of the challenger.
        shadows: models with a target, and as many without. sets, evaluated: drawn from each shadow model and
            from each model under attack. rows: of a set.
    """

    attacker: int
    evaluation: int
    shadows: int
    sets: int
    evaluated: int
    rows: int

    def within(self, n: int) -> "Sizes":
        """The same as far as ``n`` rows that are no targets allow.

        Raises:
            NotApplicable: too few rows.
        """
        if n * LARGEST_PART * LARGEST_PART < FEWEST_ROWS:
            raise NotApplicable("too few training rows besides the targets to draw samples from")
        evaluation = min(self.evaluation, int(LARGEST_PART * n))
        return replace(self, evaluation=evaluation, attacker=min(self.attacker, n))

    @property
    def shadow(self) -> int:
        """Rows of the attacker's that a shadow model is fitted to.

        As many as are behind the models under attack, which the attacker knows, but no more than
        :data:`LARGEST_PART` of the attacker's.
        """
        return min(self.evaluation, int(LARGEST_PART * self.attacker))


@dataclass(frozen=True, eq=False)
class SetScores:
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

    def play(self, iteration: int) -> SetScores:
        """One iteration: the attacker trains on its own reference rows and is then challenged."""
        rng = child_rng(self.context.seed, GAME, str(iteration))
        own = reference_rows(self.train.n_rows, self.targets, self.sizes.attacker, rng)
        challenge = reference_rows(self.train.n_rows, self.targets, self.sizes.evaluation, rng)
        n, columns, place = self.sizes, self.train.schema.columns, f"iteration {iteration}"
        samples = [np.sort(rng.choice(own, n.shadow, replace=False)) for _ in range(n.shadows)]
        with single_threaded_algebra():  # here, since it holds for one process
            scaler = ReferenceScaler.of(coded(self.train.take(own), columns), label_counts(columns))
            shadows = [
                self._sides(scaler, rows, f"{place}, shadow {i}", n.sets) for i, rows in enumerate(samples)
            ]
            asked = self._sides(scaler, challenge, f"{place}, challenge", n.evaluated)
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
        """Features of sets from a model towards these targets, shape (targets, sets, F) each.

        Raises:
            PluginError: the generator failed, or returned other columns, another number of rows, or infinite
                numbers.
        """
        schema, n = self.train.schema, self.sizes.rows
        wanted = coded(self.train.take(targets), schema.columns)
        rng = child_rng(self.draws, GAME, place)
        at_once = max(1, _BLOCK // (n * len(schema.columns)))
        found = []
        for start in range(0, sets, at_once):
            drawn = (draw(model, n, schema, rng) for _ in range(min(at_once, sets - start)))
            rows = np.stack([coded(table, schema.columns) for table in drawn])
            found.append(parts_of(rows, scaler, wanted, self.features))
        return {part: np.concatenate([f[part] for f in found], axis=1) for part in found[0]}

    def _scores(self, shadows: Sequence[_Sides], asked: _Sides, place: str) -> SetScores:
        """Train one classifier for each target and feature set on all shadow sets, and let it judge."""
        half = self.sizes.shadows * self.sizes.sets
        learnt = np.arange(2 * half) >= half
        own = [*(s.without for s in shadows), *(s.held for s in shadows)]
        inside: Parts = {}
        outside: Parts = {}
        for name in self.features:
            known = np.concatenate([gathered(parts, name) for parts in own], axis=1)
            both = np.concatenate([gathered(parts, name) for parts in (asked.without, asked.held)], axis=1)
            judged = []
            for i in range(len(self.targets)):
                seed = as_int_seed(child_rng(self.draws, GAME, place, f"classifier {i}", name))
                judged.append(guesses(self.classifier, known[i], learnt, both[i], seed))
            outside[name], inside[name] = np.split(np.array(judged), 2, axis=1)
        return SetScores(inside, outside, asked.guarantee)


def outlier_columns(subject: Subject, names: Sequence[str]) -> tuple[Column, ...]:
    """The columns whose outlying rows are targets: those named, else sensitive, else numeric ones, else all.

    Raises:
        NotApplicable: a named column is not in the table, or not released.
    """
    chosen = named_or_sensitive(subject, names, "columns")
    return chosen or quantitative(subject.features) or subject.features


def choose(
    subject: Subject,
    columns: Sequence[Column],
    wanted: dict[str, int],
    tail: float,
    rng: np.random.Generator,
) -> dict[str, Positions]:
    """Positions in train of the targets of each kind; kinds without any are left out.

    ``outlying``: rows beyond the tails of a column, of its rarest labels, or of the texts least like all
    others, the columns in turn, drawn at random among those rows. ``vulnerable``: the rows farthest from
    their nearest other row. ``achilles``: the rows with the largest mean distance to their five nearest other
    rows. ``random``: any rows but these.

    Args:
        wanted: how many of each kind; fewer come back when fewer are there.
    """
    n = subject.train.n_rows
    found: dict[str, Positions] = {}
    if wanted["outlying"]:
        found["outlying"] = _in_turn(
            [outlying_rows(subject.train, c, tail) for c in columns], wanted["outlying"], rng
        )
    for kind, others in (("vulnerable", 1), ("achilles", ISOLATED_FROM)):
        if most := wanted[kind]:
            asked = drawn(np.arange(n), MOST_SEARCHED, rng)
            found[kind] = most_isolated(subject.train, subject.features, asked, most, rng, others=others)
    if wanted["random"]:
        taken = np.concatenate([np.empty(0, dtype=np.intp), *found.values()])
        found["random"] = drawn(np.setdiff1d(np.arange(n), taken), wanted["random"], rng)
    found = {kind: positions for kind, positions in found.items() if len(positions)}
    if not found:
        raise NotApplicable("no training row is outlying, and no other targets are asked for")
    return found


def _in_turn(candidates: Sequence[Positions], most: int, rng: np.random.Generator) -> Positions:
    """At most so many rows, one from each list in turn, none twice, ascending."""
    waiting = [rng.permutation(rows).tolist() for rows in candidates]
    chosen: set[int] = set()
    while len(chosen) < most and any(waiting):
        for rows in waiting:
            while rows and rows[-1] in chosen:
                rows.pop()
            if rows and len(chosen) < most:
                chosen.add(rows.pop())
    return np.array(sorted(chosen), dtype=np.intp)
