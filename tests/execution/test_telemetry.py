"""What operations see of a run: each stage and audit once, and never a value of the table."""

import json
import logging
import re
import sys

import pytest

from synth_audit import api, registry
from synth_audit.errors import PlanError
from synth_audit.execution import telemetry
from synth_audit.pipeline import stages

FIELDS = ["time", "run", "table", "stage", "attempt", "audit", "seconds", "rss", "status"]
SAMPLE = re.compile(r'synth_audit_\w+\{table="plan",stage="\w+"(,\w+="[^"]*")*\} [0-9.]+')


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """Files of the log and of the metrics, switched on for a test."""
    log, metrics = tmp_path / "runs.jsonl", tmp_path / "metrics"
    metrics.mkdir()
    monkeypatch.setenv(telemetry.LOG, str(log))
    monkeypatch.setenv(telemetry.METRICS, str(metrics))
    telemetry.switch_on("run 1")
    yield log, metrics
    monkeypatch.undo()
    telemetry.switch_on()


def lines(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_each_stage_and_audit_is_reported_once(case, seen):
    log, metrics = seen
    evidence = stages.produce(case.plan, case.workspace)
    found = lines(log)
    assert [list(line) for line in found] == [FIELDS] * len(found)
    assert {(line["run"], line["table"]) for line in found} == {("run 1", "plan")}
    audits = [line["audit"] for line in found if line["stage"] == "audit"]
    shares = ("without a leak", "with a leak of 1%", "with a leak of 100%")
    planted = [f"known-answer check {i} of 3 (exact_match {said})" for i, said in enumerate(shares, 1)]
    assert sorted(audits) == ["", "exact_match", *planted, "marginals"]
    assert all(line["rss"] > 10**7 for line in found)
    ends = {line["stage"]: line for line in found if not line["audit"]}
    assert [(name, line["status"]) for name, line in ends.items()] == [
        ("split", "done"),
        ("synthetic", "done"),
        ("audit", evidence.verdict),
    ]
    assert ends["audit"]["attempt"] == 2, "the case was audited before"
    [file] = metrics.glob("*plan_audit.prom")
    samples = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert all(map(SAMPLE.fullmatch, samples))
    assert f'stage_seconds{{table="plan",stage="audit",status="{evidence.verdict}"}}' in file.read_text()
    assert sum("audit_seconds{" in line for line in samples) == 5


def test_no_value_of_the_table_is_reported_not_even_by_an_error(case, seen, canary, monkeypatch, capsys):
    log, metrics = seen

    def fail(self, subject, context):
        raise ValueError(canary)

    def fall(*_, **__):
        raise ValueError(canary)

    monkeypatch.setattr(registry.find("audit", "marginals").load(), "run", fail)
    stages.produce(case.plan, case.workspace)
    monkeypatch.setattr(stages, "examine", fall)
    with pytest.raises(ValueError, match=canary):
        stages.audit_synthetic(case.plan, case.workspace)
    written = (
        log.read_text() + "".join(p.read_text() for p in metrics.iterdir()) + "".join(capsys.readouterr())
    )
    values = {str(v) for name in case.synthetic.column_names for v in case.synthetic[name].to_pylist()}
    assert canary not in written
    assert not {v for v in values if len(v) > 4 and v in written}
    assert {"error", "ValueError"} <= {line["status"] for line in lines(log)}


def test_other_messages_of_the_logger_stay_out_of_the_log(seen):
    logging.getLogger("synth_audit").warning("a cell")
    assert seen[0].read_text() == ""


def test_an_audit_of_files_is_reported_too(seen, make_people, tmp_path):
    people = make_people(120)
    plan = {"name": "plan", "columns": {"person": {"role": "identifier"}}, "audits": ["exact_match"]}
    api.audit(people[:60], None, people.drop_columns(["person"])[60:], plan)
    assert [line["stage"] for line in lines(seen[0]) if not line["audit"]] == ["audit"]


def test_a_name_is_escaped_in_the_metrics():
    event = {"table": 'a "b" \\ ü', "stage": "audit", "seconds": 1.5}
    *_, sample = telemetry._metric("stage_seconds", "How long.", [event], "seconds")
    assert sample == 'synth_audit_stage_seconds{table="a \\"b\\" \\\\ ü",stage="audit"} 1.5'


@pytest.mark.parametrize(
    ("variable", "value"), [(telemetry.LOG, "no/such/folder"), (telemetry.METRICS, "no/such/folder")]
)
def test_a_place_that_cannot_be_written_is_refused_before_a_run(variable, value, monkeypatch):
    monkeypatch.setenv(variable, value)
    with pytest.raises(PlanError, match="cannot be reported"):
        telemetry.switch_on()


def test_spans_go_to_opentelemetry_with_attributes_alone(case, monkeypatch):
    trace_sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="OpenTelemetry is not installed")
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    exporter, provider = export.InMemorySpanExporter(), trace_sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "_tracer", lambda: provider.get_tracer("test"))
    stages.audit_synthetic(case.plan, case.workspace)
    *audits, stage = exporter.get_finished_spans()
    assert (stage.name, len(audits)) == ("audit plan", 5)
    assert {span.parent.span_id for span in audits} == {stage.context.span_id}
    assert all(span.start_time <= span.end_time and not span.events for span in (*audits, stage))
    assert stage.attributes["status"] == case.evidence.verdict


def test_without_opentelemetry_nothing_is_traced(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    telemetry._tracer.cache_clear()
    assert telemetry._tracer() is None
    telemetry._tracer.cache_clear()
