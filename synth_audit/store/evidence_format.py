"""The evidence file, format 1.0: the dataclasses of evidence as JSON, and what differs from them there.

The format is frozen with version 0.1.0 of the package. Another form is another format, and refused.
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, TypeAdapter, WithJsonSchema

from synth_audit.core import identity
from synth_audit.core.accounting import MechanismRecord
from synth_audit.core.errors import MeasurementNameError, PluginError
from synth_audit.core.exposed_groups import ExposedGroup, RecordView, Subgroup
from synth_audit.core.identity import MeasurementId
from synth_audit.core.sensitivity import PlantedLeaks, SensitivityCurve
from synth_audit.core.series import Series
from synth_audit.core.strict_yaml import load_json
from synth_audit.core.verdict import GateReport
from synth_audit.store.chained_log import Head
from synth_audit.store.evidence import SCHEMA_VERSION, Evidence, OtherFormat
from synth_audit.store.evidence_records import ColumnRecord, EarlierAudit, TableRecord
from synth_audit.store.pointers import Count, Digest
from synth_audit.store.strict_form import StrictForm

OUTSIDE = ("digest", "created", "timings", "attempt", "ledger", "earlier")
"""What the digest does not cover: it describes the run and not what was found."""

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The numbers that JSON lacks, as they are written."""


def _number(value: Any) -> Any:
    """A number from one of the words that JSON lacks; any other text is refused."""
    return _WORDS.get(value, value) if isinstance(value, str) else value


def _name(text: str) -> MeasurementId:
    try:
        return identity.read(text)
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
