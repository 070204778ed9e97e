"""Dates and times as the numbers that columns hold."""

from __future__ import annotations

from datetime import UTC, date, datetime


def microseconds(moment: date | datetime) -> float:
    """Microseconds since 1970 (UTC); a date is its first moment, a time without a zone is UTC."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6
