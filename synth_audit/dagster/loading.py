"""Loads every table of a package as one code location; each table's stages run in one process.

Nothing here imports what fits or attacks a table. That happens inside the stages, so a location loads in
about a second. The stages of a table follow one another and share their files, so a process for each would
only repeat the imports. Tables run beside each other as separate runs.
"""

import atexit
import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import dagster as dg

STRICT = "SYNTH_AUDIT_STRICT"
"""Environment variable: with it one table that does not load is an error of all, as a check in CI wants."""

_CHECKED = "DAGSTER_IS_DEFS_VALIDATION_CLI"
"""Dagster's own variable, which ``dg check defs`` sets."""


def load_tables(module: ModuleType) -> dg.Definitions:
    """Load every table of a package; one that does not load is shown as broken, beside the others.

    Args:
        module: the package whose folders hold a ``defs.yaml`` each, such as ``my_project.defs``. Relative
            paths of plans start at the project's root, unless ``$SYNTH_AUDIT_HOME`` is set.

    Raises:
        Exception: a table does not load, and ``$SYNTH_AUDIT_STRICT`` is set or ``dg check defs`` asks.
    """
    found = _loaded(module)
    gc.freeze()  # what Dagster does next would look through all of it for garbage: 0.3 of 3.5 CPU seconds
    atexit.register(gc.unfreeze)  # or nanobind's modules complain at the end of what was not freed
    return found


def _loaded(module: ModuleType) -> dg.Definitions:
    with warnings.catch_warnings(), _without_collecting():
        # Dagster warns of the beta parts that its own component loader uses.
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        try:
            return _built(module)
        except Exception:  # one file is enough to stop Dagster's loader, so each is given to it by itself
            if os.environ.get(STRICT) or os.environ.get(_CHECKED):
                raise
        folders = sorted({file.parent for file in Path(module.__path__[0]).rglob("defs.yaml")})
        return dg.Definitions.merge(*(_single(module, folder) for folder in folders))


@contextmanager
def _without_collecting() -> Iterator[None]:
    """A definition is kept for as long as the process: looking for garbage among those of 100 tables took 0.3
    of 3.8 CPU seconds."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _built(module: ModuleType) -> dg.Definitions:
    tree = dg.ComponentTree.from_module(defs_module=module, project_root=_root(module))
    # From the folder of tables and not from the root, which would also describe every type of component
    # with the settings of every plug-in, for a page of the UI; `dg` makes that list itself.
    found = tree.build_defs(Path())
    ours = dg.Definitions(executor=dg.in_process_executor, component_tree=tree)
    return dg.Definitions.merge(found, ours)


def _root(module: ModuleType) -> Path:
    """The project's folder: what holds the module's top-level package, or its folder ``src``."""
    holds = Path(module.__path__[0]).resolve().parents[module.__name__.count(".")]
    return holds.parent if holds.name == "src" else holds


def _single(module: ModuleType, folder: Path) -> dg.Definitions:
    """One table, or a sign that it does not load, where people look for it."""
    alone = ModuleType(f"{module.__name__}.{folder.name}")
    alone.__path__, alone.__file__ = [str(folder)], str(folder / "__init__.py")
    tree = dg.ComponentTree.from_module(defs_module=alone, project_root=_root(module))
    executor = dg.Definitions(executor=dg.in_process_executor)
    try:
        return dg.Definitions.merge(tree.build_defs(Path()), executor)
    except Exception as error:  # whatever is wrong with one table must not take the others down
        reason = error.__cause__ or error
        text = f"{type(reason).__name__}: {reason}"
        warnings.warn(f"table {folder.name} does not load: {text}", stacklevel=2)
        return dg.Definitions.merge(dg.Definitions(assets=[_sign(folder.name, text)]), executor)


def _sign(table: str, text: str) -> dg.AssetsDefinition:
    """An asset in the place of a table that does not load, which fails for the same reason.

    Dagster takes a selection without an executable asset for all assets, and would run every other table.
    """

    @dg.asset(
        key=[table, "does_not_load"], group_name=table, kinds={"broken"}, description=f"```\n{text}\n```"
    )
    def does_not_load() -> None:
        raise dg.Failure(f"table {table} does not load: {text}", allow_retries=False)

    return does_not_load
