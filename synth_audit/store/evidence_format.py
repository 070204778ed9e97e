"""The evidence file, format 1.0: the dataclasses of evidence as strict JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    PlainSerializer,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import core_schema

from synth_audit.dp.guarantee import MechanismRecord
from synth_audit.errors import MeasurementNameError, PluginError
from synth_audit.files import load_json
from synth_audit.findings import measurement
from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.findings.sensitivity import (
    ExposedGroup,
    PlantedLeaks,
    RecordView,
    SensitivityCurve,
    Subgroup,
)
from synth_audit.findings.verdict import GateReport
from synth_audit.store.evidence import (
    SCHEMA_VERSION,
    ColumnRecord,
    EarlierAudit,
    Evidence,
    OtherFormat,
    TableRecord,
)
from synth_audit.store.journal import Head
from synth_audit.store.pointers import Count, Digest

_STRICT = core_schema.CoreConfig(strict=True, extra_fields_behavior="forbid", ser_json_inf_nan="strings")
_Kind = TypeVar("_Kind")

FieldOf = tuple[type, str]
"""A dataclass and the name of one of its fields."""


@dataclass(frozen=True, eq=False)
class StrictForm:
    """Annotates a dataclass for ``pydantic.TypeAdapter``, which reads and writes it strictly then.

    Every field is required, also one with a default. No other key and no value of another type is taken. The
    same holds for all dataclasses inside.

    Attributes:
        spelt: type of a field, to how that type is read and written wherever it occurs.
        narrowed: field, to the type that it has in the file.
        renamed: field, to its key in the file.
    """

    spelt: Mapping[Any, Any]
    narrowed: Mapping[FieldOf, Any]
    renamed: Mapping[FieldOf, str]

    def adapter(self, kind: type[_Kind]) -> TypeAdapter[_Kind]:
        """Reads and writes a dataclass."""
        # In unions and free mappings numbers are written by the configuration of the adapter, not of their
        # dataclass; and an adapter takes none for a dataclass itself.
        inside = GetPydanticSchema(lambda _, handler: handler.generate_schema(self.of(kind)))
        return TypeAdapter(Annotated[Any, inside], config=ConfigDict(ser_json_inf_nan="strings"))

    def __get_pydantic_core_schema__(
        self, kind: type[Any], handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        hints = get_type_hints(kind)
        names = [field.name for field in fields(kind)]
        parts = [
            core_schema.dataclass_field(
                name,
                handler.generate_schema(self.of(self.narrowed.get((kind, name), hints[name]))),
                validation_alias=self.renamed.get((kind, name)),
                serialization_alias=self.renamed.get((kind, name)),
            )
            for name in names
        ]
        return core_schema.dataclass_schema(
            kind,
            core_schema.dataclass_args_schema(kind.__name__, parts),
            names,
            post_init=hasattr(kind, "__post_init__"),
            ref=kind.__name__,
            config=_STRICT,
        )

    def of(self, hint: Any) -> Any:
        """A type with this form in place of every dataclass in it."""
        if hint in self.spelt:
            return self.spelt[hint]
        if is_dataclass(hint):
            return Annotated[hint, self]
        origin = get_origin(hint)
        if origin in (None, Literal, Annotated):
            return hint
        parts = tuple(map(self.of, get_args(hint)))
        return Union[parts] if origin is UnionType else origin[parts]  # noqa: UP007  (of parts known here only)


OUTSIDE = ("digest", "created", "timings", "attempt", "ledger", "earlier")
"""What the digest does not cover: it describes the run and not what was found."""

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The numbers that JSON lacks, as they are written."""


def _number(value: Any) -> Any:
    """A number from one of the words that JSON lacks; any other text is refused."""
    return _WORDS.get(value, value) if isinstance(value, str) else value


def _name(text: str) -> MeasurementId:
    try:
        return measurement.read(text)
    except MeasurementNameError as error:
        raise ValueError(error.what) from None


_Number = Annotated[
    float,
    BeforeValidator(_number),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": list(_WORDS)}]}),
]
_Name = Annotated[str, AfterValidator(_name), PlainSerializer(str, return_type=str)]
_TableName = Literal["source", "train", "control", "synthetic"]

# Whole numbers that are 0 at least; of the second some may be withheld, and are null then.
_COUNTED = {
    Evidence: ("suppression", "attempt"),
    Head: ("lines",),
    TableRecord: ("rows",),
    PlantedLeaks: ("train_rows", "control_rows", "release_rows"),
    ExposedGroup: ("train_tried", "control_tried"),
    Subgroup: ("train_rows",),
    RecordView: ("train_rows", "control_rows"),
    MechanismRecord: ("count", "rows"),
}
_COUNTED_OR_NONE = {
    ColumnRecord: ("categories",),
    ExposedGroup: ("train_hit", "control_hit"),
    RecordView: ("exposed", "control_exposed"),
}

FORM = StrictForm(
    spelt={float: _Number, MeasurementId: _Name},
    narrowed={
        **{(kind, name): Count for kind, names in _COUNTED.items() for name in names},
        **{(kind, name): Count | None for kind, names in _COUNTED_OR_NONE.items() for name in names},
        (Evidence, "schema_version"): Literal["1.0"],
        (Evidence, "plan_sha256"): Digest,
        (Evidence, "tables"): dict[_TableName, TableRecord],
        (Head, "digest"): Digest,
        (EarlierAudit, "plan"): Digest,
        (EarlierAudit, "verdict"): Literal["pass", "fail", "insufficient evidence", ""],
        (TableRecord, "sha256"): Digest | None,
        (GateReport, "suite_sha256"): Digest,
        (Series, "kind"): Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")],
    },
    renamed={(SensitivityCurve, "sensitivity"): "sight"},
)
"""What the dataclasses leave open and the file does not."""


@cache
def _adapter() -> TypeAdapter[Evidence]:
    return FORM.adapter(Evidence)


def parse(text: str) -> Evidence:
    """Evidence from the text of its file.

    Raises:
        OtherFormat: it says that it is of another format.
        ValueError: it is none, or it has a key that is unknown or occurs twice.
    """
    plain = load_json(text)
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if isinstance(version, str) and version != SCHEMA_VERSION:
        raise OtherFormat(version)
    return _checked(text)


def text_of(evidence: Evidence) -> str:
    """The file's text; non-finite numbers as the strings NaN, Infinity, -Infinity.

    Raises:
        ValueError: the evidence holds what no file may hold.
    """
    text = _adapter().dump_json(evidence, indent=2, by_alias=True, warnings="error").decode() + "\n"
    _checked(text)
    return text


def content_of(evidence: Evidence) -> dict[str, Any]:
    """The plain values that the digest covers."""
    plain: dict[str, Any] = json.loads(text_of(evidence))
    return {key: value for key, value in plain.items() if key not in OUTSIDE}


def schema() -> dict[str, Any]:
    """JSON Schema of the file."""
    found = _adapter().json_schema()
    for part in (found, *found["$defs"].values()):
        if "properties" in part:
            part["additionalProperties"] = False  # pydantic 2.10 leaves this out
    return found


def _checked(text: str) -> Evidence:
    try:
        return _adapter().validate_json(text)
    except PluginError as error:  # a spending that cannot have been
        raise ValueError(error.what) from None
