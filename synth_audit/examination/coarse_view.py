"""As which tables each audit meets a release that was made coarser."""

from __future__ import annotations

from dataclasses import dataclass, replace

from synth_audit.core.audit import Audit, Need
from synth_audit.core.coarsening import NO_COARSENING
from synth_audit.core.subject import Subject

_USEFULNESS = ("fidelity", "utility")


@dataclass(frozen=True, eq=False)
class Views:
    """The subject as it is, and as whoever attacks a coarser release sees it.

    A copied record that was rounded equals nobody's record as it stands in train, and is a copy still: the
    rule is no secret, so whoever looks for somebody coarsens what they know of them first. So attacks compare
    with real records that were made coarser alike, and rounding hides nothing from them but what it takes out
    of the release. Two kinds of audits meet the real tables as they are: those that ask how useful the
    release is, for coarser values are what it loses; and those that run the generator again, which learns
    real rows as they are and of which each draw is made coarser.
    """

    plain: Subject
    coarse: Subject

    @classmethod
    def of(cls, subject: Subject) -> Views:
        """Both views; one and the same where nothing was made coarser."""
        if not subject.coarsening:
            return cls(subject, subject)
        train, control = subject.coarsening.view(subject.train, subject.control)
        synthetic = subject.synthetic.declared_as(train.schema)
        coarse = replace(subject, train=train, control=control, synthetic=synthetic, coarsening=NO_COARSENING)
        return cls(subject, coarse)

    def met_by(self, audit: Audit) -> Subject:
        """The subject that an audit is handed."""
        info = audit.info
        return self.plain if info.risk in _USEFULNESS or Need.GENERATOR in info.needs else self.coarse
