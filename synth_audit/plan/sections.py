"""The plan's sections: split, privacy, coarsen, known_answer, frontier, execution, release, review."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import date, datetime
from math import inf, isfinite
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from synth_audit.dp.accountant import FitTerms
from synth_audit.dp.guarantee import Budget, Neighbouring, Unit
from synth_audit.errors import PlanError, problems_of
from synth_audit.execution import Device, ExecutorName
from synth_audit.plugins.plugin_config import PluginChoice, PluginConfig, file_or_choice
from synth_audit.table.resolution import TIME_UNITS, ValueGrid
from synth_audit.table.rules import as_number
from synth_audit.table.schema_inference import AnyLabels

KEY_PREFIX = "ed25519:"
"""Begins a public key: the 32 bytes of an Ed25519 key in base64 follow."""

_LONGEST_APPROVER = 200
"""Characters of an approver's name, which stands in one line of a certificate."""

_RELEASE_KEYS = ("approvals", "approvers", "not_worse")

_Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]

INTO = "other"
"""What labels are merged into where the plan says nothing."""

_SPAN = re.compile(rf"(?:([1-9][0-9]{{0,5}}) )?({'|'.join(TIME_UNITS)})s?")


class Section(BaseModel):
    """A part of the plan: it never changes, and takes no key but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ExecutionSpec(Section):
    """Where audits and games are computed, for how long, and on what.

    Left out of the plan's digest and of the evidence: the same plan gives the same numbers anywhere.
    """

    executor: ExecutorName | None = Field(
        None, description="`serial`, `processes` or `dask`; what workers and scheduler imply if left out"
    )
    workers: int | None = Field(
        None, ge=1, le=256, description="processes on this machine; 1 if left out, 2 for a Dask cluster"
    )
    scheduler: str | None = Field(
        None, min_length=1, description="address of a Dask scheduler, such as `tls://10.0.0.5:8786`"
    )
    deadline: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="longest time in seconds of one candidate's audits, and of one fit of its generator; "
        "what has not ended by then is not applicable",
    )
    device: Device = Field(
        "cpu", description="what networks are computed on; `auto`: a GPU where there is one"
    )
    write_real_rows: bool = Field(
        True,
        description="`false`: no row of the source is written to a disk; every stage reads the source again, "
        "and temporary files lie in memory",
    )

    @model_validator(mode="after")
    def _consistent(self) -> ExecutionSpec:
        if self.scheduler is not None and not self.write_real_rows:
            raise ValueError(
                "a scheduler does not go with `write_real_rows: false`: its workers may write rows"
            )
        if self.scheduler is not None and self.name != "dask":
            raise ValueError("a scheduler goes with the executor dask")
        if self.executor == "serial" and (self.workers or 1) > 1:
            raise ValueError("the executor serial has one worker; take processes")
        return self

    @property
    def name(self) -> ExecutorName:
        """The executor asked for or implied."""
        if self.executor is not None:
            return self.executor
        if self.scheduler is not None:
            return "dask"
        return "processes" if (self.workers or 1) > 1 else "serial"

    @property
    def n_workers(self) -> int:
        """Processes on this machine."""
        return self.workers or (2 if self.name == "dask" else 1)

    def changed(self, settings: Mapping[str, Any]) -> ExecutionSpec:
        """The same with these settings instead, but for those that are None.

        Another executor than the plan's takes the plan's scheduler away, and its workers if it has one.

        Raises:
            PlanError: they do not go together.
        """
        given = {key: value for key, value in settings.items() if value is not None}
        kept = self.model_dump(exclude_none=True)
        if "executor" in given or "workers" in given:
            kept.pop("executor", None)
            kept.pop("scheduler", None)
        if given.get("executor") == "serial":
            kept.pop("workers", None)
        if "scheduler" in given:
            kept.pop("executor", None)
        try:
            return ExecutionSpec.model_validate(kept | given)
        except ValidationError as error:
            raise PlanError(
                problems_of(error),
                where="execution",
                expected=f"keys {', '.join(ExecutionSpec.model_fields)}",
                fix="`synth-audit schema` prints what each may be",
            ) from None


class FrontierSpec(Section):
    """Which candidates `synth-audit frontier` tries and how it chooses among those that pass."""

    vary: dict[str, tuple[Any, ...]] = Field(
        default_factory=dict,
        description="settings of the generator with the values to try; several make a grid",
    )
    generators: tuple[PluginConfig, ...] = Field((), description="further generators to try, as they stand")
    privacy: str | None = Field(
        None, description="measurement to judge privacy by, `name` or `name[scope]`; chosen when left out"
    )
    utility: str | None = Field(None, description="measurement to judge usefulness by; chosen when left out")
    alpha: float = Field(default=0.5, ge=0, le=1, description="weight of privacy against usefulness")

    @model_validator(mode="after")
    def _something_to_try(self) -> FrontierSpec:
        if empty := [name for name, values in self.vary.items() if not values]:
            raise ValueError(f"vary.{empty[0]} needs at least one value")
        return self


class KnownAnswerSpec(Section):
    """How leaks are planted to see whether the audits would find them."""

    small: float = Field(
        default=0.01, gt=0, lt=0.5, description="share of copied rows in the small planted leak"
    )
    max_rows: int = Field(default=5_000, ge=100, description="most rows of any table a leak is planted in")


class PrivacySpec(Section):
    """The privacy budget of the table: what all fits on it may spend together, ever."""

    epsilon: float = Field(gt=0, le=1000, description="the most that all fits may spend together")
    delta: float = Field(default=0.0, ge=0, lt=1, description="well below one over the number of entities")
    per_fit: float | None = Field(
        default=None, gt=0, description="the most epsilon of one fit; all of it when left out"
    )
    rows_per_entity: int | None = Field(
        default=None,
        ge=1,
        le=10**6,
        description="train is cut down to so many rows of each entity; left out, single rows are protected",
    )
    neighbouring: Neighbouring = Field(
        default=Neighbouring.ADD_OR_REMOVE, description="how two tables differ that must look alike"
    )

    @model_validator(mode="after")
    def _within(self) -> PrivacySpec:
        if self.per_fit is not None and self.per_fit > self.epsilon:
            raise ValueError("per_fit must not exceed epsilon")
        return self

    def terms(self, drawn: int | None) -> FitTerms:
        """The terms of one fit; ``drawn`` is the plan's number of synthetic rows."""
        return FitTerms(
            total=Budget(self.epsilon, self.delta),
            fit=Budget(self.per_fit or self.epsilon, self.delta),
            unit=Unit.ROW if self.rows_per_entity is None else Unit.ENTITY,
            neighbouring=self.neighbouring,
            rows=self.rows_per_entity or 1,
            drawn=drawn,
        )


class ReleaseChoice(PluginChoice):
    """A target with its settings, and what a release to it waits for beside a pass."""

    approvals: int = Field(0, ge=0, le=20, description="so many different people must approve first")
    approvers: dict[str, str] = Field(
        default_factory=dict, description="who may approve: names with the public keys that `approve` prints"
    )

    not_worse: bool = Field(
        False,
        description="refuse what is worse than the last release, beyond both intervals",
    )

    @model_validator(mode="after")
    def _enough_people(self) -> ReleaseChoice:
        for name, key in self.approvers.items():
            if name != name.strip() or not name.isprintable() or not 0 < len(name) <= _LONGEST_APPROVER:
                raise ValueError("an approver's name must be one short line of text")
            key_bytes(key)
        people = {name.casefold() for name in self.approvers}
        if len(people) < len(self.approvers) or len({*map(key_bytes, self.approvers.values())}) < len(people):
            raise ValueError("approvers must differ in name and in key")
        if self.approvals > len(self.approvers):
            raise ValueError(f"{self.approvals} approvals are asked for, of {len(self.approvers)} approvers")
        return self


def key_bytes(text: str) -> bytes:
    """The 32 bytes of a public key.

    Raises:
        ValueError: it is none.
    """
    try:
        found = base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True)
    except (ValueError, binascii.Error):
        found = b""
    if not text.startswith(KEY_PREFIX) or len(found) != 32:
        raise ValueError(f"a public key is {KEY_PREFIX} and 32 bytes in base64")
    return found


def _release(value: object, key: ValidationInfo) -> object:
    own = {k: value[k] for k in _RELEASE_KEYS if k in value} if isinstance(value, Mapping) else {}
    named = {k: v for k, v in value.items() if k not in own} if isinstance(value, Mapping) else value
    choice = file_or_choice(named, key)
    return {**choice, **own} if isinstance(choice, Mapping) else choice


ReleaseTarget = Annotated[ReleaseChoice, BeforeValidator(_release)]


def _day(value: object) -> object:
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise ValueError("write a day, as in 2027-06-30") from None


_Day = Annotated[date, BeforeValidator(_day)]


class ReviewSpec(Section):
    """The scope that a signature covers; it stands in the certificate and under the evidence's digest."""

    purpose: _Line | None = Field(None, description="what the released table is to be used for")
    recipient: _Line | None = Field(None, description="who gets it")
    environment: _Line | None = Field(None, description="where it is used, and what protects it there")
    controller: _Line | None = Field(
        None, description="organisation that decides why and how the personal data are processed"
    )
    legal_basis: _Line | None = Field(None, description="legal basis of making and releasing the table")
    special_categories: _Line | None = Field(
        None, description="special categories of personal data in the real table, such as health; or `none`"
    )
    owner: _Line | None = Field(None, description="who answers for the sensitive table")
    contact: _Line | None = Field(None, description="whom to ask")
    reviewer: _Line | None = Field(None, description="who judges the residual risk before the release")
    review_on: _Day | None = Field(None, description="day on which the risk is to be judged again")
    valid_until: _Day | None = Field(
        None, description="last day, in UTC, on which the table may be released on this evidence"
    )

    reports: int | None = Field(
        None,
        ge=1,
        description="how many reports of mostly the same people may be made, candidates of sweeps included; "
        "one more is refused, and so is one of people of whom fewer than twenty differ from an earlier one's",
    )

    @model_validator(mode="after")
    def _says_something(self) -> ReviewSpec:
        if not self.model_dump(exclude_none=True):
            raise ValueError(f"name at least one of {', '.join(type(self).model_fields)}")
        return self

    @model_validator(mode="after")
    def _reviewed_while_valid(self) -> ReviewSpec:
        if self.review_on and self.valid_until and self.review_on > self.valid_until:
            raise ValueError(
                f"review_on, {self.review_on}, is after valid_until, {self.valid_until}: "
                "name a day on which the table may still be released"
            )
        return self


class SplitSpec(Section):
    """How control rows are set aside."""

    control: float = Field(default=0.2, gt=0, lt=1, description="share of entities kept from the generator")
    made_elsewhere: Literal["random"] | None = Field(
        default=None,
        description="how train and control were divided where both are files; `random` states that chance "
        "alone did it, entity by entity, and that the makers of the release did not know control",
    )


def _step(step: float | str) -> float | str:
    if isinstance(step, str):
        span_grid(step)
    elif not 0 < step < inf:
        raise ValueError("a step is above 0 and finite")
    return step


def _end(end: float | date | datetime) -> float | date | datetime:
    if not isinstance(end, date) and not isfinite(end):
        raise ValueError("an end must be finite")
    return end


def span_grid(text: str) -> ValueGrid:
    """The grid of a span of time such as ``day``, ``1 day`` or ``15 minutes``.

    Raises:
        ValueError: it is none, or several months or years.
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(f"a span of time such as `1 day` or `15 minutes`: {', '.join(TIME_UNITS)}")
    unit, times = TIME_UNITS[found[2]], int(found[1] or 1)
    if unit.calendar is None:
        return ValueGrid(unit.numerator * times)
    if times > 1:
        raise ValueError(f"dates are rounded to a single {found[2]}, or to any number of days")
    return unit


Step = Annotated[float | str, AfterValidator(_step)]
End = Annotated[float | date | datetime, AfterValidator(_end)]


class ColumnCoarsening(Section):
    """How the values of one column are made coarser: numbers and dates, or labels."""

    round_to: Step | None = Field(
        None, description="a step such as 0.5, or a span of time such as `1 day`; the nearest multiple leaves"
    )
    bottom: End | None = Field(None, description="what lies below leaves as this value")
    top: End | None = Field(None, description="what lies above leaves as this value")
    merge: Annotated[tuple[str, ...], AnyLabels] = Field((), description="labels that leave as `into`")
    merge_rarer_than: int | None = Field(
        None, ge=2, description="labels that fewer rows of the release hold leave as `into`"
    )
    into: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        None, description="the label that others are merged into; `other` if left out"
    )

    @model_validator(mode="after")
    def _consistent(self) -> ColumnCoarsening:
        if not (self.of_numbers or self.of_labels):
            raise ValueError("give round_to, bottom, top, merge or merge_rarer_than")
        if self.of_numbers and (self.of_labels or self.into):
            raise ValueError("round_to, bottom and top are for numbers and dates, merge and into for labels")
        if self.merge and not {*self.merge} - {self.label}:
            raise ValueError("merge names no label but the one that it merges into")
        low, high = self.ends
        if low is not None and high is not None and low >= high:
            raise ValueError("bottom must lie below top")
        return self

    @property
    def of_numbers(self) -> bool:
        """Whether it is for numbers, dates or times."""
        return not (self.round_to is None and self.bottom is None and self.top is None)

    @property
    def of_labels(self) -> bool:
        """Whether it is for labels."""
        return bool(self.merge) or self.merge_rarer_than is not None

    @property
    def label(self) -> str:
        """What labels are merged into."""
        return self.into or INTO

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Bottom and top as floats, in microseconds for dates."""
        low, high = (None if x is None else as_number(x) for x in (self.bottom, self.top))
        return low, high

    @property
    def words(self) -> str:
        """What it does, for a reader."""
        parts = [] if self.round_to is None else [f"rounded to {_text(self.round_to)}"]
        parts += [] if self.bottom is None else [f"at least {_text(self.bottom)}"]
        parts += [] if self.top is None else [f"at most {_text(self.top)}"]
        parts += [f"{len(self.merge)} labels merged into {self.label!r}"] if self.merge else []
        if self.merge_rarer_than is not None:
            parts.append(f"labels of fewer than {self.merge_rarer_than} rows merged into {self.label!r}")
        return ", ".join(parts)


class CoarsenSpec(Section):
    """Which columns of a release are made coarser, and what these rules rest on.

    Rules that were fixed without a look at real rows keep a guarantee of differential privacy; rules that
    were chosen by what an audit on real rows said void it, and each candidate that was judged on the way is
    a chance of a wrong pass.
    """

    columns: dict[str, ColumnCoarsening] = Field(min_length=1, description="a rule for each column")
    chosen_on: Literal["public knowledge", "real data"] = Field(
        "public knowledge", description="what the rules were chosen by; `synth-audit mend` writes `real data`"
    )
    tries: int = Field(
        1,
        ge=1,
        le=1000,
        description="candidates that may have been judged until this one was chosen, the refused one among "
        "them; every interval then has the level 1 - (1 - level) / tries",
    )

    @model_validator(mode="after")
    def _counted(self) -> CoarsenSpec:
        if self.on_real_data and self.tries < 2:
            raise ValueError(
                "what is chosen on real data is at least the second try: say how many as `tries`"
            )
        if self.tries > 1 and not self.on_real_data:
            raise ValueError("tries above 1 go with `chosen_on: real data`")
        return self

    @property
    def on_real_data(self) -> bool:
        """Whether the rules were chosen by what real rows said."""
        return self.chosen_on == "real data"


def _text(value: float | str | date) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
