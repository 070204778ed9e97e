"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from synth_audit.run.executor import Device, ExecutorName

Command = TypeVar("Command", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
out = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for restricted/ and review/."
)
_RUNNING = (
    click.option(
        "--workers",
        type=click.IntRange(min=1, max=256),
        help="Processes to spread audits and games over; the numbers do not depend on it.",
    ),
    click.option(
        "--executor",
        type=click.Choice(get_args(ExecutorName)),
        help="Where the work is done; what --workers and --scheduler imply if left out.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler, such as tls://10.0.0.5:8786."),
    click.option(
        "--deadline",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Longest time of a candidate's audits; what has not ended by then passes no gate.",
    ),
    click.option(
        "--device",
        type=click.Choice(get_args(Device)),
        help="What networks are computed on; cpu if left out.",
    ),
)


def running(command: Command) -> Command:
    """Where the work is done: one set of options for every command that audits, above the plan's own."""
    for option in reversed(_RUNNING):
        command = option(command)
    return command


plan = click.argument("plan", type=click.Path(path_type=Path))
evidence = click.argument("evidence", type=click.Path(path_type=Path))
