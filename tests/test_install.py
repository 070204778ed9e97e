"""Installation and build: pip's settings for uv, one digest for all builds, files of a release."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import synth_audit
from synth_audit import build


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


ROOT = Path(__file__).parents[1]
PRINT = "from synth_audit.build import build_id; print(build_id())"


def printed(code: str, home: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=home)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package as a wheel lays it out."""
    ignored = shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(ROOT / "synth_audit", tmp_path / "synth_audit", ignore=ignored)
    shutil.copytree(ROOT / "reports_templates", package / "_resources" / "reports_templates")
    shutil.copytree(ROOT / "expectations", package / "_resources" / "expectations")
    return tmp_path


def test_a_wheel_has_the_build_of_its_checkout(installed: Path) -> None:
    (installed / "synth_audit/.#errors.py").write_text("an editor's")
    assert printed(PRINT, installed) == build.build_id()


@pytest.mark.parametrize("name", ["verdict/judge.py", "_resources/reports_templates/certificate.html.j2"])
def test_any_change_of_a_module_or_template_is_another_build(installed: Path, name: str) -> None:
    path = installed / "synth_audit" / name
    path.write_bytes(path.read_bytes() + b"\n")
    other = printed(PRINT, installed)
    assert other != build.build_id()
    path.rename(path.with_stem(f"{path.stem}_"))
    assert printed(PRINT, installed) not in (other, build.build_id())


def test_the_version_is_that_of_the_package_with_the_build_as_its_local_part() -> None:
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert synth_audit.__version__ == packaged
    assert build.build_version() == f"{packaged}+{build.build_id()}"


def test_help_does_not_read_the_package() -> None:
    code = (
        "from synth_audit.cli import main\n"
        "from synth_audit.build import build_id\n"
        "try:\n    main(['audit', '--help'], prog_name='synth-audit')\n"
        "except SystemExit:\n    print(build_id.cache_info().misses)"
    )
    assert printed(code, ROOT).splitlines()[-1] == "0"


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
