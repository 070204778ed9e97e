"""Gate suites: found, read, checked and refused before anything is judged."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast, get_args

from synth_audit import registry
from synth_audit.build import resource_folder
from synth_audit.errors import GateError, MeasurementNameError, PluginError
from synth_audit.files import Malformed, load_json, load_yaml, read_text
from synth_audit.findings.measurement import MeasurementId
from synth_audit.findings.sensitivity import derived_of
from synth_audit.findings.verdict import FITNESS
from synth_audit.plugins.audit import AuditInfo
from synth_audit.store.evidence import sha256_of
from synth_audit.text import meant
from synth_audit.verdict.criteria import ANSWERS, CRITERIA, FITNESS_BLOCKS, When
from synth_audit.verdict.gate_decision import EVERY_SCOPE, Limit

MEASUREMENT_TYPE = "expect_measurement_to_be_within"
"""Type of our own expectation: one measurement within one limit."""

SEVERITIES = ("critical", "warning", "info")
_SUITE_KEYS = {"name", "expectations", "meta", "notes", "id"}
_EXPECTATION_KEYS = {"type", "kwargs", "meta", "severity", "notes", "description", "id"}
_META_KEYS = ("id", "title", "finding", "reason", "advice", "blocking", "optional", "undecided", FITNESS)
_FLAGS = ("blocking", "optional", "undecided")
_LIMIT_KEYS = ("name", "scope", "bound", "minimum", "maximum", "strict", "people", "people_quantity")
# Great Expectations lets these arguments override what stands beside `kwargs`, or the form of results.
_RESERVED = frozenset(
    ["id", "meta", "notes", "severity", "description", "result_format", "catch_exceptions", "batch_id"]
)

_CORRECT = "correct the suite; those that ship show how it is done"

_SUFFIXES = ("", ".json", ".yaml", ".yml")


@dataclass(frozen=True)
class Gate:
    """One requirement of a suite: a limit on a measurement, or an expectation on the table.

    Attributes:
        id: unique in the suite; reason: why the limit is what it is; advice: what to do when it is not met.
        limit: None for an expectation on the synthetic table itself.
        optional: left out where its audit has nothing to judge on this table; never of a blocking gate.
        undecided: beyond its limit the evidence is insufficient, as its number is a detection limit.
        fitness: when it decides whether the release is fit for purpose.
        plain: the expectation in Great Expectations' own form.
    """

    id: str
    title: str
    reason: str
    advice: str
    blocking: bool
    optional: bool
    undecided: bool
    fitness: When
    limit: Limit | None
    plain: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Type and arguments in canonical form, see :func:`key_of`."""
        return key_of(self.plain)


@dataclass(frozen=True)
class Suite:
    """A checked suite. ``plain`` is exactly what was read and what the evidence keeps.

    Attributes:
        answers: criteria that must be answered before a release.
        fitness_blocks: a release must be fit for purpose.
    """

    name: str
    plain: Mapping[str, Any]
    sha256: str
    gates: tuple[Gate, ...]
    answers: tuple[str, ...] = ()
    fitness_blocks: bool = False

    @property
    def measured(self) -> tuple[Gate, ...]:
        """The gates on measurements."""
        return tuple(g for g in self.gates if g.limit is not None)

    @property
    def on_table(self) -> tuple[Gate, ...]:
        """The gates on the synthetic table."""
        return tuple(g for g in self.gates if g.limit is None)


def load_suite(name: str, base: Path) -> Suite:
    """Read and check a suite: a file relative to ``base``, else one that ships with the package.

    Args:
        name: for example ``gates.yaml``, ``expectations/release.json`` or ``release``.

    Raises:
        GateError: the suite is missing or damaged, or it could pass without judging what it states.
    """
    path = locate(name, base)
    return parse_suite(read(path), where=str(path))


def parse_suite(plain: object, *, where: str = "gates", installed: bool = True) -> Suite:
    """Check a suite given as plain values.

    Args:
        installed: require that an installed audit declares each measurement; False to judge old
            evidence again where its audits may no longer be installed.

    Raises:
        GateError: see :func:`load_suite`.
    """
    _need(isinstance(plain, Mapping), "the gate suite is not a mapping", where, "name and expectations")
    suite = cast(Mapping[str, Any], plain)
    _refuse_unknown(suite, _SUITE_KEYS, where)
    name, listed, meta = suite.get("name"), suite.get("expectations"), suite.get("meta")
    _need(name and isinstance(name, str), "the gate suite has no name", where, '`"name": "..."`')
    several = listed and isinstance(listed, Sequence) and not isinstance(listed, str)
    _need(several, "the gate suite holds no expectations", where, "a list of at least one")
    assert isinstance(name, str)
    assert listed is not None
    _refuse_foreign(suite, where)
    gates = tuple(_gate(x, f"{where}, expectation {i}", installed) for i, x in enumerate(listed, 1))
    _refuse_twice((g.id for g in gates), "gate id", where)
    _refuse_twice((g.key for g in gates), "expectation", where)
    _need(
        any(g.blocking and g.limit for g in gates),
        "no gate on a measurement blocks, so the suite would pass whatever the audits found",
        where,
        f"at least one {MEASUREMENT_TYPE} of severity critical",
    )
    stated = meta if isinstance(meta, Mapping) else {}
    asked = stated.get(ANSWERS, [])
    known = isinstance(asked, list) and all(isinstance(x, str) and x in CRITERIA for x in asked)
    _need(
        known and len(set(asked)) == len(asked),
        f"meta.{ANSWERS} does not name criteria",
        where,
        f"a list of some of {', '.join(CRITERIA)}, each once",
        "correct the suite; `sensitive` shows how it is done",
    )
    blocks = stated.get(FITNESS_BLOCKS, False)
    misspelt = any(
        k != FITNESS_BLOCKS and get_close_matches(str(k), [FITNESS_BLOCKS], 1, 0.75) for k in stated
    )
    _need(
        not misspelt and isinstance(blocks, bool) and (not blocks or any(g.fitness for g in gates)),
        f"meta.{FITNESS_BLOCKS} is misspelt, not true or false, or has no gate that decides fitness",
        where,
        f"`{FITNESS_BLOCKS}: true` or `false`, and with true a gate whose meta has `{FITNESS}`",
    )
    _refuse_foreign(suite, where, allow_nan=False)
    return Suite(name, suite, sha256_of(suite), gates, tuple(asked), blocks)


def locate(name: str, base: Path) -> Path:
    """The suite's file: relative to ``base``, else among those that ship.

    Raises:
        GateError: there is none.
    """
    own = base / name
    if os.path.isfile(own):  # unlike Path.is_file it takes a name that is too long or holds a null character
        return own
    shipped = resource_folder("expectations")
    inside = name.removeprefix(f"{shipped.name}/")
    for suffix in _SUFFIXES:
        if os.path.isfile(place := shipped / f"{inside}{suffix}"):
            return place
    raise GateError(
        f"there is no gate suite {name!r}{meant(name, shipped_suites())}",
        where=str(own),
        expected=f"a file, or one that ships: {', '.join(shipped_suites()) or 'none'}",
        fix="check `gates` in the plan",
    )


def shipped_suites() -> tuple[str, ...]:
    """Names of the suites that ship."""
    found = resource_folder("expectations").glob("*")
    return tuple(sorted(p.stem for p in found if p.suffix in _SUFFIXES[1:]))


def read(path: Path) -> object:
    """The plain values in a suite's file.

    Raises:
        GateError: it cannot be read, is damaged, or holds a key twice, of which the last would win.
    """
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise GateError(
            f"the gate suite cannot be read ({type(error).__name__})",
            where=str(path),
            expected="a JSON or YAML file in UTF-8",
            fix="check `gates` in the plan, and the permissions of the file",
        ) from None
    try:
        return load_json(text) if path.suffix.lower() == ".json" else load_yaml(text)
    except Malformed as error:
        raise GateError(
            "the gate suite is damaged" + (f": {error.reason}" if error.reason else ""),
            where=f"{path}, line {error.line}" if error.line else str(path),
            expected="valid JSON (or YAML) in which no key occurs twice",
            fix="correct the file, or start from a suite that ships",
        ) from None


def check_gateable(limit: Limit, where: str) -> None:
    """Refuse a limit on what no installed audit reports.

    Raises:
        GateError: the audit or the quantity is not there, or the scope is one that no such number has.
    """
    measurement = limit.measurement
    own, derived = _declared(measurement, where)
    quantity, of = measurement.quantity, measurement.derived_from
    for name in (x for x in (quantity, of.quantity if of else "", limit.people_quantity) if x):
        known = [*own, *derived] if name == quantity else own
        _need(
            name in known,
            f"the audit {measurement.audit!r} reports no quantity {name!r}",
            where,
            f"one of {', '.join(known)}",
            suggestion(name, known),
        )
    if (of is None) == (quantity in derived) and not limit.every:
        what, expected, fix = "no derived number", "a scope without `of`", ""
        if of is None:
            what, fix = "derived from another number", f"for example `of {own[0]}`"
            expected = f"the scope `of quantity` or `of quantity[scope]`, or {EVERY_SCOPE!r}"
        raise GateError(f"{measurement.name} is {what}", where=where, expected=expected, fix=fix)


def suggestion(word: str, known: Iterable[str]) -> str:
    """A question after the nearest known word; empty when none is near."""
    close = get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def _declared(measurement: MeasurementId, where: str) -> tuple[list[str], list[str]]:
    """The quantities of the audit, and those derived from them."""
    audit, known = measurement.audit, registry.catalogue("audit")
    _need(
        audit in known,
        f"the measurement {measurement.name!r} belongs to no audit that is installed",
        where,
        suggestion(audit, known) or f"one of {', '.join(known) or 'none'}",
        "`synth-audit list` shows every audit",
    )
    try:
        info: AuditInfo = known[audit].info
    except PluginError as error:
        raise GateError(
            f"the audit {audit!r} of the measurement {measurement.name!r} does not load",
            where=where,
            fix=error.what,
        ) from error
    return [q.name for q in info.quantities], [q.name for q in derived_of(known[audit].family)]


def key_of(expectation: Mapping[str, Any]) -> str:
    """Canonical JSON of an expectation's type and arguments: equal for equal expectations."""
    content = {"type": expectation["type"], "kwargs": expectation["kwargs"]}
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


@cache
def table_expectation_types() -> frozenset[str]:
    """Types that Great Expectations ships, read off its file names so that it need not be imported."""
    spec = find_spec("great_expectations")
    folders = (spec.submodule_search_locations or []) if spec else []
    files = (f for folder in folders for f in (Path(folder) / "expectations" / "core").glob("expect_*.py"))
    return frozenset(f.stem for f in files)


def _gate(plain: object, where: str, installed: bool) -> Gate:
    _need(
        isinstance(plain, Mapping), "an expectation is not a mapping", where, "type, kwargs, meta, severity"
    )
    gate = cast(Mapping[str, Any], plain)
    meta = gate.get("meta")
    ident = meta.get("id") if isinstance(meta, Mapping) else None
    named = isinstance(ident, str) and ident.strip()
    _need(named, "an expectation has no id", where, '`"meta": {"id": "...", "reason": "..."}`')
    assert isinstance(meta, Mapping)
    where = f"{where} ({ident})"
    _refuse_unknown(gate, _EXPECTATION_KEYS, where)
    severity, kwargs = gate.get("severity", "critical"), gate.get("kwargs")
    _need(severity in SEVERITIES, "unknown severity", where, f"one of {', '.join(SEVERITIES)}")
    for key in set(meta) - set(_META_KEYS):
        # Other keys are the author's own, but a misspelt `blocking` must not open a gate.
        close = get_close_matches(str(key), _META_KEYS, n=1, cutoff=0.75)
        _need(not close, f"unknown key {key!r} in meta", where, f"{close and close[0]!r}, or another word")
    for key in ("title", "finding", "reason", "advice"):
        _need(isinstance(meta.get(key, ""), str), f"meta.{key} is not text", where, "a sentence")
    _need(
        meta.get("reason", "").strip(),
        "a gate states no reason for its limit",
        where,
        "meta.reason: why this limit and no other",
        "a compliance officer signs the limit, so write down what it rests on",
    )
    flags = {key: meta.get(key, key == "blocking" and severity == "critical") for key in _FLAGS}
    for key, flag in flags.items():
        _need(isinstance(flag, bool), f"meta.{key} is neither true nor false", where, "true or false")
    blocking, when = flags["blocking"], meta.get(FITNESS, "")
    _need(isinstance(kwargs, Mapping), "an expectation has no kwargs", where, "a mapping of arguments")
    assert isinstance(kwargs, Mapping)
    limit = _limit(gate.get("type"), kwargs, where, installed)
    _need(
        not (flags["optional"] and blocking),
        "a blocking gate cannot be optional",
        where,
        "severity warning or info",
        "what decides a release must not vanish when its audit has nothing to judge",
    )
    _need(
        when in get_args(When),
        f"meta.{FITNESS} does not say when the gate decides fitness",
        where,
        "always, target (where the plan names one) or no target",
    )
    _need(
        not (when and blocking),
        "a gate that decides fitness blocks by itself",
        where,
        "severity warning or info",
        f"say in the suite's meta whether fitness blocks: `{FITNESS_BLOCKS}: true`",
    )
    words = str(gate["type"]).replace("_", " ").capitalize()
    about = f"{words}: {kwargs['column']}" if kwargs.get("column") else words
    return Gate(
        id=meta["id"],
        title=meta.get("title") or (limit.title if limit else about),
        reason=meta["reason"],
        advice=meta.get("advice", ""),
        fitness=when,
        limit=limit,
        plain=gate,
        **flags,
    )


def _limit(kind: object, kwargs: Mapping[str, Any], where: str, installed: bool) -> Limit | None:
    taken = sorted(_RESERVED & set(kwargs))
    _need(not taken, f"{taken and taken[0]!r} may not stand in kwargs", where, "arguments of the expectation")
    empty = '"$PARAMETER"' in json.dumps(kwargs, default=str)
    _need(not empty, "a suite parameter has no value here", where, "every argument written out")
    if kind != MEASUREMENT_TYPE:
        types = table_expectation_types()
        _need(
            isinstance(kind, str) and kind in types,
            f"unknown expectation type {kind!r}",
            where,
            suggestion(str(kind), [*types, MEASUREMENT_TYPE])
            or f"{MEASUREMENT_TYPE}, or a type that Great Expectations ships",
        )
        return None
    _refuse_unknown(kwargs, set(_LIMIT_KEYS), where, "argument")
    try:
        limit = Limit.read(**{"name": "", **kwargs})
    except MeasurementNameError as error:
        fix = f"{error.fix}, or write {EVERY_SCOPE!r} for all"
        raise GateError(error.what, where=where, expected=error.expected, fix=fix) from None
    except ValueError as error:
        expected = f"{', '.join(_LIMIT_KEYS)}; see the suite that ships"
        raise GateError(str(error), where=where, expected=expected, fix=_CORRECT) from None
    if installed:
        check_gateable(limit, where)
    return limit


def _refuse_foreign(plain: object, where: str, *, allow_nan: bool = True) -> None:
    """Raise for what JSON cannot hold; ``allow_nan`` leaves NaN to the checks of limits, which name it."""
    try:
        json.dumps(plain, allow_nan=allow_nan, sort_keys=True)
    except (TypeError, ValueError):
        raise GateError(
            "the gate suite holds a value that JSON cannot hold",
            where=where,
            expected="text, finite numbers, true, false, lists and mappings",
            fix="put dates in quotes",
        ) from None


def _refuse_unknown(plain: Mapping[Any, Any], known: set[str], where: str, what: str = "key") -> None:
    unknown = sorted(str(k) for k in plain if k not in known)
    _need(
        not unknown, f"unknown {what} {unknown and unknown[0]!r}", where, f"one of {', '.join(sorted(known))}"
    )


def _refuse_twice(names: Iterable[str], what: str, where: str) -> None:
    twice = [n for n, count in Counter(names).items() if count > 1]
    _need(not twice, f"the {what} {twice and twice[0]!r} occurs more than once", where, f"each {what} once")


def _need(met: object, what: str, where: str, expected: str, fix: str = _CORRECT) -> None:
    """Raise ``GateError`` unless this is met."""
    if not met:
        raise GateError(what, where=where, expected=expected, fix=fix)
