"""The build: one digest for a checkout and its wheel, another for any change, read only when asked for."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import synth_audit
from synth_audit import build

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
