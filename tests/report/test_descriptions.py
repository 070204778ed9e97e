"""Descriptions of a release: their form, and what their validators say.

roc-validator pins an older rich than ours. So it runs in an environment of its own on the unpacked bag:
`rocrate-validator validate -p ro-crate-1.2 BAG` and `-p workflow-ro-crate BAG/data/workflow` (0.13.0), and
`-p five-safes-crate BAG/data` (with its pull request 167). All three accepted it at level REQUIRED.
"""

import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest

from synth_audit.pipeline.attestation import Attestation, ReleasedFile
from synth_audit.report.dcat import dcat
from synth_audit.report.ro_crate import ro_crate

SHAPES = Path(__file__).parent / "data/dcat-ap-3.0.1-shacl.ttl.gz"
WHERE = ("https://data.example.org/adult.parquet", "https://creativecommons.org/licenses/by/4.0/")


@pytest.fixture
def attestation(build):
    file = ReleasedFile("adult.parquet", 1234, "ab" * 32)
    return Attestation(build.passing(), file, "Ann Ohm", "2026-12-01T12:00:00+00:00", b"{}\n")


def test_the_crate_is_a_bag_without_loose_references(attestation):
    content = ro_crate(attestation, (), *WHERE)
    assert content == ro_crate(attestation, (), *WHERE)
    bag = {name.split("/", 1)[1]: x for name, x in files(content)}
    manifest = dict(line.split("  ")[::-1] for line in bag["manifest-sha512.txt"].decode().splitlines())
    payload = {name: hashlib.sha512(x).hexdigest() for name, x in bag.items() if name.startswith("data/")}
    assert manifest == payload
    graph = json.loads(bag["data/ro-crate-metadata.json"])["@graph"]
    known = {entity["@id"] for entity in graph}
    vocabularies = ("https://w3id.org/ro/crate/", "https://w3id.org/shp#", "https://w3id.org/workflowhub/")
    assert [x for x in references(graph) if x not in known and not x.startswith(vocabularies)] == []


def files(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def references(value):
    if isinstance(value, list):
        return [name for part in value for name in references(part)]
    if not isinstance(value, dict):
        return []
    return [value["@id"]] if value.keys() == {"@id"} else references(list(value.values()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")  # by rdflib itself
def test_the_shapes_of_dcat_ap_hold_and_find_what_is_missing(attestation):
    pyshacl = pytest.importorskip("pyshacl", reason="the extra `dev` is not installed")
    shapes = gzip.decompress(SHAPES.read_bytes()).decode()

    def conforms(text):
        return pyshacl.validate(text, data_graph_format="json-ld", shacl_graph=shapes)[0]

    text = dcat(attestation, *WHERE).decode()
    assert conforms(text)
    assert not conforms(text.replace('"dct:title"', '"dct:subject"'))
