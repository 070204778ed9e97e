"""Which secrets can be attacked through other columns, and columns as numbers for a linear attacker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.audits._shared import named_or_sensitive
from synth_audit.column_kinds import number_kind
from synth_audit.encode.codes import Vocabulary
from synth_audit.errors import NotApplicable
from synth_audit.execution.seeds import child_rng
from synth_audit.findings.measurement import Measurement, Quantity
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import corrected_level, worst_interval
from synth_audit.stats.regression import Regression, Scaling, correlation, signed_r_squared
from synth_audit.stats.resampling import reference_rows
from synth_audit.table.schema import Column, Role
from synth_audit.table.table import Table

STREAM = "attribute_game"
"""Random stream of attack and games, so that both look for ties in the same training rows."""

FEWEST_ROWS = 50
"""Fewer training rows than this hold little but chance associations."""

FEWEST_SCORED = 50
"""Guesses at fewer rows than this say little of an attack."""

FOLDS = 10
"""Where nobody is left outside, real rows teach by nine parts of ten and are scored on the tenth."""

ROWS_EACH = 4
"""With fewer rows than this for each number that predicts a secret nothing is said of R²: sets drawn with
replacement repeat rows, and would soon be explained wholly, by chance."""

MOST_TESTED = 10_000
"""Training rows, at most, in which associations of a secret are tested: some 200 permutations take time."""

RARE = 0.02
"""A category or a gap that a smaller share of train has gets no number of its own: a set of some hundred rows
holds too few of it to estimate anything, and each indicator adds noise to the attack."""

RETAINED = Quantity(
    "retained",
    "Real associations of the secret that are handed on",
    range=(0.0, float("inf")),
    proportional=False,  # what the columns of a mixed table explain is no mixture of what its parts explain
    help="0: other columns tell nothing of the secret in the release; 1: as much as they do in real rows.",
)


@dataclass(frozen=True, eq=False)
class Coding:
    """How one column becomes the numbers of a linear model (contrast coding).

    Attributes:
        width: how many numbers it becomes. regressors: positions in the design that predict other columns.
        responses: position and share in train of each number that stands for this column as a secret.
        numbers: of a table, shape (n, width), NaN where a number is missing.
        present: rows of a table that hold a value which train may teach something of, shape (n,).
        rare_counts: rows of train that hold each label too rare for a number of its own, ascending.
    """

    width: int
    regressors: list[int]
    responses: dict[int, float]
    numbers: Callable[[Table], Floats]
    present: Callable[[Table], Bools]
    rare_counts: Mapping[str, int] = field(default_factory=dict)


def column_coding(train: Table, column: Column, start: int) -> Coding | None:
    """How a column becomes numbers from position ``start`` on; None where train teaches nothing of it."""
    return (_number_coding if number_kind(column) else _label_coding)(train, column, start)


def _number_coding(train: Table, column: Column, start: int) -> Coding | None:
    """The number itself, read no further than train's own smallest and largest, and whether it is missing.

    None where the numbers are all the same and too few are missing.
    """
    values = train.numbers(column.name)
    missing = np.isnan(values)
    gap = RARE <= float(missing.mean()) < 1
    if not gap and len(np.unique(values[~missing])) < 2:
        return None
    low, high = float(values[~missing].min()), float(values[~missing].max())

    def numbers(table: Table) -> Floats:
        found = np.clip(table.numbers(column.name), low, high)  # a sentinel must not drown a column
        return np.column_stack([found, np.isnan(found)] if gap else [found])

    def present(table: Table) -> Bools:
        return np.asarray(~np.isnan(table.numbers(column.name)))

    return Coding(1 + gap, list(range(start, start + 1 + gap)), {start: 1.0}, numbers, present)


def _label_coding(train: Table, column: Column, start: int) -> Coding | None:
    """Indicators, since no order of codes could carry what labels say of a secret; of two one is enough.

    Frequent labels and a frequent gap have one each, and labels that are rare share one if they are frequent
    together. None where no label is frequent, or one is all there is.
    """
    known = Vocabulary.of(column.name, train)
    rows = np.append(known.counts(train), train.n_missing(column.name))
    shares = dict(zip([*known.labels, None], (rows / train.n_rows).tolist(), strict=True))
    frequent = {label: share for label, share in shares.items() if RARE <= share < 1}
    seldom = sum(share for label, share in shares.items() if label is not None and share < RARE)
    if not frequent:
        return None
    pooled = seldom >= RARE and bool(set(frequent) - {None})
    parts = [*frequent.values(), *([seldom] if pooled else [])]
    width = len(parts)
    own = {label: j for j, label in enumerate(frequent)}
    others = width - 1 if pooled else width
    place = np.array([*(own.get(x, others) for x in known.labels), width, own.get(None, width)])
    regressors = list(range(start, start + width))
    if sum(parts) > 1 - RARE:  # where they leave little over, the commonest follows from the others
        del regressors[int(np.argmax(parts))]
    responses = {start + j: share for j, share in enumerate(parts) if j != own.get(None)}
    if len(responses) == 2 and sum(responses.values()) > 1 - RARE:
        del responses[max(responses, key=responses.__getitem__)]  # the same as the other, turned round

    def numbers(table: Table) -> Floats:
        found: Floats = np.eye(width + 1, width)[place[known.places(table)]]
        return found

    def present(table: Table) -> Bools:
        places = known.places(table)
        return np.asarray((places >= 0) & (places < len(known.labels)))

    counts = zip(known.labels, rows.tolist(), strict=False)
    rare = {label: n for label, n in counts if n < RARE * train.n_rows}
    return Coding(width, regressors, responses, numbers, present, rare)


@dataclass(frozen=True)
class Secret:
    """Where a secret and its predictors stand in the design.

    Attributes:
        coding: of its own column.
        responses: positions of the numbers that stand for the secret: itself, the indicator of one of two
            labels, or the indicator of each frequent label.
        weights: of the responses, summing to 1: the labels' frequencies in train, so that what is frequent
            counts most.
        predictors: positions of the numbers of all other columns; groups: their column, numbered from 0.
    """

    name: str
    coding: Coding
    responses: Positions
    weights: Floats
    predictors: Positions
    groups: Positions


@dataclass(frozen=True)
class DesignMatrix:
    """The columns that vary in train as numbers; anchored on train, so that no candidate moves its yardstick.

    Numbers and dates stand for themselves, as in the paper's tables. A label becomes indicators, since no
    order of its codes could carry what it says of a secret; one of two labels is a single 0/1 number. Labels
    that fewer than :data:`RARE` of the rows hold share one indicator, if together they are
    frequent enough. Numbers are read no further than train's own smallest and largest. A numeric column with
    gaps also gets a 0/1 number that says where they are, for being missing can say as much as a value.
    """

    codings: Mapping[str, Coding]

    @classmethod
    def anchored_on(cls, train: Table, columns: Sequence[Column]) -> DesignMatrix:
        """Read off train which columns vary and which labels are frequent."""
        codings, start = dict[str, Coding](), 0
        for column in columns:
            if coding := column_coding(train, column, start):
                codings[column.name] = coding
                start += coding.width
        return cls(codings)

    def encode(self, table: Table) -> Floats:
        """The numbers of a table, shape (n, p), NaN where missing."""
        return np.hstack([np.empty((table.n_rows, 0)), *(c.numbers(table) for c in self.codings.values())])

    def secret(self, name: str) -> Secret | None:
        """The secret in this column, or None when nothing in it varies."""
        own = self.codings.get(name)
        if own is None or not own.responses:
            return None
        others = [c for c in self.codings.values() if c is not own and c.regressors]
        shares = np.array(list(own.responses.values()))
        return Secret(
            name=name,
            coding=own,
            responses=np.array(list(own.responses), dtype=np.intp),
            weights=shares / shares.sum(),
            predictors=np.array([p for c in others for p in c.regressors], dtype=np.intp),
            groups=np.array([i for i, c in enumerate(others) for _ in c.regressors], dtype=np.intp),
        )


@dataclass(frozen=True)
class AttackedSecrets:
    """What of a table can be attacked.

    Attributes:
        complete: every secret that the table has is attacked, or never varies.
        notes: which are not attacked, and why.
    """

    design: DesignMatrix
    secrets: tuple[Secret, ...]
    complete: bool
    notes: tuple[str, ...]

    @classmethod
    def of(cls, subject: Subject, names: Sequence[str]) -> AttackedSecrets:
        """The columns named, else those of role sensitive.

        Raises:
            NotApplicable: train has too few rows, a secret is the target, or none can be attacked.
        """
        n = subject.train.n_rows
        if n < FEWEST_ROWS:
            raise NotApplicable(f"train has {n} rows; the attack needs {FEWEST_ROWS}")
        columns = named_or_sensitive(subject, names, "columns")
        if not columns:
            raise NotApplicable("needs a sensitive column, or a secret that `columns` names")
        if target := next((c.name for c in columns if Role.TARGET in c.roles), None):
            raise NotApplicable(
                f"column {target!r} is both a secret and the target: a release that serves to predict it "
                "must tell of it"
            )
        design = DesignMatrix.anchored_on(subject.train, subject.features)
        secrets, notes = dict[str, Secret](), list[str]()
        for column in columns:
            secret = design.secret(column.name)
            if secret is None:
                why = "no value or label of it is frequent and varies"
            elif not len(secret.predictors):
                why = "no other column varies in train"
            else:
                secrets[column.name] = secret
                continue
            notes.append(f"{column.name} is not attacked: {why}")
        if not secrets:
            raise NotApplicable("; ".join(notes))
        sensitive = (c for c in subject.schema.with_role(Role.SENSITIVE) if c.released)
        wanted = dict.fromkeys(c.name for c in (*columns, *sensitive))
        missed = [name for name in wanted if name not in secrets and _varies(subject, name)]
        notes += [f"{name} varies and is not attacked, so the whole is not judged" for name in missed]
        return cls(design, tuple(secrets.values()), not missed, tuple(notes))


@dataclass(frozen=True)
class SecretRows:
    """Rows that hold a secret, as an attacker or whoever guesses are tried on sees them.

    Attributes:
        known: standardised predictors, shape (n, q). answers: what stands for the secret, shape (n, c).
        weights: of the answers, shape (c,), summing to 1.
        groups: by each other column, shape (n,); empty where nobody looks at groups.
    """

    known: Floats
    answers: Floats
    weights: Floats
    groups: tuple[Codes, ...] = ()

    @classmethod
    def of(
        cls, values: Floats, present: Bools | slice, secret: Secret, scaling: Scaling | None = None
    ) -> SecretRows:
        """Those of the encoded rows, shape (n, p), that hold the secret; standardised by one another."""
        held = values[present]
        z = (scaling or Scaling.of(held)).apply(held)
        return cls(z[:, secret.predictors], z[:, secret.responses], secret.weights)

    def __len__(self) -> int:
        return len(self.known)

    def take(self, rows: Bools | slice) -> SecretRows:
        """Those that the mask, shape (n,), chooses."""
        groups = tuple(g[rows] for g in self.groups)
        return SecretRows(self.known[rows], self.answers[rows], self.weights, groups)

    def skill(self, guesses: Floats, counts: Floats | None = None) -> float:
        """Signed squared correlation of guesses with the answers, weighted over these.

        Args:
            counts: how often each row counts, shape (n,); once if left out.
        """
        return float(signed_r_squared(guesses, self.answers, counts) @ self.weights)

    def cross_fitted(
        self, learn: Callable[[Bools | slice], Callable[[SecretRows], Floats]], folds: Codes | None
    ) -> Floats:
        """Guess each fold with a model that learns from the other folds; without folds, learn and guess all.

        A model fitted to a row would guess it too well, and the release would look too harmless.

        Args:
            learn: fits a model to the rows that the mask selects.
        """
        if folds is None:
            return learn(slice(None))(self)
        guesses = np.zeros_like(self.answers)
        for fold in np.unique(folds):
            own = folds == fold
            guesses[own] = learn(~own)(self.take(own))
        return guesses


def _varies(subject: Subject, name: str) -> bool:
    labels = subject.train.labels(name)
    return len(set(labels[~subject.train.missing(name)])) > 1


def worst(found: Sequence[Measurement], level: float) -> Measurement:
    """The largest value as a number of the whole, the measurements being at a level at which they hold
    together."""
    largest = max(found, key=lambda m: m.value)
    if len(found) == 1:
        return replace(largest, id=largest.id.whole)
    intervals = [m.interval for m in found if m.interval]
    interval = worst_interval(intervals, level, f"{len(found)} numbers")
    return replace(largest, id=largest.id.whole, interval=interval)


def retained(
    at: Callable[[float], list[Measurement]], level: float, *, judged: bool
) -> Iterator[Measurement]:
    """The worst number first, if every secret of the table could be judged, then each.

    Args:
        at: for a confidence level, the retained part of each secret that real rows can predict.
        judged: every secret of the table was attacked with a result, or never varies. Otherwise no gate may
            pass on the others alone.
    """
    each = at(level)
    if each and judged:
        # An honest release may hand on what the population has in common, so that no null is known.
        yield replace(worst(at(corrected_level(level, len(each))), level), reference=None)
    yield from each


def chance_of(statistic: Callable[[Floats], float], y: Floats, n: int, rng: np.random.Generator) -> float:
    """p-value of a permutation test: ``(1 + #{statistic of shuffled rows ≥ that of y}) / (1 + n)``.

    Args:
        y: shape (rows, c). n: shuffles.
    """
    found = [statistic(z) for z in (y, *(rng.permutation(y) for _ in range(n)))]
    observed, *others = np.round(found, 12)
    return float((1 + np.sum(np.array(others) >= observed)) / (1 + n))


def associated(subject: Subject, design: DesignMatrix, secret: Secret, seed: int) -> bool:
    """True when the other columns tell more of the secret in train than chance would, by a permutation test.

    The test is of R², ``p ≤ 1 − level``.
    """
    rng = child_rng(seed, STREAM, "association", secret.name)
    rows = reference_rows(subject.train.n_rows, (), MOST_TESTED, rng)
    table = subject.train.take(rows)
    values = design.encode(table)[secret.coding.present(table)]
    z = Scaling.of(values).apply(values)
    regression = Regression.on(correlation(z[:, secret.predictors]), secret.groups, len(z))
    known = z[:, secret.predictors] / max(len(z) - 1, 1)

    def explained(y: Floats) -> float:
        r = known.T @ y
        return float((regression.coefficients(r) * r).sum(axis=0) @ secret.weights)

    shuffles = round(10 / (1 - subject.level)) - 1
    return chance_of(explained, z[:, secret.responses], shuffles, rng) <= 1 - subject.level + 1e-12
