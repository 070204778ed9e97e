"""Templates of a ``defs.yaml``: filled in before anything rests on the plan, or refused by their key."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.testing import create_defs_folder_sandbox

from synth_audit.dagster.component import AuditedTable
from synth_audit.errors import PlanError
from synth_audit.plan.plan import Plan

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
    pytest.mark.filterwarnings("ignore:.*parse_obj_as.*:DeprecationWarning"),
]

VALUE = "Amsterdam-7391"


@pytest.fixture(autouse=True)
def variables(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTH_AUDIT_HOME", str(home))
    monkeypatch.setenv("FOLDER", VALUE)
    monkeypatch.setenv("ROWS", "100")
    monkeypatch.setenv("NESTED", "{{ env.FOLDER }}")
    monkeypatch.delenv("NOWHERE", raising=False)


@contextmanager
def _loaded(attributes: Mapping[str, Any]) -> Iterator[AuditedTable]:
    contents = {
        "type": "synth_audit.dagster.AuditedTable",
        "attributes": {
            "source": "people.parquet",
            "generator": "shuffled",
            "columns": {"id": {"role": "identifier"}},
            "gates": "gates.json",
            **attributes,
        },
    }
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=AuditedTable, defs_path="people", defs_yaml_contents=contents
        )
        with sandbox.load_component_and_build_defs(path) as (component, _):
            assert isinstance(component, AuditedTable)
            yield component


def _plan(**attributes: Any) -> Plan:
    with _loaded(attributes) as component:
        return component.table().plan


def _refused(**attributes: Any) -> PlanError:
    with pytest.raises(ComponentTreeException) as caught, _loaded(attributes):
        pass
    assert isinstance(caught.value.__cause__, PlanError)
    assert VALUE not in str(caught.value)
    return caught.value.__cause__


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ({"release": "{{ env.FOLDER }}/people.parquet"}, {"release": f"{VALUE}/people.parquet"}),
        (
            {"release": {"parquet": {"path": "{{ env('NOWHERE', 'out') }}/people.parquet"}}},
            {"release": {"parquet": {"path": "out/people.parquet"}}},
        ),
        ({"rows": "{{ env.ROWS }}"}, {"rows": 100}),
        (
            {"columns": {"city": {"categories": ["1", "{{ env.FOLDER }}", "'{{ env.ROWS }}'"]}}},
            {"columns": {"city": {"categories": ["1", VALUE, "100"]}}},
        ),
    ],
)
def test_the_plan_holds_what_a_template_stands_for(written: Any, plain: Any) -> None:
    assert _plan(**written).digest == _plan(**plain).digest


def test_digits_stay_text_where_quotes_say_so() -> None:
    connections = {"clinic": {"options": {"port": "'{{ env.ROWS }}'", "host": "10"}}}
    assert _plan(connections=connections).connections["clinic"].options == {"port": "100", "host": "10"}


@pytest.mark.parametrize(
    "text",
    [
        "{{ env.NOWHERE }}",
        "{{ env.NOWHERE }}/people.parquet",
        "{{ env('NOWHERE') }}/people.parquet",
        "{{ nowhere }}/people.parquet",
        "{{ nowhere.at.all }}",
        "{{ env.NESTED }}",
        "{{ env.FOLDER",
        "{{ int(env.FOLDER) }}",
        "{{ env.FOLDER + 1 }}",
    ],
)
def test_what_cannot_be_filled_in_is_refused_by_its_key(text: str) -> None:
    assert _refused(release={"parquet": {"path": text}}).where == "release.parquet.path"
    assert _refused(audits=["exact_match", text]).where == "audits.1"
    assert _refused(tags={"level": text}).where == "tags.level"


def test_what_a_template_stands_for_is_validated() -> None:
    assert "rows: " in str(_refused(rows="{{ env.FOLDER }}"))
    assert "unknown key 'generatr'" in str(_refused(generatr="{{ env.FOLDER }}"))
