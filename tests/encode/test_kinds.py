"""Every column kind keeps the contract, and one new file is a new kind."""

import sys
from importlib.metadata import EntryPoint

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import registry
from synth_audit.column_kinds import number_kind
from synth_audit.errors import PlanError, PluginError
from synth_audit.execution.context import RunContext
from synth_audit.plan.plan import plan_schema
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.generator import FitContext
from synth_audit.table.kind import Clues, Disturbance, Domain, Kind, Scale, kind_named, kinds
from synth_audit.table.schema import Column, schema_from_plain, schema_to_plain
from synth_audit.table.schema_inference import ColumnSpec, infer_schema, kind_of
from synth_audit.table.table import assemble, read_table

EXAMPLES = {
    "continuous": [pa.array([0.5, None, -3.25, 2.0]), pa.array([1.5, 2.5, 9.0]).cast(pa.decimal128(9, 2))],
    "integer": [pa.array([3, None, -7, 12], pa.int16()), pa.array([1.0, None, 4.0])],
    "datetime": [
        pa.array([1, None, 10**15], pa.timestamp("us")),
        pa.array([0, 86_400], pa.timestamp("s", "Europe/Oslo")),
        pa.array([18_000, None], pa.date32()),
    ],
    "time": [
        pa.array([0, None, 86_399, 43_200], pa.time32("s")),
        pa.array([60_000, 7_200_000], pa.time32("ms")),
        pa.array([10**9, 86_399_999_999, None], pa.time64("us")),
        pa.array([10**12, 5 * 10**12], pa.time64("ns")),
    ],
    "boolean": [pa.array([True, None, False]), pa.array([1, 0, None], pa.int8()), pa.array([1.0, 0.0])],
    "categorical": [
        pa.array(["b", None, "a"]),
        pa.array(["b", "a"]).dictionary_encode(),
        pa.array([1, 2, 1]),
        pa.array(["x"], pa.large_string()),
    ],
    "text": [
        pa.array(["seen at night", None, "fell off a horse"]),
        pa.array(["seen at night", "fell off a horse"]).dictionary_encode(),
        pa.array(["fell off a horse"], pa.large_string()),
    ],
}
NOTES = pa.array([f"was seen {i} times at night" for i in range(50)])
every_example = pytest.mark.parametrize(
    ("kind", "values"),
    [pytest.param(kind_named(n), v, id=f"{n} as {v.type}") for n, many in EXAMPLES.items() for v in many],
)


def plain(kind, values):
    """Values as a generator hands them over."""
    return kind.plain(pa.chunked_array([values]))


def test_all_kinds_are_tried():
    assert {kind.name for kind in kinds()} == set(EXAMPLES)


@every_example
def test_values_come_back_in_their_type(kind, values):
    assert kind.allows(values.type)
    assert kind.stored(plain(kind, values), values.type).equals(values)


@every_example
def test_a_column_without_a_type_is_of_any_kind(kind, values):
    assert kind.allows(pa.null())
    assert kind.stored(plain(kind, values), pa.null()).null_count == len(values)


@every_example
def test_the_domain_is_what_occurs(kind, values):
    found, known = kind.domain(pa.chunked_array([values])), plain(kind, values.drop_null())
    if kind.scale is Scale.QUANTITATIVE:
        assert found == Domain(bounds=(known.min(), known.max()))
    else:
        assert found == Domain(categories=tuple(sorted(set(known))))
    assert kind.domain(pa.chunked_array([values.filter(pa.array([False] * len(values)))])).bounds is None


@every_example
def test_a_frame_holds_one_of_its_types(kind, values):
    framed = kind.framed(pa.chunked_array([values]))
    assert len(framed) == len(values)
    assert int(framed.isna().sum()) == values.null_count
    names = {str(framed.dtype), type(framed.dtype).__name__, *{type(x).__name__ for x in framed.dropna()}}
    assert names & set(kind.info.frame_types)


@every_example
def test_noise_keeps_what_is_missing_and_none_changes_nothing(kind, values):
    before, domain = plain(kind, values), kind.domain(pa.chunked_array([values]))
    rng = np.random.default_rng(0)
    for how in (Disturbance(0.0, 0.0, 0.0), Disturbance(2.0, 5.0, 1.0)):
        after = kind.disturbed(before.copy(), domain, how, rng)
        assert np.array_equal(kind.stored(after, values.type).is_null(), values.is_null())
        if not how.flip:
            assert kind.stored(after, values.type).equals(values)
    if values.null_count < len(values) - 1:
        assert not kind.stored(after, values.type).equals(values)


@every_example
def test_a_kind_is_plain_to_a_reader(kind, values):
    assert str(kind) == kind.name
    assert kind_named(kind.name) is kind
    assert kind.info.title
    assert kind.info.summary
    assert ColumnSpec(kind=kind.name).kind == kind.name


@pytest.mark.parametrize(
    ("values", "clues", "name"),
    [
        (pa.array([1, 2, 1]), Clues(), "categorical"),
        (pa.array([1, 2, 1]), Clues(ranked=True), "integer"),
        (pa.array([1.5, 2.5]), Clues(bounds=True), "continuous"),
        (pa.array([1.5, 2.5, 3.5]), Clues(categories=True), "categorical"),
        (pa.array([True, False]), Clues(categories=True), "boolean"),
        (pa.array([1, 2], pa.timestamp("s")), Clues(released=False), "datetime"),
        (pa.array([1, 2], pa.timestamp("s")), Clues(categories=True), "categorical"),
        (pa.array([1, 2], pa.time32("s")), Clues(released=False), "categorical"),
        (pa.array([b"a"]), Clues(released=False), "categorical"),
        (pa.array([1, 2], pa.time32("s")), Clues(), "time"),
        (pa.array([1, 2], pa.time32("s")), Clues(categories=True), "categorical"),
        (pa.array([[1]]), Clues(released=False), None),
        (NOTES, Clues(), "text"),
        (NOTES.dictionary_encode(), Clues(), "text"),
        (pa.array(NOTES.to_pylist() * 3), Clues(), "categorical"),
        (NOTES[:10], Clues(), "categorical"),
        (NOTES, Clues(released=False), "categorical"),
        (NOTES, Clues(categories=True), "categorical"),
        (pa.array([f"Jane Doe{i}" for i in range(50)]), Clues(), "categorical"),
        (pa.array([f"{i},5 mg" for i in range(50)]), Clues(), "categorical"),
    ],
)
def test_the_kind_follows_from_storage_values_and_clues(values, clues, name):
    found = kind_of(pa.chunked_array([values]), clues)
    assert (found and found.name) == name


NEW = """
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from synth_audit.table.kind import KindInfo
from synth_audit.column_kinds._bases import TextLabels


@dataclass(frozen=True)
class Postcode(TextLabels):
    info: ClassVar[KindInfo] = KindInfo(
        title="Postcode", summary="Five digits.", precedence=30, frame_types=("str",)
    )

    def allows(self, storage):
        return pa.types.is_string(storage) or pa.types.is_null(storage)

    def suits(self, values, clues):
        return pa.types.is_string(values.type) and all(
            len(x) == 5 and x.isdigit() for x in values.drop_null().to_pylist()
        )

    def label_meant(self, text):
        return text.zfill(5)
"""


SHARE = """
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.table.kind import KindInfo
from synth_audit.column_kinds._bases import Numbers


@dataclass(frozen=True)
class Share(Numbers):
    info: ClassVar[KindInfo] = KindInfo(
        title="Share", summary="From 0 to 1.", precedence=30, frame_types=("float64",)
    )

    def suits(self, values, clues):
        return pa.types.is_floating(values.type) and pc.all(pc.equal(pc.floor(values), 0)).as_py()

    def support(self, declared):
        return declared or (0.0, 1.0)
"""


@pytest.fixture
def one_more(tmp_path, monkeypatch):
    """A file put beside the others, and nothing else; then one of numbers."""
    from synth_audit import column_kinds as room

    (tmp_path / "postcode.py").write_text(NEW)
    (tmp_path / "share.py").write_text(SHARE)
    monkeypatch.setattr(room, "__path__", [*room.__path__, str(tmp_path)])
    registry._built_in.cache_clear()
    yield
    registry._built_in.cache_clear()
    for name in ("postcode", "share"):
        sys.modules.pop(f"synth_audit.column_kinds.{name}", None)


@pytest.mark.usefixtures("one_more")
def test_one_new_file_is_a_new_kind():
    data = pa.table({"zip": ["01234", "99999"], "city": ["Oslo", "Bergen"]})
    schema = infer_schema(data, {"city": ColumnSpec(kind="categorical")})
    assert [c.kind.name for c in schema] == ["postcode", "categorical"]
    table = read_table(data, schema, where="train")
    assert assemble(schema, {n: table.labels(n) for n in table.names}).data.equals(data)
    declared = infer_schema(data, {"zip": ColumnSpec(categories=("1234", "99999"))})["zip"]
    assert declared.declared_categories == ("01234", "99999")
    choices = plan_schema()["$defs"]["ColumnSpec"]["properties"]["kind"]["anyOf"][0]["enum"]
    assert "postcode" in choices


def places(n, seed):
    """Rows of both new kinds, and of one that is there already."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    return pa.table({"zip": [f"0{i}150" for i in z], "rate": rng.beta(1 + z, 3), "x": rng.normal(z)})


@pytest.mark.usefixtures("one_more")
@pytest.mark.parametrize("name", ["independent", "vine"])
def test_generators_learn_a_new_kind_and_give_it_back(name, tmp_path):
    data = places(300, 0)
    schema = infer_schema(data)
    assert [str(c.kind) for c in schema] == ["postcode", "share", "continuous"]
    train = read_table(data, schema, where="train")
    generator = registry.find("generator", name).load()()
    model = generator.fit(train, FitContext(rng=np.random.default_rng(1)))
    made = model.sample(200, np.random.default_rng(2))
    assert made.data.schema.types == data.schema.types
    assert set(made.labels("zip")) == set(schema["zip"].categories)
    assert 0 <= made.numbers("rate").min() < made.numbers("rate").max() <= 1
    model.save(tmp_path)
    again = generator.load(tmp_path).sample(200, np.random.default_rng(2))
    assert again.schema["rate"].kind is schema["rate"].kind
    assert again.data.equals(made.data)


@pytest.mark.usefixtures("one_more")
def test_an_audit_measures_a_new_kind():
    schema = infer_schema(places(60, 0))
    tables = [read_table(places(60, seed), schema, where="train") for seed in range(3)]
    audit = registry.find("audit", "marginals").load()()
    found = audit.run(Subject(*tables), RunContext(seed=0, draws=np.random.default_rng(0)))
    assert {m.id.column for m in found.measurements} >= {"zip", "rate", "x"}
    assert {m.id.column for m in found.measurements if m.id.quantity == "ks"} - {""} == {"rate", "x"}


@pytest.mark.slow
@pytest.mark.usefixtures("one_more")
def test_a_whole_default_audit_measures_new_kinds():
    import synth_audit

    tables = [places(60, seed) for seed in range(3)]
    evidence = synth_audit.audit(*tables, {"name": "new", "columns": {"zip": {"role": "target"}}}, workers=1)
    assert [c.kind for c in evidence.columns] == ["postcode", "share", "continuous"]
    skipped = {o.audit: o.status for o in evidence.outcomes if o.status != "measured"}
    # There is nothing that the plan declares, neither rules nor that the split was made by lot.
    assert skipped == {"constraints": "not applicable", "one_run": "not applicable"}
    columns = {m.id.column for m in evidence.measurements if m.id.quantity == "total_variation"}
    assert columns >= {"zip", "rate", "x"}
    assert {m.id.column for m in evidence.measurements if m.id.quantity == "ks"} - {""} == {"rate", "x"}
    assert {m.id.column for m in evidence.measurements if m.id.quantity == "chi_square"} - {""} == {"zip"}


def test_an_unknown_kind_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="unknown kind 'colour'; one of boolean, categorical, continuous"):
        ColumnSpec(kind="colour")
    with pytest.raises(PlanError):
        kind_named("colour")


def test_a_kind_registered_under_another_name_than_its_file_s_is_found_again(monkeypatch):
    point = EntryPoint("money", "synth_audit.column_kinds.continuous:Continuous", "synth_audit.kinds")
    monkeypatch.setattr(registry, "_entry_points", lambda room: (point,) if room == "kind" else ())
    schema = infer_schema(pa.table({"x": [0.5, 1.5, 2.5]}), {"x": ColumnSpec(kind="money")})
    assert str(schema["x"].kind) == "money"
    assert schema_from_plain(schema_to_plain(schema))["x"].kind is schema["x"].kind
    assert kind_named("continuous").name == "continuous"


def test_a_kind_that_lacks_answers_is_named_with_them():
    class Bare(Kind):
        """A kind that says how values are stored, and nothing of how columns are compared."""

    Bare.__abstractmethods__ = frozenset()
    with pytest.raises(PluginError, match="'test_kinds'") as refused:
        number_kind(Column("x", Bare(), pa.string()))
    assert "numbers or of labels" in refused.value.expected
    assert number_kind(Column("x", kind_named("boolean"), pa.bool_())) is None
