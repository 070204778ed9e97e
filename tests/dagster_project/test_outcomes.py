"""What a run tells others: of which kind a failure is, the verdict, and what lies before and behind."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from synth_audit.dagster import messages, outcomes
from synth_audit.dagster.component import AuditedTable
from synth_audit.dagster.outcomes import (
    MISMATCH,
    OPEN_EVIDENCE,
    OUTCOME,
    REFUSAL,
    VERDICT,
    WAITING,
    kind_of_failure,
)
from synth_audit.errors import (
    ApprovalMissing,
    EvidenceInsufficient,
    NotAsAudited,
    ReleaseRefused,
    ReleaseUncertain,
    Unavailable,
)
from synth_audit.generators import independent
from synth_audit.pipeline.approval import approve
from synth_audit.sources.parquet import Parquet
from synth_audit.store.approvals import new_key
from synth_audit.store.locate import locate_evidence

Run = Callable[..., dg.ExecuteInProcessResult]
TOKEN = "T-5551212"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "RETRY", dg.RetryPolicy(max_retries=3))


def failed(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [event] = result.get_step_failure_events()
    data = event.step_failure_data.user_failure_data
    assert data is not None
    return {name: value.value for name, value in data.metadata.items()}


def retries(result: dg.ExecuteInProcessResult) -> int:
    return sum(event.is_step_up_for_retry for event in result.all_events)


def test_failures_are_told_apart(run: Run, home: Path) -> None:
    run("copied", "split", "synthetic", "audit")
    assert failed(run("copied", "release", seed=9))["kind"] == "mismatch"
    assert failed(run("broken", "synthetic"))["kind"] == "fault"
    assert failed(run("shuffled", "split", source="none.parquet"))["kind"] == "input"


def test_a_run_bears_no_verdict_of_another_plan_or_of_forged_evidence(
    run: Run, home: Path, instance: dg.DagsterInstance
) -> None:
    run("copied", "split", "synthetic", "audit")
    foreign = run("shuffled", "report")
    [evidence] = (home / "people-audit/review/audits").glob("*/evidence.json")
    evidence.write_text(evidence.read_text().replace('"fail"', '"pass"'))
    for result in (foreign, run("copied", "report")):
        assert failed(result)["kind"] == "mismatch"
        found = instance.get_run_by_id(result.run_id)
        assert found is not None
        assert f"{VERDICT}.people" not in found.tags


class Flaky:
    """Stands in for a method: fails so often, then does its work."""

    def __init__(self, times: int, error: type[Exception], work: Callable[..., Any]) -> None:
        self.left, self.error, self.work = times, error, work

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.left -= 1
            if self.left >= 0:
                raise self.error("locked", where="there", expected="a free lock", fix="again")
            return self.work(instance, *args)

        return call


def test_a_locked_source_is_tried_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parquet, "batches", Flaky(2, Unavailable, Parquet.batches))
    result = run("shuffled", "split")
    assert result.success
    assert retries(result) == 2


@pytest.mark.parametrize("error", [Unavailable, ReleaseUncertain])
def test_a_lost_target_is_tried_again_and_then_told_as_an_outage(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    run("shuffled", "split", "synthetic", "audit")
    with monkeypatch.context() as patch:
        patch.setattr(Parquet, "write", Flaky(99, error, Parquet.write))
        result = run("shuffled", "release")
    assert retries(result) == outcomes.RETRY.max_retries
    assert failed(result)["kind"] == "outage"
    assert not (home / "out").exists()
    assert run("shuffled", "release").success


def test_a_fit_is_never_tried_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*args: object) -> None:
        raise Unavailable("locked", where="there", expected="a free lock", fix="again")

    monkeypatch.setattr(independent.Independent, "fit", gone)
    run("independent", "split")
    result = run("independent", "synthetic")
    assert retries(result) == 0
    assert failed(result)["kind"] == "outage"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    got: list[tuple[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, json.loads(body)))
            self.send_response(500 if self.path.endswith("broken") else 204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("SYNTH_AUDIT_WEBHOOK", f"http://127.0.0.1:{server.server_port}/{TOKEN}")
        yield got
        server.shutdown()


def test_the_verdict_is_sent_once_to_be_read_by_a_machine(
    run: Run, receiver: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance
) -> None:
    monkeypatch.setenv("SYNTH_AUDIT_REPORT_URL", "https://audits.example.org/{table}/{digest}/report.html")
    result = run("copied")
    [(path, sent)] = receiver
    assert path == f"/{TOKEN}"
    assert (sent["version"], sent["table"], sent["verdict"]) == (1, "people", "fail")
    assert [held["gate"] for held in sent["held_by"]] == ["no-copies"]
    link = f"https://audits.example.org/people/{sent['evidence']}/report.html"
    assert sent["report"] == link
    [report] = [e for e in result.get_asset_materialization_events() if e.asset_key.path[-1] == "report"]
    assert report.materialization.metadata["report link"].value == link
    assert report.materialization.metadata["certificate link"].value == link.replace("report", "certificate")
    assert TOKEN not in "".join(repr(entry) for entry in instance.all_logs(result.run_id))


def test_a_certificate_that_is_served_nowhere_has_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTH_AUDIT_REPORT_URL", "https://audits.example.org/{table}/{digest}")
    assert messages.page_link("people", "12", Path("report.html")).endswith("/people/12")
    assert messages.page_link("people", "12", Path("certificate.html")) == ""


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/",
        "file:///etc/",
        *(pytest.param(a, marks=pytest.mark.slow) for a in ("nonsense ", "http://[/")),
    ],
)
def test_an_address_that_does_not_take_it_changes_no_verdict(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance, address: str
) -> None:
    monkeypatch.setenv("SYNTH_AUDIT_WEBHOOK", address + TOKEN)
    result = run("shuffled")
    assert result.success
    assert (home / "out/released.parquet").is_file()
    said = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert any("the verdict stands" in text for text in said)
    assert not any(TOKEN in text for text in said)


def test_an_answer_that_is_an_error_is_told_by_its_number(
    receiver: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.setenv("SYNTH_AUDIT_WEBHOOK", os.environ["SYNTH_AUDIT_WEBHOOK"] + "/broken")
    assert "(500)" in messages.send_verdict({"verdict": "pass"})


@pytest.fixture
def answering() -> Callable[..., str]:
    """Addresses of servers that answer once, with these very bytes, a few at a time."""
    asked: list[bytes] = []

    def make(answer: bytes, pause: float = 0.0) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        server.settimeout(5)  # the one that must not be asked is closed then

        def serve() -> None:
            with suppress(OSError), server, server.accept()[0] as taken:
                request = b""
                while not request.endswith(b"{}"):  # whoever leaves some of it unread breaks the line
                    request += taken.recv(65536)
                asked.append(request)
                for place in range(0, len(answer), 16):
                    taken.sendall(answer[place : place + 16])
                    time.sleep(pause)

        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        threading.Thread(target=serve, daemon=True).start()
        return address

    make.asked = asked  # type: ignore[attr-defined]
    return make


@pytest.mark.parametrize("answer", [b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200, b""])
def test_an_answer_that_is_none_fails_nothing(answering: Callable[..., str], answer: bytes) -> None:
    assert "did not take it" in messages.post(answering(answer), {}, "X", {})


@pytest.mark.parametrize("address", [f"http://me:{TOKEN}@127.0.0.1/", f"http://127.0.0.1:{TOKEN}/"])
def test_an_address_that_is_none_is_not_shown(address: str) -> None:
    told = messages.post(address, {}, "X", {})
    assert told
    assert TOKEN not in told


def test_a_token_is_not_carried_to_where_an_answer_leads(answering: Callable[..., str]) -> None:
    other = answering(b"HTTP/1.1 200 OK\r\n\r\n")
    first = answering(f"HTTP/1.1 303 X\r\nContent-Length: 0\r\nLocation: {other}\r\n\r\n".encode())
    assert "(303)" in messages.post(first, {}, "X", {"Authorization": f"Bearer {TOKEN}"})
    [request] = answering.asked  # type: ignore[attr-defined]
    assert TOKEN.encode() in request


def test_who_answers_letter_by_letter_is_not_waited_for(
    answering: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_PATIENCE", 0.3)
    start = time.monotonic()
    told = messages.post(answering(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 500, 1.0), {}, "X", {})
    assert "timeout" in told.lower()  # of the whole answer, or on a busy machine of a part of it
    assert time.monotonic() - start < 20  # all letters take half a minute


def test_a_run_that_repeats_another_does_not_bear_its_outcome(
    component: Callable[..., AuditedTable], instance: dg.DagsterInstance
) -> None:
    def tags_of(tags: dict[str, str], **settings: object) -> dict[str, str]:
        job = dg.build_defs_for_component(component("shuffled", **settings)).resolve_job_def("people_audit")
        result = job.execute_in_process(instance=instance, raise_on_error=False, tags=tags)
        run = instance.get_run_by_id(result.run_id)
        assert run is not None
        return dict(run.tags)

    outcome, verdict = f"{OUTCOME}.people", f"{VERDICT}.people"
    released = tags_of({})
    assert (released[outcome], released[verdict]) == ("released", "pass")
    shown = {name for name in released if not name.startswith(".dagster/")}
    assert {name for name in shown if "audit" in name} == {outcome, verdict}
    other = f"{OUTCOME}.others"  # of another table in the run
    repeated = tags_of({**released, other: "released"}, source="none.parquet")  # Dagster copies tags
    assert (repeated[outcome], repeated[verdict], repeated[other]) == ("open", "open", "open")
    assert tags_of(repeated)[outcome] == "released"


def test_source_and_released_table_have_events_of_their_own(run: Run) -> None:
    result = run("shuffled", released_key="lake/people")
    [source] = result.get_asset_observation_events()
    assert source.asset_key == dg.AssetKey(["people", "source"])
    assert source.asset_observation_data.asset_observation.metadata["dagster/row_count"].value == 300
    [released] = [e for e in result.get_asset_materialization_events() if e.asset_key.path[0] == "lake"]
    assert set(released.materialization.metadata) == {
        *("table", "where", "certificate link", "released sha256", "dagster/row_count")
    }


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(("table", "kind"), [("clinic.people", None), ("clinic.nobody", "input")])
def test_a_password_is_in_no_record_of_a_run(
    run: Run, instance: dg.DagsterInstance, postgres: Any, home: Path, table: str, kind: str | None
) -> None:
    postgres.run("CREATE TABLE clinic.people AS SELECT g AS id, g % 7 AS x FROM generate_series(1, 300) g")
    settings = {
        "connections": {"clinic": postgres.connection()},
        "source": {"postgres": {"connection": "clinic", "table": table}},
        "columns": {"id": {"role": "identifier"}},
    }
    result = run("shuffled", "split", **settings)
    assert result.success == (kind is None)
    assert kind is None or failed(result)["kind"] == kind
    said = "".join(repr(entry) for entry in instance.all_logs(result.run_id))
    assert table in said or result.success
    assert "sesame" not in said
    written = [file.read_bytes() for file in home.rglob("*") if file.is_file()]
    assert not any(b"sesame" in text for text in written)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ApprovalMissing, WAITING),
        (EvidenceInsufficient, OPEN_EVIDENCE),
        (ReleaseRefused, REFUSAL),
        (NotAsAudited, MISMATCH),
    ],
)
def test_it_is_told_apart_from_a_refusal(error: type[ReleaseRefused], kind: str) -> None:
    assert kind_of_failure(error("release refused: waiting for approval, 1 of 2 are there.")) == kind


def test_a_run_that_waits_is_well_and_says_so(run: Run, home: Path, instance: dg.DagsterInstance) -> None:
    who = {"Ann": new_key(home / "ann.pem")}
    target = {"parquet": {"path": "out/released.parquet"}, "approvals": 1, "approvers": who}
    result = run("shuffled", release=target)
    assert result.success
    assert not (home / "out").exists()
    record = instance.get_run_by_id(result.run_id)
    assert record is not None
    assert record.tags["synth_audit/outcome.people"] == "not released: waiting for approval"
    [told] = [e for e in result.get_asset_observation_events() if e.asset_key.path[-1] == "release"]
    assert told.asset_observation_data.asset_observation.metadata["kind"].value == WAITING


def test_the_last_approval_starts_the_release_once(
    run: Run, component: Callable[..., AuditedTable], home: Path, instance: dg.DagsterInstance
) -> None:
    who = {name: new_key(home / f"{name}.pem") for name in ("Ann", "Bob")}
    target = {"parquet": {"path": "out/released.parquet"}, "approvals": 2, "approvers": who}
    made = dg.build_defs_for_component(component("shuffled", release=target)).get_repository_def()
    sensor = made.get_sensor_def("people_approvals")

    def due() -> list[str | None]:
        context = dg.build_sensor_context(instance, repository_def=made)
        return [request.run_key for request in sensor.evaluate_tick(context).run_requests or []]

    assert due() == []
    run("shuffled", release=target)
    for name in who:
        assert due() == []
        until = datetime.now(UTC).date() + timedelta(days=9)
        approve(locate_evidence(home / "people-audit"), by=name, key=home / f"{name}.pem", until=until)
    assert len(due()) == 1
    assert due() == due(), "asked again under the same key, which Dagster runs once"
    run("shuffled", "release", release=target)
    assert (home / "out/released.parquet").is_file()
    assert due() == []
