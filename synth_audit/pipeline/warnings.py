"""What a reader must be told: of the data, of where it was made, of settings. No values, no small counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.encode.codes import cells_of
from synth_audit.encode.encoded import Encoded
from synth_audit.execution.seeds import Salt
from synth_audit.pipeline.coarsening import about_coarsening
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.fitting import rare_label_columns
from synth_audit.plugins.generator import FEWEST_PEOPLE, minimum_people, refits
from synth_audit.store.evidence import GeneratorRecord
from synth_audit.store.reports import FEWEST, ReportStanding
from synth_audit.store.salts import TrainingTable
from synth_audit.table.arrow import is_text
from synth_audit.table.kind import NumberPart
from synth_audit.table.people import key_columns, persons
from synth_audit.table.schema import Column, nominal
from synth_audit.table.table import Table
from synth_audit.verdict.comparison import USUAL, usual_gates, weaker_gates
from synth_audit.verdict.gate_decision import first_few
from synth_audit.verdict.suite import Suite

_FORMULA = re.compile(r"[=+\-@\t\r](?=.)(?!\.?\d[\d.]*(?:e[+-]?\d+)?$)", re.IGNORECASE | re.DOTALL)
"""How a cell begins that a spreadsheet program takes for a formula; a plain number or a mere sign is none."""

PREDICTABLE = (
    "no salt was kept, so the draws of the audits can be predicted: they follow from the candidate alone, "
    "which its maker can change until they suit; `--out FOLDER` keeps a salt"
)
"""Of an audit without a salt."""

_NAMED = 5
"""Columns or gates that a warning names."""

_WIDE = 200
"""More columns than this take long to compare."""

_LOWERED = {"level": "the confidence level of every interval", "suppression": "the smallest count shown"}
"""Keys of a plan by which less is held back."""

_OFTEN_EQUAL = 0.02
"""Share of rows that equal another, from which on natural duplicates may look like copies."""

_MANY_REPORTS = 10
"""Of the same people, from which on evidence tells of it where the plan sets no number."""

_ENOUGH_TO_JUDGE = 50
"""Fewer rows than this may be all different by chance."""


def about_examination(plan: Plan, suite: Suite, subject: Subject, *, predictable: bool) -> tuple[str, ...]:
    """Everything that follows from a plan, its suite and the tables that are examined.

    Args:
        predictable: no salt was kept that the audits draw by.
    """
    tables = {"train": subject.train, "control": subject.control, "synthetic": subject.synthetic}
    return (
        *about_formulas(plan, subject.synthetic),
        *about_settings(plan, suite),
        *about_coarsening(plan),
        *about_suite(plan, suite),
        *about_delta(plan, subject.train),
        *about_rare_labels(subject),
        *about_equal_rows(subject),
        *([PREDICTABLE] * predictable),
        *about_index({name: t.left_out for name, t in tables.items() if t is not None}),
        *inspect(subject.train, subject.control, plan.suppression),
    )


def inspect(train: Table, control: Table | None, suppression: int) -> tuple[str, ...]:
    """Everything worth a warning: of columns in their order, then of the tables."""
    found = [text for column in train.schema.features if (text := _column_warning(train, column))]
    columns = len(train.schema.features)
    if columns > _WIDE:  # they are compared two by two
        found.append(
            f"the table has {columns:,} columns, {columns * (columns - 1) // 2:,} pairs of them: audits take "
            "time and memory with their number squared, and distances over so many tell little apart; "
            "`execution.deadline` bounds the time, and what has not ended by then passes no gate"
        )
    shared = 0
    if control is not None:
        in_train, in_control = Encoded([train, control], train.schema.features).groups()
        shared = int(np.isin(in_control, in_train).sum())
    if control is not None and shared:
        found.append(
            f"{shown_count(shared, suppression)} of {control.n_rows:,} control rows also occur in train; if "
            "they are the same records and not natural duplicates, control is not independent and risk is "
            "understated"
        )
    return tuple(found)


def about_reports(standing: ReportStanding) -> tuple[str, ...]:
    """What several reports of a table tell together, which none tells alone."""
    found = []
    if standing.number > _MANY_REPORTS:
        found.append(
            f"this is report {standing.number} of mostly the same people: their numbers, without noise, tell "
            "more together than each alone; `review: {reports: N}` in the plan sets how many there may be"
        )
    if standing.near:
        found.append(
            f"an earlier report of this table is of people of whom fewer than {FEWEST} differ from these: "
            "whoever holds both learns by their difference about those few; hand out one of the two"
        )
    return tuple(found)


def about_draws(table: TrainingTable | None, salt: Salt) -> tuple[str, ...]:
    """Which salt the audits of a training table drew by, where it is not the workspace's or may change.

    Args:
        table: as this account remembers it. salt: of the workspace.
    """
    if table is None:
        return (
            "this account has no folder to remember the training table in, so that another workspace would "
            "draw anew; XDG_STATE_HOME names one",
        )
    if table.salt == salt:
        return ()
    return (
        "this training table was audited in another workspace before; the audits draw by the salt of then, "
        f"with the commitment {table.salt.commitment[:12]}",
    )


def shown_count(count: int, suppression: int) -> str:
    """A count as it may be shown: exact from the suppression limit on."""
    return f"{count:,}" if count >= suppression else f"fewer than {suppression}"


def _column_warning(train: Table, column: Column) -> str:
    missing = train.missing(column.name)
    if missing.all():
        return f"column {column.name!r} is wholly missing in train; it carries no information"
    distinct = pc.count_distinct(train.texts(column.name)).as_py()
    if distinct == 1:
        return f"column {column.name!r} is constant in train; it carries no information"
    present = int((~missing).sum())
    if present < _ENOUGH_TO_JUDGE or column.release_text:  # the plan has decided
        return ""
    if not (why := column.kind.like_identifier(distinct, present, train.n_rows)):
        return ""
    numbers = nominal([column]) and any(
        isinstance(part, NumberPart) for part in column.kind.parts([cells_of(train, column)])
    )
    mend = ", or store what reads as numbers or dates as such, for new ones can be drawn of these"
    return f"column {column.name!r} {why}{mend if numbers else ''}"


def about_external(generator: GeneratorRecord) -> tuple[str, ...]:
    """A finished table may have been made from control rows too; what is run here never saw them."""
    ran_here = generator.config.get("command") or generator.config.get("recipe")
    if generator.name != "external" or ran_here:
        return ()
    return (
        "the table was made elsewhere before this split: if control rows were among those it was made from, "
        "every comparison with control understates the risk",
    )


def about_index(left_out: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Row numbers that pandas wrote beside the columns of a table, which was read without them."""
    found = []
    for where, names in left_out.items():
        named = ", ".join(map(repr, names))
        if names:
            found.append(
                f"{where} has the column {named} of row numbers, an index of pandas, neither audited nor "
                "released; write tables without it (`index=False`), or declare it in `columns` if it is data"
            )
        if names and where == "synthetic":
            found.append(
                "row numbers may tell which real rows a synthetic row was made of: do not hand out the file "
                "itself, only what synth-audit writes of it"
            )
    return tuple(found)


def about_formulas(plan: Plan, release: pa.Table | Table, *, as_csv: bool = False) -> tuple[str, ...]:
    """Columns of a CSV release with names or labels that a spreadsheet program would run; none is altered.

    Args:
        as_csv: the release is a CSV file already; otherwise the plan's target decides.
    """
    if not (as_csv or (plan.release is not None and plan.release.name == "csv")):
        return ()
    names = release.names if isinstance(release, Table) else release.column_names
    found = [n for n in names if _FORMULA.match(n) or _holds_formula(release.column(n))]
    if not found:
        return ()
    named = first_few([*map(repr, found)], _NAMED)
    return (
        f"column{'s' * (len(found) > 1)} {named} of the CSV release: there is text that begins with "
        "=, +, -, @, a tab or a carriage return: a spreadsheet program that opens the CSV file runs it as a "
        "formula. Nothing was altered; read the file as data, or group such labels at the source",
    )


def _holds_formula(values: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not is_text(values.type):
        return False
    return any(text is not None and _FORMULA.match(text) for text in values.unique().to_pylist())


def about_settings(plan: Plan, suite: Suite) -> tuple[str, ...]:
    """Limits are reasoned for an audit's own settings; a plan that changes them must say so to its reader."""
    gated = {g.limit.audit for g in suite.measured if g.blocking and g.limit}
    changed = [c for c in plan.audits if c.name in gated and c.config]
    return tuple(
        f"the plan changes {', '.join(sorted(c.config))} of {c.name}, which a blocking gate judges; "
        "its limit was set for the audit's own settings"
        for c in changed
    )


def about_source(left_out: Sequence[str], clipped: Mapping[str, int], suppression: int) -> tuple[str, ...]:
    """What was left out of the source, and its numbers set to a bound, which may make a peak."""
    return about_index({"source": left_out}) + tuple(
        f"{shown_count(count, suppression)} values of column {name!r} lay outside its declared bounds and "
        "were set to the nearest bound, as the plan says"
        for name, count in clipped.items()
        if count
    )


def about_delta(plan: Plan, train: Table) -> tuple[str, ...]:
    """A δ of one over the number of people or more, which who hands out a random person's row keeps to."""
    if plan.privacy is None:
        return ()
    single = plan.privacy.rows_per_entity is None
    units = train.n_rows if single else len(np.unique(persons(train)))
    if plan.privacy.delta * units < 1:
        return ()
    return (
        f"delta {plan.privacy.delta:g} is not below one over the {units:,} {'rows' if single else 'people'} "
        "of train: whoever releases one of them at random, as it is, keeps to that; declare a far smaller",
    )


def about_rare_labels(subject: Subject) -> tuple[str, ...]:
    """Labels of few people, of which a generator without a budget learns nothing: a class may be gone.

    One that is handed every label may leave them out by itself, or by its parts: what it drew tells.
    """
    made = subject.generator
    if made is None or subject.terms.fit is not None or not refits(made):
        return ()
    handed = minimum_people(made)
    fewest, drawn = (handed, None) if handed > 1 else (FEWEST_PEOPLE, subject.synthetic)
    people = persons(subject.train)
    rare = rare_label_columns(subject.train, 1 / np.bincount(people)[people], fewest, drawn)
    if not rare:
        return ()
    named = first_few([*map(repr, rare)], _NAMED)
    gone = "were learnt from nobody and are not drawn" if handed > 1 else "are not all in the release"
    return (
        f"labels of {named} that fewer than {fewest} people in train have {gone}; group them, or declare "
        "the column's `categories` where they are known to everybody",
    )


def about_equal_rows(subject: Subject) -> tuple[str, ...]:
    """Rows that equal others, and no key tells whose they are: what our split took them for."""
    train, divided = subject.train, subject.random_split
    if divided is None or not divided.ours or key_columns(train.schema):
        return ()
    (groups,) = Encoded([train], train.schema.features).groups()
    equal = np.bincount(groups)[groups] > 1
    own = subject.own_coins
    told, enough = [], max(subject.suppression, _OFTEN_EQUAL * train.n_rows)
    if (n := int((equal & own).sum())) >= enough:
        told.append(
            f"{n:,} of {train.n_rows:,} train rows equal another, as many as chance makes alike in so few "
            "values, and no key tells whose they are: they were taken for different people's, each divided "
            "by a coin of its own; if somebody may be in the table twice, name the key"
        )
    if (n := int((equal & ~own).sum())) >= enough:
        told.append(
            f"{n:,} of {train.n_rows:,} train rows equal another, and no key tells whose they are: "
            "these share a side of the split, so that a release which meets them by chance looks copied; if "
            "each row is a person of its own, give the table a column of row numbers with `role: identifier`"
        )
    return tuple(told)


def about_suite(plan: Plan, suite: Suite) -> tuple[str, ...]:
    """What a suite of one's own lets pass, which may bear any name, and what a lower level or limit does."""
    told = []
    if weaker := weaker_gates(suite):
        told.append(
            f"the gate suite {suite.name!r} is none that ships: of the {len(usual_gates())} blocking gates "
            f"on measurements in {USUAL!r} it leaves out or widens {len(weaker)}: "
            f"{first_few(weaker, _NAMED)}"
        )
    for key, what in _LOWERED.items():
        value, usual = getattr(plan, key), Plan.model_fields[key].default
        if value < usual:
            told.append(f"the plan lowers {what} to {value:g}, from the usual {usual:g}")
    return tuple(told)
