"""The verdict for other machines: one message to one address, and a link to where people read the report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from synth_audit.dagster.entry import TableEntry

if TYPE_CHECKING:
    from synth_audit.store.evidence import Evidence

WEBHOOK = "SYNTH_AUDIT_WEBHOOK"
"""Environment variable: address that gets each verdict by POST; it may hold a token and is shown nowhere."""

REPORT_URL = "SYNTH_AUDIT_REPORT_URL"
"""Environment variable: where reports are served, with ``{table}`` and ``{digest}`` to be filled in."""

VERSION = 1
"""Of the message's form; a receiver may rely on the keys of one version."""

_PATIENCE = 10.0
"""Seconds that an address may take."""


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


def send(content: dict[str, Any]) -> str:
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
