from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from synth_audit.commands import listing
from synth_audit.core.registry import PluginRef
from synth_audit.core.source import SourceInfo


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A source with every way to give a default."""

    path: str
    delimiter: str = ","
    names: dict[str, str] = field(default_factory=lambda: {"a": "b"})
    info: ClassVar[SourceInfo] = SourceInfo(title="Sample", summary="For the test.")


def test_only_settings_without_a_default_are_required(capsys):
    listing.show_plugin(PluginRef("source", "sample", "sources", __name__, "Sample"), as_json=False)
    said = capsys.readouterr().out
    settings = said.partition("settings\n")[2].partition("how it works")[0].split("\n")
    assert [line.strip() for line in settings if line.strip()] == [
        "path: text; required",
        "delimiter: text; default ','",
        "names: mapping; default {a: b}",
    ]
    assert "source: {sample: {path: …, delimiter: ','" in said
