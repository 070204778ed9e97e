"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from click.shell_completion import CompletionItem

from synth_audit.execution import Device, ExecutorName

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)
POSITIVE = click.FloatRange(min=0, min_open=True)

plan = click.argument("plan", type=FILE)
evidence = click.argument("evidence", type=FILE)
out = click.option("--out", type=FOLDER, help="Folder for restricted/ and review/.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
candidate = click.option(
    "--candidate", metavar="NAME", help="A candidate that `frontier` tried, instead of the plan's own."
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
        type=POSITIVE,
        metavar="SECONDS",
        help="Longest time of a candidate's audits; what has not ended by then passes no gate.",
    ),
    click.option(
        "--device",
        type=click.Choice(get_args(Device)),
        help="What networks are computed on; cpu if left out.",
    ),
)


def plugin_names(_: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of audits for options about audits, else of every plug-in, each with its title."""
    from synth_audit import registry

    rooms: tuple[registry.PluginGroup, ...] = ("audit",)
    if param.name == "name":
        rooms = ("source", "generator", "audit")
    return [
        CompletionItem(name, help=str(vars(ref.load())["info"].title))
        for room in rooms
        for name, ref in registry.catalogue(room).items()
        if name.startswith(incomplete)
    ]


def suite_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suites that ship, beside files."""
    from synth_audit.verdict.suite import shipped_suites

    found = [CompletionItem(name) for name in shipped_suites() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def running(command: Command) -> Command:
    """Where the work is done: one set of options for every command that audits, above the plan's own."""
    for option in reversed(_RUNNING):
        command = option(command)
    return command


only = click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=plugin_names,
    help="Run only this audit; repeatable.",
)
