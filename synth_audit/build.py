"""Which build is at work, and where its suites and templates are."""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from synth_audit.hashing import framed

VERSION = "0.1.0"

_PACKAGE = Path(__file__).resolve().parent
_DIGITS = 12
"""Hexadecimal digits of the digest: among a million builds, two agree with a probability of 0.2 %."""


def resource_folder(name: str) -> Path:
    """Folder of shipped resources: ``expectations`` or ``reports_templates``."""
    installed = _PACKAGE / "_resources" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


@cache
def build_id() -> str:
    """Return a digest of the package's modules and report templates, as they are when first asked for.

    A checkout and the wheel made from it have the same one. It takes some hundredths of a second, once a
    process.
    """
    modules = _contents("synth_audit", _PACKAGE, "*.py")
    templates = _contents("reports_templates", resource_folder("reports_templates"), "*")
    return hashlib.sha256(framed(sorted([*modules, *templates]))).hexdigest()[:_DIGITS]


def build_version() -> str:
    """Return the version with the build as its local part, such as ``0.1.0+1f2e3d4c5b6a``."""
    return f"{VERSION}+{build_id()}"


def _contents(name: str, folder: Path, pattern: str) -> Iterator[str]:
    """Path below ``name`` and hash of each file; hidden files are an editor's."""
    for path in folder.rglob(pattern):
        if path.is_file() and not path.name.startswith("."):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            yield f"{name}/{path.relative_to(folder).as_posix()} {content}"
