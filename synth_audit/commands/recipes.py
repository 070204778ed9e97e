"""Recipes: generators of others, each with packages and an interpreter of its own."""

from __future__ import annotations

import json
from pathlib import Path

import click

from synth_audit import api
from synth_audit.commands import options
from synth_audit.exits import CommandGroup, Exit, guarded
from synth_audit.terminal import say, say_json, say_whole


@click.group(cls=CommandGroup)
def recipes() -> None:
    """Run generators of others, each in its own environment.

    A recipe is named in a plan as `generator: {external: {recipe: NAME}}`. Its packages are never ours: they
    are fetched on request, into a folder of their own, and used under their own licence.

    \b
    Examples:
      synth-audit recipes list
      synth-audit recipes install dpmm
      synth-audit recipes try dpmm
    """


@recipes.command("list")
@options.as_json
@guarded
def list_recipes(as_json: bool) -> Exit:
    """List every recipe with its licence.

    \b
    Example:
      synth-audit recipes list
    """
    found = api.recipes()
    if as_json:
        plain = {
            s.recipe.name: s.recipe.info.model_dump() | {"version": s.version, "folder": str(s.folder)}
            for s in found
        }
        say_json(json.dumps(plain, indent=2))
        return Exit.PASS
    for state in found:
        info = state.recipe.info
        say(f"{state.recipe.name}: {info.title}", bold=True)
        say(f"  licence    {info.licence}{f'; {info.terms}' if info.terms else ''}")
        say(f"  installed  {f'{info.package} {state.version}' if state.version else 'no'}")
        say(f"  settings   {', '.join(f'{n}={v}' for n, v in info.settings.items()) or 'none'}")
        if info.claims:
            say(f"  claims     {state.recipe.claim({})} (its word; no gate passes by it)")
    return Exit.PASS


@recipes.command()
@click.argument("name")
@click.option("--python", type=click.Path(path_type=Path), help="An interpreter that its packages run on.")
@guarded
def install(name: str, python: Path | None) -> Exit:
    """Fetch a recipe's packages into their own environment.

    It goes under SYNTH_AUDIT_RECIPES, or ~/.local/share/synth-audit/recipes.

    \b
    Example:
      synth-audit recipes install dpmm
    """
    state = api.install_recipe(name, python)
    info = state.recipe.info
    say_whole(f"installed {info.package} {state.version} ({info.licence}) in {state.folder}")
    if info.terms:
        say(f"note: {info.terms}", err=True)
    return Exit.PASS


@recipes.command("try")
@click.argument("name")
@guarded
def try_recipe(name: str) -> Exit:
    """Run an installed recipe on a made-up table.

    What it prints is shown, which it is not when it runs on real rows.

    \b
    Example:
      synth-audit recipes try dpmm
    """
    rows = api.try_recipe(name, shown=True)
    say(f"{name} drew {rows:,} rows from a made-up table")
    return Exit.PASS
