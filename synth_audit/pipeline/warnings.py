"""What a reader must be told: of data, of files, of settings. No values, no small counts."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from synth_audit.encode.codes import cells_of
from synth_audit.encode.encoded import Encoded
from synth_audit.execution.seeds import Salt
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.fitting import rare_label_columns
from synth_audit.plugins.generator import FEWEST_PEOPLE, minimum_people, refits
from synth_audit.store.evidence import GeneratorRecord
from synth_audit.store.reports import FEWEST_DIFFERING, ReportStanding
from synth_audit.store.salts import TrainingTable
from synth_audit.table.arrow import decoded, is_text, n_distinct
from synth_audit.table.kind import NumberPart
from synth_audit.table.people import key_columns, persons
from synth_audit.table.schema import Column, nominal, quantitative
from synth_audit.table.table import Table
from synth_audit.verdict.comparison import USUAL, usual_gates, weaker_gates
from synth_audit.verdict.gate_decision import first_few
from synth_audit.verdict.suite import Suite

_FORMULA = re.compile(r"[=+\-@\t\r](?=.)(?!\.?\d[\d.]*(?:e[+-]?\d+)?$)", re.IGNORECASE | re.DOTALL)
"""How a cell begins that a spreadsheet program takes for a formula; a plain number or a mere sign is none."""

PREDICTABLE = (
    "no salt was kept, so the draws of the audits can be predicted: they follow from the candidate alone, "
    "which its maker can change until they suit; an output folder (`out`) keeps a salt"
)
"""Of an audit without a salt."""

AUDITED_BEFORE = "this training table was audited before, in another workspace"
"""How the warning about its draws begins."""

_SHOWN_NAMES = 5
"""Columns or gates that a warning names."""

_MANY_COLUMNS = 200
"""More columns than this take long to compare."""

_LOWERED = {"level": "the confidence level of every interval", "suppression": "the smallest count shown"}
"""Keys of a plan by which less is held back."""

_OFTEN_EQUAL = 0.02
"""Share of rows that equal another, from which on natural duplicates may look like copies."""

_MANY_REPORTS = 10
"""Of the same people, from which on evidence tells of it where the plan sets no number."""

_ENOUGH_TO_JUDGE = 50
"""Fewer rows than this may be all different by chance."""

_TYPES = {b"ARROW:schema", b"PARQUET:field_id"}
"""Keys under which Parquet files say what the columns are."""

_BY_PANDAS = {"index_columns", "column_indexes", "columns", "creator", "pandas_version"}
"""What pandas says of every table; its `attributes` are the user's own."""

_PANDAS_ATTRIBUTES = b"PANDAS_ATTRS"

_USUAL_BYTES, _BYTES_OF_COLUMN = 1000, 400
"""Bytes in which pandas describes a table and a column; it takes about 300 and 150, and a name twice."""


def about_examination(plan: Plan, suite: Suite, subject: Subject, *, predictable: bool) -> Iterator[str]:
    """Everything that follows from a plan, its suite and the tables that are examined.

    Args:
        predictable: no salt was kept that the audits draw by.
    """
    yield from about_formulas(plan, subject.synthetic)
    yield from about_settings(plan, suite)
    yield from about_coarsening(plan)
    yield from about_suite(plan, suite)
    yield from about_delta(plan, subject.train)
    yield from about_rare_labels(subject)
    yield from about_equal_rows(subject)
    if predictable:
        yield PREDICTABLE
    tables = {"train": subject.train, "control": subject.control, "synthetic": subject.synthetic}
    yield from about_index({name: t.left_out for name, t in tables.items() if t is not None})
    yield from inspect(subject.train, subject.control, plan.suppression)


def inspect(train: Table, control: Table | None, suppression: int) -> Iterator[str]:
    """Everything worth a warning: of columns in their order, then of the tables."""
    for column in train.schema.features:
        yield from _about_column(train, column)
    columns = len(train.schema.features)
    if columns > _MANY_COLUMNS:  # they are compared two by two
        yield (
            f"the table has {columns:,} columns, {columns * (columns - 1) // 2:,} pairs of them: audits take "
            "time and memory with their number squared, and distances over so many tell little apart; "
            "`execution.deadline` bounds the time, and what has not ended by then passes no gate"
        )
    if control is None:
        return
    in_train, in_control = Encoded([train, control], train.schema.features).groups()
    if shared := int(np.isin(in_control, in_train).sum()):
        yield (
            f"{shown_count(shared, suppression)} of {control.n_rows:,} control rows also occur in train; if "
            "they are the same records and not natural duplicates, control is not independent and risk is "
            "understated"
        )


def about_reports(standing: ReportStanding) -> Iterator[str]:
    """What several reports of a table tell together, which none tells alone."""
    if standing.number > _MANY_REPORTS:
        yield (
            f"this is report {standing.number} of mostly the same people: their numbers, without noise, tell "
            "more together than each alone; `review: {reports: N}` in the plan sets how many there may be"
        )
    if standing.near:
        yield (
            f"an earlier report of this table is about nearly the same people: fewer than {FEWEST_DIFFERING} "
            "differ. A reader of both could learn about those few, so hand out only one"
        )


def about_draws(table: TrainingTable | None, salt: Salt) -> Iterator[str]:
    """Which salt the audits of a training table drew by, where it is not the workspace's or may change.

    Args:
        table: as this account remembers it. salt: of the workspace.
    """
    if table is None:
        yield (
            "this account has no folder to remember the training table in. In another workspace the audits "
            "would draw other random numbers; XDG_STATE_HOME names such a folder"
        )
    elif table.salt != salt:
        yield (
            f"{AUDITED_BEFORE}. Its random draws are used again, "
            "so that no repetition turns a fail into a pass by luck (commitment "
            f"{table.salt.commitment[:12]}, in $XDG_STATE_HOME/synth-audit or ~/.local/state/synth-audit)"
        )


def shown_count(count: int, suppression: int) -> str:
    """A count as it may be shown: exact from the suppression limit on."""
    return f"{count:,}" if count >= suppression else f"fewer than {suppression}"


def _about_column(train: Table, column: Column) -> Iterator[str]:
    present = int((~train.missing(column.name)).sum())
    # Numbers are counted as they are: to write each of them out takes half a microsecond.
    values = train.column(column.name) if quantitative([column]) else train.texts(column.name)
    distinct = n_distinct(values)
    if not present or distinct == 1:
        what = "constant" if present else "wholly missing"
        yield f"column {column.name!r} is {what} in train; it carries no information"
        return
    if present < _ENOUGH_TO_JUDGE or column.release_text:  # the plan has decided
        return
    if why := column.kind.like_identifier(distinct, present, train.n_rows):
        mend = ""
        if nominal([column]) and any(
            isinstance(part, NumberPart) for part in column.kind.parts([cells_of(train, column)])
        ):
            mend = ", or store what reads as numbers or dates as such, for new ones can be drawn of these"
        yield f"column {column.name!r} {why}{mend}"


def about_external(generator: GeneratorRecord) -> Iterator[str]:
    """A finished table may have been made from control rows too; what is run here never saw them."""
    ran_here = generator.config.get("command") or generator.config.get("recipe")
    if generator.name == "external" and not ran_here:
        yield (
            "the table was made elsewhere before this split: if control rows were among those it was made "
            "from, every comparison with control understates the risk"
        )


def about_index(left_out: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Row numbers that pandas wrote beside the columns of a table, which was read without them."""
    for where, names in left_out.items():
        if names:
            yield (
                f"{where} has the column {', '.join(map(repr, names))} of row numbers, an index of pandas, "
                "neither audited nor released; write tables without it (`index=False`), or declare it in "
                "`columns` if it is data"
            )
        if names and where == "synthetic":
            yield (
                "row numbers may tell which real rows a synthetic row was made of: do not hand out the file "
                "itself, only what synth-audit writes of it"
            )


def about_formulas(plan: Plan, release: pa.Table | Table, *, as_csv: bool = False) -> Iterator[str]:
    """Columns of a CSV release with names or labels that a spreadsheet program would run; none is altered.

    Args:
        as_csv: the release is a CSV file already; otherwise the plan's target decides.
    """
    if not (as_csv or (plan.release is not None and plan.release.name == "csv")):
        return
    names = release.names if isinstance(release, Table) else release.column_names
    if found := [n for n in names if _FORMULA.match(n) or _holds_formula(release.column(n))]:
        yield (
            f"column{'s' * (len(found) > 1)} {first_few([*map(repr, found)], _SHOWN_NAMES)} of the CSV "
            "release: there is text that begins with =, +, -, @, a tab or a carriage return. A spreadsheet "
            "program would run it as a formula. Nothing was altered. Read the file as data, or group such "
            "labels at the source"
        )


def _holds_formula(values: pa.ChunkedArray) -> bool:
    values = decoded(values)
    texts = values.unique().to_pylist() if is_text(values.type) else ()
    return any(text is not None and _FORMULA.match(text) for text in texts)


def about_settings(plan: Plan, suite: Suite) -> Iterator[str]:
    """Limits are reasoned for an audit's own settings; a plan that changes them must say so to its reader."""
    gated = {g.limit.audit for g in suite.measured if g.blocking and g.limit}
    for choice in plan.audits:
        if choice.name in gated and choice.config:
            yield (
                f"the plan changes {', '.join(sorted(choice.config))} of {choice.name}, which a blocking "
                "gate judges; its limit was set for the audit's own settings"
            )


def about_coarsening(plan: Plan) -> Iterator[str]:
    """What a reader must know of coarser values; the plan's own words, and no value beyond them."""
    if (spec := plan.coarsen) is None:
        return
    each = "; ".join(f"{name!r} {rule.words}" for name, rule in spec.columns.items())
    yield (
        f"the plan makes the release coarser: {each}. Attacks coarsen the real records alike, as everybody "
        "can who reads the plan; usefulness is compared with real rows as they are"
    )
    if spec.on_real_data:
        yield (
            f"the coarsening was chosen on real data, among {spec.tries} candidates: every interval has the "
            f"level {plan.corrected_level:.4f} for it, and no guarantee of differential privacy covers it"
        )


def about_source(
    left_out: Sequence[str], clipped: Iterable[tuple[str, int]], suppression: int
) -> Iterator[str]:
    """What was left out of the source, and its numbers set to a bound, which may make a peak."""
    yield from about_index({"source": left_out})
    for name, count in clipped:
        if count:
            yield (
                f"{shown_count(count, suppression)} values of column {name!r} lay outside its declared "
                "bounds and were set to the nearest bound, as the plan says"
            )


def about_delta(plan: Plan, train: Table) -> Iterator[str]:
    """A δ of one over the number of people or more, which who hands out a random person's row keeps to."""
    if plan.privacy is None:
        return
    single = plan.privacy.rows_per_entity is None
    units = train.n_rows if single else len(np.unique(persons(train)))
    if plan.privacy.delta * units >= 1:
        yield (
            f"delta {plan.privacy.delta:g} is not below one over the {units:,} "
            f"{'rows' if single else 'people'} of train: whoever releases one of them at random, as it is, "
            "keeps to that; declare a far smaller"
        )


def about_rare_labels(subject: Subject) -> Iterator[str]:
    """Labels of few people, of which a generator without a budget learns nothing: a class may be gone.

    One that is handed every label may leave them out by itself, or by its parts: what it drew tells.
    """
    made = subject.generator
    if made is None or subject.terms.fit is not None or not refits(made):
        return
    handed = minimum_people(made)
    fewest, drawn = (handed, None) if handed > 1 else (FEWEST_PEOPLE, subject.synthetic)
    people = persons(subject.train)
    if rare := rare_label_columns(subject.train, 1 / np.bincount(people)[people], fewest, drawn):
        gone = "were learnt from nobody and are not drawn" if handed > 1 else "are not all in the release"
        yield (
            f"labels of {first_few([*map(repr, rare)], _SHOWN_NAMES)} that fewer than {fewest} people in "
            f"train have {gone}; group them, or declare the column's `categories` where they are known to "
            "everybody"
        )


def about_equal_rows(subject: Subject) -> Iterator[str]:
    """Rows that equal others, and no key tells whose they are: what our split took them for."""
    train, divided = subject.train, subject.random_split
    if divided is None or not divided.ours or key_columns(train.schema):
        return
    (groups,) = Encoded([train], train.schema.features).groups()
    equal, own = np.bincount(groups)[groups] > 1, subject.own_coins
    enough = max(subject.suppression, _OFTEN_EQUAL * train.n_rows)
    if (n := int((equal & own).sum())) >= enough:
        yield (
            f"{n:,} of {train.n_rows:,} train rows equal another, as many as chance makes alike in so few "
            "values, and no key tells whose they are: they were taken for different people's, each divided "
            "by a coin of its own; if somebody may be in the table twice, name the key"
        )
    if (n := int((equal & ~own).sum())) >= enough:
        yield (
            f"{n:,} of {train.n_rows:,} train rows equal another, and no key tells whose they are: "
            "these share a side of the split, so that a release which meets them by chance looks copied; if "
            "each row is a person of its own, give the table a column of row numbers with `role: identifier`"
        )


def about_suite(plan: Plan, suite: Suite) -> Iterator[str]:
    """What a suite of one's own lets pass, which may bear any name, and what a lower level or limit does."""
    if weaker := weaker_gates(suite):
        yield (
            f"the gate suite {suite.name!r} is none that ships: of the {len(usual_gates())} blocking gates "
            f"on measurements in {USUAL!r} it leaves out or widens {len(weaker)}: "
            f"{first_few(weaker, _SHOWN_NAMES)}"
        )
    for key, what in _LOWERED.items():
        value, usual = getattr(plan, key), Plan.model_fields[key].default
        if value < usual:
            yield f"the plan lowers {what} to {value:g}, from the usual {usual:g}"


def about_metadata(schema: pa.Schema) -> Iterator[str]:
    """Metadata of a file and of its columns, apart from those that say what the columns are.

    Keys may say something too, so that only known ones are named.
    """
    own, *noted = (
        {k: v for k, v in (x.metadata or {}).items() if k not in _TYPES} for x in (schema, *schema)
    )
    usual, attributes = _of_pandas(own.pop(b"pandas", b"{}"), own.pop(_PANDAS_ATTRIBUTES, b""), schema.names)
    sizes, noted = [sum(len(k) + len(v) for k, v in x.items()) for x in (own, *noted)], [*filter(None, noted)]
    found = {
        "pandas attributes": attributes,
        "more than pandas says of such a table": usual,
        f"{len(own)} other key{'s' * (len(own) != 1)}": sizes[0],
        f"metadata of {len(noted)} column{'s' * (len(noted) != 1)}": sum(sizes[1:]),
    }
    kinds = [
        f"{what}, {size:,} B" if size < 1000 else f"{what}, {size / 1000:,.1f} kB"
        for what, size in found.items()
        if size
    ]
    if kinds:
        yield (
            f"the synthetic file holds metadata other than the table itself ({'; '.join(kinds)}), which no "
            "audit sees"
        )


def _of_pandas(content: bytes, written: bytes, names: list[str]) -> tuple[int, int]:
    """Bytes beyond what pandas says of a table, and of attributes of the user's: in it, and written again."""
    try:
        said = json.loads(content)
        attributes = said.pop("attributes", {})
        usual = set(said) <= _BY_PANDAS
    except (ValueError, AttributeError, TypeError):
        attributes, usual = {}, False
    size = len(written) + (len(json.dumps(attributes)) if attributes else 0)
    if attributes:
        content = json.dumps(said).encode()
    most = _USUAL_BYTES + sum(_BYTES_OF_COLUMN + 2 * len(json.dumps(name)) for name in names)
    return (0 if usual and len(content) <= most else len(content)), size


def about_unused_labels(synthetic: Table, suppression: int) -> Iterator[str]:
    """Dictionaries of a candidate's columns that hold more values than its rows."""
    found = []
    for name in synthetic.names:
        values = synthetic.column(name)
        if pa.types.is_dictionary(values.type):
            listed = pa.chunked_array([chunk.dictionary for chunk in values.chunks], values.type.value_type)
            unused = n_distinct(listed) - n_distinct(values)
            found += [f"column {name!r} {shown_count(unused, suppression)}"] * (unused > 0)
    if found:
        yield f"dictionaries of the synthetic table hold values that no row uses: {', '.join(found)}"
