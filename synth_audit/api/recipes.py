"""Generators of others that run beside us: which there are, and how their packages are fetched and tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synth_audit.generators.external.recipe import Recipe, Setting


@dataclass(frozen=True)
class RecipeState:
    """A recipe, and where its packages are.

    Attributes:
        folder: of its environment, made or not.
        version: of the package that generates; empty while it is not installed.
    """

    recipe: Recipe
    folder: Path
    version: str


def recipes() -> tuple[RecipeState, ...]:
    """Every recipe in alphabetical order."""
    from synth_audit.generators.external.recipe import recipes as known
    from synth_audit.generators.external.recipe_environment import RecipeEnvironment

    places = [RecipeEnvironment.of(recipe) for recipe in known().values()]
    return tuple(RecipeState(p.recipe, p.folder, p.version if p.installed else "") for p in places)


def install_recipe(name: str, python: str | Path | None = None) -> RecipeState:
    """Fetch a recipe's packages into an environment of its own, outside this one.

    Args:
        python: an interpreter for it, where this one is too new or too old.

    Raises:
        PlanError: there is no such recipe, or no interpreter fits.
        DataError: the packages do not install.
    """
    from synth_audit.generators.external.recipe import recipe_named
    from synth_audit.generators.external.recipe_environment import RecipeEnvironment

    place = RecipeEnvironment.of(recipe_named(name))
    place.install(None if python is None else Path(python))
    return RecipeState(place.recipe, place.folder, place.version)


def try_recipe(name: str, settings: Mapping[str, Setting] | None = None, *, shown: bool = False) -> int:
    """Run an installed recipe on a made-up table; the number of rows that it drew.

    Args:
        settings: those that the recipe names for a trial if None.
        shown: what it prints goes to standard error.

    Raises:
        PlanError: there is no such recipe or setting.
        DataError: it is not installed, or does not do what a recipe must.
    """
    from synth_audit.core.errors import PlanError
    from synth_audit.generators.external.recipe import recipe_named
    from synth_audit.generators.external.recipe_trial import trial

    recipe = recipe_named(name)
    try:
        recipe.settled(settings or {})
    except ValueError as error:
        raise PlanError(str(error), where=f"recipe {name!r}", fix="`synth-audit recipes list`") from None
    return trial(recipe, settings, shown=shown).n_rows
