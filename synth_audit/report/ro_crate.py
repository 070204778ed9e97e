"""Describes an attested release as an RO-Crate 1.2 with the Five Safes profile 0.4, in a zipped bag.

The crate holds the attestation and the suite. The release is named by its address, size and hash.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from synth_audit.pipeline.attestation import Attestation
from synth_audit.report.dcat import media_type
from synth_audit.store.approvals import Approval

_CRATE, _OLDER_CRATE = "https://w3id.org/ro/crate/1.2", "https://w3id.org/ro/crate/1.1"
"""The second is that of workflow crates."""

_FIVE_SAFES = "https://w3id.org/5s-crate/0.4"
_WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
_CHECKS = "https://w3id.org/shp#"
"""Vocabulary of the profile for what an assessment was about."""

_COMPLETED = "http://schema.org/CompletedActionStatus"
_METADATA, _ATTESTATION, _WORKFLOW, _SUITE = (
    "ro-crate-metadata.json",
    "attestation.json",
    "workflow/",
    "suite.json",
)
_PROJECT, _CONTROLLER, _PROGRAM, _TERMS = "#project", "#controller", "#synth-audit", "#terms"
_LANGUAGE = "https://greatexpectations.io/"

Entity = dict[str, Any]


def ro_crate(attestation: Attestation, approvals: Sequence[Approval], url: str, licence: str) -> bytes:
    """The crate as a ZIP file; the same attestation gives the same bytes.

    Args:
        attestation: of a release, with its file.
        approvals: that count for the evidence. Each becomes a sign-off.
        url: where the release is to be had. licence: address of its licence.
    """
    suite = json.dumps(attestation.evidence.gates.suite, sort_keys=True, ensure_ascii=False)
    payload = {
        _METADATA: _metadata(_CRATE, _release_graph(attestation, approvals, url, licence)),
        _ATTESTATION: attestation.envelope,
        _WORKFLOW + _METADATA: _metadata(_OLDER_CRATE, _suite_graph(attestation, licence), _WORKFLOW_CRATE),
        _WORKFLOW + _SUITE: suite.encode(),  # its SHA-256 is the one of the attestation
    }
    name = f"{attestation.evidence.digest[:12]}-release"
    bag = {f"data/{path}": content for path, content in payload.items()}
    manifest = "".join(f"{hashlib.sha512(content).hexdigest()}  {path}\n" for path, content in bag.items())
    bag |= {
        "bagit.txt": b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        "bag-info.txt": f"External-Identifier: urn:sha256:{attestation.evidence.digest}\n".encode(),
        "manifest-sha512.txt": manifest.encode(),
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, member in bag.items():
            archive.writestr(zipfile.ZipInfo(f"{name}/{path}"), member)  # without the time of writing
    return content.getvalue()


def _release_graph(
    attestation: Attestation, approvals: Sequence[Approval], url: str, licence: str
) -> list[Entity]:
    """What is released, who asked for it, and which assessments let it leave."""
    evidence, file = attestation.evidence, attestation.file
    assert file is not None
    review: Mapping[str, Any] = evidence.plan.get("review") or {}
    suite, build = evidence.gates.suite_name, evidence.versions.get("synth-audit", "")
    audit = _action(
        "CreateAction",
        "#audit",
        f"Audit of the synthetic table {evidence.table}",
        evidence.created,
        agent=_ref(_person(attestation.by)),
        instrument=_ref(_WORKFLOW),
        result=[_ref(url), _ref(_ATTESTATION)],
    )
    check = _action(
        "AssessAction",
        "#disclosure-check",
        f"Disclosure check of the release: {evidence.verdict}",
        evidence.created,
        additionalType=_ref(f"{_CHECKS}DisclosureCheck"),
        agent=_ref(_PROGRAM),
        instrument=_ref(_WORKFLOW),
        object=[_ref("./"), _ref(url)],
    )
    sign_offs = [
        _action(
            "AssessAction",
            f"#sign-off-{approval.file_name}",
            f"Approval by {approval.by}: approved",
            approval.signed,
            additionalType=_ref(f"{_CHECKS}SignOff"),
            agent=_ref(_person(approval.by)),
            instrument=_ref(_TERMS),
            object=[_ref("./"), _ref(_WORKFLOW), _ref(_PROJECT)],
        )
        for approval in approvals
    ]
    actions = [audit, check, *sign_offs]
    root = _entity(
        "./",
        "Dataset",
        f"Release of the synthetic table {evidence.table}",
        description=f"A synthetic table, and the attestation of its audit by the suite {suite}.",
        datePublished=attestation.signed,
        license=_ref(licence),
        conformsTo=_ref(_FIVE_SAFES),
        publisher=_ref(_CONTROLLER),
        sourceOrganization=_ref(_PROJECT),
        mainEntity=_ref(_WORKFLOW),
        hasPart=[_ref(url), _ref(_ATTESTATION), _ref(_WORKFLOW)],
        mentions=[_ref(action["@id"]) for action in actions],
    )
    release = _entity(
        url,
        "File",
        file.name,
        encodingFormat=media_type(file.name),
        contentSize=str(file.size),
        sha256=file.sha256,
    )
    people = dict.fromkeys((attestation.by, *(approval.by for approval in approvals)))
    member = {"affiliation": _ref(_CONTROLLER), "memberOf": _ref(_PROJECT)}
    address = f"urn:synth-audit:{build}"
    controller = review.get("controller") or "A controller that the plan does not name"
    return [
        root,
        release,
        _entity(_ATTESTATION, "File", "Attestation of the audit", encodingFormat="application/vnd.dsse+json"),
        _entity(_WORKFLOW, "Dataset", f"Suite {suite}", conformsTo=_ref(_WORKFLOW_CRATE)),
        _entity(_FIVE_SAFES, "Profile", "Five Safes RO-Crate profile"),
        _entity(licence, "CreativeWork", "Licence of the release"),
        _entity(_TERMS, "CreativeWork", "Approvals that the plan asks for before a release"),
        _entity(_PROJECT, "Project", review.get("purpose") or root["name"], member=_ref(_CONTROLLER)),
        _entity(_CONTROLLER, "Organization", controller),
        _entity(
            _PROGRAM,
            "SoftwareApplication",
            "synth-audit",
            version=build,
            url=address,
            provider=_ref(_CONTROLLER),
        ),
        *(_entity(_person(name), "Person", name, **member) for name in people),
        *actions,
    ]


def _suite_graph(attestation: Attestation, licence: str) -> list[Entity]:
    """The suite as the workflow that was run: a crate of its own, as the profile asks for."""
    gates = attestation.evidence.gates
    title = f"Suite {gates.suite_name}"
    return [
        _entity(
            "./",
            "Dataset",
            title,
            description=f"Gates that decide about a release. SHA-256 of {_SUITE}: {gates.suite_sha256}.",
            datePublished=attestation.signed,
            license=_ref(licence),
            mainEntity=_ref(_SUITE),
            hasPart=[_ref(_SUITE)],
        ),
        _entity(
            _SUITE,
            ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
            title,
            encodingFormat="application/json",
            programmingLanguage=_ref(_LANGUAGE),
        ),
        _entity(_LANGUAGE, "ComputerLanguage", "Great Expectations", url=_ref(_LANGUAGE), version="1"),
        _entity(licence, "CreativeWork", "Licence of the release"),
    ]


def _person(name: str) -> str:
    return f"#person-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _action(kind: str, ident: str, name: str, ended: str, **more: Any) -> Entity:
    return _entity(ident, kind, name, endTime=ended, actionStatus=_COMPLETED, **more)


def _entity(ident: str, kind: str | list[str], name: str, **more: Any) -> Entity:
    return {"@id": ident, "@type": kind, "name": name, **more}


def _ref(ident: str) -> Entity:
    return {"@id": ident}


def _metadata(version: str, graph: list[Entity], *profiles: str) -> bytes:
    """The metadata file of a crate: what describes it, then its entities."""
    conforms = [_ref(version), *map(_ref, profiles)] if profiles else _ref(version)
    descriptor = {
        "@id": _METADATA,
        "@type": "CreativeWork",
        "about": _ref("./"),
        "conformsTo": conforms,
    }
    whole = {"@context": f"{version}/context", "@graph": [descriptor, *graph]}
    return json.dumps(whole, indent=2, ensure_ascii=False).encode()
