"""Invented sweeps for the page of candidates."""

from dataclasses import replace

from synth_audit.findings.measurement import BOX_LINES, MeasurementId, Series, read
from synth_audit.studies import frontier


def box_series(
    name: str, x: tuple[str, ...], centre: float, column: str = "", settings: tuple[str, ...] = ()
) -> Series:
    """Boxes one tenth apart, each reaching 0.2 to both sides of its median."""
    steps = zip(BOX_LINES, (-0.2, -0.1, 0.0, 0.1, 0.2), strict=True)
    lines = {line: tuple(centre + 0.1 * i + step for i in range(len(x))) for line, step in steps}
    known = {"mab": "attribute_game", "privacy_gain": "membership_game"}
    whose = MeasurementId(known.get(name, "game"), name, column=column)
    return Series(
        whose, "Games", "box", "", "size", x, lines, tuple(replace(whose, setting=s) for s in settings)
    )


def candidate(level: int | None, verdict: str, privacy: float, utility: float) -> frontier.CandidateResult:
    name = f"vine truncation={'all' if level is None else level}"
    kinds = ("outlying", "random")
    games = (
        box_series("mab", ("synthetic sets", "real rows"), privacy, "income"),
        box_series("privacy_gain", kinds, 1 - privacy, settings=kinds),
    )
    gated = frontier.GateOutcome("retained.max", "The secret is not handed on", verdict)
    return frontier.CandidateResult(
        name,
        f"vine-truncation-{level}",
        {"name": "vine", "config": {"truncation": level}},
        {"truncation": level},
        verdict,
        (gated, frontier.GateOutcome("copies.max", "No copies", "pass")),
        frontier.Number(privacy, privacy - 0.05, privacy + 0.05),
        frontier.Number(utility, utility - 0.02, utility + 0.02),
        boxes=games,
        correlations=frontier.Correlations(("age", "sex"), ((1.0, 0.3), (0.3, 1.0))),
        seconds=31.0,
    )


def sweep(*candidates: frontier.CandidateResult, **more: object) -> frontier.FrontierRecord:
    """A sweep with its choice; three levels and one without a table when nothing is given."""
    broken = frontier.CandidateResult("vine truncation=26", "vine-26", {"name": "vine", "config": {}},
                             {"truncation": 26}, "error", problem="DataError in the fit")  # fmt: skip
    tried = candidates or (
        candidate(1, "pass", 0.1, 0.62),
        candidate(5, "pass", 0.2, 0.70),
        broken,
        candidate(None, "fail", 0.6, 0.72),
    )
    rated = frontier.scored(tried, 0.5, higher_privacy=False, higher_utility=True)
    best, reason = frontier.choose(rated)
    fields: dict[str, object] = {
        "table": "adult", "plan_sha256": "cd" * 32, "seed": 7, "level": 1 - 0.05 / len(rated), "alpha": 0.5,
        "utility": read("prediction.auroc_tstr"), "privacy": read("exact_match.share"), "candidates": rated,
        "chosen": best and best.name, "reason": reason, "created": "2026-11-14T10:32:00+00:00",
        "releasable": True,
        "real_correlations": frontier.Correlations(("age", "sex"), ((1.0, -0.5), (-0.5, 1.0))),
    }  # fmt: skip
    return frontier.FrontierRecord(**{**fields, **more})  # type: ignore[arg-type]
