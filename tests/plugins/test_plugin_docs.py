"""What the docs tell of a plug-in is what its code says, and says something of every setting."""

from dataclasses import fields
from typing import Literal

import pytest
import yaml

from synth_audit import registry
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.plugin_config import accepted, plugin_doc

REFS = {
    (room, name): ref
    for room in ("source", "generator", "audit")
    for name, ref in registry.catalogue(room).items()
}


@pytest.mark.parametrize(("room", "name"), REFS)
def test_every_setting_is_explained_and_the_example_is_a_plan(room, name):
    ref = REFS[room, name]
    doc = plugin_doc(ref)
    assert [s.name for s in doc.settings if not s.meaning] == []
    assert {s.name.split(".")[0] for s in doc.settings} == {f.name for f in fields(ref.load())}
    assert "Attributes:" not in doc.text
    plan = yaml.safe_load(doc.example)
    if "…" not in doc.example:
        parsed = parse_plan(plan)
        assert name in str(parsed.plain())


def test_defaults_are_what_a_plan_would_say():
    settings = {s.name: s for s in plugin_doc(REFS["audit", "closest_record"]).settings}
    assert yaml.safe_load(settings["alpha"].default) == registry.build("audit", "closest_record", {}).alpha
    assert settings["embedding_settings.dimension"].default == "null"
    assert plugin_doc(REFS["generator", "disjoint"]).settings[0].default is None


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (int, "whole number"),
        (int | None, "whole number or null"),
        (Literal["a", "b", "c"], "a, b or c"),
        (tuple[str, ...], "list of text"),
        (tuple[tuple[str, ...], ...], "list (list of text)"),
        (tuple[float, float], "[number, number]"),
        (Literal["a"] | tuple[str, ...], "a or list of text"),
        (dict[str, float], "mapping"),
    ],
)
def test_types_in_words(hint, words):
    assert accepted(hint) == words
