"""The files that a release is made of agree, and the changelog keeps its form."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
_VERSION = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
"""Headings of Keep a Changelog."""
ENTRY_WORDS, VERSION_LINES = 25, 60
"""Limits of the project's writing rules for an entry, and of the first version for all of it."""


def test_version_and_day_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest, day = _VERSION.findall(CHANGELOG)[0]
    assert project["version"] == citation["version"] == newest
    assert citation["date-released"] == date.fromisoformat(day)
    assert project["license"] == citation["license"]


def test_the_changelog_has_the_form_of_keep_a_changelog():
    assert CHANGELOG.startswith("# Changelog\n")
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert len(headings) == 1 + len(_VERSION.findall(CHANGELOG))
    assert set(re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE)) <= KINDS
    entries = re.findall(r"^\* (.*(?:\n  .*)*)", CHANGELOG, re.MULTILINE)
    assert entries
    assert [entry for entry in entries if len(entry.split()) > ENTRY_WORDS] == []


def test_a_version_is_read_on_one_page():
    starts = [match.start() for match in _VERSION.finditer(CHANGELOG)]
    for start, end in zip(starts, [*starts[1:], len(CHANGELOG)], strict=True):
        assert len(CHANGELOG[start:end].splitlines()) <= VERSION_LINES
