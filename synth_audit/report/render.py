"""Puts the view into the templates."""

from __future__ import annotations

from dataclasses import replace

from synth_audit.core.build import build_version
from synth_audit.core.outcome import Status
from synth_audit.judging.criteria import CRITERIA
from synth_audit.report import words
from synth_audit.report.chapters import chapters, signing
from synth_audit.report.gates import gate_views, verdict_view
from synth_audit.report.measurement_sensitivity import sensitivities
from synth_audit.report.page import page
from synth_audit.report.sharpness import first_line
from synth_audit.report.view import Fact, ReportView
from synth_audit.store.evidence import Evidence
from synth_audit.store.report_marks import WRITTEN_BY, audit_marks, read_marks

_TABLES = ("source", "train", "control", "synthetic")
_NAMES = {"source": "Real table", "train": "Train", "control": "Control", "synthetic": "Synthetic table"}


def render(evidence: Evidence, *, full: bool = False) -> str:
    """The page; see :func:`synth_audit.report.render_report`."""
    return page("page.html.j2", report=replace(build_view(evidence), full=full))


def check_page(evidence: Evidence, page: str) -> bool | None:
    """Whether a page is, byte for byte, the report of this evidence; None if another build wrote it."""
    found = read_marks(page)
    if found is None or found.written_by != build_version():
        return None
    return any(page == render(evidence, full=full) for full in (False, True))


def build_view(evidence: Evidence) -> ReportView:
    """Everything the page shows."""
    alerts = alerts_of(evidence)
    gates = gate_views(evidence)
    parts = chapters(evidence, gates)
    told = [criterion.capitalize() for criterion in CRITERIA]  # beside the verdict, each by itself
    unmeasured = [c.title for c in parts if c.state == "missing" and c.title not in told]
    return ReportView(
        title=f"Audit of {words.clean(evidence.table)}",
        table=evidence.table,
        subject=subject_of(evidence),
        facts=_facts(evidence),
        alerts=alerts,
        warnings=tuple(words.sentence(w) for w in evidence.notices),
        verdict=verdict_view(evidence, unmeasured=unmeasured, sound=not alerts),
        sensitivity=first_line(evidence, sensitivities(evidence, gates)),
        gates=gates,
        suite_name=evidence.gates.suite_name,
        chapters=parts,
        signing=signing(evidence, sound=not alerts),
        marks={**audit_marks(evidence), WRITTEN_BY: build_version()},
    )


def subject_of(evidence: Evidence) -> str:
    """The very release that was audited, told so that it can be recognised."""
    release = evidence.tables.get("synthetic")
    if release is None:
        return ""
    size = f"{words.counted(release.rows, 'row')} and {words.counted(len(evidence.columns), 'column')}"
    train = evidence.tables.get("train")
    origin = f" from {words.counted(train.rows, 'row')} of the real table" if train else ""
    return (
        f"{_attempt(evidence)}A release of {size}, made by the generator {evidence.generator.name}{origin}. "
        f"The fingerprint of its content begins with {(release.sha256 or release.hmac)[:12]}."
        + (_SHARED if release.sha256 else "")
        + _split(evidence)
    )


def _split(evidence: Evidence) -> str:
    """How the control set came about, on which every comparison with control rests."""
    if "control" not in evidence.tables or evidence.plan.get("source"):
        return ""
    review, split = (evidence.plan.get(key) or {} for key in ("review", "split"))
    if split.get("made_elsewhere"):
        return f" The {review.get('owner') or 'plan'} states that chance alone chose the control set."
    return " Assumed: the control set is a random sample of the same population."


_SHARED = " Share the file that synth-audit wrote of it, not the file that was audited."
"""Of a release that passed: the file that was audited may hold more than its rows."""


def _attempt(evidence: Evidence) -> str:
    """How often it took, so that nobody tries until something passes without its being seen."""
    return f"Attempt {evidence.attempt:,} on this table. " if evidence.attempt > 1 else ""


def alerts_of(evidence: Evidence) -> tuple[str, ...]:
    """Why nothing may rest on this evidence; empty where it is sound."""
    found = []
    if evidence.verdict is not evidence.gates.verdict:
        found.append("The recorded verdict does not follow from the results of the gates.")
    if evidence.fitness is not evidence.gates.fitness:
        found.append("The recorded fitness does not follow from the results of the gates.")
    if not evidence.intact:
        found.append("The evidence was changed after it was sealed: its digest does not match its content.")
    return tuple(found)


def _facts(evidence: Evidence) -> tuple[Fact, ...]:
    known = evidence.tables
    order = [n for n in _TABLES if n in known] + [n for n in known if n not in _TABLES]
    remarks = {
        "source": f"rows, {words.counted(len(evidence.columns), 'column')}",
        "train": "real rows, learnt from",
        "control": "real rows, kept unseen",
        "synthetic": "rows, the candidate",
    }
    rows = [Fact(_NAMES.get(n, n.capitalize()), f"{known[n].rows:,}", remarks.get(n, "rows")) for n in order]
    measured = sum(o.status is Status.MEASURED for o in evidence.outcomes)
    return (
        *rows,
        Fact("Generator", evidence.generator.name, _claim(evidence)),
        Fact(
            "Audited",
            words.moment(evidence.created, day_only=True),
            f"{measured} of {words.counted(len(evidence.outcomes), 'audit')} gave a result",
        ),
    )


def _claim(evidence: Evidence) -> str:
    guarantee = evidence.generator.privacy.guarantee
    return "no formal privacy guarantee" if guarantee is None else "claims differential privacy"
