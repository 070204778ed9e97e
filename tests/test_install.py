"""What uv is told of pip's settings when the environment is made."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.version import Version


@pytest.fixture(scope="module")
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", Path(__file__).parents[1] / ".ci/install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_where_packages_come_from_is_handed_on_and_the_environment_weighs_most(install: ModuleType) -> None:
    given = install.settings(
        ":env:.extra-index-url='https://one https://two'\n"
        ":env:.no-input='1'\n"
        "global.constraint='/etc/pip/constraints.txt'\n"
        "global.extra-index-url='https://three'\n"
        "global.index-url='https://mirror'\n"
        "install.find-links='/wheels\\n/more'\n"
    )
    assert install.uv_arguments(given) == [
        *("--default-index", "https://mirror", "--index", "https://one", "--index", "https://two"),
        *("--find-links", "/wheels", "--find-links", "/more", "--constraints", "/etc/pip/constraints.txt"),
    ]


@pytest.mark.parametrize("line", ["global.no-index='true'", "global.proxy='http://p'", "install.pre='yes'"])
def test_a_setting_that_uv_is_not_told_of_leaves_the_work_to_pip(install: ModuleType, line: str) -> None:
    assert install.uv_arguments(install.settings(line)) is None


def test_without_settings_nothing_is_added(install: ModuleType) -> None:
    assert install.uv_arguments(install.settings("")) == []


def test_the_lowest_versions_that_are_tested_are_those_that_are_allowed() -> None:
    root = Path(__file__).parents[1]
    asked = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    lines = (root / ".ci/lowest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    for requirement in map(Requirement, asked):
        (lowest,) = (one.version for one in requirement.specifier if one.operator == ">=")
        assert Version(tested[requirement.name]) == Version(lowest), requirement.name


def test_the_lowest_versions_are_asked_for_by_their_word(install: ModuleType) -> None:
    assert install.wanted(["--lowest", "test"]) == ["-c", ".ci/lowest.txt", "-e", ".[test]"]
    assert install.wanted(["dagster"]) == ["-c", "constraints.txt", "-e", ".[dagster]"]
    assert install.wanted([]) == ["-c", "constraints.txt", "-e", ".[dev,deep]"]
