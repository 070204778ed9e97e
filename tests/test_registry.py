"""Plug-ins: found by file or entry point, one of a name, and never swallowed."""

import importlib
import pickle
import sys
from importlib.metadata import EntryPoint

import pytest

from synth_audit import registry
from synth_audit.errors import PlanError, PluginError
from synth_audit.plan.plan import parse_plan, plan_schema

AUDIT = '''
from dataclasses import dataclass
from typing import ClassVar

from synth_audit.findings.measurement import Findings, Quantity
from synth_audit.plugins.audit import AuditInfo


@dataclass(frozen=True, kw_only=True)
class Fresh:
    """A plug-in of one file."""

    strength: int = 3
    info: ClassVar[AuditInfo] = AuditInfo(
        title="Fresh",
        question="?",
        threat_model="",
        not_covered="",
        quantities=(Quantity("q", "Q"),),
        risk="utility",
    )

    def __post_init__(self):
        if self.strength < 1:
            raise ValueError("strength must be positive")

    def run(self, subject, rng):
        return Findings(())
'''


@pytest.fixture
def room(request, tmp_path, monkeypatch):
    """A folder that belongs to a room of audits, that of fidelity if not named, for the length of a test."""
    package = importlib.import_module(f"synth_audit.audits.{getattr(request, 'param', 'fidelity')}")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    registry._built_in.cache_clear()
    before = set(sys.modules)
    yield tmp_path
    registry._built_in.cache_clear()
    for name in set(sys.modules) - before:
        if name.startswith(f"{package.__name__}."):
            del sys.modules[name]


@pytest.fixture
def announced(monkeypatch):
    """Make entry points appear."""

    def announce(*points):
        monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
        registry._entry_points.cache_clear()

    yield announce
    registry._entry_points.cache_clear()


def test_a_new_file_appears_everywhere_without_another_edit(room):
    (room / "fresh.py").write_text(AUDIT)
    ref = registry.catalogue("audit")["fresh"]
    assert (ref.room, ref.family, ref.module) == ("audit", "fidelity", "synth_audit.audits.fidelity.fresh")
    audit = parse_plan({"audits": [{"fresh": {"strength": 5}}]}).check().build_audits()["fresh"]
    assert registry.config_of(audit) == {"strength": 5}
    assert "fresh" in parse_plan({}).build_audits()
    variants = plan_schema()["$defs"]["audit_plugin"]["anyOf"]
    [mine] = [v for v in variants if v.get("required") == ["fresh"]]
    assert mine["properties"]["fresh"]["anyOf"][0]["properties"]["strength"]["default"] == 3
    assert registry.config_schema(ref)["properties"]["strength"]["type"] == "integer"


@pytest.mark.parametrize("room", ["published"], indirect=True)
def test_a_published_score_is_of_the_privacy_family(room, announced):
    (room / "fresh.py").write_text(AUDIT)
    announced(EntryPoint("published.theirs", "their.module:Audit", "synth_audit.audits"))
    assert registry.find("audit", "theirs").family == registry.PRIVACY
    ref = registry.find("audit", "fresh")
    assert (ref.family, ref.module) == (registry.PRIVACY, "synth_audit.audits.published.fresh")


def test_a_package_is_a_plugin_of_its_name_and_its_parts_are_none(room):
    (room / "large").mkdir()
    (room / "large" / "parts.py").write_text("STRENGTH = 7\n")
    part = "from synth_audit.audits.fidelity.large.parts import STRENGTH"
    own = AUDIT.replace("strength: int = 3", "strength: int = STRENGTH")
    (room / "large" / "__init__.py").write_text(f"{part}\n{own}")
    assert "parts" not in registry.catalogue("audit")
    ref = registry.find("audit", "large")
    assert (ref.family, ref.module) == ("fidelity", "synth_audit.audits.fidelity.large")
    audit = registry.build("audit", "large", {})
    assert audit.strength == 7
    assert pickle.loads(pickle.dumps(audit)) == audit  # noqa: S301  # made a line above


def test_a_plugins_own_refusal_is_a_plan_error(room):
    (room / "fresh.py").write_text(AUDIT)
    with pytest.raises(PlanError, match="strength must be positive") as caught:
        registry.build("audit", "fresh", {"strength": 0})
    assert "strength" in caught.value.expected


def test_helpers_with_an_underscore_are_no_plugins(room):
    (room / "_shared.py").write_text("")
    assert "_shared" not in registry.catalogue("audit")


def test_listing_imports_nothing(room):
    (room / "broken.py").write_text("raise RuntimeError('at import')")
    assert "broken" in registry.catalogue("audit")


def test_a_plugin_that_does_not_import_keeps_its_traceback(room):
    (room / "broken.py").write_text("import no_such_package_here")
    with pytest.raises(PluginError, match="'broken' does not import") as caught:
        registry.find("audit", "broken").load()
    assert "no_such_package_here" in caught.value.fix
    assert "Traceback" in caught.value.fix
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize("text", ["", AUDIT + AUDIT.replace("class Fresh", "class Other")])
def test_a_file_holds_exactly_one_plugin(room, text):
    (room / "fresh.py").write_text(text)
    with pytest.raises(PluginError, match="exactly one dataclass"):
        registry.find("audit", "fresh").load()


def test_a_file_in_two_rooms_of_one_name_is_an_error(room):
    (room / "exact_match.py").write_text(AUDIT)
    with pytest.raises(PluginError, match="two audit plug-ins are named 'exact_match'") as caught:
        registry.catalogue("audit")
    assert "synth_audit.audits.privacy.exact_match" in caught.value.where
    assert "synth_audit.audits.fidelity.exact_match" in caught.value.where


def test_entry_points_join_the_catalogue(announced):
    target = "synth_audit.audits.fidelity.marginals:Marginals"
    announced(
        EntryPoint("fidelity.theirs", target, "synth_audit.audits"),
        EntryPoint("plain", target, "synth_audit.audits"),
        EntryPoint("elsewhere", target, "synth_audit.generators"),
    )
    found = registry.catalogue("audit")
    assert (found["theirs"].family, found["plain"].family) == ("fidelity", "privacy")
    assert "elsewhere" not in found
    assert registry.build("audit", "theirs", {"cells": 4}).cells == 4


def test_an_entry_point_of_a_built_in_name_is_an_error(announced):
    announced(EntryPoint("exact_match", "their.module:Audit", "synth_audit.audits"))
    with pytest.raises(PluginError, match="two audit plug-ins"):
        registry.catalogue("audit")


def test_an_entry_point_without_its_class_is_an_error(announced):
    announced(EntryPoint("theirs", "synth_audit.audits.fidelity.marginals:Absent", "synth_audit.audits"))
    with pytest.raises(PluginError, match="exactly one dataclass"):
        registry.find("audit", "theirs").load()


@pytest.mark.parametrize("kind", ["source", "generator", "audit"])
def test_everything_built_in_loads_and_says_what_it_is(kind):
    found = registry.catalogue(kind)
    assert list(found) == sorted(found)
    assert found
    for ref in found.values():
        cls = ref.load()
        assert cls.info.title
        assert registry.field_names(cls) == tuple(registry.config_schema(ref).get("properties", {}))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(PlanError) as caught:
        registry.find("audit", "no_such")
    assert "exact_match" in caught.value.expected
