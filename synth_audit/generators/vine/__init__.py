"""C-vine copula with the response at its root and sensitive columns in the last trees (TVineSynth)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools, Floats
from synth_audit.encode.univariate import MarginMethod
from synth_audit.generators._model_files import FitsWhole, SavedWhole
from synth_audit.generators.vine import columns
from synth_audit.generators.vine.copulas import Choice, Criterion, FamilySet, Joint, Topology, fit_joint
from synth_audit.plugins.generator import FitContext, GeneratorInfo, Needs
from synth_audit.table.schema import Schema
from synth_audit.table.table import Table, assemble

_NO_NOISE = "margins and pair copulas are fitted to train without noise; truncation limits, it does not bound"

MIN_ROWS = 10
"""Fewer training rows than this are refused: their margins would be the rows themselves."""


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
    decoders: tuple[columns.Decoder, ...] = field(repr=False)
    order: tuple[str, ...]
    joints: tuple[Joint, ...] = field(repr=False)
    level: int | None

    @property
    def per_class(self) -> bool:
        """True when each class of the target has a vine of its own."""
        return bool(self.joints[0].known)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        values = self.draw(n, rng)
        drawn = dict(enumerate(values.T))
        return assemble(self.schema, {d.name: d.decode(drawn, n) for d in self.decoders})

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

    def truncated(self, level: int) -> "VineModel":
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


@dataclass(frozen=True, kw_only=True)
class Vine(FitsWhole):
    """Fit a C-vine whose later trees hold what links the sensitive columns to the rest, and cut them off.

    f(x) = Π_j f_j(x_j) · Π_{trees e ≤ truncation} c_e(·, · | conditioning set), in the order of Algorithm 1:
    sensitive columns, those close to them, the rest, the target last as root of tree 1. Without a target
    the root is the column with the largest sum of |τ| to the others, a sensitive one only if all are. A
    sensitive target stays the root.

    Per class, the pair copulas and the margins depend on the target instead: tree 1 is the mixture over the
    classes' observed frequencies, the trees above are one C-vine of the other columns for each class, so
    that one tree leaves them independent within a class. Missing targets are a class too, or, if few, fall
    on all classes alike.

    Labels become codes: sorted by the mean rank of the target within each, so that the pair copula with
    the root can carry their whole effect; the target's own labels, and all labels without a target,
    in order of frequency. Each pattern of missing values becomes a 0/1 variable just before its first
    column, so that its rate and its relations are kept. For the fit alone, the gaps are filled with draws
    from a Gaussian copula given what is present in the row.

    Attributes:
        truncation: number of trees to keep, of one less than the vine's variables; all if left out.
        root: ``simplified`` for pair copulas that do not depend on the target (the paper), ``per_class``
            for a vine per class, ``auto`` for the latter when the target is a label and each class has
            30 rows, and six for each other column; with fewer it learns its few people, not the class.
        topology: ``c_vine``; ``r_vine`` with the trees of the largest sums of |τ|, or ``r_vine_star1`` with
            those after a first that is a star at the target. They know no order.
        order: ``sensitive_first`` (Algorithm 1), ``importance`` to a random forest for the target, the most
            important nearest to the root, or names, first those for the last trees.
        families: pair copulas with one parameter, fitted by inverting τ (fast), or all parametric ones,
            by maximum likelihood (the paper's choice, some hundred times slower), or ``nonparametric``.
        criterion: by which pair copulas are chosen. ``aic`` (the paper) takes three in ten pairs of unrelated
            columns for related, ``bic`` few, and ``mbicv`` the fewer the later the tree: what is left by
            truncation then tells less of the sensitive columns, and is of more use.
        margins: ``kde`` for a smooth density that does not reproduce extremes; ``empirical`` for the
            sample's own, interpolated (the paper's choice).
        threshold: a column follows the sensitive ones when its |τ| with one of them exceeds this, in [0, 1].

    Raises:
        ValueError: the truncation is below 1, the threshold outside [0, 1], a name twice in the order, or a
            root per class wanted of an R-vine.

    Source: TVineSynth, Algorithm 1 and section 2.2; Nagler and Vatter, pyvinecopulib.
    """

    truncation: int | None = None
    root: columns.Root = "auto"
    topology: Topology = "c_vine"
    order: columns.OrderRule | tuple[str, ...] = "sensitive_first"
    families: FamilySet = "one_parameter"
    criterion: Criterion = "mbicv"
    margins: MarginMethod = "kde"
    threshold: float = 0.6
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Vine copula, truncated or whole",
        summary="Vine copula rooted at the target; truncation cuts what ties sensitive columns to the rest.",
        cost="seconds",
        needs=Needs(rows=MIN_ROWS),
        source="TVineSynth, Algorithm 1",
    )

    def __post_init__(self) -> None:
        if self.truncation is not None and self.truncation < 1:
            raise ValueError("truncation must be at least 1 tree")
        if not 0 <= self.threshold <= 1:
            raise ValueError("threshold must lie between 0 and 1")
        if self.root == "per_class" and self.topology != "c_vine":
            raise ValueError("a root per class is offered for the topology c_vine alone")
        if isinstance(self.order, tuple) and len(set(self.order)) < len(self.order):
            raise ValueError("order must name each column once")

    def untruncated(self) -> "Vine":
        """The same vine with all its trees."""
        return replace(self, truncation=None)

    def deepest(self, n_columns: int, sensitive: Collection[str]) -> int | None:
        """``t_max = d + 1 − j``, with j the place of the sensitive column that is the first to be a root.

        In higher trees a sensitive column is tied to all others that are left (TVineSynth, section 2.2).

        Args:
            n_columns: d columns and the root of tree 1. sensitive: their names, without that root.

        Returns:
            None where no tree has such a root, or no order says which has.
        """
        if self.topology != "c_vine" or self.order == "importance" or not sensitive:
            return None
        last = len(sensitive)
        if isinstance(self.order, tuple):
            last = max((self.order.index(name) + 1 for name in sensitive if name in self.order), default=1)
        return None if last == 1 else max(n_columns - last, 1)

    def fit(self, train: Table, context: FitContext) -> VineModel:
        """Fit order, margins and pair copulas to ``train`` without identifiers.

        Randomness is needed for gaps, and for the forest that importance is taken from.

        Raises:
            DataError: train has fewer than ``MIN_ROWS`` rows, or does not suit the order or root asked for.
        """
        self.info.needs.check(train, context.device, self.info.title)
        context.accountant.void(_NO_NOISE)
        train, rng = train.released_only(), context.rng
        codings = columns.encode(train)
        in_order = columns.ordered(codings, self.order, self.threshold, rng)
        classes = columns.class_codes(in_order, self.root) if self.topology == "c_vine" else ()
        if classes:
            return self._by_class(train, codings, in_order, classes, rng)
        variables = columns.variables_of(in_order)
        joint = self._joint(variables, self.truncation, rng)
        decoders = tuple(c.decoder(variables) for c in codings)
        return VineModel(train.schema, decoders, tuple(map(str, variables)), (joint,), self.truncation)

    def _joint(
        self, variables: Sequence[columns.Variable], level: int | None, rng: np.random.Generator
    ) -> Joint:
        choice = Choice(families=self.families, criterion=self.criterion, level=level)
        return fit_joint(variables, self.margins, self.topology, choice, rng)

    def _by_class(
        self,
        train: Table,
        codings: Sequence[columns.ColumnCodec],
        in_order: Sequence[columns.ColumnCodec],
        classes: Sequence[float],
        rng: np.random.Generator,
    ) -> VineModel:
        """One joint distribution of the other columns for each class; tree 1 is the classes' frequencies."""
        target = in_order[-1]
        others, own = columns.variables_of(in_order[:-1]), columns.variables_of(in_order[-1:])
        level = None if self.truncation is None else self.truncation - 1
        missing = np.isnan(target.values)

        def fit(rows: Bools, known: tuple[float, ...]) -> Joint:
            joint = self._joint([v.part(rows) for v in others], level, rng)
            return replace(joint, known=known, share=float(rows.mean()))

        joints = [fit(target.values == k, (0.0, k)[2 - len(own) :]) for k in classes]
        if missing.sum() >= columns.fewest_class_rows(len(in_order) - 1, self.root):
            joints.append(fit(missing, (1.0, 0.0)))
        elif missing.any():
            odds = float(missing.sum() / (~missing).sum())
            joints += [replace(j, known=(1.0, j.known[-1]), share=odds * j.share) for j in joints]
        variables = (*others, *own)
        decoders = tuple(
            target.decoder(own, start=len(others)) if c is target else c.decoder(others) for c in codings
        )
        return VineModel(train.schema, decoders, tuple(map(str, variables)), tuple(joints), self.truncation)
