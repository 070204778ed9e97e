"""Copies of training rows in the release, beside the natural rate of duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.core.measurement import Direction, Findings, Measurement, Quantity, Reference
from synth_audit.core.plugin import AuditInfo
from synth_audit.core.schema import Role
from synth_audit.core.subject import Subject
from synth_audit.kernels.encode import row_groups
from synth_audit.kernels.intervals import newcombe, wilson

SHARE = Quantity("share", "Synthetic rows equal to a training row", help="Every released column agrees.")
CONTROL_SHARE = Quantity(
    "control_share",
    "Control rows equal to a training row",
    direction=Direction.NEUTRAL,
    help="How often two different people agree in every column by nature.",
)
EXCESS = Quantity(
    "excess",
    "Copies beyond the natural rate of duplicates",
    range=(-1.0, 1.0),
    help="Share of synthetic rows equal to a training row, less the same share of control rows.",
)
IDENTIFIER_REUSE = Quantity(
    "identifier_reuse",
    "Synthetic rows that carry an identifier of a real entity",
    help="Zero when the release has no identifier column, as it should.",
)


@dataclass(frozen=True, kw_only=True)
class ExactMatch:
    """Counts synthetic rows that equal a training row in every released column, in any row order.

    ``share = #{s : s ∈ train} / n_synthetic`` with its Wilson interval, ``control_share`` the same for
    control rows, ``excess = share − control_share`` with Newcombe's interval. Missing agrees with missing.
    """

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Exact copies",
        question="Does the release contain rows copied from the people it was learnt from?",
        threat_model=(
            "Anyone who reads the release and knows a person's record recognises that very record in it."
        ),
        not_covered=(
            "Copies that were changed a little; the closest-record audit looks for those. A row that equals "
            "a training row may also be a coincidence, which is why the natural rate is subtracted."
        ),
        quantities=(SHARE, CONTROL_SHARE, EXCESS, IDENTIFIER_REUSE),
        risk="singling out",
        cost="instant",
        source="Platzer & Reutterer 2021 (base rate); Wilson 1927, Newcombe 1998 (intervals)",
    )

    def run(self, subject: Subject, rng: np.random.Generator) -> Findings:
        """Count; nothing is drawn from ``rng``."""
        tables = [subject.train, subject.synthetic, *([subject.control] if subject.control else [])]
        train, synthetic, *rest = row_groups(tables, subject.features)
        n, level = len(synthetic), subject.level
        copies = int(np.isin(synthetic, train).sum())
        share = SHARE.at(copies / n, interval=wilson(copies, n, level), n_requested=n, n_achieved=n)
        found = [share, _identifier_reuse(subject)]
        if rest:
            natural, n_control = int(np.isin(rest[0], train).sum()), len(rest[0])
            base_rate = CONTROL_SHARE.at(
                natural / n_control,
                interval=wilson(natural, n_control, level),
                n_requested=n_control,
                n_achieved=n_control,
            )
            excess = EXCESS.at(
                share.value - base_rate.value,
                interval=newcombe(copies, n, natural, n_control, level),
                n_requested=n,
                n_achieved=n,
                reference=Reference(0.0, "as many as among people the generator never saw"),
            )
            found += [base_rate, excess]
        return Findings(tuple(found))


def _identifier_reuse(subject: Subject) -> Measurement:
    """Share of synthetic rows whose value in any identifier column occurs in train; exact, so no interval."""
    n = subject.synthetic.n_rows
    reused = np.zeros(n, dtype=bool)
    for column in subject.schema.with_role(Role.IDENTIFIER):
        if column.name in subject.synthetic.names:
            known = set(subject.train.labels(column.name)) - {None}
            reused |= np.array([label in known for label in subject.synthetic.labels(column.name)])
    return IDENTIFIER_REUSE.at(float(reused.mean()), n_requested=n, n_achieved=n)
