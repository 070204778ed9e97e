"""A fitted vine, whole or by class of the target, and its rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.generators._model_files import SavedWhole
from synth_audit.generators.vine.columns import Decoder
from synth_audit.generators.vine.copulas import Joint
from synth_audit.table.schema import Schema
from synth_audit.table.table import Table, assemble


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
