"""What other machines are told: each verdict by one message, runs as events of OpenLineage, links to reports.

Events are of OpenLineage 2-0-2: what was read, which gates it met, what left, with no row and no measurement.
One event when a table was judged, its gates as assertions about the candidate; one when it was released, or
was refused. They go to one address or into one file.
"""

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

from synth_audit import __version__
from synth_audit.dagster.entry import TableEntry
from synth_audit.plugins.plugin_config import PluginChoice
from synth_audit.store.evidence import ColumnRecord, Evidence
from synth_audit.table.schema import RELEASED

WEBHOOK = "SYNTH_AUDIT_WEBHOOK"
"""Environment variable: address that gets each verdict by POST; it may hold a token and is shown nowhere."""

REPORT_URL = "SYNTH_AUDIT_REPORT_URL"
"""Environment variable: where reports are served, with ``{table}`` and ``{digest}`` to be filled in."""

VERSION = 1
"""Of the message's form; a receiver may rely on the keys of one version."""

_PATIENCE = 10.0
"""Seconds that an address may take."""

TARGET = "SYNTH_AUDIT_OPENLINEAGE"
"""Environment variable: address that takes events by POST, or the path of a file that they are added to."""

TOKEN = "OPENLINEAGE_API_KEY"
"""Environment variable of OpenLineage's own clients: sent along as bearer token."""

_NAMESPACE = "synth_audit"
_PRODUCER = f"urn:synth-audit:{__version__}"
_SPEC = "https://openlineage.io/spec"

Json = dict[str, Any]


def page_link(table: str, digest: str, path: Path) -> str:
    """Where a person reads the report or the certificate; on this machine if nothing says where it is served.

    The certificate is served beside the report, where the address names ``report.html``; else it is empty.
    """
    template = os.environ.get(REPORT_URL, "").strip()
    if not template:
        return path.resolve().as_uri()
    served, name = template, path.name
    if name != "report.html":
        before, known, after = template.rpartition("report.html")
        served = before + name + after if known else ""
    return served.replace("{table}", table).replace("{digest}", digest)


def message(table: TableEntry, evidence: Evidence, path: Path) -> dict[str, Any]:
    """What is sent: the verdict, what holds the release, and where more is to be found; no measurement."""
    return {
        "version": VERSION,
        "table": table.plan.name,
        "verdict": str(evidence.verdict),
        "safe_to_release": evidence.gates.safe.answer,
        "fit_for_purpose": str(evidence.fitness),
        "held_by": [{"gate": g.gate, "title": g.title, "result": str(g.result)} for g in evidence.gates.held],
        "blockers": list(evidence.gates.blockers),
        "evidence": evidence.digest,
        "plan_sha256": evidence.plan_sha256,
        "suite_sha256": evidence.gates.suite_sha256,
        "created": evidence.created,
        "report": page_link(table.plan.name, evidence.digest, path),
    }


def send_verdict(content: dict[str, Any]) -> str:
    """POST a message to the address of the environment, if it names one; why it did not arrive, or nothing.

    The verdict stands whether it arrives or not.
    """
    address = os.environ.get(WEBHOOK, "").strip()
    if not address:
        return ""
    return post(address, content, WEBHOOK, {})


def post(address: str, content: Mapping[str, Any], variable: str, headers: Mapping[str, str]) -> str:
    """POST JSON to the address that a variable holds; why it did not arrive, without the address.

    Whatever answers there holds nothing up: a run waits so many seconds and no more. An answer that leads
    elsewhere is not followed, since headers may hold a token for this address alone.
    """
    if not address.startswith(("https://", "http://")):
        return f"{variable} is no address of the web"
    told = ["timeout"]

    def ask() -> None:
        told[0] = _asked(address, json.dumps(content).encode(), headers)

    # Patience of a socket is for each of its answers: who sends a letter now and then is never out of time.
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return f"the address in {variable} did not take it ({told[0]})" if told[0] else ""


def _asked(address: str, body: bytes, headers: Mapping[str, str]) -> str:
    """What went wrong: the number of an answer or the kind of an error, whose text holds the address."""
    # here: a code location that sends nothing need not load them
    from http.client import HTTPException
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    try:
        request = Request(address, body, {"Content-Type": "application/json", **headers})  # noqa: S310
        with build_opener(Stay).open(request, timeout=_PATIENCE):
            return ""
    except (OSError, ValueError, HTTPException) as error:
        return str(getattr(error, "code", None) or type(error).__name__)


def judged(table: TableEntry, evidence: Evidence, run: str) -> Json:
    """The audit: read the source and the candidate, which each gate says something about."""
    return _event("COMPLETE", table, "audit", run, [_source(table), _candidate(table, evidence)], [])


def released(table: TableEntry, evidence: Evidence, run: str) -> Json:
    """The release: the candidate became the released table."""
    rows = evidence.tables["synthetic"].rows
    out = _dataset(table, table.plan.release, "released", {"schema": _schema(evidence.columns)})
    out["outputFacets"] = {
        "outputStatistics": _facet("1-0-2", "OutputStatisticsOutputDataset", rowCount=rows)
    }
    return _event("COMPLETE", table, "release", run, [_source(table), _candidate(table, evidence)], [out])


def refused(table: TableEntry, stage: str, reason: str, run: str) -> Json:
    """A stage that left nothing, and why."""
    why = _facet("1-0-1", "ErrorMessageRun", message=reason, programmingLanguage="Python")
    return _event("ABORT", table, stage, run, [_source(table)], [], {"errorMessage": why})


def send_event(event: Mapping[str, Any]) -> str:
    """Hand an event on, if the environment says where to; why it did not arrive, or nothing."""
    target = os.environ.get(TARGET, "").strip()
    if not target:
        return ""
    if target.startswith(("https://", "http://")):
        token = os.environ.get(TOKEN, "").strip()
        return post(target, event, TARGET, {"Authorization": f"Bearer {token}"} if token else {})
    try:
        with Path(target.removeprefix("file://")).open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")  # one write: lines of several runs do not mix
    except OSError as error:
        return f"the file in {TARGET} did not take the event ({type(error).__name__})"
    return ""


def _event(
    kind: str,
    table: TableEntry,
    stage: str,
    run: str,
    inputs: list[Json],
    outputs: list[Json],
    facets: Json | None = None,
) -> Json:
    """An event of a job for each stage, whose run belongs to that of Dagster."""
    parent = _facet(
        "1-2-0",
        "ParentRun",
        run={"runId": run},
        job={"namespace": _NAMESPACE, "name": f"{table.key}_audit"},
    )
    return {
        "eventType": kind,
        "eventTime": datetime.now(UTC).isoformat(),
        "run": {
            "runId": str(uuid.uuid5(uuid.UUID(run), stage)),
            "facets": {"parent": parent, **(facets or {})},
        },
        "job": {"namespace": _NAMESPACE, "name": f"{table.key}_audit.{stage}"},
        "inputs": inputs,
        "outputs": outputs,
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }


def _source(table: TableEntry) -> Json:
    return _dataset(table, table.plan.source, "source", {})


def _candidate(table: TableEntry, evidence: Evidence) -> Json:
    """The candidate by the table's own name, since it lies where nobody may look."""
    made = _dataset(table, None, "synthetic", {"schema": _schema(evidence.columns)})
    made["inputFacets"] = {
        "dataQualityAssertions": _facet(
            "1-1-0",
            "DataQualityAssertionsDataset",
            assertions=[
                {
                    "assertion": g.gate,
                    "success": str(g.result) == "pass",
                    "severity": "error" if g.blocking else "warn",
                    "name": g.title,
                }
                for g in evidence.gates.results
            ],
        )
    }
    return made


def _dataset(table: TableEntry, choice: PluginChoice | None, place: str, facets: Json) -> Json:
    """A table where it lies: files by path, servers by the connection's name, which holds no secret."""
    config = choice.config if choice is not None else {}
    inner = config.get("table")
    if isinstance(path := config.get("path"), str):
        file = str((table.plan.base / path).resolve())
        return {"namespace": "file", "name": f"{file}/{inner}" if inner else file, "facets": facets}
    if choice is not None and inner:
        namespace = f"{choice.name}://{config.get('connection', '')}"
        return {"namespace": namespace, "name": str(inner), "facets": facets}
    return {"namespace": _NAMESPACE, "name": f"{table.plan.name}/{place}", "facets": facets}


def _schema(columns: Iterable[ColumnRecord]) -> Json:
    """The columns that leave."""
    fields = [{"name": c.name, "type": c.storage} for c in columns if RELEASED.issuperset(c.roles)]
    return _facet("1-2-0", "SchemaDataset", fields=fields)


def _facet(version: str, name: str, **content: Any) -> Json:
    url = f"{_SPEC}/facets/{version}/{name}Facet.json#/$defs/{name}Facet"
    return {"_producer": _PRODUCER, "_schemaURL": url, **content}
