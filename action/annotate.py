"""Tells a pull request what an audit found: annotations, a job summary and the output ``verdict``.

python annotate.py VERDICT_JSON AUDITED_FILE EXIT_CODE
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def annotations(found: dict[str, Any], file: str) -> Iterator[str]:
    """Workflow commands: an error for what holds the release, a notice for a pass and for advice."""
    for gate in found["gates"]:
        if gate["result"] != "pass":
            level = "error" if gate["blocking"] else "notice"
            yield command(level, file, f"{gate['gate']}: {gate['result']}", gate["explanation"])
    for problem in found["errors"]:
        yield command("error", file, "The release is held", problem)
    if found["verdict"] == "pass":
        yield command("notice", file, "Synthetic table", f"may be released; audit {found['digest'][:16]}")


def command(level: str, file: str, title: str, text: str) -> str:
    """One workflow command; signs that would end it, or begin another, are escaped."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    file, title = (
        x.replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
        .replace(":", "%3A")
        .replace(",", "%2C")
        for x in (file, title)
    )
    return f"::{level} file={file},title={title}::{text}"


def summary(found: dict[str, Any]) -> str:
    """The verdict and a table of gates, in Markdown."""
    rows = [
        f"| {g['gate']} | {g['result']} | {'yes' if g['blocking'] else 'no'} |".replace("\n", " ")
        for g in found["gates"]
    ]
    head = f"## {found['table']}: {found['verdict']}"
    return "\n".join([head, "", "| gate | result | blocks |", "|---|---|---|", *rows, ""])


def main(verdict: str, file: str, code: str) -> None:
    """Write all three."""
    text = Path(verdict).read_text(encoding="utf-8")
    if not text.strip():
        sys.stdout.write(
            command("error", file, "No verdict", f"the audit ended with exit code {code}; its log says why")
            + "\n"
        )
        return
    found = json.loads(text)
    sys.stdout.writelines(f"{line}\n" for line in annotations(found, file))
    for variable, content in (
        ("GITHUB_STEP_SUMMARY", summary(found)),
        ("GITHUB_OUTPUT", f"verdict={found['verdict']}\n"),
    ):
        if name := os.environ.get(variable):
            with open(name, "a", encoding="utf-8") as page:
                page.write(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
