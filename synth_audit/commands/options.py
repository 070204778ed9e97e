"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
out = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for restricted/ and review/."
)
running = click.option(
    "--workers",
    type=click.IntRange(min=1, max=256),
    default=1,
    show_default=True,
    help="Processes to spread the audits over; the numbers do not depend on it.",
)
plan = click.argument("plan", type=click.Path(path_type=Path))
evidence = click.argument("evidence", type=click.Path(path_type=Path))
