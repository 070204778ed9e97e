"""What a shell may complete: names of plug-ins and of suites that ship."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def plugins(_: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of audits for options about audits, else of every plug-in, each with its title."""
    from synth_audit.core import registry

    rooms: tuple[registry.PluginGroup, ...] = ("audit",)
    if param.name == "name":
        rooms = ("source", "generator", "audit")
    return [
        CompletionItem(name, help=str(vars(ref.load())["info"].title))
        for room in rooms
        for name, ref in registry.catalogue(room).items()
        if name.startswith(incomplete)
    ]


def suites(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suites that ship, beside files."""
    from synth_audit.judging.find_suite_file import shipped_suites

    found = [CompletionItem(name) for name in shipped_suites() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]
