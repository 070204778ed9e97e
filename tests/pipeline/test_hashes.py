"""No hash that a reader may see confirms a cell to whoever knows all others."""

import hashlib
import hmac
import io
import json
import re
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from synth_audit.errors import DataError, ReleaseRefused
from synth_audit.execution.seeds import Salt
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.release import refuse_unless_allowed
from synth_audit.report import write_report
from synth_audit.store.salts import known_salt
from synth_audit.table.content_hash import fingerprint

SHORTEST = 12
"""Hexadecimal digits: shorter ones agree by chance."""


@pytest.fixture(scope="module")
def refused_run(tmp_path_factory, make_case, make_gate):
    """A run that ends in a refusal, with its report. Not to be altered."""
    case = make_case(tmp_path_factory.mktemp("refused") / "case", audits=["exact_match", "marginals"])
    case.set_gates(make_gate("copies", "exact_match.excess", -0.5))
    assert pipeline.produce(case.plan, case.workspace).verdict is Result.FAIL
    write_report(case.workspace)
    return case


def hashes_in(folder) -> set[str]:
    """Every string of hexadecimal digits in a file that a reader may see."""
    content = b"\n".join(p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file())
    return {found.decode().lower() for found in re.findall(rb"[0-9a-fA-F]{12,}", content)}


def tables_of(case) -> dict[str, pa.Table]:
    found = {n: pq.read_table(getattr(case.workspace, n)) for n in ("train", "control", "synthetic")}
    return found | {"source": pq.read_table(case.folder / "people.parquet")}


def guesses(table: pa.Table) -> list[pa.Table]:
    """The table with each value that one cell may have, the true one among them."""
    column = table.column("ill")
    rest = column.to_pylist()[1:]
    place = table.column_names.index("ill")
    return [table.set_column(place, "ill", pa.array([v, *rest], column.type)) for v in ("yes", "no")]


def spellings(table: pa.Table) -> list[bytes]:
    """The ways to write a table down that anybody could try."""
    ipc, parquet, csv = pa.BufferOutputStream(), io.BytesIO(), pa.BufferOutputStream()
    with pa.ipc.new_stream(ipc, table.schema) as stream:
        stream.write_table(table)
    pq.write_table(table, parquet)
    pa.csv.write_csv(table, csv)
    rows = table.to_pylist()
    plain = fingerprint(table)
    return [
        plain.encode(),
        bytes.fromhex(plain),
        ipc.getvalue().to_pybytes(),
        parquet.getvalue(),
        csv.getvalue().to_pybytes(),
        json.dumps(rows, default=str).encode(),
        json.dumps(rows[0], default=str).encode(),
        json.dumps(list(rows[0].values()), default=str).encode(),
        str(rows[0]).encode(),
        str(table.num_rows).encode() + plain.encode(),
    ]


def digests(table: pa.Table, public: list[bytes]) -> set[str]:
    """Every hash of every spelling, also keyed and mixed with all that evidence tells everybody."""
    found = {fingerprint(table)}
    for text in spellings(table):
        found |= {hashlib.new(kind, text).hexdigest() for kind in ("sha256", "sha1", "md5", "blake2b")}
        for known in public:
            found.add(hmac.digest(known, text, "sha256").hex())
            found |= {hashlib.sha256(a + b).hexdigest() for a, b in ((known, text), (text, known))}
    return found


def confirmed(case) -> set[str]:
    """Names of the tables of which some hash in the review folder tells the true cell."""
    evidence = case.evidence
    public = [b"", b"0", str(evidence.seed).encode()]
    for text in (
        evidence.digest,
        evidence.plan_sha256,
        evidence.gates.suite_sha256,
        evidence.salt_commitment,
    ):
        public += [text.encode(), bytes.fromhex(text)]
    seen = hashes_in(case.workspace.review)
    prefixes = {text[i : i + SHORTEST] for text in seen for i in range(len(text) - SHORTEST + 1)}
    return {
        name
        for name, table in tables_of(case).items()
        for guess in guesses(table)
        if any(d[:SHORTEST] in prefixes for d in digests(guess, public))
    }


def test_no_hash_of_a_refused_run_confirms_a_cell(refused_run):
    assert confirmed(refused_run) == set()


def test_the_same_search_finds_a_plain_hash(refused_run, finished, tmp_path):
    """So the test above can fail: on a pass the candidate's hash is there, and any shortened one is found."""
    assert confirmed(finished) == {"synthetic"}
    case = replace(refused_run, folder=tmp_path / "case")
    shutil.copytree(refused_run.folder, case.folder)
    for name, table in tables_of(refused_run).items():
        slip = case.workspace.review / "slip.txt"
        slip.write_text(f"it begins with {hashlib.sha256(fingerprint(table).encode()).hexdigest()[:16]}")
        assert confirmed(case) == {name}


def test_every_hash_in_the_review_folder_is_known_and_harmless(refused_run):
    evidence, salt = refused_run.evidence, known_salt(refused_run.workspace)
    keyed = {salt.digest(fingerprint(table).encode()) for table in tables_of(refused_run).values()}
    public = {evidence.digest, evidence.plan_sha256, evidence.gates.suite_sha256, salt.commitment}
    public.add(evidence.ledger.digest)  # of lines that name plans and keyed hashes
    whole = {text for text in hashes_in(refused_run.workspace.review) if len(text) == 64}
    assert whole == keyed | public
    assert {t.sha256 for t in evidence.tables.values()} == {None}
    assert salt.text().strip() not in whole
    ledger = (refused_run.workspace.restricted / "ledger.jsonl").read_text()
    assert not [n for n, t in tables_of(refused_run).items() if fingerprint(t) in ledger]


def test_a_pass_alone_tells_the_plain_hash_and_of_the_candidate_alone(finished):
    tables = finished.evidence.tables
    assert tables["synthetic"].sha256 == fingerprint(finished.synthetic)
    assert {n for n, t in tables.items() if t.sha256 is not None} == {"synthetic"}
    assert len({t.hmac for t in tables.values()}) == 4


def test_another_salt_hashes_otherwise(finished):
    data = finished.synthetic
    other = Salt(bytes(32))
    assert other.digest(fingerprint(data).encode()) != finished.evidence.tables["synthetic"].hmac
    with pytest.raises(ReleaseRefused, match="another salt"):
        refuse_unless_allowed(finished.plan, finished.evidence, data, other)


@pytest.mark.parametrize("part", ["hmac", "sha256"])
def test_both_hashes_must_be_those_of_the_bytes_that_leave(finished, part):
    salt = known_salt(finished.workspace)
    evidence = finished.evidence
    refuse_unless_allowed(finished.plan, evidence, finished.synthetic, salt)
    for other in ("0" * 64, None if part == "sha256" else ""):
        forged = replace(evidence.tables["synthetic"], **{part: other})
        sealed = replace(evidence, tables={**evidence.tables, "synthetic": forged}).sealed()
        with pytest.raises(ReleaseRefused, match="not the bytes"):
            refuse_unless_allowed(finished.plan, sealed, finished.synthetic, salt)


def test_two_workspaces_and_two_salts_share_no_hash(finished, tmp_path, make_case):
    case = make_case(tmp_path / "case", audits=["exact_match"])
    case.workspace.salt.write_text(Salt.fresh().text())
    other = pipeline.split_table(case.plan, case.workspace)
    assert other.source.rows == finished.evidence.tables["source"].rows
    mine = {t.hmac for t in (other.source, other.train, other.control)}
    assert not mine & {t.hmac for t in finished.evidence.tables.values()}
    people = [set(pq.read_table(c.workspace.control).column("person").to_pylist()) for c in (case, finished)]
    assert not people[0] <= people[1]
    assert not people[1] <= people[0]


def test_the_plans_seed_moves_neither_split_nor_candidate(case):
    """What a reader of the plan knows says nothing of who is in train, and repeats nothing."""
    before = case.evidence.tables
    for seed in (0, 6, 4711):
        plan = case.replan(seed=seed)
        record = pipeline.split_table(plan, case.workspace)
        made = pipeline.make_synthetic(plan, case.workspace)
        assert [record.train.hmac, record.control.hmac, made.table.hmac] == [
            before[name].hmac for name in ("train", "control", "synthetic")
        ]


def test_another_salt_splits_fits_and_draws_otherwise(case):
    found = [case.evidence.tables["synthetic"]]
    for text in ("ab" * 32, "cd" * 32):
        case.workspace.salt.write_text(text)
        with pytest.raises(DataError, match="not the one that this workspace was split with"):
            pipeline.split_table(case.plan, case.workspace)
        case.workspace.split_record.unlink()
        split = pipeline.split_table(case.plan, case.workspace)
        assert split.salt_commitment == Salt.parse(text).commitment
        found.append(pipeline.make_synthetic(case.plan, case.workspace).table)
    assert len({t.hmac for t in found}) == 3


def test_one_person_more_gets_other_random_numbers(case, monkeypatch):
    """Two releases whose tables differ by one person must not differ by that person alone."""
    from synth_audit.generators.resample import ResampleModel

    drawn = []
    monkeypatch.setattr(
        ResampleModel, "sample", lambda self, n, rng: drawn.append(rng.random()) or self.train
    )
    plan = case.replan(generator="resample")
    for rows in (240, 239, 240):
        data = pq.read_table(case.folder / "people.parquet").slice(0, rows)
        pq.write_table(data, case.folder / "some.parquet")
        part = plan.model_copy(update={"source": case.replan(source="some.parquet").source}).located(
            case.folder
        )
        pipeline.split_table(part, case.workspace)
        pipeline.make_synthetic(part, case.workspace)
    assert drawn[0] == drawn[2] != drawn[1]
