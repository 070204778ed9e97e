"""Invented audit outcomes for the report."""

from dataclasses import replace

from synth_audit.examination.known_answer import minimum_detectable
from synth_audit.findings.measurement import (
    Direction,
    Interval,
    Measurement,
    MeasurementId,
    Quantity,
    Reference,
    Series,
)
from synth_audit.findings.sensitivity import (
    LEAK_EQUIVALENT,
    WORST_SUBGROUP,
    PlantedResult,
    Sensitivity,
    SensitivityCurve,
)
from synth_audit.plugins.audit import AuditInfo, AuditOutcome, Status

COLUMNS = (
    "age", "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex",
    "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
)  # fmt: skip


def quantity(name: str, title: str, direction: Direction = Direction.LOWER, **more: object) -> Quantity:
    return Quantity(name, title, direction=direction, **more)  # type: ignore[arg-type]


def info(risk: str, title: str, *quantities: Quantity) -> AuditInfo:
    return AuditInfo(
        title=title,
        question="Can an attacker who reads the release find out more than the release of others would tell",
        threat_model="The attacker holds the synthetic table and knows a few facts about each person",
        not_covered="An attacker who knows nearly the whole record, and people outside the real table",
        quantities=quantities,
        risk=risk,  # type: ignore[arg-type]
        source="Invented for tests 2026",
    )


def named(name: str, setting: str = "", column: str = "") -> MeasurementId:
    """The identity of ``audit.quantity``, whatever stands before the last dot."""
    audit, quantity = name.rsplit(".", 1)
    return MeasurementId(audit, quantity, setting, column)


def measurement(
    name: str | MeasurementId,
    value: float,
    half: float | None = None,
    *,
    setting: str = "",
    column: str = "",
    **more: object,
) -> Measurement:
    interval = None if half is None else Interval(value - half, value + half, 0.95, "wilson")
    whose = name if isinstance(name, MeasurementId) else named(name, setting, column)
    return Measurement(whose, value, interval=interval, **more)  # type: ignore[arg-type]


SHARES = (0.0, 0.01, 1.0)


def response(m: Measurement, full: float, half: float, **more: object) -> SensitivityCurve:
    """How a measurement answers planted leaks, in proportion to their share from 0 to ``full``."""
    fields = {
        "answers": tuple(PlantedResult(f, f * full, f * full - half, f * full + half) for f in SHARES),
        "null": 0.0,
        "half_width": half,
        "minimum_detectable": minimum_detectable(full, half, 0.95),
    }
    return SensitivityCurve(m.id, m.direction, Sensitivity.SENSITIVE, **{**fields, **more})  # type: ignore[arg-type]


def blind(m: Measurement, reason: str = "a full copy gives no clearly worse value") -> SensitivityCurve:
    return SensitivityCurve(m.id, m.direction, Sensitivity.INSENSITIVE, reason)


def restated(m: Measurement, value: float, half: float) -> Measurement:
    """The leak-equivalent of a measurement."""
    return measurement(LEAK_EQUIVALENT.derived(m.id), value, half)


def answering(outcome: AuditOutcome, *, every: bool = True) -> AuditOutcome:
    """The outcome with responses; the last of its measurements is blind unless ``every`` one sees."""
    directed = [m for m in outcome.measurements if m.interval is not None]
    seeing = directed if every else directed[:-1]
    responses = tuple(response(m, 0.8, 0.004 + 0.01 * i) for i, m in enumerate(seeing))
    responses += () if every else (blind(directed[-1]),)
    extra = tuple(restated(m, 0.003 - 0.004 * i, 0.006 + 0.012 * i) for i, m in enumerate(seeing))
    return replace(outcome, responses=responses, measurements=(*outcome.measurements, *extra))


def with_subgroups(outcome: AuditOutcome) -> AuditOutcome:
    """The outcome with the risk of its most exposed subgroups."""
    attack = MeasurementId(outcome.audit, "risk", "3 columns")
    extra = tuple(
        measurement(WORST_SUBGROUP.derived(attack, column), v, 0.05, n_achieved=n)
        for v, column, n in ((0.11, "sex", 410), (0.07, "workclass", 88))
    )
    return replace(outcome, measurements=(*outcome.measurements, *extra))


def singling_out() -> AuditOutcome:
    name = "singling_out"
    sizes = tuple(float(k) for k in range(3, 13))
    return AuditOutcome(
        audit=name,
        family="privacy",
        status=Status.MEASURED,
        info=info(
            "singling out",
            "Singling out by predicates",
            quantity("risk", "Risk of being singled out", help="Share of guesses that hit, above chance"),
            quantity("control_rate", "Success on people never seen"),
        ),
        config={"n_attacks": 2000, "columns": ["age", "sex"], "seeded": True},
        measurements=(
            measurement(
                f"{name}.risk", 0.0123, 0.0061, unit="share of people",
                n_requested=2000, n_achieved=2000, n_minimum=500,
                reference=Reference(0.0, "an independent release"),
            ),
            measurement(f"{name}.control_rate", 0.0301, 0.0075, n_requested=2000, n_achieved=2000),
            *(
                measurement(f"{name}.risk", 0.002 + 0.001 * (i * 7 % 13), 0.004, setting=f"{i} columns",
                            n_requested=2000, n_achieved=1990 - i)
                for i in range(3, 13)
            ),
        ),
        series=(
            Series(
                MeasurementId("", "by_size"),
                "Success by number of columns combined", "line", "columns in the predicate",
                "share of guesses that hit", sizes,
                {
                    "training rows": tuple(0.01 + 0.004 * k for k in range(10)),
                    "control rows": tuple(0.009 + 0.0036 * k for k in range(10)),
                    "naive attacker": tuple(0.004 + 0.0005 * k for k in range(10)),
                },
            ),
        ),
        notes=("Predicates were drawn from the synthetic table only.",),
    )  # fmt: skip


def closest_record() -> AuditOutcome:
    name = "closest_record"
    steps = tuple(i / 40 for i in range(41))
    return AuditOutcome(
        audit=name,
        family="privacy",
        status=Status.MEASURED,
        info=info(
            "membership",
            "Closest records",
            quantity("share", "Share of synthetic rows closer to train than to control"),
            quantity("exact_copies", "Synthetic rows equal to a train row"),
            quantity("p_value", "Chance of such a share without copying", unit="p-value"),
        ),
        measurements=(
            measurement(
                f"{name}.share", 0.8007, 0.0042, n_requested=39084, n_achieved=39084,
                reference=Reference(0.8002, "a release independent of who was in train"),
            ),
            measurement(
                f"{name}.exact_copies", 0.00031, 0.00018, n_achieved=39084,
                reference=Reference(0.00034, "duplicates between train and control"),
            ),
            measurement(f"{name}.p_value", 0.3821, unit="p-value", direction=Direction.HIGHER),
        ),
        series=(
            Series(
                MeasurementId("", "cdf"),
                "How far synthetic rows are from real ones", "step", "distance to the nearest row",
                "share of rows", steps,
                {
                    "synthetic to train": tuple(min(1.0, 1.6 * s**1.4) for s in steps),
                    "control to train": tuple(min(1.0, 1.5 * s**1.5) for s in steps),
                },
            ),
        ),
    )  # fmt: skip


def marginals() -> AuditOutcome:
    name = "marginals"
    return AuditOutcome(
        audit=name,
        family="fidelity",
        status=Status.MEASURED,
        info=info(
            "fidelity", "Single columns",
            quantity("tv_mean", "Mean total variation", unit="distance", help="0 is equal, 1 is disjoint"),
            quantity("tv", "Total variation", unit="distance"),
        ),
        measurements=(
            measurement(
                f"{name}.tv_mean", 0.062, 0.004, unit="distance",
                reference=Reference(0.011, "train against control"),
            ),
            *(
                measurement(f"{name}.tv", 0.012 + 0.011 * (i * 5 % 13), column=c, unit="distance",
                            reference=Reference(0.01, "train against control"))
                for i, c in enumerate(COLUMNS)
            ),
        ),
        series=(
            Series(
                MeasurementId("", "tv"),
                "Distance of each column", "bar", "column", "total variation", COLUMNS,
                {
                    "synthetic": tuple(0.012 + 0.011 * (i * 5 % 13) for i in range(13)),
                    "control": tuple(0.01 + 0.001 * (i % 4) for i in range(13)),
                },
            ),
            Series(
                MeasurementId("", "few"), "Income", "bar", "class", "share of rows", ("<=50K", ">50K"),
                {"train": (0.75, 0.25), "synthetic": (0.71, 0.29)},
            ),
        ),
    )  # fmt: skip


def utility() -> AuditOutcome:
    name = "tstr"
    return AuditOutcome(
        audit=name,
        family="utility",
        status=Status.MEASURED,
        info=info(
            "utility", "Train on synthetic, test on real",
            quantity("auroc_gap", "AUROC lost", unit="score"),
            quantity("auroc", "AUROC", Direction.HIGHER, unit="score"),
        ),
        measurements=(
            measurement(f"{name}.auroc", 0.884, 0.006, unit="score", direction=Direction.HIGHER,
                        reference=Reference(0.917, "the same model trained on real rows")),
            measurement(f"{name}.auroc_gap", 0.033, 0.008, unit="score"),
        ),
    )  # fmt: skip


def not_applicable() -> AuditOutcome:
    return AuditOutcome(
        audit="inference",
        family="privacy",
        status=Status.NOT_APPLICABLE,
        info=info("inference", "Inference of a secret"),
        reason="it needs a sensitive column and the plan names none",
    )


def errored() -> AuditOutcome:
    return AuditOutcome(
        audit="density_ratio",
        family="privacy",
        status=Status.ERROR,
        info=info("membership", "Density ratio"),
        config={"bandwidth": 0.3},
        reason="LinAlgError in density_ratio.py, line 81",
    )


def unimportable() -> AuditOutcome:
    return AuditOutcome(
        "third_party", "privacy", Status.ERROR, reason="ImportError while loading the plug-in"
    )
