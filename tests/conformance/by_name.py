"""Tests of one plug-in stay together."""

from collections.abc import Collection, Iterable

import pytest


def by_name(names: Iterable[str], slow: Collection[str] = ()) -> pytest.MarkDecorator:
    """Parametrises a test with plug-ins; one process runs all tests of one, which share what they make."""

    def marked(name: str) -> object:
        marks = [pytest.mark.xdist_group(f"conformance of {name}"), *[pytest.mark.slow] * (name in slow)]
        return pytest.param(name, marks=marks)

    return pytest.mark.parametrize("name", [marked(name) for name in names])
