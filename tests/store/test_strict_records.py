"""Records that stages and sweeps leave are read as strictly as evidence: no key unknown, none twice."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from synth_audit.errors import DataError
from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.store.evidence import SplitRecord, SyntheticRecord
from synth_audit.store.journal import Journal, open_journal, read_journal
from synth_audit.store.records import parse_strict
from synth_audit.store.workspace import Workspace
from synth_audit.studies.frontier import CandidateResult, FrontierRecord, Number

FREE = {"config", "generator.config", "varied", "settings"}
"""Mappings whose keys are names that others gave."""


def objects(value: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in a JSON value with fixed keys, by its place."""
    if isinstance(value, dict):
        if name not in FREE:
            yield name, value
        for key, part in value.items():
            yield from objects(part, key)
    elif isinstance(value, list):
        for part in value[:1]:
            yield from objects(part, name)


def with_unknown(text: str) -> Iterator[tuple[str, str]]:
    for i, (name, _) in enumerate(objects(json.loads(text))):
        plain = json.loads(text)
        dict(enumerate(found for _, found in objects(plain)))[i]["stranger"] = 1
        yield name, json.dumps(plain)


def with_doubled(text: str) -> Iterator[tuple[str, str]]:
    """The same value under the same key twice, at the root and at the first inner object."""
    key, value = next(iter(json.loads(text).items()))
    yield "root", "{" + f"{json.dumps(key)}: {json.dumps(value)}, " + text[text.index("{") + 1 :]
    at = text.index("{", 1)
    key = text[at:].split('"')[1]
    yield key, text[: at + 1] + f'"{key}": null, ' + text[at + 1 :]


def broken(text: str) -> list[tuple[str, str]]:
    return [*with_unknown(text), *with_doubled(text)]


@pytest.mark.parametrize("kind", [SplitRecord, SyntheticRecord])
def test_what_a_stage_left(case, kind):
    path = {SplitRecord: case.workspace.split_record, SyntheticRecord: case.workspace.synthetic_record}[kind]
    text = path.read_text()
    kind.read(path)
    changed = broken(text)
    assert len(changed) > 5
    for name, other in changed:
        path.write_text(other)
        with pytest.raises(DataError, match="no usable record") as caught:
            kind.read(path)
        assert "stranger" not in str(caught.value), name


def test_what_replaces_a_journal_that_was_just_written(tmp_path):
    workspace = Workspace(tmp_path / "out").prepare()
    with open_journal(workspace) as journal:
        journal.write(Journal(newest={"": "0" * 64}))
    assert read_journal(workspace) is journal.now
    text = workspace.journal.read_text()
    for _, other in broken(text):
        workspace.journal.write_text(other)
        with pytest.raises(DataError, match="damaged"):
            read_journal(workspace)
    workspace.journal.write_text(json.dumps(json.loads(text)).replace("0" * 64, "1" * 64))
    assert read_journal(workspace) == Journal(newest={"": "1" * 64})


def test_a_picture_with_withheld_cells_outlasts_the_stage(case):
    path = case.workspace.synthetic_record
    record = SyntheticRecord.read(path)
    lines = {"a": (1.0, math.nan), "b": (math.nan, 1.0)}
    picture = Series(MeasurementId("generator", "parts"), "Parts", "matrix", "", "", ("a", "b"), lines)
    drawn = replace(record, generator=replace(record.generator, training=(picture,)))
    drawn.write(path)
    assert SyntheticRecord.read(path) == drawn


def test_the_record_of_a_sweep(build):
    from synth_audit.studies.frontier import NO_CORRELATIONS

    candidate = CandidateResult(
        "a", "a", {"name": "vine", "config": {}}, {}, "pass", privacy=Number(0.1, 0.0, 0.2)
    )
    record = FrontierRecord(
        table="t",
        plan_sha256="0" * 64,
        seed=1,
        level=0.9,
        alpha=0.5,
        utility=None,
        privacy=build.closest_record().measurements[0].id,
        candidates=(candidate,),
        chosen="a",
        reason="",
        real_correlations=NO_CORRELATIONS,
    )
    text = record.to_json()
    assert parse_strict(FrontierRecord, text.encode()) == record
    changed = [(name, other) for name, other in broken(text) if name != "generator"]
    assert {"", "candidates", "privacy"} <= {name for name, _ in changed}
    for _, other in changed:
        with pytest.raises(ValueError, match=r"(?i)unexpected|permitted|twice"):
            parse_strict(FrontierRecord, other.encode())
