"""What a stage left, as Dagster metadata: counts, hashes, measurements and pictures, never a cell value."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from synth_audit.dagster.entry import TableEntry
from synth_audit.dagster.messages import page_link
from synth_audit.findings.verdict import GateResult
from synth_audit.store.evidence import ColumnRecord, Evidence, SplitRecord, SyntheticRecord
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.workspace import Workspace

if TYPE_CHECKING:
    from synth_audit.pipeline.release import ReleaseRecord
    from synth_audit.studies.frontier import FrontierRecord, Number

Metadata = dict[str, Any]


def split(record: SplitRecord) -> Metadata:
    """Rows of source, train and control, their hashes under the salt, and what looked odd."""
    return {
        "dagster/row_count": record.source.rows,
        "dagster/column_schema": _columns(record.columns),
        "train rows": record.train.rows,
        "control rows": record.control.rows,
        "source, keyed hash": record.source.hmac,
        "train, keyed hash": record.train.hmac,
        "control, keyed hash": record.control.hmac,
        **_bullets("warnings", record.warnings),
    }


def synthetic(record: SyntheticRecord) -> Metadata:
    """Rows and hash of the candidate, who made it, and what may formally be claimed of it."""
    account = record.generator.privacy
    guarantee = account.guarantee
    claim = account.reason if guarantee is None else f"differential privacy ({guarantee.accountant})"
    return {
        "dagster/row_count": record.table.rows,
        "dagster/column_schema": _columns(record.columns),
        "synthetic, keyed hash": record.table.hmac,
        "generator": record.generator.name,
        "configuration": dict(record.generator.config),
        "formal claim": claim,
        **_numbers({"epsilon": guarantee.epsilon, "delta": guarantee.delta} if guarantee else {}),
        "seconds": record.seconds,
    }


def audit(evidence: Evidence, workspace: Workspace) -> Metadata:
    """Verdict, what became of every audit, and each gated number as a float, so that it plots over time."""
    where = evidence_store(workspace).where(evidence.digest)
    return {
        **_answers(evidence),
        "gates": gate_table(evidence.gates.results),
        "audits": _table(
            ("audit", "room", "outcome", "measurements", "reason"),
            ((o.audit, o.family, str(o.status), len(o.measurements), o.reason) for o in evidence.outcomes),
        ),
        **_numbers({str(g.measurement): g.value for g in evidence.gates.results if g.measurement}),
        **_bullets("holds the release", evidence.gates.blockers),
        **_pictures(evidence),
        "evidence": dg.MetadataValue.path(str(where["evidence"])),
        "measurements": dg.MetadataValue.path(str(where["measurements"])),
        "evidence digest": evidence.digest,
        **_numbers({"attempt": evidence.attempt or None}),
        "synthetic, keyed hash": evidence.tables["synthetic"].hmac,
        "plan sha256": evidence.plan_sha256,
        "gate suite sha256": evidence.gates.suite_sha256,
        "seconds": sum(evidence.timings.values()),
    }


def report(evidence: Evidence, path: Path, pages: Metadata) -> Metadata:
    """Where the report is, its verdict, its gates and their picture."""
    from synth_audit.report.charts import suite_overview_svg, units_of

    return {
        **_answers(evidence),
        "report": dg.MetadataValue.path(str(path)),
        **pages,
        "gates, drawn": picture(
            suite_overview_svg(evidence.gates.results, units=units_of(evidence)), "gates"
        ),
        "gates": gate_table(evidence.gates.results),
        **_numbers({str(g.measurement): g.value for g in evidence.gates.results if g.measurement}),
        "evidence digest": evidence.digest,
    }


def refusal(evidence: Evidence, pages: Metadata) -> Metadata:
    """The verdict, the gates that hold the release, and where to read why."""
    held = [f"{g.gate}: {g.result}" for g in evidence.failures]
    return {
        **_answers(evidence),
        **_bullets("held by", [*held, *evidence.gates.blockers]),
        **_bullets("reasons", reasons(evidence)),
        **pages,
    }


def release(table: str, record: ReleaseRecord, pages: Metadata) -> Metadata:
    """The table's name, where it went, its rows, its certificate and its hash."""
    return {
        "released": "yes",
        "table": table,
        "dagster/row_count": record.table.rows,
        "where": record.where,
        **pages,
        "released, keyed hash": record.table.hmac,
        "released sha256": record.table.sha256,
    }


def frontier(record: FrontierRecord, workspace: Workspace) -> Metadata:
    """Which candidate was chosen and why, and one line for each."""
    score = {c.name: "" if c.score is None else f"{c.score:.3f}" for c in record.candidates}
    return {
        "candidates": len(record.candidates),
        "chosen": record.chosen or "none",
        "reason": record.reason,
        "privacy": str(record.privacy or ""),
        "usefulness": str(record.utility or ""),
        "level, corrected for their number": record.level,
        "all candidates": _table(
            ("candidate", "verdict", "privacy", "usefulness", "PU", "problem"),
            (
                (c.name, c.verdict, _number(c.privacy), _number(c.utility), score[c.name], c.problem)
                for c in record.candidates
            ),
        ),
        "page": dg.MetadataValue.path(str(workspace.frontier_page)),
        "page link": dg.MetadataValue.url(workspace.frontier_page.resolve().as_uri()),
        "plan sha256": record.plan_sha256,
        "seconds": sum(c.seconds for c in record.candidates),
    }


def gate(result: GateResult) -> Metadata:
    """One gate: what was measured, its limits, what they rest on and what to do."""
    words = {
        "result": str(result.result),
        "severity": "blocks the release" if result.blocking else "advice",
        "reason for the limit": result.reason,
        "what to do": result.advice,
        "measurement": str(result.measurement or ""),
        "compared": result.bound,
    }
    numbers = {
        "value": result.value,
        "low": result.low,
        "high": result.high,
        "minimum": result.minimum,
        "maximum": result.maximum,
        "attempts or control rows that would decide": result.n_needed,
    }
    return {name: text for name, text in words.items() if text} | _numbers(numbers)


def verdict(evidence: Evidence, pages: Metadata, why: Sequence[str]) -> Metadata:
    """The decision, reasons for it, and where to read more."""
    return {
        **_answers(evidence),
        **_bullets("reasons", why),
        **pages,
        "evidence digest": evidence.digest,
    }


def reasons(evidence: Evidence) -> list[str]:
    """Sentences on what holds the release: gates that failed first, then what is no gate."""
    from synth_audit.report.gates import obstacles
    from synth_audit.report.words import sentence

    return [f"{g.told}." for g in obstacles(evidence)] + [sentence(b) for b in evidence.gates.blockers]


def _answers(evidence: Evidence) -> dict[str, str]:
    """The verdict, and the two answers behind it."""
    from synth_audit.report.gates import two_answers

    answers = {question.label.lower(): question.answer for question in two_answers(evidence)}
    return {"verdict": str(evidence.verdict), **answers}


def pages(table: TableEntry, evidence: Evidence) -> Metadata:
    """Links to the certificate and the report of an audit."""
    where = evidence_store(table.workspace).where(evidence.digest)
    links = {
        name: page_link(table.plan.name, evidence.digest, where[name]) for name in ("certificate", "report")
    }
    return {f"{name} link": dg.MetadataValue.url(link) for name, link in links.items() if link}


def joined(*digests: str) -> str:
    """Several content hashes as one data version."""
    return "+".join(digest[:16] for digest in digests)


def picture(svg: str, title: str) -> dg.MarkdownMetadataValue:
    """An SVG as Markdown that the web pages show without fetching anything."""
    data = b64encode(svg.encode()).decode()
    return dg.MetadataValue.md(f"![{title}](data:image/svg+xml;base64,{data})")


def _pictures(evidence: Evidence) -> Metadata:
    from synth_audit.report.charts import series_svg

    return {
        f"{outcome.audit}: {series.title}": picture(series_svg(series), series.title)
        for outcome in evidence.outcomes
        for series in outcome.series
        if series.id == series.id.whole  # one picture for each column belongs into the report
    }


def _columns(columns: Iterable[ColumnRecord]) -> dg.TableSchema:
    return dg.TableSchema(
        columns=[
            dg.TableColumn(c.name, c.storage, description=f"{c.kind}; {', '.join(c.roles)}") for c in columns
        ]
    )


def gate_table(results: Iterable[GateResult]) -> dg.TableMetadataValue:
    """One line for each gate: what was measured beside what is allowed."""
    return _table(
        ("gate", "result", "measured", "allowed", "blocking"),
        ((g.gate, str(g.result), g.measured, g.allowed, "yes" if g.blocking else "no") for g in results),
    )


def _number(number: Number | None) -> str:
    return "" if number is None else f"{number.value:.4g} [{number.low:.4g}, {number.high:.4g}]"


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(zip(names, row, strict=True))) for row in rows],
        schema=dg.TableSchema(columns=[dg.TableColumn(name) for name in names]),
    )


def _numbers(values: Mapping[str, float | None]) -> Metadata:
    """The finite ones as floats; a missing or infinite number has no place in a plot."""
    return {name: float(v) for name, v in values.items() if v is not None and isfinite(v)}


def _bullets(name: str, lines: Iterable[str]) -> Metadata:
    text = "\n".join(f"- {line}" for line in lines)
    return {name: dg.MetadataValue.md(text)} if text else {}
