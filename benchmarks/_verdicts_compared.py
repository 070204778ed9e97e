"""Two files of `honest_releases.py`, by an older and a newer version: where they judge otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Row = dict[str, Any]
Key = TypeVar("Key")

VERDICTS = ("pass", "insufficient evidence", "fail")
"""From the mildest on."""
MOST_GATES = 4
"""Named for one release; a plain copy is held by twenty."""


def compared(old: dict[Key, Row], new: dict[Key, Row], family: Callable[[Row], str], honest: str) -> str:
    """Markdown: how often each version gave each verdict, by family and table, and where the newer is worse.

    Of a leak, or a generator that overfits, a milder verdict is worse; of an honest release, a harder one.
    A case of which the two versions judged different rows is counted in neither.

    Args:
        old, new: lines by case, with ``verdict``, ``table`` and, unless they are old, ``release``: a digest.
        family: of a line.
        honest: the family of releases that give nobody away.
    """
    both = [(old[case], new[case]) for case in old if case in new]
    judged = [pair for pair in both if all(row["verdict"] in VERDICTS for row in pair)]
    same = [(o, n) for o, n in judged if o.get("release", "") in ("", n.get("release", ""))]
    groups: dict[tuple[str, str], list[tuple[Row, Row]]] = {}
    for o, n in same:
        groups.setdefault((family(n), where(n)), []).append((o, n))
    lines = [
        "| family | table | releases | old: pass / insufficient evidence / fail | new: the same |",
        "|---|---|---:|---|---|",
        *(
            f"| {' | '.join(group)} | {len(pairs)} | {counts(o for o, _ in pairs)} "
            f"| {counts(n for _, n in pairs)} |"
            for group, pairs in sorted(groups.items())
        ),
    ]
    if len(same) < len(judged):
        lines += [
            "",
            f"{len(judged) - len(same)} more cases are left out: the two versions judged other rows.",
        ]
    changes = [(family(n) == honest, rank(n) - rank(o), told(o, n)) for o, n in same]
    weaker = [change for harmless, more, change in changes if not harmless and more < 0]
    harder = [change for harmless, more, change in changes if harmless and more > 0]
    for title, found in (("The new version is weaker", weaker), ("Honest releases are held more", harder)):
        lines += ["", f"## {title}: {len(found)}", "", *(f"* {change}" for change in found)]
    return "\n".join(lines)


def rank(row: Row) -> int:
    return VERDICTS.index(row["verdict"])


def counts(rows: Iterable[Row]) -> str:
    """How many of each verdict."""
    found = Counter(row["verdict"] for row in rows)
    return " / ".join(str(found[verdict]) for verdict in VERDICTS)


def where(row: Row) -> str:
    """The table, and how many of its people train has where that was asked for."""
    return f"{row['table']}, {row['people']} people" if row.get("people") else str(row["table"])


def told(old: Row, new: Row) -> str:
    """The case, both verdicts, and the first gates that held it in the version that was harder."""
    share = f" {new['share']:.1%}" if new["share"] else f" x {new['ratio']:g}"
    held = [f"{gate}: {result}" for gate, result in max(old, new, key=rank).get("holding", {}).items()]
    gates = ", ".join(held[:MOST_GATES]) + (
        f" and {len(held) - MOST_GATES} more" if held[MOST_GATES:] else ""
    )
    verdicts = f"{old['verdict']} → {new['verdict']}"
    return f"{where(new)}, {new['kind']}{share}, seed {new['seed']}: {verdicts} ({gates})"
