"""What the verbs take: tables, plans and settings as a user gives them."""

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

import pyarrow as pa

from synth_audit.errors import DataError, PlanError
from synth_audit.execution import Device, ExecutorName
from synth_audit.execution.context import Progress, RunContext, repeated, silent, spoken
from synth_audit.execution.executor import Deadline, opened
from synth_audit.plan.plan import Plan, load_plan, parse_plan
from synth_audit.plugins.plugin_config import PluginChoice
from synth_audit.plugins.source import Locatable, Source, batches, read_placed, read_whole
from synth_audit.store.scratch import in_use
from synth_audit.store.workspace import Workspace
from synth_audit.table.arrow import PlacedRows, index_columns
from synth_audit.table.content_hash import fingerprint, fingerprint_of
from synth_audit.table.schema import check_names
from synth_audit.table.storage_types import plain

if TYPE_CHECKING:
    import pandas as pd

Frame: TypeAlias = "pd.DataFrame | pa.Table | str | Path"
PlanLike: TypeAlias = "Plan | Mapping[str, Any] | str | Path"


def as_plan(plan: PlanLike) -> Plan:
    """A validated plan from a plan, its values, or its file."""
    if isinstance(plan, Plan):
        return plan.check()
    if isinstance(plan, (str, Path)):
        return load_plan(plan)
    return parse_plan(plan).check()


def named_after(table: Frame) -> dict[str, str]:
    """A plan for a table without one: a report is headed by the name of the file it judges."""
    if not isinstance(table, (str, Path)):
        return {}
    return {"name": re.sub(r"[^\w.-]", "_", Path(table).stem)[:200] or "table"}


def narrowed(plan: Plan, only: str | tuple[str, ...], seed: int | None = None) -> Plan:
    """The plan with another seed and with these of its audits only, where they are given."""
    changed: dict[str, object] = {}
    if seed is not None:
        changed["seed"] = parse_plan({"seed": seed}, where="the seed given").seed
    if only:
        names = (only,) if isinstance(only, str) else only
        listed = {choice.name: choice for choice in plan.audits}
        if plan.audits and (strange := sorted(set(names) - set(listed))):
            raise PlanError(
                f"the plan has no audit {strange[0]!r}",
                where="--only",
                expected=f"any of {', '.join(listed)}",
                fix="name one of these, or add it to the plan's audits",
            )
        chosen = dict.fromkeys(names)  # naming one twice runs it once
        changed["audits"] = tuple(listed.get(name, PluginChoice(name=name)) for name in chosen)
    return plan.model_copy(update=changed).located(plan.base).check() if changed else plan


def workspace_of(plan: PlanLike, out: str | Path | None) -> Workspace:
    """The workspace of a plan: ``out``, else ``<name>-audit`` in the folder its paths start from."""
    settled = as_plan(plan)
    return Workspace(Path(out) if out is not None else settled.base / f"{settled.name}-audit")


def place_of(plan: PlanLike, out: str | Path | None, candidate: str | None = None) -> tuple[Plan, Workspace]:
    """A plan and its workspace; with a candidate those that a sweep of the plan gave it."""
    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    if candidate is None:
        return settled, workspace
    from synth_audit.studies.ranking import candidate_of

    chosen, workspace = candidate_of(settled, workspace, candidate)
    return chosen.plan, workspace


class Running(TypedDict, total=False):
    """Where the work is done, and who is told of it; no number depends on it.

    What is given here stands above the plan's ``execution``.

    Attributes:
        workers: processes to spread audits and games over; 1 if left out.
        executor: ``serial``, ``processes`` or ``dask``; what the others imply if left out.
        scheduler: address of a Dask scheduler; without one, ``dask`` means a cluster on this machine.
        deadline: longest time in seconds of one candidate's audits, and of one fit of its generator.
        device: what networks and long searches are computed on: ``cpu``, ``cuda`` or ``auto``.
        progress: called with what is under way and how many pieces are done; True prints a line now and then.
            Left out, a notebook shows a line that is rewritten.
    """

    workers: int | None
    executor: ExecutorName | None
    scheduler: str | None
    deadline: float | None
    device: Device | None
    progress: Progress | bool | None


@contextmanager
def run_context(plan: Plan, scratch: Path | None = None, **running: Unpack[Running]) -> Iterator[RunContext]:
    """The context that a verb's work is done in: here, and nowhere else, it is made.

    Args:
        scratch: where temporary folders are made; the system's place for them if None.

    Raises:
        PlanError: a setting is unknown, or they do not go together.
    """
    if unknown := sorted(set(running) - set(Running.__annotations__)):
        raise PlanError(
            f"there is no setting {unknown[0]!r} of how the work is done",
            where=unknown[0],
            expected=f"any of {', '.join(Running.__annotations__)}",
            fix="correct the name; `help(synth_audit.Running)` says what each is",
        )
    progress = running.pop("progress", None)
    # In a notebook a kernel runs this, whose output a browser shows.
    shell = sys.modules.get("IPython")
    rewritten = progress is None and shell is not None and hasattr(shell.get_ipython(), "kernel")
    settled = plan.execution.changed(running)
    with ExitStack() as stack:
        if rewritten:
            stack.callback(_rewrite, "")
            progress = stack.enter_context(repeated(spoken(_rewrite, every=0.5)))
        elif progress is True:
            progress = stack.enter_context(repeated(spoken(print)))
        executor = stack.enter_context(opened(settled.name, settled.n_workers, settled.scheduler))
        yield RunContext(
            seed=plan.seed,
            executor=executor,
            progress=progress or silent,
            deadline=Deadline.within(settled.deadline),
            device=settled.device,
            scratch=scratch,
        )


@contextmanager
def at_work(
    plan: PlanLike, out: str | Path | None, running: Running, candidate: str | None = None
) -> Iterator[tuple[Plan, Workspace, RunContext]]:
    """A plan, its workspace, kept from being purged meanwhile, and the context of the work there."""
    settled, workspace = place_of(plan, out, candidate)
    held = in_use(workspace, write_rows=settled.execution.write_real_rows)
    with held as scratch, run_context(settled, scratch, **running) as context:
        yield settled, workspace, context


def _rewrite(line: str) -> None:
    print(f"\r{line:<79}", end="\r", flush=True)  # noqa: T201 (a notebook has no other place)


def as_arrow(table: Frame, where: str) -> pa.Table:
    """Read a table given as pandas frame, Arrow table or file.

    Many rows of a file are laid out and mapped, where there is a folder for what is temporary, see
    :func:`synth_audit.files.scratch_in`; else they are held in memory.

    Raises:
        DataError: a column mixes types, or the file cannot be read.
    """
    import pandas as pd

    if isinstance(table, pa.Table):
        return plain(table, where=where)
    if isinstance(table, (str, Path)):
        return plain(read_whole(source_of(table), Path.cwd()), where=where)
    if not isinstance(table, pd.DataFrame):
        raise DataError(
            f"{where} is a {type(table).__name__}",
            where=where,
            expected="a pandas DataFrame, a pyarrow Table or the path of a file",
            fix="convert it first",
        )
    return _from_pandas(table, where)


def placed(table: Source | pa.Table, folder: Path) -> pa.Table | PlacedRows:
    """The rows of what :func:`resolved` gives; many of a file lie in a folder, where others map them too.

    Args:
        folder: of mode 0700, deleted by its owner when nobody needs the rows any more.
    """
    return table if isinstance(table, pa.Table) else read_placed(table, Path.cwd(), folder)


def resolved(tables: Mapping[str, Frame]) -> dict[str, Source | pa.Table]:
    """What reads each file, and frames in Arrow.

    Raises:
        DataError: a column mixes types, or one file is given for two tables, however its path is spelt. That
            is a slip of the hand, and an audit of it has an answer for everything.
    """
    found: dict[str, Source | pa.Table] = {}
    seen: dict[tuple[str, ...], str] = {}
    for name, table in tables.items():
        if not isinstance(table, (str, Path)):
            found[name] = as_arrow(table, name)
            continue
        found[name] = source = source_of(table)
        other = seen.setdefault(source.place(Path.cwd()), name) if isinstance(source, Locatable) else name
        if other != name:
            raise DataError(
                f"{other} and {name} are the same file",
                where=str(table),
                expected="a file for each table",
                fix="correct the path; to see what a plain copy gets, copy the file first",
            )
    return found


def hash_of(table: Frame, where: str, declared: Collection[str] = ()) -> str:
    """Content hash of a table; of a file one batch is held at a time where it is read by batches.

    Args:
        declared: columns that are of the table even where they look like pandas' index.

    Raises:
        DataError: as :func:`as_arrow`; the table has no content hash.
    """

    def columns(data: pa.Table) -> pa.Table:
        return data.drop_columns(list(index_columns(data.column_names, declared)))

    if not isinstance(table, (str, Path)):
        return fingerprint(columns(as_arrow(table, where)))
    found = batches(source_of(table), Path.cwd())
    return fingerprint_of(columns(plain(pa.Table.from_batches([b]), where=where)) for b in found)


def source_of(file: str | Path) -> Source:
    """The source that reads a file, by its suffix."""
    return Plan.model_validate({"source": str(file)}).build_source()


def _from_pandas(frame: "pd.DataFrame", where: str) -> pa.Table:
    import pandas as pd

    names = [str(name) for name in frame.columns]
    check_names(names, where=where)
    columns = {}
    for position, name in enumerate(names):
        values = frame.iloc[:, position]
        if isinstance(values.dtype, pd.SparseDtype):  # which Arrow does not read
            values = values.astype(values.dtype.subtype)
        try:
            columns[name] = pa.Array.from_pandas(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise DataError(
                f"column {name!r} mixes types, for example numbers and text, or holds what Arrow cannot",
                where=where,
                expected="values of one type in each column, such as numbers, text or dates",
                fix=f"convert it first, for example with `frame[{name!r}].astype('string')`",
            ) from None
    return plain(pa.table(columns), where=where)
