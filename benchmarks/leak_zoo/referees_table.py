"""The smallest leak that each auditor sees with at most 5 % false alarms, from the answers on file.

An auditor *sees* a share of a kind where it is alarmed by more than half of the releases. Two readings of
"alarmed": the tool's own documented decision, where it has one, and a calibrated one, for every tool alike:
any of its scores lies above what the honest releases of the same table let expect. The limit of each of S
scores is ``mean + t · sd · sqrt(1 + 1/n)`` over the n honest releases, with t the quantile of Student's
distribution with n − 1 degrees of freedom at ``1 − 0.05 / S``, so that the tool as a whole raises at most 5 %
false alarms, whatever the number of its scores.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Answer = dict[str, Any]
Answers = list[Answer]
Alarms = dict[float, list[bool]]
OWN = "synth_audit"
NEVER = float("inf")
FALSE_ALARMS = 0.05
FEWEST_HONEST = 3
PROMISED = 0.05
"""A release that gives so many of its people away should not pass this tool."""


def honest_scores(answers: Answers, like: Answer) -> dict[str, list[float]]:
    """Finite values of each score on honest releases of one auditor, table and guise."""
    found: dict[str, list[float]] = defaultdict(list)
    where = ("auditor", "table", "guise")
    for answer in answers:
        if answer["share"] == 0 and all(answer[k] == like[k] for k in where):
            for name, value in answer["scores"].items():
                if math.isfinite(value):
                    found[name].append(value)
    return {name: values for name, values in found.items() if len(values) >= FEWEST_HONEST}


def limit(values: list[float], scores: int) -> float:
    """The upper prediction limit of one score; see the module."""
    from scipy.stats import t

    n, sd = len(values), statistics.stdev(values)
    quantile = float(t.ppf(1 - FALSE_ALARMS / scores, n - 1))
    return statistics.mean(values) + quantile * sd * math.sqrt(1 + 1 / n) + 1e-12


def exceeded(answer: Answer, answers: Answers) -> list[str] | None:
    """Scores above their limits; None where too few honest releases are on file."""
    honest = honest_scores(answers, answer)
    if not honest:
        return None
    over = {
        name: answer["scores"].get(name, math.nan) - limit(values, len(honest))
        for name, values in honest.items()
    }
    return sorted((name for name, beyond in over.items() if beyond > 0), key=lambda name: -over[name])


def readings(answer: Answer, answers: Answers) -> list[bool]:
    """By the tool's own decision, if it documents one, and by calibration, if it can be calibrated."""
    over = exceeded(answer, answers)
    own = [] if answer["alarm"] is None else [bool(answer["alarm"])]
    return own if over is None else [*own, bool(over)]


def smallest_seen(alarms: dict[float, list[bool]]) -> float | None:
    """The smallest share asked from which on more than half of the releases alarm; None if none was asked."""
    seen = NEVER if alarms else None
    for share in sorted(alarms, reverse=True):
        if sum(alarms[share]) * 2 <= len(alarms[share]):
            break
        seen = share
    return seen


def percent(share: float) -> str:
    """A share as the table shows it."""
    return f"{100 * share:g} %"


def told(alarms: dict[float, list[bool]]) -> str:
    """The smallest share seen, or the largest asked in vain; nothing where none was asked."""
    seen = smallest_seen(alarms)
    if seen is None:
        return ""
    return f"not at {percent(max(alarms))}" if seen == NEVER else percent(seen)


def alarms(answers: Answers, kind: str) -> tuple[Alarms, Alarms]:
    """One auditor's alarms at a kind in one table by share: calibrated, and by its own decision."""
    calibrated: Alarms = defaultdict(list)
    own: Alarms = defaultdict(list)
    for answer in answers:
        if answer["kind"] != kind or not answer["share"]:
            continue
        if answer["alarm"] is not None:
            own[answer["share"]].append(answer["alarm"])
        if (over := exceeded(answer, answers)) is not None:
            calibrated[answer["share"]].append(bool(over))
    return calibrated, own


def decides(answers: Answers) -> bool:
    """Whether an auditor's documentation says what is an alarm."""
    return any(a["alarm"] is not None for a in answers)


def cell(answers: Answers, kind: str) -> str:
    """What one auditor sees of a kind in one table, by its own decision or else calibrated with the score."""
    calibrated, own = alarms(answers, kind)
    if decides(answers):
        least = [a for a in answers if (a["kind"], a["share"]) == (kind, smallest_seen(own)) and a["alarm"]]
        return told(own) + (", insufficient evidence" if least and not any(map(refused, least)) else "")
    smallest = smallest_seen(calibrated)
    shown = (exceeded(a, answers) for a in answers if (a["kind"], a["share"]) == (kind, smallest))
    through = next((over[0] for over in shown if over), "")
    return f"{told(calibrated)} {through}".rstrip()


def false_alarms(answers: Answers) -> tuple[str, str]:
    """Of honest releases: by the tool's own decision, and calibrated on the others of the table and guise."""
    honest = [a for a in answers if a["share"] == 0]
    decided = [a["alarm"] for a in honest if a["alarm"] is not None]
    left_out = [exceeded(a, [b for b in honest if b is not a]) for a in honest]
    known = [bool(over) for over in left_out if over is not None]
    own = f"{sum(decided)} of {len(decided)}" if decides(answers) else "none documented"
    return own, f"{sum(known)} of {len(known)}" if known else ""


def by_auditor(answers: Answers) -> dict[str, Answers]:
    """Answers of each auditor, this tool's first."""
    names = sorted({a["auditor"] for a in answers}, key=lambda name: (name != OWN, name))
    return {name: [a for a in answers if a["auditor"] == name] for name in names}


def leaks_of(answers: Answers, kinds: Iterable[str]) -> list[str]:
    """One table's smallest leaks in Markdown; a blank cell was not asked."""
    mine = by_auditor(answers)
    heads = [
        f"{name}: {'its own decision' if decides(some) else 'calibrated'}" for name, some in mine.items()
    ]
    out = ["| leak | " + " | ".join(heads) + " |", "|---" * (1 + len(heads)) + "|"]
    for kind in kinds:
        cells = [cell(some, kind) for some in mine.values()]
        if any(cells):
            out.append(f"| {kind} | " + " | ".join(cells) + " |")
    return out


def auditors_of(answers: Answers) -> list[str]:
    """Versions, releases asked, false alarms and cost in Markdown."""
    out = [
        "| auditor | version | releases | scores | false alarms, own decision | false alarms, calibrated "
        "| CPU seconds a release, at most |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, some in by_auditor(answers).items():
        own, calibrated = false_alarms(some)
        versions = ", ".join(sorted({str(a.get("version", "")) for a in some}))
        scores = max(len(a["scores"]) for a in some)
        spent = [a["seconds"] for a in some]
        cost = f"{statistics.median(spent):.0f}, {max(spent):.0f}"
        out.append(f"| {name} | {versions} | {len(some)} | {scores} | {own} | {calibrated} | {cost} |")
    return out


def beaten(answers: Answers, kinds: Iterable[str]) -> list[str]:
    """Kinds of which another auditor, calibrated, sees a smaller share than this tool's own decision."""
    out = []
    for table in sorted({a["table"] for a in answers}):
        mine = by_auditor([a for a in answers if a["table"] == table])
        for kind in kinds:
            seen = {name: smallest_seen(alarms(some, kind)[name == OWN]) for name, some in mine.items()}
            own = seen.pop(OWN, None)
            smaller = {name: s for name, s in seen.items() if own and s is not None and s < own}
            ours = "does not see it" if own == NEVER else f"sees {percent(own or 0)}"
            told = ", ".join(f"{name} sees {percent(s)}" for name, s in sorted(smaller.items()))
            out += [f"* {kind} of {table}: {told}; this tool {ours}"] if smaller else []
    return out


def passed(answers: Answers) -> list[str]:
    """Leaks that this tool let pass, the largest first, as lines of Markdown; large ones in bold."""
    wrong = [a for a in answers if a["auditor"] == OWN and a["share"] and a["alarm"] is False]
    return [
        f"* **{a['kind']}, {percent(a['share'])} of {a['table']}**"
        if a["share"] >= PROMISED
        else f"* {a['kind']}, {percent(a['share'])} of {a['table']}"
        for a in sorted(wrong, key=lambda a: (-a["share"], a["kind"], a["table"]))
    ]


def refused(answer: Answer) -> bool:
    """Whether some gate of this tool failed, not only lacked evidence."""
    return max(answer["scores"].values(), default=0.0) == 1


def held_honest(answers: Answers) -> list[str]:
    """Honest releases that this tool did not pass, by table and guise, as lines of Markdown."""
    asked: dict[tuple[str, str], Answers] = defaultdict(list)
    for a in answers:
        if a["auditor"] == OWN and not a["share"]:
            asked[a["table"], a["guise"]].append(a)
    out = []
    for (table, guise), some in sorted(asked.items()):
        held = [a for a in some if a["alarm"]]
        failed = sum(map(refused, held))
        gates = sorted({gate for a in held for gate, score in a["scores"].items() if score})
        open_ = f"{len(held) - failed} insufficient evidence ({', '.join(gates)})"
        told = f"{failed} of {len(some)} refused, {open_}"
        out += [f"* {guise} of {table}: {told}"] if held else []
    return out


def subsampled(answers: Answers) -> list[str]:
    """SDMetrics' distance to the baseline on all rows and on a subsample, by share of whole copies."""
    base = "DCRBaselineProtection"
    rows = [a for a in answers if a["auditor"] == "sdmetrics" and a["kind"] == "copies"]
    out = []
    for table in sorted({a["table"] for a in rows}):
        for share in sorted({a["share"] for a in rows if a["table"] == table}):
            some = [a["scores"] for a in rows if (a["table"], a["share"]) == (table, share)]
            few = next(name for name in some[0] if name.startswith(f"{base} of"))
            whole, part = (1 - statistics.mean(s[name] for s in some) for name in (base, few))
            out.append(f"| {table} | {percent(share)} | {len(some)} | {whole:.3f} | {part:.3f} |")
    return out


def undecided(answers: Answers) -> str:
    """How many of this tool's alarms rest on missing evidence alone, in words."""
    raised = [a for a in answers if a["auditor"] == OWN and a["share"] and a["alarm"]]
    return f"{sum(not refused(a) for a in raised)} of {len(raised)}"
