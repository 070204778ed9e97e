"""Reads a plan from its YAML file, and says of each key what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from synth_audit.errors import PlanError, keys_of, problems_of
from synth_audit.files import Malformed, load_yaml, read_text
from synth_audit.plan.plan import LONGEST_NAME, Plan

_TEMPLATE = re.compile(r"\{\{\s*env\b")
"""How a template begins that Dagster fills in; other braces may be text of the table."""


def load_plan(path: Path | str) -> Plan:
    """Read and validate a plan file, plug-ins included.

    Raises:
        PlanError: the file is missing, is no YAML mapping, or does not validate.
    """
    path = Path(path)
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise PlanError(
            f"the plan cannot be read ({type(error).__name__})",
            where=str(path),
            expected="a YAML file in UTF-8",
            fix="check the path, or start one with `synth-audit init`",
        ) from None
    try:
        value = load_yaml(text)
    except Malformed as error:
        raise PlanError(
            "the plan is not valid YAML" + (f": {error.reason}" if error.reason else ""),
            where=f"{path}, line {error.line}" if error.line else str(path),
            expected="a YAML mapping without doubled keys",
            fix="put text in quotes that begins with a sign, such as a rule that begins with a backtick",
        ) from None
    if isinstance(value, Mapping):
        value = {"name": re.sub(r"[^\w.-]", "_", path.stem)[:LONGEST_NAME]} | dict(value)
    return parse_plan(value, where=str(path)).located(path.resolve().parent).check()


def parse_plan(value: object, *, where: str = "plan") -> Plan:
    """Validate a plan given as plain values, without building its plug-ins.

    Raises:
        PlanError: naming every key that is wrong, those of plug-ins too.
    """
    if not isinstance(value, Mapping):
        raise PlanError(
            "the plan is not a mapping",
            where=where,
            expected="`key: value` lines",
            fix="`synth-audit init` writes a plan to start from",
        )
    if unfilled := [_unfilled(key) for key in _templates(value)]:
        raise PlanError.joined(unfilled, where)
    rest, mistakes = dict(value), list[PlanError]()
    while True:
        plan, found, wrong = _read(rest, where)
        mistakes += found
        kept = {key: rest[key] for key in rest if key not in wrong}
        if plan is not None or len(kept) == len(rest):
            break
        rest = kept
    if plan is not None and not mistakes:
        return plan
    # What is left may hold more mistakes, which are told together.
    raise PlanError.joined([*mistakes, *(plan.mistakes() if plan else ())], where)


def _templates(value: object, where: str = "") -> Iterator[str]:
    """Keys of values that hold a template; taken literally, it would name a file or a server."""
    match value:
        case str() if _TEMPLATE.search(value):
            yield where
        case Mapping():
            for key, inner in value.items():
                yield from _templates(inner, f"{where}.{key}".lstrip("."))
        case list() | tuple():
            for i, inner in enumerate(value):
                yield from _templates(inner, f"{where}.{i}")


def _unfilled(key: str) -> PlanError:
    return PlanError(
        "a template is not filled in, which only Dagster does",
        where=key,
        expected="the value itself",
        fix="write the value, or put it in a `defs.yaml`; passwords belong under a connection's `secrets`",
    )


def _read(value: dict[str, object], where: str) -> tuple[Plan | None, list[PlanError], set[str]]:
    """The plan, or what is wrong with it and the keys that hold the mistakes."""
    try:
        return Plan.model_validate(value), [], set()
    except PlanError as error:  # of a rule or a source, which say more than pydantic does
        return None, [error], {error.where.partition(".")[0]}
    except ValidationError as error:
        found = PlanError(
            problems_of(error, Plan),
            where=where,
            expected=keys_of(error, Plan) or "what the plan's JSON Schema allows",
            fix="`synth-audit schema` prints the plan's JSON Schema; `synth-audit init` writes an example",
        )
        return None, [found], {str(e["loc"][0]) for e in error.errors() if e["loc"]}
