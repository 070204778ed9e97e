"""The verdict for other machines: one message to one address, and a link to where people read the report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagster_project.entry import TableEntry

if TYPE_CHECKING:
    from synth_audit.store.evidence import Evidence

WEBHOOK = "SYNTH_AUDIT_WEBHOOK"
"""Environment variable: address that gets each verdict by POST; it may hold a token and is shown nowhere."""

REPORT_URL = "SYNTH_AUDIT_REPORT_URL"
"""Environment variable: where reports are served, with ``{table}`` and ``{digest}`` to be filled in."""

VERSION = 1
_PATIENCE = 10.0
"""Seconds that an address may take."""


def report_link(table: str, digest: str, path: Path) -> str:
    """Where a person reads the report; on this machine if nothing says where it is served."""
    template = os.environ.get(REPORT_URL, "").strip()
    if not template:
        return path.resolve().as_uri()
    return template.replace("{table}", table).replace("{digest}", digest)


def message(table: TableEntry, evidence: Evidence, path: Path) -> dict[str, Any]:
    """What is sent: the verdict, what holds the release, and where more is to be found; no measurement."""
    from synth_audit.core.verdict import Result

    held = [g for g in evidence.gates.results if g.blocking and g.result is not Result.PASS]
    return {
        "version": VERSION,
        "table": table.plan.name,
        "verdict": str(evidence.verdict),
        "held_by": [{"gate": g.gate, "title": g.title, "result": str(g.result)} for g in held],
        "blockers": list(evidence.gates.blockers),
        "evidence": evidence.digest,
        "plan_sha256": evidence.plan_sha256,
        "suite_sha256": evidence.gates.suite_sha256,
        "created": evidence.created,
        "report": report_link(table.plan.name, evidence.digest, path),
    }


def send(content: dict[str, Any]) -> str:
    """POST a message to the address of the environment, if it names one; why it did not arrive, or nothing.

    The verdict stands whether it arrives or not.
    """
    address = os.environ.get(WEBHOOK, "").strip()
    if not address:
        return ""
    return post(address, content, WEBHOOK, {})


def post(address: str, content: Mapping[str, Any], variable: str, headers: Mapping[str, str]) -> str:
    """POST JSON to the address that a variable holds; why it did not arrive, without the address."""
    if not address.startswith(("https://", "http://")):
        return f"{variable} is no address of the web"
    from urllib.request import Request, urlopen  # here: a code location that sends nothing need not load it

    body = json.dumps(content).encode()
    try:
        request = Request(address, body, {"Content-Type": "application/json", **headers})  # noqa: S310
        with urlopen(request, timeout=_PATIENCE):  # noqa: S310
            return ""
    except (OSError, ValueError) as error:  # its text holds the address
        code = getattr(error, "code", None)
        return f"the address in {variable} did not take it ({code or type(error).__name__})"
