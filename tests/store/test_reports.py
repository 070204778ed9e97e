"""Reports of the same people are counted; marks of a page are read, whatever is written into it."""

import time

import pyarrow as pa
import pytest

from synth_audit.errors import BudgetSpent, LedgerDamaged
from synth_audit.pipeline.warnings import about_reports
from synth_audit.store.ledger import Ledger
from synth_audit.store.reports import ReportStanding, enter_report, people_behind, read_marks, refuse_spent
from synth_audit.store.workspace import Workspace
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table


@pytest.fixture
def room(tmp_path):
    return Workspace(tmp_path / "people-audit")


def made(room, numbers, *, candidate="a", plan="p", most=None):
    data = pa.table({"id": pa.array(list(numbers), pa.int64()), "x": [0] * len(numbers)})
    table = read_table(data, infer_schema(data, {"id": ColumnSpec(role="split_key")}), where="people")
    return enter_report(people_behind((table, None), room), room, plan=plan, candidate=candidate, most=most)


def test_each_other_report_of_the_same_people_counts_once(room):
    assert made(room, range(100)) == ReportStanding(1, near=False)
    assert made(room, range(100), candidate="b").number == 2
    assert made(room, range(100), plan="q").number == 3
    assert made(room, range(100), candidate="b").number == 3  # made again, with two others
    assert made(room, range(150), candidate="c").number == 4  # two thirds of whom were there before
    assert made(room, range(1000, 1200), candidate="d").number == 1


def test_over_the_budget_nothing_is_entered(room):
    made(room, range(100), most=2)
    made(room, range(100), candidate="b", most=2)
    lines = Ledger(room.restricted).head().lines
    with pytest.raises(BudgetSpent, match="number 3"):
        made(room, range(100), candidate="c", most=2)
    assert made(room, range(100), candidate="b", most=2).number == 2  # the same again tells nothing new
    assert Ledger(room.restricted).head().lines == lines
    assert Ledger(room.restricted).attempts() == ()


@pytest.mark.parametrize("others", [range(101), range(99), [*range(95), *range(500, 505)]])
def test_people_who_hardly_differ_are_noticed(room, others):
    made(room, range(100))
    with pytest.raises(BudgetSpent, match="fewer than 20"):
        made(room, others, most=100)
    assert made(room, others, candidate="b").near
    assert not made(room, range(200), candidate="c").near


def test_what_would_be_refused_is_known_before_a_fit(room):
    data = pa.table({"id": pa.array(range(100), pa.int64())})
    people = people_behind((read_table(data, infer_schema(data, {}), where="people"),), room)
    refuse_spent(people, room, 1)
    enter_report(people, room, plan="p", candidate="a", most=1)
    refuse_spent(people, room, None)
    for other in ("", "q"):
        with pytest.raises(BudgetSpent, match="number 2"):
            refuse_spent(people, room, 1, other)
    refuse_spent(people, room, 1, "p")  # the same report, which may have been broken off


def test_snapshots_of_a_table_share_what_is_counted(room):
    first, second = (Workspace(room.root / key, table=room) for key in ("2026-01", "2026-02"))
    made(first, range(100))
    assert made(second, range(101), candidate="b") == ReportStanding(2, near=True)
    assert made(second.candidate("x"), range(101), candidate="c").number == 3


def test_a_ledger_that_is_gone_refuses(room):
    made(room, range(100))
    (room.restricted / "ledger.jsonl").unlink()
    with pytest.raises(LedgerDamaged):
        made(room, range(100), candidate="b")


def test_evidence_tells_of_many_reports_and_of_a_difference_of_few():
    assert not [*about_reports(ReportStanding(10, near=False))]
    many, near = about_reports(ReportStanding(11, near=True))
    assert "report 11" in many
    assert "fewer than 20" in near


PAGE = '<html><main id="main" data-evidence-digest="ab" data-verdict="pass"><li data-gate="copies">{}</li>'


@pytest.mark.parametrize(
    "unit",
    [
        "<a ",
        "<!--",
        '<a b="',
        "<a b='",
        "</",
        "<![CDATA[",
        'data-gate="x" ',
        "<style>",
        "<a>",
        '<a b="" c>',
        "&",
    ],
)
def test_a_page_is_read_in_time_that_grows_with_its_length(unit):
    begun = time.process_time()
    read_marks(PAGE.format(unit * 300_000))
    assert time.process_time() - begun < 20  # a parser that starts anew at each unit takes hours


def test_marks_of_a_page():
    found = read_marks(PAGE.format("a &lt; b, data-gates and data-gate"))
    assert found is not None
    assert found.audit == {"data-evidence-digest": "ab", "data-verdict": "pass"}
    assert found.gates == ({"data-gate": "copies"},)


@pytest.mark.parametrize(
    "text",
    ["data-gate = 1", "data-gate=&quot;x&quot;", "data-evidence-digest is data-gate", "&lt;li data-gate >"],
)
def test_a_text_that_names_marks_is_none(text):
    found = read_marks(PAGE.format(f'<p title="{text.replace(">", "&gt;")}" hidden>{text}</p>'))
    assert found is not None
    assert found.gates == ({"data-gate": "copies"},)


@pytest.mark.parametrize(
    "content",
    [
        '<main data-evidence-digest="cd">',
        '<i DATA-GATE="other">',
        "<i data-gate='other'>",
        '<i title=">" data-gate="other">',
        '<i data-gate="a" data-gate="b">',
        '<li data-gate="a" data-gate="b">',
        '<li data-gate="a" data-evidence-digest="b">',
        '<i data-gate="a" data-evidence-digest="b">',
        "<i data-gate>",
        '<i\ndata-gate="other">',
        '<!-- <li data-gate="other"> -->',
        '<i title="<li data-gate="other" data-result="pass">',
        '<style><li data-gate="other"></style>',
        '<title><li data-gate="other"></title>',
        '<template><li data-gate="other"></template>',
        '<select><li data-gate="other"></select>',
        '<td data-gate="other">',
        '<li data-gate="&ampx;">',
    ],
)
def test_marks_that_others_may_read_otherwise_are_not_clear(content):
    assert read_marks(PAGE.format(content)) is None
