"""Tests of one plug-in stay together."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def by_name(names: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrises a test with plug-ins; one process runs all tests of one, which share what they make."""
    together = (pytest.param(n, marks=pytest.mark.xdist_group(f"conformance of {n}")) for n in names)
    return pytest.mark.parametrize("name", list(together))
