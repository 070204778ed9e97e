"""Compares the release, and the control rows as its reference, with train in one way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from synth_audit.execution.seeds import as_int_seed
from synth_audit.findings.measurement import Estimate, Measurement, MeasurementId, Quantity, Reference
from synth_audit.plugins.audit import Subject
from synth_audit.table.table import Table

Found = Mapping[MeasurementId, Estimate]
"""What a comparison found, by quantity, setting and column."""

Compare = Callable[[Table, np.random.Generator], Found]
"""Compares a table with train; equal tables and equal generators must give equal numbers."""

CompareAll = Callable[[Sequence[Table], int], list[Found]]
"""Compares each of several tables with train, from a generator of this seed for each."""

MEANING = "control rows against train"


def measured(
    subject: Subject, compare: Compare, quantities: Sequence[Quantity], rng: np.random.Generator
) -> list[Measurement]:
    """What ``compare`` finds on the release, each number with its reference.

    The reference is the same comparison of control rows with train, on as many rows as the release has, or
    all of them. Where the release has more, a part of it as large as control is compared too, so that a
    ratio to the reference does not compare numbers of samples of different sizes. Every comparison gets a
    generator in the same state: control rows as the release come out exactly at their reference.

    Returns:
        The measurements in the order in which ``compare`` reports the release's.
    """

    def each(tables: Sequence[Table], seed: int) -> list[Found]:
        return [compare(table, np.random.default_rng(seed)) for table in tables]

    return measured_together(subject, each, quantities, rng)


def measured_together(
    subject: Subject, compare: CompareAll, quantities: Sequence[Quantity], rng: np.random.Generator
) -> list[Measurement]:
    """As :func:`measured`, of a comparison that takes all the tables at once."""
    by_name = {q.name: q for q in quantities}
    seed = as_int_seed(rng)
    n = subject.synthetic.n_rows
    tables = [subject.synthetic]
    if subject.control is not None:
        tables.append(subject.control.sample(n, rng))
        if n > subject.control.n_rows:
            tables.append(subject.synthetic.sample(subject.control.n_rows, rng))
    nothing: Found = {}
    own, reference, alike, *_ = (*compare(tables, seed), nothing, nothing)
    measured = []
    for x, found in own.items():
        known, null = reference.get(x), None
        if known is not None:
            null = Reference(known.value, MEANING, known.interval, alike.get(x))
        quantity = by_name[x.quantity]
        measured.append(quantity.at(found, setting=x.setting, column=x.column, n=n, reference=null))
    return measured


def sampled(subject: Subject, most_rows: int, rng: np.random.Generator) -> Subject:
    """The subject with so many random rows of each table that has more, the control rows drawn last.

    What is measured on them has the intervals of so many rows.
    """
    train, synthetic = (t.sample(most_rows, rng) for t in (subject.train, subject.synthetic))
    control = subject.control and subject.control.sample(most_rows, rng)
    return replace(subject, train=train, synthetic=synthetic, control=control)


def sampling_note(subject: Subject, most_rows: int, what: str = "Read from") -> tuple[str, ...]:
    """That tables were sampled, where one was."""
    if max(subject.train.n_rows, subject.synthetic.n_rows) <= most_rows:
        return ()
    return (
        f"{what} {most_rows:,} random rows of each larger table; intervals are as wide as so few rows make "
        "them.",
    )
