"""Writes a plan to start from, with roles and rules proposed for a given table."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import yaml

from synth_audit.arrays import Codes, Codes32, Counts, Floats, Positions
from synth_audit.encode.codes import cells_of, codes
from synth_audit.errors import PlanError
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.plan.plan import Plan, plan_schema
from synth_audit.plugins.source import read
from synth_audit.registry import catalogue
from synth_audit.store.files import write_text
from synth_audit.table.arrow import is_text, n_distinct
from synth_audit.table.kind import TIME, NumberPart, Order
from synth_audit.table.rules import Rule, determines, nameable, ordered
from synth_audit.table.schema import RELEASED, Column, Role, nominal
from synth_audit.table.schema_inference import ColumnSpec, infer_schema, kind_of
from synth_audit.table.storage_types import plain
from synth_audit.table.table import Table, read_table

_KEY_WORDS = re.compile(
    r"(^|_)(id|ids|key|uuid|guid|mrn|ssn|nhs|pesel|cpr|bsn|iban|msisdn)$|number$|_no$|_nr$"
)
_OUTCOME = re.compile(
    r"target|label|class|outcome|response|y|diagnosis|survived|death|died|mortality|churn|default|fraud|"
    r"readmitted|event|status"
)
_SPECIAL = re.compile(
    r"(^|_)(income|salary|wage|debt|credit|race|ethnic\w*|relig\w*|politic\w*|union|sexual\w*|orientation|gender|"
    r"disab\w*|hiv|aids|pregnan\w*|abortion|genetic\w*|mutation|psych\w*|addict\w*|alcohol\w*|drug\w*|"
    r"diagnos\w*|disease|icd\w*|criminal\w*|convict\w*|arrest\w*|health\w*|illness)(_|$)"
)
"""Words of special categories of data (GDPR, articles 9 and 10) and of what people keep to themselves."""

_FEW_ROWS_EACH = 50
"""A key of more rows than this is rather a site or a group than a person."""

_FEWER_ROWS_EACH = 20
"""The same of a column that is not named as a key is."""

_FEWEST_REPEATED = 20
"""Values of such a column that must repeat."""

_COLUMNS_TOLD, _ROWS_ALIKE, _MOST_IN_ONE_VALUE = 3, 0.95, 0.8
"""So many other columns must be the same in nearly all rows of a key, though few rows agree in them."""

_TOP_OF_PLAN = """\
# A plan decides everything about one table. `synth-audit schema` prints its JSON Schema,
# `synth-audit list` every source, generator and audit, `synth-audit describe NAME` their settings.
# Relative paths start at this file. Run it with: synth-audit run {file}
"""

_ABOUT_COLUMNS = """
# Kinds: {kinds}.
# Roles: feature, target, sensitive, identifier, split_key; a list gives a column several. Those below are
# guesses from names and from how values repeat: correct them before you run the plan.
# What you declare (bounds, categories) is taken to be public knowledge. Columns left out are inferred.
"""

_ABOUT_RULES = """
# Rules that every row obeys, such as `age >= 18`, `admitted <= discharged` or `zip, street -> city`; audit
# `constraints` counts what breaks them, and bounds and categories above. Limits and categories are never
# proposed here: the ends of a range are somebody's values. Declare what everybody may know.
"""

_NO_RULES = """\
# rules:
# - admitted <= discharged
"""

_FOUND = """\
# These held on all rows of the source: look them over, and keep what must hold. Behind each stands how many
# rows would break it if its columns had nothing to do with each other.
rules:
"""

_REST = """
split: {control: 0.2}            # share of people kept from the generator, to test against

generator: {vine: {}}            # see `synth-audit describe vine`

# audits: [exact_match, closest_record]   # the usual ones when left out
gates: expectations/release.json # the suite that ships; copy it to make your own

# release: {parquet: {path: released.parquet}}   # where a passing table goes
# review: {purpose: teaching, recipient: who gets it, owner: who answers for it}   # for the certificate
"""

_EXAMPLE = {
    "patient_id": {"role": "identifier"},
    "diagnosis": {"role": "target"},
    "income": {"role": "sensitive", "bounds": [0, 500000]},
}

MOST_RULES = 20
"""More proposals than a person looks over carefully."""

FEWEST_ROWS_OF_RULE = 50
"""Rows with both values below which nothing is proposed."""

FEWEST_SPARED = 25.0
"""Exceptions that a rule must be spared: with so many expected, chance gives none once in e^25 pairs."""

LEAST_CHANCE = 0.01
"""Share of rows that must break a rule once paired at random; below it, disjoint ranges or a value that
nearly all rows share keep the rule."""

MOST_UNLIKE = 100.0
"""Ratio of the spreads of two columns beyond which comparing them means nothing."""

_ROWS_A_VALUE = 5
"""Rows for each value of a column, on average, below which it is not said to determine another."""

_ROWS_OF_CHANCE = 1_000
"""Rows on which the chance of an inequality is estimated."""

_GROUPED_ROWS = 4_000
"""First rows on which a dependency is tried before it is checked on all."""

_Values = TypeVar("_Values")
"""Numbers, or codes of labels, of one column."""

_Held = tuple[int, float]
"""Rows on which a rule holds, and the chance of each to break it; no rows where it is broken or not asked."""


@dataclass(frozen=True)
class RoleProposal:
    """A role for a column, and why."""

    role: Role
    reason: str


def proposed_roles(table: Table) -> dict[str, RoleProposal]:
    """Roles for the columns that seem to have one, none of them more than a proposal.

    What the reasons say rests on names of columns, and on whether values repeat; no value is in them.
    """
    found: dict[str, RoleProposal] = {}
    for column in table.schema:
        proposal = _key_role(table, column) or _meaning(column)
        targets = [p for p in found.values() if p.role is Role.TARGET]
        if proposal and not (proposal.role is Role.TARGET and targets):
            found[column.name] = proposal
    split_key = any(p.role is Role.SPLIT_KEY for p in found.values())
    named = any(p.role is Role.IDENTIFIER and p.reason.startswith("named") for p in found.values())
    return found if split_key or named else found | _unnamed_key(table)


def _unnamed_key(table: Table) -> dict[str, RoleProposal]:
    """The column whose rows agree in most others, as rows of one person do, where that is no chance."""
    codes_of = {c.name: codes([table], c)[0] for c in table.schema.features}
    varied = {
        name: c for name, c in codes_of.items() if _impurity(np.bincount(c + 1)) > 1 - _MOST_IN_ONE_VALUE
    }
    most, best = _COLUMNS_TOLD - 1, ""
    for column in table.schema.features:
        key = codes_of[column.name]
        distinct = int(key.max(initial=-1)) + 1
        if table.n_rows / _FEWER_ROWS_EACH < distinct < table.n_rows and column.kind.groups(
            table.column(column.name)
        ):
            told = sum(_told(key, other) and not _told(other, key) for other in varied.values())
            if told > most and not _reads_as_dates(table, column):
                most, best = told, column.name
    if not best:
        return {}
    reason = f"values repeat, and rows of one agree in {most} other columns: are they one person's?"
    return {best: RoleProposal(Role.SPLIT_KEY, reason)}


def _reads_as_dates(table: Table, column: Column) -> bool:
    """Whether labels of a column are moments, by which the columns of their parts follow, as of nobody."""
    parts = column.kind.parts([cells_of(table, column)]) if nominal([column]) else ()
    return any(isinstance(part, NumberPart) and part.unit == TIME for part in parts)


def _told(key: Codes, other: Codes) -> bool:
    """Whether nearly all rows of a value of the key that repeats have the same other value."""
    rows = np.flatnonzero(key >= 0)
    order = rows[np.argsort(key[rows], kind="stable")]
    _, starts, n = np.unique(key[order], return_index=True, return_counts=True)
    if (n > 1).sum() < _FEWEST_REPEATED:
        return False
    ends = [bound.reduceat(other[order], starts) for bound in (np.minimum, np.maximum)]
    return bool(n[(n > 1) & (ends[0] == ends[1])].sum() >= _ROWS_ALIKE * n[n > 1].sum())


def _key_role(table: Table, column: Column) -> RoleProposal | None:
    n = table.n_rows
    if not column.released:
        return RoleProposal(Role.IDENTIFIER, "more labels than categories can be")
    distinct = n_distinct(table.column(column.name))
    named = bool(_KEY_WORDS.search(_words(column.name)))
    if n > 1 and distinct == n and not table.n_missing(column.name):
        if column.kind.like_identifier(n, n, n):
            mend = "; it reads as dates, of which new ones are drawn if they are stored as such"
            return RoleProposal(
                Role.IDENTIFIER, f"each row has its own value{mend if _reads_as_dates(table, column) else ''}"
            )
        if named and pa.types.is_integer(column.storage):
            return RoleProposal(Role.IDENTIFIER, "named as a key is, and each row has its own value")
    if named and n > distinct > n / _FEW_ROWS_EACH and distinct > 1:
        return RoleProposal(
            Role.SPLIT_KEY,
            "named as a key is, and values repeat: all rows of one stay on one side of the split",
        )
    return None


def _meaning(column: Column) -> RoleProposal | None:
    name = _words(column.name)
    if _OUTCOME.fullmatch(name):
        return RoleProposal(Role.TARGET, "named as outcomes are: usefulness is tested by predicting it")
    if _SPECIAL.search(name):
        return RoleProposal(
            Role.SENSITIVE, "named as what people keep to themselves: attacks try to learn it"
        )
    return None


def _words(name: str) -> str:
    """A name in small letters with one underscore between words, however it is written."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"\W+", "_", apart).strip("_").lower()


def write_starter_plan(
    source: str | None,
    table: str | None = None,
    path: Path | None = None,
    *,
    with_schema: bool = False,
    force: bool = False,
) -> Path:
    """Write a plan to start from.

    Args:
        source: file of the table; None for an example.
        table: its name inside a DuckDB file.
        path: of the plan; named after the table in the working folder if None.
        with_schema: write ``plan.schema.json`` beside it, for editors.
        force: replace a plan that is there.

    Returns:
        Where the plan is.

    Raises:
        PlanError: something is there already.
        DataError: the table cannot be read.
    """
    stem = (table or source or "plan").rsplit("/", 1)[-1].split(".")[-1 if table else 0]
    path = path or Path(f"{stem}.yaml")
    if os.path.lexists(path) and not (force and path.is_file()):
        raise PlanError(
            "the plan file exists already",
            where=str(path),
            expected="a file that does not exist",
            fix="name another with --plan, or replace a file with --force",
        )
    choice: dict[str, Any] = {"duckdb": {"path": "warehouse.duckdb", "table": "clinical.tumours"}}
    data = None
    if source:
        named = {"duckdb": {"path": source, "table": table}} if table else source
        asked = Plan.model_validate({"source": named})
        assert asked.source is not None
        data = read(asked.build_source(), Path.cwd())
        own = os.path.expanduser(source)  # a relative path starts at the plan's folder
        seen = own if os.path.isabs(own) else os.path.relpath(own, path.parent)
        choice = {asked.source.name: {"path": seen}}
        choice[asked.source.name] |= {"table": table} if table else {}
    schema = "plan.schema.json" if with_schema else None
    if schema:
        write_text(path.parent / schema, json.dumps(plan_schema(), indent=2) + "\n")
    write_text(path, starter_plan(choice, data, path.name, schema=schema))
    return path


def starter_plan(
    source: Mapping[str, Any], data: pa.Table | None, file: str, *, schema: str | None = None
) -> str:
    """YAML text of a plan.

    Args:
        source: the source choice to write.
        data: the table it reads, to propose columns from; None for an example.
        file: name of the plan file, for the comment on how to run it.
        schema: the JSON Schema of plans, as it is reached from there, for editors.

    Raises:
        DataError: no column of the table, or none of its rows, can be audited.
    """
    table = None if data is None else _read(data)
    kinds = ", ".join(catalogue("kind"))
    editors = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    parts = [
        editors,
        _TOP_OF_PLAN.format(file=file),
        "\n",
        _yaml({"source": dict(source)}),
        _ABOUT_COLUMNS.format(kinds=kinds),
    ]
    parts.append(_yaml({"columns": _EXAMPLE}) if table is None else _columns(table))
    parts += [_ABOUT_RULES, _NO_RULES if table is None else _rules(table), _REST]
    return "".join(parts)


def _read(data: pa.Table) -> Table:
    """The table, with text that has too many values for a category taken for identifiers."""
    data = plain(data, where="source")
    crowded = {
        field.name: ColumnSpec.model_validate({"role": Role.IDENTIFIER})
        for field, values in zip(data.schema, data.columns, strict=True)
        if _too_many_labels(values)
    }
    return read_table(data, infer_schema(data, crowded, where="source"), where="source")


def _too_many_labels(values: pa.ChunkedArray) -> bool:
    stored = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    kind = kind_of(values) if is_text(stored) else None
    return kind is not None and bool(kind.too_many_labels(n_distinct(values)))


def _columns(table: Table) -> str:
    """A line for each column: its kind, and the role that it seems to have with the reason."""
    proposals = proposed_roles(table)
    lines = []
    for column in table.schema:
        said, proposal = {"kind": str(column.kind)}, proposals.get(column.name)
        if proposal:
            said["role"] = str(proposal.role)
        text = _yaml({column.name: said}, flow=None).rstrip("\n")
        lines.append("  " + text.replace("\n", "\n  ") + (f"   # {proposal.reason}" if proposal else ""))
    return "\n".join(["columns:", *lines, ""])


def _rules(table: Table) -> str:
    """The rules found on the columns that are not proposed as identifiers, a comment where there are none."""

    keys = {name for name, p in proposed_roles(table).items() if p.role not in RELEASED}
    found = discover(table, [c for c in table.schema if c.name not in keys and nameable(c.name)])
    if not found:
        return _NO_RULES
    lines = [(_yaml([p.rule.text], flow=False).rstrip("\n"), f"{p.chance:.0%}") for p in found]
    width = max(len(text) for text, _ in lines)
    return _FOUND + "".join(f"{text:<{width}}  # {share}\n" for text, share in lines)


def _yaml(value: object, *, flow: bool | None = None) -> str:
    width = 100 if flow is None else float("inf")
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=flow, allow_unicode=True, width=width)


@dataclass(frozen=True)
class Proposal:
    """A rule that held on every row that has its values.

    Attributes:
        rows: how many these are.
        chance: share of them that would break it if one column were shuffled, in (0, 1].
    """

    rule: Rule
    rows: int
    chance: float

    @property
    def spared(self) -> float:
        """Exceptions that were to be expected and did not come."""
        return self.rows * self.chance


def discover(table: Table, columns: Sequence[Column], most: int = MOST_RULES) -> tuple[Proposal, ...]:
    """Inequalities and functional dependencies that hold on all rows, the best supported first.

    ``a <= b`` and ``a == b`` between numbers or between dates; ``a -> b`` where a has fewer values than a
    fifth of its rows, b more than one, and both are labels or whole numbers. Each holds on at least
    :data:`FEWEST_ROWS_OF_RULE` rows and would be broken by :data:`LEAST_CHANCE` of them and
    :data:`FEWEST_SPARED` in all if its columns had nothing to do with each other. What follows from two
    others is left out. Ranges and categories are never proposed: their ends and names are somebody's
    values. A proposal holds no value.
    """
    found: list[Proposal] = []
    equal: set[str] = set()
    for order in (Order.DATES, Order.NUMBERS):
        numbers = {c.name: table.numbers(c.name) for c in columns if c.kind.order is order}
        twins, single = _worth_telling(numbers, _inequality)
        for (a, b), (rows, _) in twins.items():
            _, counts = np.unique(numbers[a][~np.isnan(numbers[a])], return_counts=True)
            found.append(Proposal(ordered(a, "==", b), rows, _impurity(counts)))
            equal.add(b)
        found += [Proposal(ordered(a, "<=", b), *held) for (a, b), held in single.items()]
    labels = {
        c.name: codes([table], c)[0].astype(np.int32)
        for c in columns
        if c.name not in equal and c.kind.groups(table.column(c.name)) and not c.typeless
    }
    twins, single = _worth_telling(labels, _dependency)
    back = {(b, a): _dependency(labels[b], labels[a]) for a, b in twins}
    found += [Proposal(determines([a], b), *held) for (a, b), held in (twins | back | single).items()]
    return tuple(sorted(found, key=lambda p: -p.spared)[:most])


def _worth_telling(
    values: Mapping[str, _Values], ask: Callable[[_Values, _Values], _Held]
) -> tuple[dict[tuple[str, str], _Held], dict[tuple[str, str], _Held]]:
    """Pairs of columns that hold both ways and are worth telling, and those that hold one way.

    The second of two columns that hold both ways stands back for the first. What follows from two others on
    as many rows is left out, what spares least first.
    """
    left = {(a, b): ask(values[a], values[b]) for a, b in permutations(values, 2)}
    left = {
        pair: (rows, chance)
        for pair, (rows, chance) in left.items()
        if rows >= FEWEST_ROWS_OF_RULE and chance >= LEAST_CHANCE and rows * chance >= FEWEST_SPARED
    }
    twins = {}
    for a, b in combinations(values, 2):
        if (a, b) in left and (b, a) in left:
            twins[a, b] = left[a, b]
            left = {pair: held for pair, held in left.items() if b not in pair}
    for a, b in sorted(left, key=lambda pair: left[pair][0] * left[pair][1]):
        ways = [(left.get((a, c)), left.get((c, b))) for c in values]
        if any(to and on and min(to[0], on[0]) >= left[a, b][0] for to, on in ways):
            del left[a, b]
    return twins, left


def _inequality(a: Floats, b: Floats) -> _Held:
    """Rows with both, and ``P(a > b')`` with b' from another row; nothing where some row has a above b, or
    where the columns' spreads are not of one order."""
    at = _spread_out(len(a))
    both = ~(np.isnan(a) | np.isnan(b))
    if np.any(a[at] > b[at]) or not both.any() or np.any(a[both] > b[both]):
        return 0, 0.0
    a, b = a[both], b[both]
    at = _spread_out(len(a))
    a, b, rows = np.sort(a[at]), np.sort(b[at]), len(a)
    low, high = sorted((_spread(a), _spread(b)))
    if not 0 < high <= low * MOST_UNLIKE:
        return 0, 0.0
    return rows, float(np.searchsorted(b, a, side="left").mean() / len(at))


def _spread_out(n: int) -> Positions:
    return np.unique(np.linspace(0, n - 1, min(n, _ROWS_OF_CHANCE)).astype(np.intp))


def _spread(x: Floats) -> float:
    """Distance of the 5 % and 95 % quantiles, or of the ends where these agree."""
    low, high = map(float, np.quantile(x, [0.05, 0.95]))
    return high - low or float(np.ptp(x))


def _impurity(counts: Counts) -> float:
    """``1 − Σ p²``: how often two random rows differ."""
    return float(1 - np.sum((counts / counts.sum()) ** 2)) if len(counts) else 0.0


def _dependency(a: Codes32, b: Codes32) -> _Held:
    """Rows with both, and how likely one differs in b from the row before it with its a, were b shuffled:
    share of rows that are not the first with their a, times ``1 − Σ p²`` of b. Nothing where a has too many
    values, or where rows with one a differ in b."""
    if not (_determines(a[:_GROUPED_ROWS], b[:_GROUPED_ROWS]) and _determines(a, b)):
        return 0, 0.0
    both = (a != MISSING) & (b != MISSING)
    rows, groups = int(both.sum()), len(np.unique(a[both]))
    if not 2 <= groups < rows / _ROWS_A_VALUE:
        return 0, 0.0
    return rows, (1 - groups / rows) * _impurity(np.bincount(b[both]))


def _determines(a: Codes32, b: Codes32) -> bool:
    """Whether rows with one a never differ in b, where both are there."""
    both = (a != MISSING) & (b != MISSING)
    usual = np.full(int(a.max(initial=0)) + 1, MISSING, dtype=np.int32)
    usual[a[both]] = b[both]
    return bool(np.all(usual[a[both]] == b[both]))
