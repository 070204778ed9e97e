"""Tries every candidate of a plan on one split, each in its own workspace, and chooses among what passes."""

import fcntl
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from synth_audit.errors import DataError, SynthAuditError
from synth_audit.examination.audit_runner import describe_error
from synth_audit.execution.context import SERIAL, RunContext
from synth_audit.execution.seeds import Salt
from synth_audit.pipeline import stages
from synth_audit.pipeline.making import kept_because, real_tables
from synth_audit.pipeline.verify import verify
from synth_audit.plan.plan import Plan
from synth_audit.plugins.generator import finished, refits
from synth_audit.registry import config_of
from synth_audit.store.evidence import Evidence, SplitRecord, SyntheticRecord, TableRecord, installed_versions
from synth_audit.store.files import hash_parquet, link_or_copy, new_folder, read_parquet, write_text
from synth_audit.store.journal import private_lock
from synth_audit.store.locate import newest_evidence
from synth_audit.store.salts import workspace_salt
from synth_audit.store.scratch import in_use, journaled
from synth_audit.store.workspace import Workspace
from synth_audit.studies.frontier import Correlations, FrontierRecord, Scales
from synth_audit.studies.ranking import Candidate, CandidateRun, candidates_of, column_count, ranked
from synth_audit.table.schema import Schema
from synth_audit.table.table import Table, read_table
from synth_audit.verdict.suite import load_suite


def sweep(
    plan: Plan, workspace: Workspace, context: RunContext = SERIAL, *, fresh: bool = False
) -> FrontierRecord:
    """Audit every candidate of the plan and choose the best of those that pass.

    The source is pulled and split once, unless the workspace holds this plan's split already. A candidate
    whose evidence is of its plan, of this split and whole is kept. An interruption leaves each candidate
    wholly there or not at all; one that cannot be made again, see :func:`kept_because`, stays once it is
    made, and is audited as it is.

    Args:
        fresh: pull the source again and keep nothing.

    Raises:
        PlanError: there is nothing to try, or no such measurement.
        GateError: the gate suite is wrong.
        DataError: the source cannot be read, or another sweep is at work in the workspace.
    """
    stages.preflight(plan)
    candidates_of(plan, sys.maxsize)  # a mistake in them should show before the source is pulled
    held = in_use(workspace, write_rows=plan.execution.write_real_rows)
    with exclusive_lock(workspace.prepare()), held as scratch:
        salt = workspace_salt(workspace)
        splitting, split_kept = _split(plan, workspace, salt, context, fresh)
        asked = candidates_of(plan, column_count(splitting))
        for old in (workspace.kept_frontier, workspace.frontier, workspace.frontier_page):
            old.unlink(missing_ok=True)
        train, _ = real_tables(plan, workspace)
        scales = Scales.of(train, plan.suppression)
        with (
            journaled(replace(context, scratch=scratch), workspace, salt) as resuming,
            resuming.keeping() as keeping,
        ):
            written = plan.execution.write_real_rows
            course = SweepRun(workspace, salt, splitting, train.schema, scales, fresh, written)
            places = (f"{i}/{len(asked)} {e.name}: " for i, e in enumerate(asked, 1))
            tried = [course.run(e, keeping.within(at)) for e, at in zip(asked, places, strict=True)]
        record = ranked(plan, tried, scales.correlations(train), split_kept)
        write_text(workspace.frontier, record.to_json())
        write_text(workspace.kept_frontier, record.to_json(), private=True)
        slugs = {e.slug for e in asked}
        for folder in workspace.candidates.glob(
            "*/"
        ):  # of other candidates: nothing refers to their rows now
            if folder.name not in slugs and Workspace(folder).restricted.is_dir():
                shutil.rmtree(folder, ignore_errors=True)
    return record


@dataclass(frozen=True, eq=False)
class SweepRun:
    """What all candidates meet alike.

    Attributes:
        schema: of the real tables. written: whether these are files of the workspace.
    """

    workspace: Workspace
    salt: Salt
    splitting: SplitRecord
    schema: Schema
    scales: Scales
    fresh: bool
    written: bool

    def run(self, candidate: Candidate, context: RunContext) -> CandidateRun:
        """Audit a candidate, or take over what an earlier sweep found."""
        own = self.workspace.candidate(candidate.slug)
        if not self.fresh and (kept := self._still_good(candidate, own)) is not None:
            context.progress("kept", 1, 1)
            return CandidateRun(candidate, kept, self._correlations(own), kept=True)
        try:
            evidence = self._audited(candidate, own, context)
        except _NoTable as reason:
            return CandidateRun(candidate, None, problem=str(reason))
        problem = "; ".join(f"{o.audit}: {o.reason}" for o in evidence.errored)
        return CandidateRun(candidate, evidence, self._correlations(own), problem=problem)

    def _audited(self, candidate: Candidate, own: Workspace, context: RunContext) -> Evidence:
        """Make the candidate and audit it; one that cannot be made again stays, whatever its audit says."""
        if self.fresh or not self._kept_once(candidate, own):
            shutil.rmtree(own.root, ignore_errors=True)  # what is there is of another plan, split or version
            with self._room(candidate, own) as room:
                with _told(Exception, SystemExit):  # whatever a generator does wrong
                    made_by = stages.make_synthetic(candidate.plan, room, context).generator
                if not kept_because(candidate.plan.build_generator(), made_by):
                    with _told(DataError):
                        return stages.audit_synthetic(candidate.plan, room, context)
        with self._room(candidate, own) as room:
            link_or_copy(own.synthetic, room.synthetic)
            made = SyntheticRecord.read(own.synthetic_record)
            replace(made, plan_sha256=candidate.plan.digest).write(room.synthetic_record)
            with _told(DataError):
                return stages.audit_synthetic(candidate.plan, room, context)

    @contextmanager
    def _room(self, candidate: Candidate, own: Workspace) -> Iterator[Workspace]:
        """A folder in the place of the old one, with the split as if the candidate's own plan had made it."""
        with new_folder(own.root, replace=True) as folder:
            room = replace(own, root=folder).prepare()
            if self.written:
                link_or_copy(self.workspace.train, room.train)
                link_or_copy(self.workspace.control, room.control)
            replace(self.splitting, plan_sha256=candidate.plan.digest).write(room.split_record)
            yield room

    def _kept_once(self, candidate: Candidate, own: Workspace) -> bool:
        """Whether the folder holds this very candidate, from these rows, and nobody can make it again."""
        generator = candidate.plan.build_generator()
        try:
            made = SyntheticRecord.read(own.synthetic_record)
            table = self._candidate_in(own)
        except DataError:
            return False
        asked = (candidate.generator.name, config_of(generator), self.splitting.train)
        same = (made.generator.name, made.generator.config, made.train) == asked
        as_many = made.table.rows == (candidate.plan.rows or made.train.rows) or not refits(generator)
        whole = same and as_many and made.table == TableRecord.of(table, self.salt)
        once = bool(kept_because(generator, made.generator))
        return whole and once and self._unchanged(candidate, made.table)

    def _still_good(self, candidate: Candidate, own: Workspace) -> Evidence | None:
        """The evidence of an earlier sweep if it is what this one would find, and its tables are there."""
        try:
            evidence = newest_evidence(own)
            names = ("train", "control", "synthetic") if self.written else ("synthetic",)
            hashes = {n: hash_parquet(getattr(own, n), made_by=n) for n in names}
        except DataError:
            return None
        suite = load_suite(candidate.plan.gates, candidate.plan.base)
        real = {"train": self.splitting.train, "control": self.splitting.control}
        same = (
            evidence.plan_sha256 == candidate.plan.digest
            and evidence.gates.suite_sha256 == suite.sha256
            and {name: evidence.tables.get(name) for name in real} == real
            and evidence.versions == installed_versions()
            and not evidence.errored
            and not any(outcome.cut_short for outcome in evidence.outcomes)
        )
        whole = same and all(check.holds for check in verify(evidence, hashes, self.salt))
        return evidence if whole and self._unchanged(candidate, evidence.tables["synthetic"]) else None

    def _unchanged(self, candidate: Candidate, recorded: TableRecord) -> bool:
        """False when a finished table, for which no setting vouches, has other rows now; nothing is drawn."""
        released = self.schema.released_only()
        try:
            ready = finished(candidate.plan.build_generator(), released, candidate.plan.base)
            now = ready and read_table(ready, self.schema, where="synthetic", partial=True)
        # Whatever is wrong with it shows when it is made anew, where it is told of.
        except (Exception, SystemExit):
            return False
        return now is None or TableRecord.of(now, self.salt).hmac == recorded.hmac

    def _correlations(self, own: Workspace) -> Correlations:
        return self.scales.correlations(self._candidate_in(own))

    def _candidate_in(self, own: Workspace) -> Table:
        data = read_parquet(own.synthetic, made_by="synthetic")
        return read_table(data, self.schema, where="synthetic", partial=True)


class _NoTable(Exception):
    """A generator gave no table; the text says why and holds no cell value."""


@contextmanager
def _told(*faults: type[BaseException]) -> Iterator[None]:
    """Have such faults told of the candidate at work, while the others still have their turn."""
    try:
        yield
    except faults as error:
        if isinstance(error, SynthAuditError):
            raise _NoTable(f"{type(error).__name__}: {error.what}") from None
        raise _NoTable(describe_error(error)) from None


def _split(
    plan: Plan, workspace: Workspace, salt: Salt, context: RunContext, fresh: bool
) -> tuple[SplitRecord, str]:
    """This plan's split as the workspace holds it and when it was made, or a new one without a time."""
    with suppress(DataError):  # there is none, or no whole one
        record = None if fresh else SplitRecord.read(workspace.split_record)
        known = record and (record.plan_sha256, record.train, record.control)
        if record and known == (
            plan.digest,
            *(TableRecord.of(t, salt) for t in real_tables(plan, workspace)),
        ):
            made = datetime.fromtimestamp(workspace.split_record.stat().st_mtime, UTC)
            return record, made.isoformat(timespec="seconds")
    context.progress("pull and split", 0, 1)
    return stages.split_table(plan, workspace), ""


@contextmanager
def exclusive_lock(workspace: Workspace) -> Iterator[None]:
    """Keep other sweeps out of the workspace."""
    with private_lock(workspace.restricted / ".sweep.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(
                "another sweep is at work in this workspace",
                where=str(workspace.root),
                expected="one sweep at a time",
                fix="wait for it, or name another folder with --out",
            ) from None
        yield
