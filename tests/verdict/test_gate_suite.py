"""Reading suites: what is refused before anything is judged."""

import copy
import json
import subprocess
import sys
from datetime import date
from types import SimpleNamespace

import pytest

from synth_audit import registry
from synth_audit.errors import GateError, PluginError
from synth_audit.store.evidence import sha256_of
from synth_audit.verdict.suite import MEASUREMENT_TYPE, load_suite, parse_suite, table_expectation_types
from synth_audit.verdict.table_checks import check_buildable

PLAIN = {
    "name": "test",
    "expectations": [
        {
            "type": MEASUREMENT_TYPE,
            "kwargs": {"name": "copies.excess", "maximum": 0.02},
            "meta": {"id": "copies", "reason": "copies disclose"},
            "severity": "critical",
        },
        {
            "type": "expect_table_row_count_to_be_between",
            "kwargs": {"min_value": 1},
            "meta": {"id": "rows", "reason": "an empty table serves nobody", "title": "Some rows"},
            "severity": "warning",
        },
    ],
}


class BrokenRef:
    @property
    def info(self):
        raise PluginError("audit plug-in 'broken' does not import")


def ref(*quantities, family="privacy"):
    info = SimpleNamespace(quantities=[SimpleNamespace(name=q) for q in quantities])
    return SimpleNamespace(info=info, family=family)


@pytest.fixture(autouse=True)
def _catalogue(monkeypatch):
    known = {"copies": ref("excess", "share"), "broken": BrokenRef(), "closest_record": ref("privacy_score")}
    monkeypatch.setattr(registry, "catalogue", lambda room: known)


def changed(change):
    plain = copy.deepcopy(PLAIN)
    change(plain, plain["expectations"][0])
    return plain


def test_a_sound_suite():
    suite = parse_suite(PLAIN)
    assert suite.plain == PLAIN
    assert suite.sha256 == sha256_of(PLAIN)
    assert [(g.id, g.blocking, g.limit is None) for g in suite.gates] == [
        ("copies", True, False),
        ("rows", False, True),
    ]
    assert [g.title for g in suite.gates] == ["copies.excess at most 0.02", "Some rows"]
    check_buildable(suite.on_table)


def put(**kwargs):
    return lambda _, first: first["kwargs"].update(kwargs)


def meta(**values):
    return lambda _, first: first["meta"].update(values)


DAMAGES = {
    "no name": (lambda s, _: s.pop("name"), "no name"),
    "no expectations": (lambda s, _: s.update(expectations=[]), "holds no expectations"),
    "expectations as text": (lambda s, _: s.update(expectations="all"), "holds no expectations"),
    "misspelt key of the suite": (lambda s, _: s.update(expectation=[]), "unknown key 'expectation'"),
    "an expectation that is text": (lambda s, _: s["expectations"].append("x"), "not a mapping"),
    "misspelt key": (lambda _, f: f.update(severty="info"), "unknown key 'severty'"),
    "unknown type": (lambda _, f: f.update(type="expect_measurement_to_be_fine"), "unknown expectation type"),
    "unknown built-in": (
        lambda s, _: s["expectations"][1].update(type="expect_table_row_count_to_be_betwen"),
        "unknown expectation type",
    ),
    "no type": (lambda _, f: f.pop("type"), "unknown expectation type"),
    "a list as type": (lambda _, f: f.update(type=[]), "unknown expectation type"),
    "bad severity": (lambda _, f: f.update(severity="fatal"), "unknown severity"),
    "unhashable severity": (lambda _, f: f.update(severity=["critical"]), "unknown severity"),
    "no meta": (lambda _, f: f.pop("meta"), "no id"),
    "empty id": (meta(id=" "), "no id"),
    "same id twice": (meta(id="rows"), "'rows' occurs more than once"),
    "same expectation twice": (
        lambda s, f: s["expectations"].append({**f, "meta": {"id": "again", "reason": "r"}}),
        "occurs more than once",
    ),
    "no reason": (lambda _, f: f["meta"].pop("reason"), "states no reason"),
    "blank reason": (meta(reason="  "), "states no reason"),
    "reason that is no text": (meta(reason=1), "meta.reason is not text"),
    "misspelt blocking": (meta(bloking=True), "'bloking'"),
    "blocking as text": (meta(blocking="no"), "neither true nor false"),
    "undecided as text": (meta(undecided="no"), "undecided is neither true nor false"),
    "no kwargs": (lambda _, f: f.pop("kwargs"), "no kwargs"),
    "misspelt limit": (put(maxmum=1), "unknown argument 'maxmum'"),
    "no limit": (lambda _, f: f["kwargs"].pop("maximum"), "give a finite"),
    "crossed limits": (put(minimum=7), "`minimum` must lie below `maximum`"),
    "optimistic end": (put(bound="lower"), "`bound` must be upper"),
    "result format in kwargs": (put(result_format="COMPLETE"), "'result_format' may not stand in kwargs"),
    "meta in kwargs": (put(meta={"id": "x"}), "'meta' may not stand in kwargs"),
    "severity in kwargs": (put(severity="info"), "'severity' may not stand in kwargs"),
    "parameter without value": (put(maximum={"$PARAMETER": "x"}), "suite parameter"),
    "no name of a measurement": (lambda _, f: f["kwargs"].pop("name"), "audit.quantity"),
    "name without an audit": (put(name="excess"), "<audit>.<quantity>"),
    "name with a scope in it": (put(name="copies.excess[by age]"), "cannot be read"),
    "unreadable scope": (put(scope="by baby weight"), "in double quotes"),
    "old scope of a derived number": (
        put(name="copies.leak_equivalent", scope="excess[ranks]"),
        "of quantity",
    ),
    "derived number of none": (put(name="copies.leak_equivalent"), "derived from another number"),
    "scope of what is not derived": (put(scope="of excess"), "no derived number"),
    "derived from an unknown number": (put(name="copies.leak_equivalent", scope="of exces"), "'exces'"),
    "unknown audit": (put(name="copis.excess"), "did you mean 'copies'?"),
    "unknown quantity": (put(name="copies.exces"), "did you mean 'excess'?"),
    "audit that does not load": (put(name="broken.excess"), "does not load"),
    "nothing blocks": (lambda _, f: f.update(severity="warning"), "whatever the audits found"),
    "only a table check blocks": (
        lambda s, f: (f.update(severity="info"), s["expectations"][1].update(severity="critical")),
        "whatever the audits found",
    ),
    "a limit of 400 digits": (put(maximum=10**400), "give a finite"),
    "a date as an argument": (lambda _, f: f["kwargs"].update({date(2024, 1, 2): 1}), "JSON cannot hold"),
    "a number as an argument": (lambda _, f: f["kwargs"].update({1: 1}), "JSON cannot hold"),
    "a value that JSON cannot hold": (lambda s, _: s.update(notes={1, 2}), "JSON cannot hold"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_refused(name):
    change, says = DAMAGES[name]
    with pytest.raises(GateError) as caught:
        parse_suite(changed(change), where="here")
    assert says in str(caught.value)
    assert "where: here" in str(caught.value)


def test_old_suites_can_be_judged_without_their_audits():
    plain = changed(put(name="gone.excess"))
    assert parse_suite(plain, installed=False).measured[0].limit.measurement.name == "gone.excess"


def test_blocking_can_be_stated():
    assert (
        not parse_suite(
            changed(
                lambda s, f: (
                    s["expectations"][1]["meta"].update(blocking=False),
                    f["meta"].update(owner="me"),
                )
            )
        )
        .gates[1]
        .blocking
    )
    assert (
        parse_suite(changed(lambda s, _: s["expectations"][1]["meta"].update(blocking=True)))
        .gates[1]
        .blocking
    )
    assert parse_suite(changed(lambda _, f: f.pop("severity"))).gates[0].blocking


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["expectations"][1]["kwargs"].update(min_valu=1),
        lambda s: s["expectations"][1]["kwargs"].update(min_value="many"),
        lambda s: s["expectations"].append(
            {"type": "expect_column_to_exist", "kwargs": {}, "meta": {"id": "x", "reason": "r"}}
        ),
    ],
)
def test_arguments_are_checked_by_great_expectations(change):
    suite = parse_suite(changed(lambda s, _: change(s)))
    with pytest.raises(GateError, match="Great Expectations refuses"):
        check_buildable(suite.on_table)


def test_files(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(PLAIN))
    (tmp_path / "b.yaml").write_text(json.dumps(PLAIN, indent=1))
    assert load_suite("a.json", tmp_path) == load_suite("b.yaml", tmp_path)
    assert load_suite(str(tmp_path / "a.json"), tmp_path / "elsewhere").name == "test"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("x.json", b'{"name": "test", "expectations": ['),
        ("x.json", b"\xff\xfe"),
        ("x.json", b""),
        ("x.json", b"[]"),
        ("x.yaml", b"name: [test"),
        ("x.yaml", b"name: a\nname: b\n"),
        ("x.yaml", b"!!python/object/apply:os.getcwd []"),
        ("x.json", b'{"name": "test", "name": "test", "expectations": []}'),
        ("x.yaml", b""),
    ],
)
def test_damaged_files(tmp_path, file, content):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(GateError):
        load_suite(file, tmp_path)


def test_a_limit_given_twice_is_damage(tmp_path):
    text = json.dumps(PLAIN)
    twice = text.replace('"maximum": 0.02', '"maximum": 0.02, "maximum": 0.9')
    assert twice != text
    for file in ("x.json", "x.yaml"):
        (tmp_path / file).write_text(twice)
        with pytest.raises(GateError, match="damaged"):
            load_suite(file, tmp_path)


@pytest.mark.parametrize(
    ("file", "value", "says"),
    [
        ("x.json", "NaN", "NaN is no JSON"),
        ("x.json", "Infinity", "Infinity is no JSON"),
        ("x.json", "1e999", "give a finite"),
        ("x.yaml", ".nan", "give a finite"),
        ("x.yaml", ".inf", "give a finite"),
    ],
)
def test_a_limit_that_is_no_number_is_refused(tmp_path, file, value, says):
    (tmp_path / file).write_text(json.dumps(PLAIN).replace("0.02", value))
    with pytest.raises(GateError, match=says):
        load_suite(file, tmp_path)


def test_missing_suite_names_those_that_ship(tmp_path):
    with pytest.raises(GateError, match=r"(?s)no gate suite 'nothing'.*release"):
        load_suite("nothing", tmp_path)


@pytest.fixture
def shipped(monkeypatch):
    """A catalogue with the audits that the shipped suites judge."""
    quantities = {
        "exact_match": ("excess", "record_excess", "identifier_reuse"),
        "recognition": ("found", "found_in_subgroup", "detection_limit"),
        "singling_out": ("worst_risk",),
        "linkability": ("risk",),
        "inference": ("overall_risk",),
        "one_run": ("empirical_epsilon",),
        "novel_content": ("novel",),
        "marginals": ("total_variation",),
        "associations": ("lost",),
        "coverage": ("auprc",),
        "constraints": ("worst_violations",),
        "prediction": ("loss",),
        "each_column": ("lost",),
    }
    useful = ("novel_content", "marginals", "associations", "coverage", "constraints", "prediction")
    useful += ("each_column",)
    found = {
        name: ref(*names, family="fidelity" if name in useful else "privacy")
        for name, names in quantities.items()
    }
    monkeypatch.setattr(registry, "catalogue", lambda room: found)


@pytest.mark.usefixtures("shipped")
def test_the_shipped_suite(tmp_path):
    suite = load_suite("expectations/release.json", tmp_path)
    assert suite == load_suite("release", tmp_path)
    assert len(suite.gates) == 16
    useful = ["marginals", "associations", "coverage", "rules", "prediction", "each_column"]
    assert [g.id for g in suite.gates if not g.blocking] == ["linkability", "proven_cost", *useful]
    [limit] = [g for g in suite.gates if g.undecided]
    assert limit.id == "detection_limit"
    assert limit.blocking
    assert all(len(g.reason) > 100 and g.advice for g in suite.gates)
    check_buildable(suite.on_table)


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize("name", ["sensitive", "health"])
def test_the_other_suites_differ_by_stricter_numbers(tmp_path, name):
    usual, strict = (load_suite(name, tmp_path) for name in ("release", name))
    assert [g.id for g in usual.gates] == [g.id for g in strict.gates]
    for one, other in zip(usual.gates, strict.gates, strict=True):
        assert (other.optional, other.fitness) == (one.optional, one.fitness)
        assert other.blocking or not one.blocking
        assert one.limit
        assert other.limit
        [strict_side], [usual_side] = other.limit.sides, one.limit.sides
        assert abs(strict_side.number) <= abs(usual_side.number)
        assert len(other.reason) > 100
    check_buildable(strict.on_table)


def test_a_plan_s_own_file_comes_before_the_shipped_one(tmp_path):
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "release.json").write_text(json.dumps(PLAIN))
    assert load_suite("expectations/release.json", tmp_path).name == "test"


def test_no_type_that_great_expectations_registers_is_unknown():
    import synth_audit.verdict.expectations  # noqa: F401  (imports the library with its warnings caught)

    # isort: split
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    registered = {t for t in list_registered_expectation_implementations() if t.startswith("expect_")}
    assert len(registered) > 40
    assert registered - table_expectation_types() == {MEASUREMENT_TYPE}


def test_a_type_whose_file_registers_nothing_is_refused_when_built():
    kind = "expect_column_bootstrapped_ks_test_p_value_to_be_greater_than"
    suite = parse_suite(changed(lambda s, _: s["expectations"][1].update(type=kind)))
    with pytest.raises(GateError, match="ExpectationNotFoundError"):
        check_buildable(suite.on_table)


def test_without_checks_of_the_table_great_expectations_stays_unimported():
    code = (
        "import sys\n"
        "from synth_audit.verdict.judge import judge\n"
        "from synth_audit.verdict.suite import parse_suite\n"
        "from synth_audit.verdict.table_checks import check_buildable\n"
        "s = parse_suite({'name': 'x', 'expectations': [{'type': 'expect_measurement_to_be_within',"
        "'kwargs': {'name': 'a.b', 'maximum': 1}, 'meta': {'id': 'a', 'reason': 'r'}}]}, installed=False)\n"
        "check_buildable(s.on_table)\n"
        "assert str(judge(s, (), ()).verdict) == 'insufficient evidence'\n"
        "sys.exit(any(m.split('.')[0] == 'great_expectations' for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
