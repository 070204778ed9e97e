"""A synthetic table that was made elsewhere."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from synth_audit.core import registry
from synth_audit.core.plan import Place, PluginChoice
from synth_audit.core.plugin import GeneratorInfo, PrivacyCertificate, Source
from synth_audit.core.schema import Schema
from synth_audit.core.table import Table, read_table

_CERTIFICATE = PrivacyCertificate("none", "the table was made elsewhere; nothing is known of how")


@dataclass(frozen=True, eq=False)
class ExternalModel:
    """Where the table is, and what columns it must have.

    Attributes:
        schema: the features of train.
        source: where the table is read from.
        base: where relative paths start.
    """

    schema: Schema = field(repr=False)
    source: Source
    base: Path

    @property
    def certificate(self) -> PrivacyCertificate:
        """No formal claim."""
        return _CERTIFICATE

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Read the whole table, whatever ``n``, since that is what is up for release.

        Raises:
            DataError: it cannot be read, or its columns or kinds differ from train's.
        """
        return read_table(self.source.read(self.base), self.schema, where="synthetic")


@dataclass(frozen=True, kw_only=True)
class External:
    """Audit a table that another program made: nothing is fitted, its rows are read as they are.

    Attributes:
        source: where the table is: a path such as ``synthetic.parquet``, or a source with its settings
            such as ``{duckdb: {path: db.duckdb, table: synthetic}}``. Relative paths start at the plan's
            folder, or at the working folder when there is no plan.

    Raises:
        PlanError: the source is unknown or refuses its settings.
    """

    source: str | Mapping[str, Any]
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Table made elsewhere",
        summary="Reads a finished synthetic table from a source, to audit and release it.",
        cost="instant",
    )

    def __post_init__(self) -> None:
        self._source()

    def located(self, base: Path) -> External:
        """The same configuration with relative paths starting at ``base``, which is not part of it."""
        other = copy.copy(self)
        object.__setattr__(other, "_base", base)
        return other

    def fit(self, train: Table, rng: np.random.Generator) -> ExternalModel:
        """Take the column names and kinds of ``train``; its rows are not looked at."""
        base: Path = getattr(self, "_base", None) or Path.cwd()
        return ExternalModel(train.schema.released_only(), self._source(), base)

    def _source(self) -> Source:
        try:
            choice: PluginChoice = TypeAdapter(Place).validate_python(self.source)
        except ValidationError:
            raise ValueError("source must be a path, or one source with its settings") from None
        where = f"generator.external.source.{choice.name}"
        built: Source = registry.build("source", choice.name, choice.config, where=where)
        return built
