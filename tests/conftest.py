"""Invented evidence, for the tests of the report and of how a browser shows it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from synth_audit.core.outcome import AuditOutcome

_FOLDER = Path(__file__).parent / "report"


def _load(name: str, file: str) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _FOLDER / file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def build() -> ModuleType:
    """The module that makes evidence."""
    _load("report_pieces", "pieces.py")
    return _load("report_builder", "builder.py")


for _name in ("reading", "sweeps"):  # imported by tests of the report, which are no package
    _load(f"report_{_name}", f"{_name}.py")


@pytest.fixture
def one(build: ModuleType) -> AuditOutcome:
    """One audit whose numbers all see a full copy."""
    outcome: AuditOutcome = build.answering(build.closest_record())
    return outcome
