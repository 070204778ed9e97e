"""What the page on deployment says can be held against the files it tells of."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "deployment"


def test_no_secret_is_written_into_the_files_and_telemetry_is_off() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    for service in compose["services"].values():
        secrets = {k: v for k, v in service["environment"].items() if re.search("PASSWORD|KEY|WEBHOOK", k)}
        assert secrets
        assert all(value.startswith("${") for value in secrets.values())
    settings = yaml.safe_load((FOLDER / "dagster.yaml").read_text())
    assert settings["telemetry"] == {"enabled": False}
    assert settings["run_retries"] == {
        "enabled": True,
        "max_retries": 2,
        "retry_on_asset_or_op_failure": False,
    }
    assert settings["python_logs"] == {"python_log_level": "INFO"}
    assert "DAGSTER_DISABLE_TELEMETRY=1" in (FOLDER / "Dockerfile").read_text()


def test_the_pages_are_served_on_loopback_and_nothing_runs_as_root() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert compose["services"]["web"]["ports"] == ["127.0.0.1:3000:3000"]
    assert re.search("^USER (?!root)", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)


def test_what_the_page_links_to_is_there() -> None:
    page = ROOT / "docs" / "deployment.md"
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert links
    assert all((page.parent / link).exists() for link in links)
