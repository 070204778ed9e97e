"""Paths as users give them, and the text of files that people write."""

from __future__ import annotations

import re
from pathlib import Path

MOST_BYTES = 64 * 2**20
"""Of a file that people write; what is longer, perhaps endless such as a device, is none."""

_REMOTE = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]+:(?=/)|(?:abfss?|az|duckdb|file|gcs|gs|hf|https?|md|motherduck|mysql|postgres"
    r"|postgresql|s3|snowflake|sqlite|wasbs?):)",
    re.IGNORECASE,
)


def problem_of(path: str) -> str:
    """Why a text cannot be the path of a file on this machine; empty when it can.

    A URL would be taken for a folder's name: a release to `s3://bucket/x` would land beside the plan.
    """
    if not path.strip():
        return "path must name a file"
    if "\0" in path:
        return "path holds a null character"
    if not in_utf8(path):
        return "path is not written in UTF-8; rename the file or folder"
    if remote := _REMOTE.match(path):
        return (
            f"{remote['scheme']} is no path of this machine, and there is no source for it yet; "
            "fetch or send the file by other means, and start a file's name that has a colon at /"
        )
    return ""


def in_utf8(path: str) -> bool:
    """False for names of bytes that are no text: neither Parquet nor a record could take them."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises:
        OSError: it cannot be read. ValueError: it is not UTF-8, too long, or the path cannot be one.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    return content.decode("utf-8-sig")
