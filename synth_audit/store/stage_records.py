"""What the split and the generator stages leave for the stages after them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import TypeAdapter, ValidationError

from synth_audit.core.errors import DataError
from synth_audit.store.evidence import ColumnRecord, GeneratorRecord, TableRecord
from synth_audit.store.workspace import write_text


@dataclass(frozen=True)
class _StageRecord:
    """A record that is kept as JSON between stages."""

    stage: ClassVar[str]

    def write(self, path: Path) -> None:
        """Write the record atomically, for its owner alone."""
        adapter: TypeAdapter[Any] = TypeAdapter(type(self))
        write_text(path, adapter.dump_json(self, indent=2).decode() + "\n", private=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the record; raises ``DataError`` when the stage has left none that can be used."""
        adapter: TypeAdapter[Self] = TypeAdapter(cls)
        try:
            return adapter.validate_json(path.read_bytes())
        except (OSError, ValidationError):
            raise DataError(
                f"the {cls.stage} stage has left no usable record",
                where=str(path),
                expected=f"what the {cls.stage} stage writes",
                fix=f"run the {cls.stage} stage first",
            ) from None


@dataclass(frozen=True)
class SplitRecord(_StageRecord):
    """What the split stage did, and under which salt."""

    plan_sha256: str
    salt_commitment: str
    source: TableRecord
    train: TableRecord
    control: TableRecord
    columns: tuple[ColumnRecord, ...]
    warnings: tuple[str, ...]

    stage: ClassVar[str] = "split"


@dataclass(frozen=True)
class SyntheticRecord(_StageRecord):
    """What the generator stage did, and on which train rows."""

    plan_sha256: str
    train: TableRecord
    table: TableRecord
    generator: GeneratorRecord
    columns: tuple[ColumnRecord, ...]
    seconds: float

    stage: ClassVar[str] = "synthetic"
