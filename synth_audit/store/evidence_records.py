"""What evidence says of tables, their columns, the generator and the packages: identities, never a value."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from synth_audit.core.accounting import PrivacyAccount
from synth_audit.core.build import build_version
from synth_audit.core.salt import Salt
from synth_audit.core.schema import Schema
from synth_audit.core.series import Series
from synth_audit.core.table import Table

_RECORDED_PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "duckdb",
    "scikit-learn",
    "pyvinecopulib",
    "great-expectations",
)


@dataclass(frozen=True)
class EarlierAudit:
    """An earlier audit of the same candidate under another plan or other gates.

    Attributes:
        plan, suite: their digests. verdict, evidence: what it ended in, empty where it never ended.
    """

    at: str
    plan: str
    suite: str
    verdict: str
    evidence: str

    @property
    def sentence(self) -> str:
        """What a reader is told of it."""
        ended = f"its verdict was {self.verdict}" if self.verdict else "it did not end"
        known = f" (evidence {self.evidence[:12]})" if self.evidence else ""
        return f"this candidate was audited under other settings on {self.at[:10]}: {ended}{known}"


@dataclass(frozen=True)
class TableRecord:
    """Identity of one table: its rows and its order-independent content hash.

    A plain hash would confirm a guess: who knows all cells but one could try every value of the last. So it
    stands here of a candidate that passed alone, whose cells everybody may see.

    Attributes:
        hmac: of the content hash, under the salt; see :meth:`synth_audit.core.salt.Salt.digest`.
        sha256: the content hash itself, by which everybody can tell what passed; None for anything else.
    """

    rows: int
    hmac: str
    sha256: str | None = None

    @classmethod
    def of(cls, table: Table, salt: Salt, *, public: bool = False) -> TableRecord:
        """Record a table; ``public`` when it may leave."""
        return cls(
            table.n_rows,
            salt.digest(table.fingerprint.encode()),
            table.fingerprint if public else None,
        )

    @property
    def identity(self) -> str:
        """The hash that every record of this table under this salt has."""
        return self.hmac


@dataclass(frozen=True)
class ColumnRecord:
    """What was known of a column, without a single value of it."""

    name: str
    kind: str
    storage: str
    roles: tuple[str, ...]
    kind_declared: bool
    domain_declared: bool
    categories: int | None


@dataclass(frozen=True)
class GeneratorRecord:
    """Which generator made the synthetic table, how it was configured and what it may claim.

    Attributes:
        privacy: what its fit spent and what that guarantees, or why there is no guarantee.
        training: how its loss fell, or ε was spent, and pictures of its own; empty for one that shows none.
        column_groups: columns that it draws together, apart from the others; empty where it draws all.
    """

    name: str
    config: Mapping[str, Any]
    privacy: PrivacyAccount
    training: tuple[Series, ...] = ()
    column_groups: tuple[tuple[str, ...], ...] = ()


def column_records(schema: Schema) -> tuple[ColumnRecord, ...]:
    """The columns as they may stand in a reviewed file."""
    return tuple(
        ColumnRecord(
            name=c.name,
            kind=str(c.kind),
            storage=str(c.storage),
            roles=tuple(sorted(c.roles)),
            kind_declared=c.kind_declared,
            domain_declared=bool(c.declared_bounds or c.declared_categories),
            categories=c.n_categories if c.released else None,
        )
        for c in schema
    )


def installed_versions() -> dict[str, str]:
    """Versions of everything that computes, for the evidence."""
    return dict(_installed_versions())


@cache
def _installed_versions() -> Mapping[str, str]:
    found = {"python": platform.python_version(), "synth-audit": build_version()}
    for name in _RECORDED_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
