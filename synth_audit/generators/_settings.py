"""Refuses settings of a generator that are out of their range."""

from __future__ import annotations

from math import inf

from synth_audit.errors import PlanError


def check_settings(
    settings: object,
    *,
    counts: tuple[str, ...] = (),
    sizes: tuple[str, ...] = (),
    shares: tuple[str, ...] = (),
    parts: tuple[str, ...] = (),
) -> None:
    """Refuse settings that make no sense.

    Args:
        counts: names of fields that are 1 or more. sizes: that are above 0 and finite.
        shares: that are 0 to below 1. parts: that are above 0 and below 1.

    Raises:
        PlanError: a field is out of its range.
    """
    for names, least, end, expected in (
        (counts, 1, inf, "1 or more"),
        (sizes, 5e-324, inf, "above 0"),
        (shares, 0, 1, "0 to below 1"),
        (parts, 5e-324, 1, "above 0 and below 1"),
    ):
        for name in names:
            if not least <= (value := getattr(settings, name)) < end:
                raise PlanError(f"{name} is {value:g}", where=f"generator.{name}", expected=expected)
