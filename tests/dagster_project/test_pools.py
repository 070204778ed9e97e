"""Stages with costly fits wait in pools named for what they need, which the example deployment limits."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import pytest
import yaml

from synth_audit import registry
from synth_audit.dagster.assets import stage_assets
from synth_audit.dagster.component import AuditedTable
from synth_audit.dagster.entry import GPU, MEMORY
from synth_audit.plugins.generator import FitContext, GeneratorInfo, Model, Needs
from synth_audit.table.table import Table

PAGE = Path(__file__).parents[2] / "docs" / "dagster.md"
Pools = Callable[..., dict[str, str | None]]


@dataclass(frozen=True, kw_only=True)
class Wanting:
    """A generator whose needs are a setting."""

    gpu: bool = False
    memory: float = 0.0
    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Wanting", summary="Needs what it is told to.")

    @property
    def needs(self) -> Needs:
        return Needs(gpu=self.gpu, memory=self.memory)

    def fit(self, train: Table, context: FitContext) -> Model:
        raise AssertionError

    def load(self, folder: Path) -> Model:
        raise AssertionError


@pytest.fixture
def pools(component: Callable[..., AuditedTable], monkeypatch: pytest.MonkeyPatch) -> Pools:
    """The pool of each stage of a table whose generator needs what is given."""
    others = registry._entry_points
    point = EntryPoint("wanting", f"{__name__}:Wanting", "synth_audit.generators")
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Wanting.__module__])
    added = {"generator": (point,)}
    monkeypatch.setattr(registry, "_entry_points", lambda room: (*others(room), *added.get(room, ())))

    def of(needs: dict[str, Any], **settings: Any) -> dict[str, str | None]:
        table = component({"wanting": needs}, **settings).table()
        return {a.op.name.split("__")[-1]: a.op.pool for a in stage_assets(table)}

    return of


@pytest.mark.parametrize(
    ("needs", "pool"),
    [
        ({}, None),
        ({"gpu": True}, GPU),
        ({"memory": 12.0}, MEMORY),
        ({"gpu": True, "memory": 12.0}, GPU),
    ],
)
def test_the_fit_waits_in_the_pool_of_what_it_needs(pools: Pools, needs: dict[str, Any], pool: str) -> None:
    found = pools(needs)
    assert found.pop("synthetic") == pool
    assert set(found.values()) == {None}, "nothing else fits anything"


def test_games_fit_again_and_wait_too(pools: Pools) -> None:
    assert pools({"gpu": True}, audits=["membership_game"])["audit"] == GPU
    assert pools({}, audits=["membership_game"])["audit"] is None


def test_a_game_that_a_gate_brings_along_counts(pools: Pools, home: Path) -> None:
    suite = (home / "gates.json").read_text().replace("exact_match.excess", "membership_game.privacy_gain")
    suite = suite.replace('"maximum": 0.2, "bound": "upper"', '"minimum": 0.2, "bound": "lower"')
    (home / "gates.json").write_text(suite)
    assert pools({"gpu": True})["audit"] == GPU


def test_a_sweep_waits_for_what_any_of_its_candidates_needs(pools: Pools) -> None:
    spec = {"generators": ["shuffled", {"wanting": {"memory": 3.0}}], "privacy": "exact_match.excess"}
    assert pools({}, frontier=spec)["frontier"] == MEMORY
    varied = {"vary": {"gpu": [False, True]}, "privacy": "exact_match.excess"}
    assert pools({}, frontier=varied)["frontier"] == GPU
    light = {"generators": ["shuffled"], "privacy": "exact_match.excess"}
    assert pools({}, frontier=light)["frontier"] is None


def test_the_example_deployment_is_one_that_dagster_takes(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [example] = (text for text in examples if text.startswith("concurrency:"))
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=yaml.safe_load(example)) as instance:
        config = instance.get_concurrency_config()
        assert config.pool_config.default_pool_limit == 1
        assert config.pool_config.pool_granularity is not None
        assert config.pool_config.pool_granularity.value == "op"
        commands = re.findall(r"^dagster instance concurrency set (\w+) (\d+)$", PAGE.read_text(), re.M)
        for pool, limit in commands:
            instance.event_log_storage.set_concurrency_slots(pool, int(limit))
        limits = {p.name: p.limit for p in instance.event_log_storage.get_pool_limits()}
        assert limits == {GPU: 2, MEMORY: 3}
