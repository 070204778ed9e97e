"""Makes what an audit is about: real tables pulled and split, a candidate fitted and drawn.

Nothing is read from a workspace or written here. Under the same salt, plan and source all of it repeats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from synth_audit.core.accounting import bound_contributions
from synth_audit.core.context import SERIAL, RunContext
from synth_audit.core.entities import entities_of, split
from synth_audit.core.errors import DataError
from synth_audit.core.fitting import fit
from synth_audit.core.generator import Generator, Spending, repeats
from synth_audit.core.plan import Plan
from synth_audit.core.registry import config_of
from synth_audit.core.salt import Salt
from synth_audit.core.schema_inference import infer_schema
from synth_audit.core.table import Table, read_table
from synth_audit.pipeline.spending import Spender
from synth_audit.store.evidence import GeneratorRecord, TableRecord


def pull_source(plan: Plan) -> Table:
    """The sensitive table.

    Raises:
        DataError: it cannot be read, or holds no rows for both train and control.
    """
    data = plan.build_source().read(plan.base)
    schema = infer_schema(data, plan.columns, rules=plan.stated_rules, where="source")
    source = read_table(data, schema, where="source")
    if source.n_rows < 2:
        raise DataError(
            "the source has a single row",
            where="source",
            expected="rows for both train and control",
            fix="check the query or file that the plan's source reads",
        )
    return source


def split_source(plan: Plan, source: Table, salt: Salt) -> tuple[Table, Table]:
    """Train and control; raises ``DataError`` when one would be too small."""
    train, control = split(source, plan.split.control, salt.key("split"))
    known, other = anchored(train.data, control.data, plan)
    return known, other


def anchored(train: pa.Table, control: pa.Table | None, plan: Plan) -> tuple[Table, Any]:
    """Real tables under the schema that is read off train and the plan."""
    schema = infer_schema(train, plan.columns, rules=plan.stated_rules)
    known = read_table(train, schema, where="train")
    if known.n_rows < 2:
        raise DataError(
            "train has a single row",
            where="train",
            expected="at least two rows",
            fix="check the file, or set fewer rows aside",
        )
    return known, None if control is None else read_table(control, schema, where="control")


def fit_and_draw(
    plan: Plan,
    train: Table,
    salt: Salt,
    context: RunContext = SERIAL,
    spending: Spender | None = None,
) -> tuple[Table, GeneratorRecord]:
    """Fit the generator on train and draw the candidate, both seeded from the salt and these rows of train.

    Other rows get other streams: two releases whose tables differ by one person would otherwise share every
    random number, and their difference would be that person's.

    Args:
        spending: how a generator that spends is paid for; without it none can spend.

    Raises:
        BudgetSpent: the table's budget does not bear the fit.
    """
    generator = plan.build_generator()
    assert plan.generator is not None
    name = plan.generator.name
    context.progress(f"fit {name}", 0, 2)
    streams = ("generator", name, TableRecord.of(train, salt).hmac)
    known = bounded(plan, train, salt.rng(*streams, "contributions"))
    accountant = spending.accountant() if spending else plan.fit_terms.detached()
    model = fit(generator, known.released_only(), salt.rng(*streams, "fit"), accountant)
    context.progress(f"sample {name}", 1, 2)
    drawn = model.sample(plan.rows or train.n_rows, salt.rng(*streams, "sample"))
    context.progress(name, 2, 2)
    synthetic = read_table(drawn.data, train.schema, where="synthetic", partial=True)
    account = spending.account(accountant, known) if spending and isinstance(generator, Spending) else None
    return synthetic, GeneratorRecord(name, config_of(generator), model.certificate, account)


def bounded(plan: Plan, train: Table, rng: np.random.Generator) -> Table:
    """Train with no more rows of any entity than the plan declares."""
    most = plan.privacy.rows_per_entity if plan.privacy else None
    if most is None:
        return train
    keys = [entity.hex() for entity in entities_of(train)]
    return train.take(bound_contributions(keys, most, rng))


def kept_because(generator: Generator, record: GeneratorRecord) -> str:
    """Why a candidate is kept and compared by its hash, never drawn again; empty when it can be repeated."""
    spent = record.privacy is not None and record.privacy.mechanisms
    if spent or record.certificate.claim == "differential privacy":
        return "its fit spent privacy budget, and another fit would spend it again"
    return "" if repeats(generator) else "its generator does not repeat what it made"
