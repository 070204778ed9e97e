"""Repeats a run from its salt and compares it with its evidence; writes nothing."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from synth_audit.errors import DataError
from synth_audit.examination.audit_runner import describe_error
from synth_audit.execution.context import SERIAL, RunContext
from synth_audit.execution.seeds import Salt
from synth_audit.files import temporary_folder
from synth_audit.pipeline import making, stages
from synth_audit.pipeline.verify import Check, content_check, content_of
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.store.evidence import Evidence, SplitRecord, installed_versions
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.locate import newest_evidence
from synth_audit.store.salts import known_salt
from synth_audit.store.scratch import in_use
from synth_audit.store.workspace import Workspace
from synth_audit.table.table import Table
from synth_audit.verdict.gate_decision import first_few
from synth_audit.verdict.suite import load_suite

_MEASUREMENTS_SHOWN = 3
"""Measurements that are named where more differ."""


def rerun(plan: Plan, workspace: Workspace, context: RunContext = SERIAL) -> tuple[Check, ...]:
    """Pull, split, fit, draw and audit again under the workspace's salt; say what agrees with the evidence.

    A candidate whose fit spent privacy budget, and one that its generator does not repeat, is not made again:
    the one that the workspace kept is compared by its hash and audited. Where the source has changed since,
    what the workspace kept of train and control takes its place.

    Raises:
        DataError: there is no evidence of a run with this plan, it was altered, or there is no salt.
    """
    tables: dict[str, Table] = {}
    with ExitStack() as stack:
        # Before anything is read: nobody may purge it meanwhile.
        scratch = stack.enter_context(in_use(workspace, write_rows=plan.execution.write_real_rows))
        context = replace(context, scratch=scratch)
        salt = known_salt(workspace)
        evidence = newest_evidence(workspace)
        _refuse_other(plan, evidence, salt)
        folder = stack.enter_context(temporary_folder(scratch))
        course = _Rerun(plan, workspace, evidence, salt, context, Path(folder))
        return (
            Check("digest of the evidence", evidence.intact, evidence.digest),
            *course.real(tables),
            course.candidate(tables),
            *course.audits(tables),
        )


@dataclass(frozen=True, eq=False)
class _Rerun:
    """What is repeated. Each step adds to ``tables`` those that agree with the evidence.

    Attributes:
        folder: where tables are laid out, to be mapped.
    """

    plan: Plan
    workspace: Workspace
    evidence: Evidence
    salt: Salt
    context: RunContext
    folder: Path

    def real(self, tables: dict[str, Table]) -> Iterator[Check]:
        """Pull and split."""
        self.context.progress("pull and split", 0, 1)
        try:
            source = making.pull_source(self.plan)
            train, control = making.split_source(self.plan, source, self.salt)
        except DataError as error:
            for name in ("source", "train", "control"):
                yield Check(content_of(name), None, f"the source cannot be pulled and split: {error.what}")
        else:
            yield self._compared("source", source)
            # As kept, in the same order of rows, which a warehouse does not promise and a fit may rest on.
            for name, table in (("train", train), ("control", control)):
                check = self._compared(name, table)
                if check.holds:
                    tables[name] = table.laid_out(self.folder)
                yield check
            if not self.plan.execution.write_real_rows:
                yield self._ordered(train, control)
        # Train and control in the workspace take their place, as far as they agree with the evidence.
        with suppress(DataError):
            if self.plan.execution.write_real_rows:
                real = making.real_tables(self.plan, self.workspace, self.folder)
                kept = zip(("train", "control"), real, strict=True)
                tables |= {name: table for name, table in kept if self._compared(name, table).holds}
        self.context.progress("pull and split", 1, 1)

    def _ordered(self, train: Table, control: Table) -> Check:
        what = "order of train and control"
        try:
            before = SplitRecord.read(self.workspace.split_record).order
        except DataError as error:
            return Check(what, None, error.what)
        if not before:
            return Check(what, None, "the split was made by a plan that lets real rows be written")
        same = making.order_of(train, control, self.salt) == before
        return Check(what, same, "" if same else "audits draw by it: order the source's query by a key")

    def candidate(self, tables: dict[str, Table]) -> Check:
        """Fit and draw again, or take the candidate that was kept."""
        reason = making.kept_because(self.plan.build_generator(), self.evidence.generator)
        if "train" not in tables:
            return Check(content_of("synthetic"), None, "no training rows here agree with the evidence")
        if reason:
            # That of this evidence, else the last one that was made here.
            kept = evidence_store(self.workspace).rows(self.evidence.digest), self.workspace.synthetic
            path = next(filter(os.path.isfile, kept), None)
            if path is None:
                return Check(content_of("synthetic"), None, f"{reason}, and none is kept")
            table = making.read_candidate(path, tables["train"].schema, self.folder)
        else:
            try:
                fitted = making.fit_plan(self.plan, tables["train"], self.salt, self.context)
                table = fitted.table(self.folder)
            # Whatever a generator does wrong is told, without its text, which may hold a cell value.
            except (Exception, SystemExit) as error:
                return Check(content_of("synthetic"), False, describe_error(error))
        check = self._compared("synthetic", table, f"the one that was kept, since {reason}" if reason else "")
        if check.holds:
            tables["synthetic"] = table
        return check

    def audits(self, tables: Mapping[str, Table]) -> Iterator[Check]:
        """Audit and judge again, and compare every measurement to its last digit."""
        needed = [n for n in ("train", "control", "synthetic") if n in self.evidence.tables]
        if lacking := [n for n in needed if n not in tables]:
            yield Check("measurements", None, f"no {' and no '.join(lacking)} that agrees with the evidence")
            return
        real, other = tables["train"], tables.get("control")
        subject = stages.subject_of(self.plan, real, other, tables["synthetic"])
        suite = load_suite(self.plan.gates, self.plan.base)
        same_suite = suite.sha256 == self.evidence.gates.suite_sha256
        yield Check("hash of the gate suite", same_suite, suite.sha256)
        found = stages.examine(
            self.plan, subject, self.evidence.generator, self.context, self.salt, draws=self.salt
        ).evidence
        before = {o.audit: o for o in self.evidence.outcomes}
        again = {o.audit: o for o in found.outcomes}
        for name in dict.fromkeys((*before, *again)):
            yield self._outcome(name, before.get(name), again.get(name))
        yield Check("verdict", found.verdict is self.evidence.verdict, str(found.verdict))
        yield Check("fitness", found.fitness is self.evidence.fitness, str(found.fitness))

    def _compared(self, name: str, table: Table, note: str = "") -> Check:
        check = content_check(self.evidence, name, table.fingerprint, self.salt)
        return replace(check, detail=note) if note and name in self.evidence.tables else check

    def _outcome(self, name: str, before: AuditOutcome | None, again: AuditOutcome | None) -> Check:
        what = f"measurements of {name}"
        if before is None or again is None:
            return Check(what, False, "the audit ran only once" if before else "the audit did not run before")
        # As text, in which NaN is equal to NaN.
        known, found = ({str(m.id): repr(m) for m in o.measurements} for o in (before, again))
        odd = [key for key in dict.fromkeys((*known, *found)) if known.get(key) != found.get(key)]
        if not odd and before.status is again.status:
            return Check(what, True, f"{len(known)} agree to the last digit")
        told = (
            f"{first_few(odd, _MEASUREMENTS_SHOWN)} differ"
            if odd
            else f"{again.status} instead of {before.status}"
        )
        now, then = installed_versions(), self.evidence.versions
        if other := [n for n in dict.fromkeys((*then, *now)) if then.get(n) != now.get(n)]:
            told += f"; other versions of {', '.join(other)} than then"
        return Check(what, False, told)


def _refuse_other(plan: Plan, evidence: Evidence, salt: Salt) -> None:
    if evidence.plan_sha256 != plan.digest or plan.source is None or plan.generator is None:
        raise DataError(
            "the evidence is not of a run with this plan",
            where="rerun",
            expected="the plan that the newest audit of the workspace was run with, unchanged",
            fix="name that plan; an audit of files made elsewhere is checked with `synth-audit verify`",
        )
    if evidence.salt_commitment != salt.commitment:
        raise DataError(
            "the evidence was made under another salt than the workspace has",
            where="rerun",
            expected=f"the salt with the commitment {evidence.salt_commitment}",
            fix="put that one back from a backup of the restricted folder",
        )
