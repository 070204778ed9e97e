"""The folder of one audit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from synth_audit.core.errors import DataError

_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(name: str) -> bool:
    """True for what may name an audit."""
    return _DIGEST.fullmatch(name) is not None


@dataclass(frozen=True)
class AuditFolder:
    """What is left of one audit, under the digest of its evidence; nothing in it is ever replaced but the
    certificate, which shows approvals too."""

    path: Path

    @classmethod
    def of(cls, audits: Path, digest: str) -> AuditFolder:
        """The folder of that digest among others.

        Raises:
            DataError: it is no digest.
        """
        if not is_digest(digest):
            raise DataError(
                "an audit is named by something that is no digest",
                where=str(audits),
                expected="64 hexadecimal digits",
                fix="run the audit again; `synth-audit verify` shows what else does not agree",
            )
        return cls(audits / digest)

    @property
    def digest(self) -> str:
        """The digest that its evidence must have."""
        return self.path.name

    @property
    def evidence(self) -> Path:
        """The evidence file."""
        return self.path / "evidence.json"

    @property
    def measurements(self) -> Path:
        """Every measurement, one row each."""
        return self.path / "measurements.parquet"

    @property
    def table(self) -> Path:
        """The audited rows and values alone, of a table made elsewhere that passed."""
        return self.path / "synthetic.parquet"

    @property
    def report(self) -> Path:
        """The report."""
        return self.path / "report.html"

    @property
    def certificate(self) -> Path:
        """The certificate."""
        return self.path / "certificate.html"
