"""The attribute attack: how much of what ties a secret to other columns does this release hand on?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from synth_audit.audits.privacy._attribute_secrets import RETAINED, AttackedSecrets, associated, worst
from synth_audit.audits.privacy.attribute_attack.release import ReleaseAttack, SecretFinding, unseen
from synth_audit.findings.measurement import Findings, Measurement
from synth_audit.plugins.audit import AuditInfo, Leak, Subject
from synth_audit.run.context import RunContext
from synth_audit.run.threads import single_threaded_algebra
from synth_audit.stats.attack_success import corrected_level


@dataclass(frozen=True, kw_only=True)
class AttributeAttack:
    """Learns from the release how a secret hangs on all other columns, and guesses it at real people.

    ``retained = |skill| / skill_real``: skill is the signed squared correlation of the guesses with the
    secrets of control rows (of train, cross-fitted in ten folds, if there are fewer than 50); skill_real that
    of the same attack learnt from all of train. 0 is a release whose other columns tell nothing of the
    secret, 1 one that teaches the attack as much as real rows do. Without a column it is the worst number of
    all secrets, its interval corrected for how many there are; there is none while a secret could not be
    judged.

    Guesses are ``Σ β_k x_k`` by least squares; where in train the groups of a column, its labels or quantile
    bins, differ in what β leaves, the group's mean is added, read off the other rows of the group. That
    follows bends and as many labels as a column has; what columns tell only together it does not. Labels of
    the secret that share one number, and have 10 training rows each, are attacked apart (*rare labels*). What
    an F test at 1 % does not find in the release counts as 0, with what the test may overlook at the upper
    end of the interval.

    A secret that train ties to nothing, by a permutation test, cannot be given away and gets no ``retained``.
    Where tests find something that no attack here measures, the whole is not judged. Rows that lack the
    secret teach nothing, and numbers are read no further than train's own smallest and largest.

    Fields:
        columns: secrets; left out, the columns of role sensitive.

    Raises:
        ValueError: a column is named twice.
        NotApplicable: train has too few rows, a secret is the target, or none can be attacked.

    Source: TVineSynth, Appendix G; Stadler et al. 2022.
    """

    columns: tuple[str, ...] = ()

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Attribute attack",
        question="How much of what other columns tell of a secret does this release hand on?",
        threat_model=(
            "An adversary knows all of a person's attributes but one, learns from the release how they hang "
            "together, and infers the one."
        ),
        not_covered=(
            "Other releases of the same generator, which `attribute_game` draws; what other columns tell "
            "only together, such as a product of two; whether a value is missing; copies of single records. "
            "What the population has in common counts as well: a release that hands on a true association "
            "is useful for it and tells of everybody to whom it applies."
        ),
        quantities=(RETAINED,),
        risk="inference",
        leak=Leak.ASSOCIATIONS,  # it needs a secret: one of role sensitive, or one that `columns` names
        default=False,
        source="TVineSynth, Appendix G; Stadler et al. 2022",
    )

    def __post_init__(self) -> None:
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("columns must not repeat a column")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Attack each secret; rows and bootstrap by the seed of the plan."""
        attacked = AttackedSecrets.of(subject, self.columns)
        with single_threaded_algebra():
            found = [self._of(subject, attacked, i, context.seed) for i in range(len(attacked.secrets))]
        notes = (note for finding in found for note in finding.remarks())
        measured = _measured(found, subject.level, complete=attacked.complete)
        return Findings(tuple(measured), notes=(*attacked.notes, *notes))

    @staticmethod
    def _of(subject: Subject, attacked: AttackedSecrets, i: int, seed: int) -> SecretFinding:
        secret, design = attacked.secrets[i], attacked.design
        linear = associated(subject, design, secret, seed)
        return SecretFinding(
            secret=secret,
            attack=ReleaseAttack.of(subject, design, secret, seed),
            associated=linear,
            unseen=unseen(subject, design, secret, seed, linear=linear),
            rows=subject.train.n_rows,
            level=subject.level,
        )


def _measured(found: Sequence[SecretFinding], level: float, *, complete: bool) -> Iterator[Measurement]:
    """The worst number first, if every secret of the table could be judged, then each."""
    each = [m for f in found for m in f.retained(level)]
    if each and complete and not any(f.open for f in found):
        corrected = corrected_level(level, len(each))
        yield worst([m for f in found for m in f.retained(corrected)], level)
    yield from each
