"""A fitted vine, whole or by class of the target, and its rows in which some columns have given values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.errors import DataError
from synth_audit.generators._model_files import SavedWhole
from synth_audit.generators.vine.columns import Decoder
from synth_audit.generators.vine.copulas import CVine, Joint
from synth_audit.table.schema import Column, Schema
from synth_audit.table.table import Table, assemble

BATCH = 10_000
"""Rows drawn at once in search of those that have the values given."""

MIN_DRAWS = 50_000
"""Rows drawn before values of which none had them are called too rare."""

MAX_DRAWS = 2_000_000
"""Rows drawn at most."""


@dataclass(frozen=True, eq=False)
class VineModel(SavedWhole):
    """A fitted vine; nothing in it changes when it is drawn from or truncated.

    Attributes:
        schema: the columns of the synthetic table.
        decoders: how each column is made from the vine's variables, in schema order.
        order: names of the vine's variables, the first in the last trees, the last the root of tree 1;
            ``<column> is missing`` stands for a missingness variable.
        joints: one of all variables; with a root per class, one for each class, of which every one holds
            the variables before the target and knows the values of the target's own.
        level: number of trees that are kept; None for all.
    """

    schema: Schema = field(repr=False)
    decoders: tuple[Decoder, ...] = field(repr=False)
    order: tuple[str, ...]
    joints: tuple[Joint, ...] = field(repr=False)
    level: int | None

    @property
    def per_class(self) -> bool:
        """True when each class of the target has a vine of its own."""
        return bool(self.joints[0].known)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        return self.table(self.draw(n, rng))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Values of the variables in ``n`` rows, shape (n, number of variables)."""
        if len(self.joints) == 1:
            return self.joints[0].draw(n, rng)
        shares = np.cumsum([joint.share for joint in self.joints])
        which = np.searchsorted(shares / shares[-1], rng.random(n), side="right")
        values = np.empty((n, len(self.order)))
        for k, joint in enumerate(self.joints):
            rows = np.flatnonzero(which == k)
            values[rows] = joint.draw(len(rows), rng)
        return values

    def table(self, values: Floats) -> Table:
        """Rows of a table from values of the variables, shape (n, number of variables)."""
        drawn = dict(enumerate(values.T))
        return assemble(self.schema, {d.name: d.decode(drawn, len(values)) for d in self.decoders})

    def sample_given(self, given: Mapping[str, str | float], n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows in which columns have the values given.

        With a root per class the target picks the vine. In one vine the first root is fixed at the level of
        its value, and so are further roots while all before them are continuous (the Rosenblatt transform).
        What else is given must have a probability of its own: rows are drawn until enough have it.

        Args:
            given: a label for a categorical or boolean column, a number for the others (datetimes in
                microseconds since 1970).

        Raises:
            DataError: a column is unknown, or its value was too rare or not one of the column's, or it is
                numeric and not among the first roots.
        """
        wanted = _wanted(self, given)
        joints = [j for j in self.joints if _agrees(j, wanted)]
        spans = _spans(joints[0], wanted) if len(joints) == 1 else {}
        _check_mass(self, joints, [v for v in wanted if v not in spans], wanted)
        batches: list[Floats] = []
        n_found = n_drawn = 0
        while n_found < n:
            if n_drawn >= (MAX_DRAWS if n_found else MIN_DRAWS):
                raise _refusal(given, f"too few of {n_drawn} rows had the values given")
            values = _batch(joints, spans, len(self.order), rng)
            met = [values[:, v] == wanted[v] for v in wanted if v not in spans]
            hit = np.logical_and.reduce(met or [True])
            batches.append(values[np.broadcast_to(hit, len(values))])
            n_drawn, n_found = n_drawn + len(values), n_found + len(batches[-1])
        return self.table(np.concatenate([np.empty((0, len(self.order))), *batches])[:n])

    def truncated(self, level: int) -> VineModel:
        """This model with only the first ``level`` trees; pair copulas above become independence.

        With a root per class tree 1 is the star around the class, so that one tree leaves the columns
        independent within it. A model that has no more trees than these comes back as it is.

        Raises:
            ValueError: the level is below 1.
        """
        if level < 1:
            raise ValueError("a vine keeps at least one tree")
        if level >= (len(self.order) - 1 if self.level is None else self.level):
            return self
        joints = tuple(joint.truncated(level - bool(joint.known)) for joint in self.joints)
        return replace(self, joints=joints, level=level)


def _wanted(model: VineModel, given: Mapping[str, str | float]) -> dict[int, float]:
    """The value of each variable that is given, by its position; its gap variable is given as 0."""
    decoders = {d.name: d for d in model.decoders}
    wanted: dict[int, float] = {}
    for name, value in given.items():
        if name not in decoders:
            raise _refusal([name], "the vine has no such column")
        decoder = decoders[name]
        code = _code(model.schema[name], decoder, value)
        if decoder.gap is not None:
            wanted[decoder.gap] = 0.0
        if decoder.variable is not None:
            wanted[decoder.variable] = code
        elif code != decoder.constant:
            raise _refusal([name], "the column never has the value given")
    return wanted


def _code(column: Column, decoder: Decoder, value: str | float) -> float:
    if decoder.labels is None:
        if isinstance(value, str) or not np.isfinite(value):
            raise _refusal([column.name], "a numeric column needs a finite number")
        return float(value)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    codes = np.flatnonzero(decoder.labels == text)
    if len(codes) == 0:
        raise _refusal([column.name], "the column never has the label given")
    return float(codes[0])


def _agrees(joint: Joint, wanted: Mapping[int, float]) -> bool:
    first = len(joint.margins)
    return all(joint.known[v - first] == x for v, x in wanted.items() if v >= first)


def _spans(joint: Joint, wanted: Mapping[int, float]) -> dict[int, tuple[float, float]]:
    """Between which uniforms each variable is drawn that can be fixed, by its position."""
    spans = {v: (0.0, 1.0) for v in wanted if v >= len(joint.margins)}
    roots: list[float] = []
    copula = joint.copula
    if not isinstance(copula, CVine):
        return spans
    for leaf in reversed(range(len(joint.linked))):
        variable = joint.linked[leaf]
        if variable not in wanted:
            break
        below, at = joint.margins[variable].interval(np.array([wanted[variable]]))
        low, high = (copula.given_roots(leaf, float(level[0]), roots) for level in (below, at))
        spans[variable] = (low, high)
        if high > low:  # not one level but many: what depends on them is no longer one distribution
            break
        roots.append(low)
    return spans


def _check_mass(
    model: VineModel, joints: Sequence[Joint], variables: Sequence[int], wanted: Mapping[int, float]
) -> None:
    """Refuse what cannot be met by drawing until it comes."""
    for v in variables:
        margins = [j.margins[v] for j in joints if v < len(j.margins)]
        intervals = [m.interval(np.array([wanted[v]])) for m in margins]
        if margins and not any(at[0] > below[0] for below, at in intervals):
            reason = (
                "its value has no probability of its own, and it is not among the first roots in one vine"
            )
            raise _refusal([model.order[v]], reason)


def _batch(
    joints: Sequence[Joint], spans: Mapping[int, tuple[float, float]], width: int, rng: np.random.Generator
) -> Floats:
    shares = np.array([j.share for j in joints])
    counts = rng.multinomial(BATCH, shares / shares.sum())
    values = np.empty((0, width))
    for joint, n in zip(joints, counts, strict=True):
        values = np.concatenate([values, _draw(joint, spans, int(n), rng)])
    return rng.permutation(values)


def _draw(joint: Joint, spans: Mapping[int, tuple[float, float]], n: int, rng: np.random.Generator) -> Floats:
    if not isinstance(joint.copula, CVine):
        return joint.draw(n, rng)
    uniforms = rng.random((n, len(joint.linked)))
    for i, variable in enumerate(joint.linked):
        if variable in spans:
            low, high = spans[variable]
            uniforms[:, i] = low + (high - low) * uniforms[:, i]
    return joint.values(joint.copula.from_uniforms(uniforms))


def _refusal(columns: Iterable[str], what: str) -> DataError:
    return DataError(
        f"rows cannot be drawn given {', '.join(map(repr, columns))}: {what}",
        where="vine model",
        expected="labels, or numbers of the first roots, with the target first where each class has a vine",
        fix="give less, or draw freely and keep the rows that are wanted",
    )
