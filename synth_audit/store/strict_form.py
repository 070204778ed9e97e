"""The strict JSON form of frozen dataclasses: their own fields, and what differs from them in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, GetCoreSchemaHandler, GetPydanticSchema, TypeAdapter
from pydantic_core import core_schema

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
