"""The chapter on exposed records: rates of groups, never a record."""

from __future__ import annotations

from collections.abc import Sequence

from synth_audit.core.exposed_groups import ExposedGroup, Subgroup
from synth_audit.core.outcome import AuditOutcome
from synth_audit.examination.exposed_records import LIKELY
from synth_audit.report import words
from synth_audit.report.view import Cells, Chapter, ExposedView, Fact, GateView
from synth_audit.store.evidence import Evidence

ANCHOR = "exposed-records"
_SILENT = (
    "No audit of this run says which training records it got right, so nothing is known of single records."
)
_MOST_NAMES = 6
_LEAD = "Which training records are most at risk, and is that more than chance?"


def exposed_records(evidence: Evidence, _: Sequence[GateView]) -> Chapter | None:
    """The chapter; None where no audit of privacy could have said anything."""
    records = evidence.records
    if not records.groups and not any(o.family == "privacy" for o in evidence.outcomes):
        return None
    titles = {o.audit: _title(o) for o in evidence.outcomes}
    known = bool(records.groups)
    body = ExposedView(
        lead=_LEAD if known else _SILENT,
        likely=words.bare_number(LIKELY),
        facts=_facts(evidence) if known else (),
        groups=_groups(records.groups, titles, evidence.suppression),
        subgroups=_subgroups(records.subgroups, titles),
    )
    return Chapter(ANCHOR, "Most exposed records", "exposed.html.j2", body)


def _title(outcome: AuditOutcome) -> str:
    return outcome.info.title if outcome.info else outcome.audit


def _facts(evidence: Evidence) -> tuple[Fact, ...]:
    records, limit = evidence.records, evidence.suppression
    rows, others = records.train_rows, records.control_rows
    return (
        Fact(
            "Exposed training records",
            _count(records.exposed, rows, limit),
            f"of {words.counted(rows, 'training record')}",
        ),
        Fact(
            "Control records that look exposed",
            _count(records.control_exposed, others, limit),
            f"of {words.counted(others, 'control record')}, by chance alone",
        ),
    )


def _count(n: int | None, of: int, limit: int) -> str:
    if n is None:
        return f"fewer than {limit:,}"
    return f"{n:,} ({words.number(n / of, 'share')})" if n and of else f"{n:,}"


def _rate(hit: int | None, tried: int, limit: int) -> str:
    """``12.5 % (125 of 1,000)``, or only that it is too few to show."""
    if not tried:
        return "not tried"
    if hit is None:
        return f"fewer than {limit:,} of {tried:,}"
    return f"{words.number(hit / tried, 'share', 1)} ({hit:,} of {tried:,})"


def _groups(groups: Sequence[ExposedGroup], titles: dict[str, str], limit: int) -> Cells:
    rows = tuple(
        (
            titles.get(g.id.audit, g.id.audit),
            g.id.label or "–",
            _named(g.columns),
            _rate(g.train_hit, g.train_tried, limit),
            _rate(g.control_hit, g.control_tried, limit),
            _beyond(g),
        )
        for g in groups
    )
    header = (
        "Attack",
        "Setting",
        "Through columns",
        "Right about train",
        "Right about control",
        "Difference",
    )
    return Cells("How often each attack was right", header, rows)


def _named(columns: Sequence[str]) -> str:
    more = len(columns) - _MOST_NAMES
    return (", ".join(columns[:_MOST_NAMES]) or "–") + (f" and {more:,} more" if more > 0 else "")


def _beyond(g: ExposedGroup) -> str:
    """Points by which training records were hit more often than control records."""
    if g.train_hit is None or g.control_hit is None or not g.train_tried or not g.control_tried:
        return "–"
    points = 100 * (g.train_hit / g.train_tried - g.control_hit / g.control_tried)
    sign = "+" if points >= 0.05 else ""
    return f"{sign}{words.bare_number(points, places=1)}\u00a0points"


def _subgroups(subgroups: Sequence[Subgroup], titles: dict[str, str]) -> Cells:
    rows = tuple(
        (
            s.id.column,
            s.category,
            _attack(s, titles),
            f"{s.train_rows:,}",
            words.number(s.value, "share", places := _places(s)),
            words.interval(s.interval.low, s.interval.high, "share", places),
        )
        for s in subgroups
    )
    header = ("Column", "Most exposed category", "Attack", "Attacked training records", "Risk", "Interval")
    levels = dict.fromkeys(words.percent_level(s.interval.level) for s in subgroups)
    title = f"The most exposed group of people, column by column ({' or '.join(levels)} intervals)"
    return Cells(title, header, rows)


def _attack(s: Subgroup, titles: dict[str, str]) -> str:
    attack = s.id.derived_from
    title = titles.get(s.id.audit, s.id.audit)
    return f"{title} ({attack.label})" if attack and attack.label else title


def _places(s: Subgroup) -> int:
    return words.decimals("share", s.value, low=s.interval.low, high=s.interval.high)
