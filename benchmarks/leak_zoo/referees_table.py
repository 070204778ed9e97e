"""The smallest leak that each auditor sees with at most 5 % false alarms, from the answers on file.

An auditor *sees* a share of a kind where it is alarmed by more than half of the releases. Two readings of
"alarmed": the tool's own documented decision, where it has one, and the best of its scores, each held against
the largest value that the score takes on that table's honest releases. The second reading lets a tool without
documented limits speak, and flatters one with many scores: the number of scores stands beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Answers = list[dict[str, Any]]
NEVER = float("inf")


def false_alarms(answers: Answers) -> str:
    """Own alarms among honest releases, as a fraction in words."""
    decided = [a["alarm"] for a in answers if a["share"] == 0 and a["alarm"] is not None]
    return f"{sum(decided)} of {len(decided)}" if decided else "no limit documented"


def thresholds(answers: Answers) -> dict[tuple[str, str], float]:
    """Largest honest value of each table and score, kinds with a dress of their own apart."""
    top: dict[tuple[str, str], float] = defaultdict(lambda: -NEVER)
    for answer in answers:
        if answer["share"] == 0:
            for name, value in answer["scores"].items():
                key = (f"{answer['table']}/{answer['dress']}", name)
                top[key] = max(top[key], value)
    return top


def smallest_seen(alarms: dict[float, list[bool]]) -> float:
    """The smallest share from which on more than half of the releases alarm."""
    seen = NEVER
    for share in sorted(alarms, reverse=True):
        if sum(alarms[share]) * 2 <= len(alarms[share]):
            break
        seen = share
    return seen


def by_own_decision(answers: Answers, kind: str) -> float | None:
    """Smallest share seen by the documented decision; None without one."""
    alarms: dict[float, list[bool]] = defaultdict(list)
    for answer in answers:
        if answer["kind"] == kind and answer["share"] and answer["alarm"] is not None:
            alarms[answer["share"]].append(answer["alarm"])
    return smallest_seen(alarms) if alarms else None


def by_best_score(answers: Answers, kind: str) -> tuple[float, str]:
    """Smallest share seen by any one score above its honest values, and that score."""
    honest = thresholds(answers)
    mine = [a for a in answers if a["kind"] == kind and a["share"]]
    best = (NEVER, "")
    for score in sorted({name for answer in mine for name in answer["scores"]}):
        alarms: dict[float, list[bool]] = defaultdict(list)
        for answer in mine:
            limit = honest.get((f"{answer['table']}/{answer['dress']}", score), NEVER)
            alarms[answer["share"]].append(answer["scores"].get(score, -NEVER) > limit)
        best = min(best, (smallest_seen(alarms), score))
    return best


def percent(share: float | None) -> str:
    """A share as the table shows it."""
    if share is None:
        return ""
    return "—" if share == NEVER else f"{100 * share:g} %"


def lines(answers: Answers, kinds: Iterable[str]) -> list[str]:
    """The table in Markdown."""
    auditors = sorted({a["auditor"] for a in answers}, key=lambda name: (name != "synth_audit", name))
    mine = {name: [a for a in answers if a["auditor"] == name] for name in auditors}
    out = ["| leak | " + " | ".join(f"{name}, own decision | best score" for name in auditors) + " |"]
    out.append("|---" * (1 + 2 * len(auditors)) + "|")
    for kind in kinds:
        cells = []
        for name in auditors:
            share, score = by_best_score(mine[name], kind)
            cells += [
                percent(by_own_decision(mine[name], kind)),
                percent(share) + (f" {score}" if score and share < NEVER else ""),
            ]
        out.append(f"| {kind} | " + " | ".join(cells) + " |")
    counts = [f"{name}: {false_alarms(mine[name])}" for name in auditors]
    return [*out, "", "False alarms by own decision: " + "; ".join(counts) + "."]
