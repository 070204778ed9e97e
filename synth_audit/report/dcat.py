"""Describes an attested release for a data catalogue, as DCAT-AP 3 in JSON-LD."""

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from synth_audit.pipeline.attestation import Attestation

_MEDIA_TYPES = {".csv": "text/csv", ".parquet": "application/vnd.apache.parquet"}
"""Of the formats that a release to a file has."""

_REGISTRY = "https://www.iana.org/assignments/media-types/"
"""Media types must be named by their address here."""

_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
"""Prefixes of the vocabularies that DCAT-AP 3 takes its terms from."""


def media_type(name: str) -> str:
    """The media type of a file by its name."""
    return _MEDIA_TYPES.get(PurePath(name).suffix.lower(), "application/octet-stream")


def dcat(attestation: Attestation, url: str, licence: str) -> bytes:
    """The description of a release.

    Args:
        attestation: of a release, with its file.
        url: where the release is to be had. licence: address of its licence.
    """
    evidence, file = attestation.evidence, attestation.file
    assert file is not None
    review: Mapping[str, Any] = evidence.plan.get("review") or {}
    purpose = f" Purpose: {review['purpose']}." if review.get("purpose") else ""
    title = f"Synthetic table {evidence.table}"
    provenance = (
        f"Made by the generator {evidence.generator.name}. Audited by synth-audit "
        f"{evidence.versions.get('synth-audit', '')} with the suite {evidence.gates.suite_name}: "
        f"{evidence.verdict}. Digest of the evidence: {evidence.digest}."
    )
    dataset = {
        "@id": f"{url}#dataset",
        "@type": "dcat:Dataset",
        "dct:title": _text(title),
        "dct:description": _text(f"Synthetic rows, audited against the real table before release.{purpose}"),
        "dct:identifier": f"urn:sha256:{file.sha256}",
        "dct:issued": _typed(attestation.signed, "dateTime"),
        "dct:provenance": {"@type": "dct:ProvenanceStatement", "rdfs:label": _text(provenance)},
        "dcat:distribution": {
            "@id": f"{url}#distribution",
            "@type": "dcat:Distribution",
            "dct:title": _text(file.name),
            "dcat:accessURL": {"@id": url, "@type": "rdfs:Resource"},
            "dct:license": {"@id": licence, "@type": "dct:LicenseDocument"},
            "dcat:mediaType": {"@id": _REGISTRY + media_type(file.name), "@type": "dct:MediaType"},
            "dcat:byteSize": _typed(str(file.size), "nonNegativeInteger"),
            "spdx:checksum": {
                "@type": "spdx:Checksum",
                "spdx:algorithm": {
                    "@id": "spdx:checksumAlgorithm_sha256",
                    "@type": "spdx:ChecksumAlgorithm",
                },
                "spdx:checksumValue": _typed(file.sha256, "hexBinary"),
            },
        },
    }
    if controller := review.get("controller"):
        dataset["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": _text(controller)}
    return json.dumps({"@context": _CONTEXT, **dataset}, indent=2, ensure_ascii=False).encode() + b"\n"


def _text(words: str) -> dict[str, str]:
    return {"@value": words, "@language": "en"}


def _typed(value: str, kind: str) -> dict[str, str]:
    return {"@value": value, "@type": f"xsd:{kind}"}
