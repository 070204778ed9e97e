"""Puts the view into the templates."""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from synth_audit.core.outcome import Status
from synth_audit.report import words
from synth_audit.report.chapters import chapters, signing
from synth_audit.report.gates import gate_views, verdict_view
from synth_audit.report.view import Fact, ReportView
from synth_audit.resources import resource_folder
from synth_audit.workflow.evidence import Evidence

_TABLES = ("source", "train", "control", "synthetic")
_NAMES = {"source": "Real table", "train": "Train", "control": "Control", "synthetic": "Synthetic table"}


def render(evidence: Evidence) -> str:
    """The page; see :func:`synth_audit.report.render_report`."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = _environment().get_template("page.html.j2")
    return page.render(report=build_view(evidence), style=Markup(style), policy=policy) + "\n"  # noqa: S704


def build_view(evidence: Evidence) -> ReportView:
    """Everything the page shows."""
    alerts = _alerts(evidence)
    gates = gate_views(evidence)
    parts = chapters(evidence, gates)
    unmeasured = [c.title for c in parts if c.state == "missing"]
    return ReportView(
        title=f"Audit of {words.clean(evidence.table)}",
        table=evidence.table,
        facts=_facts(evidence),
        alerts=alerts,
        verdict=verdict_view(evidence, unmeasured=unmeasured, sound=not alerts),
        gates=gates,
        suite_name=evidence.gates.suite_name,
        chapters=parts,
        signing=signing(evidence, sound=not alerts),
    )


def _alerts(evidence: Evidence) -> tuple[str, ...]:
    found = []
    if evidence.verdict is not evidence.gates.verdict:
        found.append("The recorded verdict does not follow from the results of the gates.")
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
    claim = evidence.generator.certificate.claim
    return "no formal privacy guarantee" if claim == "none" else f"claims {claim}"


def _style() -> str:
    return (resource_folder("reports_templates") / "style.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(resource_folder("reports_templates")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _cleaned(value: object) -> object:
    """Plain text loses characters that could mislead; markup was cleaned when it was made."""
    return words.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
