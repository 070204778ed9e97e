"""One self-contained HTML page from a template, as PDF too, and evidence as a notebook shows it."""

import base64
import hashlib
import json
import logging
import math
import re
from functools import cache, partial
from typing import Any, NoReturn

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from synth_audit.build import build_version, resource_folder
from synth_audit.errors import PluginError
from synth_audit.findings.detection_power import SURELY
from synth_audit.plugins.audit import Status
from synth_audit.report import chapters, words
from synth_audit.report.charts import series_svg
from synth_audit.report.gates import by_role, check_sentence, gate_views, verdict_view
from synth_audit.report.known_answer import first_line, known_answer, sensitivities
from synth_audit.store.evidence import Evidence, Pictures
from synth_audit.store.evidence_store import SHARED_TABLE
from synth_audit.store.reports import WRITTEN_BY, audit_marks, read_marks
from synth_audit.text import clean, shortened
from synth_audit.verdict import insufficient_evidence as lacking

_FOLDER = "reports_templates"
_LONGEST = 200_000
"""Letters of one text on a page; only a plan comes near it."""

_NAMED = (
    *(words.sentence, words.counted, words.number, words.bare_number, words.of_measurement),
    *(words.percent_level, words.moment, words.day, words.privacy_loss, words.detectable),
    *(words.share_of_people, words.identifiers, by_role),
    *(chapters.spread, chapters.reference, chapters.attempts, check_sentence),
)
_FILTERS = {
    **{function.__name__: function for function in _NAMED},
    "finite": math.isfinite,
    "json": partial(json.dumps, ensure_ascii=False, default=str),
    "thousands": "{:,}".format,
}
"""Named functions by which templates read the evidence."""

_SHARED = (
    f" Share the table that synth-audit wrote, {SHARED_TABLE} in the same folder, and not the file that was "
    "audited. Both hold the same rows, and the audited file may hold more."
)
"""Of a release that passed and was made elsewhere."""

_SPLIT_UNSTATED = (
    " Every comparison with control assumes that chance alone chose the control set, which the plan does not "
    "state. Without that, only what needs no control set holds, such as the contract of the table."
)


def page(template: str, *, extra_style: str = "", **values: object) -> str:
    """Fill a template; the page may load and run nothing but its own style sheet.

    Args:
        extra_style: rules of this page alone; no text from outside may stand in them.
    """
    style = (resource_folder(_FOLDER) / "style.css").read_text(encoding="utf-8") + extra_style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    filled = _environment().get_template(template)
    return filled.render(**values, style=Markup(style), policy=policy) + "\n"  # noqa: S704  (our own sheet)


def fragment(template: str, **values: object) -> str:
    """Fill a template that is a piece of somebody else's page, and has a style of its own."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(resource_folder(_FOLDER)),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= _FILTERS
    made.globals |= {"insufficient": lacking.MEANING, "surely": SURELY}
    return made


def _cleaned(value: object) -> object:
    """Plain text loses characters that could mislead, and what is endless; markup was cleaned when made.

    What stands in backticks, such as a command, becomes code.
    """
    if isinstance(value, Markup):
        return value
    text = str(escape(clean(shortened(str(value), _LONGEST))))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", text))  # noqa: S704  (escaped before)


def render(evidence: Evidence, *, full: bool = False) -> str:
    """The page; see :func:`synth_audit.report.render_report`."""
    return page("page.html.j2", report={**report_view(evidence), "full": full})


def check_page(evidence: Evidence, page: str) -> bool | None:
    """Whether a page is, byte for byte, the report of this evidence; None if another build wrote it."""
    found = read_marks(page)
    if found is None or found.written_by != build_version():
        return None
    return any(page == render(evidence, full=full) for full in (False, True))


def report_view(evidence: Evidence) -> dict[str, Any]:
    """Everything the page shows, by its name in the templates."""
    alerts, found, generator = alerts_of(evidence), sensitivities(evidence), evidence.generator
    return {
        "evidence": evidence,
        "subject": subject_of(evidence),
        "alerts": alerts,
        "verdict": verdict_view(evidence, unmeasured=chapters.unmeasured(evidence), sound=not alerts),
        "sensitivity": first_line(evidence, found),
        "groups": chapters.groups(evidence),
        "idle": [o.info.title for o in evidence.outcomes if o.status is Status.NOT_APPLICABLE and o.info],
        "known_answer": known_answer(evidence, found),
        "exposed": chapters.exposed_records(evidence),
        "guarantee": chapters.guarantee_section(generator.privacy, evidence.outcomes, generator.training),
        "marks": {**audit_marks(evidence), WRITTEN_BY: build_version()},
    }


def subject_of(evidence: Evidence) -> str:
    """The very release that was audited, told so that it can be recognised."""
    release = evidence.tables.get("synthetic")
    if release is None:
        return ""
    columns = words.counted(len(words.released_columns(evidence)), "column")
    size = f"{words.counted(release.rows, 'row')} and {columns}"
    train = evidence.tables.get("train")
    origin = f" from {words.counted(train.rows, 'row')} of the real table" if train else ""
    # How often it took, so that nobody tries until something passes without its being seen.
    attempt = f"Attempt {evidence.attempt:,} on this table. " if evidence.attempt > 1 else ""
    name = evidence.generator.name
    elsewhere = name == "external" and not evidence.plan.get("source")
    made = "made elsewhere" if elsewhere else f"made by the generator {name}"
    return (
        f"{attempt}A release of {size}, {made}{origin}. "
        f"The fingerprint of its content begins with {(release.sha256 or release.hmac)[:12]}."
        + (_SHARED if release.sha256 and elsewhere else "")
        + _split(evidence)
    )


def _split(evidence: Evidence) -> str:
    """How the control set came about, on which every comparison with control rests."""
    if "control" not in evidence.tables or evidence.plan.get("source"):
        return ""
    review, split = (evidence.plan.get(key) or {} for key in ("review", "split"))
    if split.get("made_elsewhere"):
        return f" Chance alone chose the control set, as stated by: {review.get('owner') or 'the plan'}."
    return _SPLIT_UNSTATED


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


def pdf_of(page: str) -> bytes:
    """The page as it prints.

    Raises:
        PluginError: WeasyPrint, or the library Pango under it, is not installed.
    """
    try:
        from weasyprint import HTML
    except (ImportError, OSError) as error:
        raise PluginError(
            f"a PDF takes WeasyPrint, which cannot be imported ({type(error).__name__})",
            where="--pdf",
            expected="the extra `pdf`, and the system library Pango",
            fix="pip install 'synth-audit[pdf]' (Debian: apt install libpango-1.0-0 libpangoft2-1.0-0); or "
            "print the HTML page from a browser",
        ) from None
    logging.getLogger("weasyprint").setLevel(logging.ERROR)  # what only screens understand is no fault
    content: bytes = HTML(string=page, url_fetcher=_refuse).write_pdf()
    return content


def _refuse(url: str, *_: object, **__: object) -> NoReturn:
    """Pages are self-contained; a fetch would tell somebody who reads what."""
    raise ValueError("a page may fetch nothing")


class ReportNotebookPage:
    """Draws evidence as the report does."""

    def html(self, evidence: Evidence) -> str:
        """The first screen in short, with the gates that passed behind a fold."""
        sound = not alerts_of(evidence)
        gates = gate_views(evidence)
        return fragment(
            "notebook.html.j2",
            evidence=evidence,
            name=evidence.plan.get("name", ""),  # a plan without one calls every table alike
            verdict=verdict_view(evidence, unmeasured=(), sound=sound),
            gates=gates,
            held=[g for g in gates if g.sign.kind != "pass"],
            passed=[g for g in gates if g.sign.kind == "pass"],
        )

    def pictures(self, evidence: Evidence, audit: str) -> Pictures:
        """One for each series of the audit."""
        (outcome,) = [o for o in evidence.outcomes if o.audit == audit]
        if not outcome.series:
            measured = outcome.status is Status.MEASURED
            drawn = ", ".join(o.audit for o in evidence.outcomes if o.series) or "no audit"
            why = (
                f"these audits of the run have some: {drawn}"
                if measured
                else f"{outcome.status}: {outcome.reason}"
            )
            return Pictures.none(f"{audit} has no picture; {why}")
        # Plain text: markup would escape what users put before it.
        return Pictures(str(series_svg(s, anchor=f"{audit}-{i}")) for i, s in enumerate(outcome.series))


def shown(evidence: Evidence) -> Evidence:
    """The same evidence, which notebooks draw from now on."""
    Evidence.page = ReportNotebookPage()
    return evidence
