"""The site builds without a broken link, and has a page for every plug-in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from synth_audit import registry

ROOT = Path(__file__).parents[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_site_is_whole_and_fetches_nothing(tmp_path):
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    for room in ("source", "generator", "audit"):
        for name in registry.catalogue(room):
            page = (tmp_path / f"plugins/{room}-{name}.html").read_text(encoding="utf-8")
            assert f'<h1 id="{name}">{name}</h1>' in page
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)", page.read_text(encoding="utf-8")
        )
        assert fetched == [], page
    assert not list(tmp_path.rglob("*.py"))
