"""Who is tested, and the real rows beside them: train and control pooled, of which no score knows a side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.audits._targets import drawn
from synth_audit.audits.privacy._asked_people import different_people
from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.errors import NotApplicable
from synth_audit.core.subject import Subject

FEWEST_CONTROL = 20
"""With fewer control rows there is hardly anyone to be told apart."""


@dataclass(frozen=True, eq=False)
class TargetPool:
    """Rows of train and control, the tested ones of train first, then those of control, then all others.

    Of somebody with several rows one is tested, drawn at random: they may all say the same.

    Attributes:
        members, others: positions in train and in control of the rows tested, ascending.
        train, control: positions of the other rows of the pool, ascending.
    """

    members: Positions
    others: Positions
    train: Positions
    control: Positions

    def __len__(self) -> int:
        return len(self.members) + len(self.others)

    @property
    def rows(self) -> tuple[Positions, Positions]:
        """Positions in train and in control of everybody in the pool, the tested ones first."""
        return np.concatenate([self.members, self.train]), np.concatenate([self.others, self.control])

    @property
    def order(self) -> Positions:
        """Where the rows of the pool stand among :attr:`rows`, those of train before those of control."""
        of_train, of_control = (len(x) for x in self.rows)
        places = np.arange(of_train + of_control)
        m, o = len(self.members), of_train + len(self.others)
        return np.concatenate([places[:m], places[of_train:o], places[m:of_train], places[o:]])

    def split(self, scores: Floats) -> tuple[Floats, Floats]:
        """Scores of everybody tested, as those of members and of others."""
        return scores[: len(self.members)], scores[len(self.members) :]

    @classmethod
    def of(
        cls, subject: Subject, most_members: int, most_others: int, beside: int, rng: np.random.Generator
    ) -> TargetPool:
        """Draw whom to test, and at most so many rows beside them.

        Raises:
            NotApplicable: control has fewer than 20 rows or people, or train or the release fewer than 2.
        """
        assert subject.control is not None
        n_control = subject.control.n_rows
        if n_control < FEWEST_CONTROL:
            raise NotApplicable(f"fewer than {FEWEST_CONTROL} control rows to tell from training rows")
        n_train = subject.train.n_rows
        if n_train < 2 or subject.synthetic.n_rows < 2:
            raise NotApplicable("fewer than two training or synthetic rows")
        members = different_people(subject.train, most_members, rng)
        others = different_people(subject.control, most_others, rng)
        if len(others) < min(FEWEST_CONTROL, most_others):
            raise NotApplicable(f"fewer than {FEWEST_CONTROL} control people to tell from those of train")
        left = [np.setdiff1d(np.arange(n), x) for n, x in ((n_train, members), (n_control, others))]
        some = drawn(np.arange(len(left[0]) + len(left[1])), beside, rng)
        of_train = some < len(left[0])
        return cls(members, others, left[0][some[of_train]], left[1][some[~of_train] - len(left[0])])
