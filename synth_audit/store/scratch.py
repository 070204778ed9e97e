"""What is temporary: where it is made, and that nothing of it outlives a run that was killed."""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from synth_audit.errors import DataError, PlanError
from synth_audit.execution.context import Cache, RunContext
from synth_audit.execution.seeds import Salt
from synth_audit.files import (
    IN_MEMORY,
    TEMPORARY,
    scratch,
    scratch_in,
    stays_in_memory,
    temporary_folder,
)
from synth_audit.hashing import framed
from synth_audit.store.approvals import evidence_key
from synth_audit.store.evidence import installed_versions
from synth_audit.store.files import delete, link_or_copy, make_private, making
from synth_audit.store.journal import private_lock
from synth_audit.store.workspace import Workspace

_LEFT = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
"""Names of files and folders on their way into place."""

_DEEPEST = 8
"""Levels of folders that this program makes in a workspace, and a few more; below them nothing is its own."""

_ROWS = f"{TEMPORARY}rows-"
"""How the names of folders there begin. Who works in one holds a lock on it."""

_REVIEW = 2
"""Levels of the review folder that are searched. Hidden files within filed audits count as nothing, hold no
real row, and would be sought in thousands of folders."""


@contextmanager
def in_use(workspace: Workspace | None, *, write_rows: bool = True) -> Iterator[Path | None]:
    """Work in a workspace: temporary files have a place of their own, and nobody clears away meanwhile.

    Who comes first clears away what killed runs have left; who comes while others are at work does not. A
    workspace that does not exist yet has nothing to clear.

    Args:
        workspace: None where nothing is kept.
        write_rows: whether temporary files, which hold real rows, go to a disk, under ``restricted/``.
            Otherwise they lie in memory, and so does what is made within this block.

    Yields:
        Where temporary folders are made; None for the system's place, without a workspace.

    Raises:
        DataError: scratch is a link or another user's, or others can look into it.
        PlanError: no row may be written, and this machine has no file system in memory.
    """
    home = None if workspace is None else workspace.home
    with ExitStack() as stack:
        if home is not None and os.path.isdir(home.restricted):  # takes a name that is too long
            lock = stack.enter_context(private_lock(home.restricted / ".in-use.lock"))
            if _alone(lock):
                with private_lock(home.journal_lock) as filing:  # a release, or a report, may be on its way
                    if _alone(filing):
                        clear_away(home)
            fcntl.flock(lock, fcntl.LOCK_SH)
            make_private(home.scratch)
            place: Path | None = home.scratch
        else:
            place = None
        if stays_in_memory():
            place = scratch()  # of the outer block
        elif not write_rows:
            place = stack.enter_context(_in_memory())
        if place is not None:
            stack.enter_context(scratch_in(place))
        yield place


@contextmanager
def _in_memory() -> Iterator[Path]:
    """A private folder in memory; those that killed runs of this user have left are deleted first."""
    if not _lies_in_memory(IN_MEMORY):
        raise _no_memory("this machine has no file system in memory")
    with ExitStack() as stack:
        # One at a time, or a folder might be taken for a killed run's before its lock is held.
        name = IN_MEMORY / f"{TEMPORARY}{os.geteuid()}.lock"
        if os.path.lexists(name) and os.lstat(name).st_uid != os.geteuid():
            raise _no_memory(f"{name} is another user's")
        with private_lock(name) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in IN_MEMORY.glob(f"{_ROWS}*"):
                _delete_unless_held(left)
            folder = stack.enter_context(TemporaryDirectory(prefix=_ROWS, dir=IN_MEMORY))
            fcntl.flock(_opened(Path(folder), stack), fcntl.LOCK_SH)
        yield Path(folder)


def _no_memory(why: str) -> PlanError:
    return PlanError(
        f"no real row may be written to a disk, and {why}",
        where="execution.write_real_rows",
        expected=f"Linux, with a tmpfs at {IN_MEMORY} that this user can write to",
        fix="put that right, or leave the setting out",
    )


def _opened(folder: Path, stack: ExitStack) -> int:
    """A folder to lock, as a descriptor that is closed at the end; a link is none."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    stack.callback(os.close, descriptor)
    return descriptor


def _delete_unless_held(folder: Path) -> None:
    with suppress(OSError), ExitStack() as stack:  # another user's, or it has just gone
        if _alone(_opened(folder, stack)):
            delete(folder)


def _lies_in_memory(folder: Path) -> bool:
    """Whether what is mounted there now, which is named last, is a file system in memory."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return False
    return [kind for _, where, kind, *_ in mounts if where == str(folder)][-1:] == ["tmpfs"]


@contextmanager
def alone_in(workspace: Workspace) -> Iterator[None]:
    """Keep everybody else out of a workspace that exists.

    Raises:
        DataError: another run is at work in it.
    """
    home = workspace.home
    with private_lock(home.restricted / ".in-use.lock") as lock:
        if not _alone(lock):
            raise DataError(
                "another run is at work in this workspace",
                where=str(home.root),
                expected="nobody at work",
                fix="wait until it has ended, then try again",
            )
        yield


def _alone(lock: int) -> bool:
    """Take a lock for this process alone, if nobody has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def held(file: Path, workspace: Workspace) -> Iterator[Path]:
    """A private file as it is now, under a second name: who replaces it meanwhile replaces the first alone.

    A file that does not exist keeps its name.
    """
    if not file.is_file():
        yield file
        return
    with temporary_folder(workspace.scratch) as folder:
        second = Path(folder) / file.name
        link_or_copy(file, second)
        yield second


def clear_away(home: Workspace) -> None:
    """Delete what killed runs have left: scratch, and files and folders that never came into place."""
    delete(home.scratch)
    for place in (home.restricted, home.review, home.candidates):
        for path in [*_left_in(place, _REVIEW if place == home.review else _DEEPEST)]:
            delete(path)


def _left_in(folder: Path, levels: int) -> Iterator[Path]:
    """What killed runs have left in a folder and in those below it; no link is followed."""
    try:
        with os.scandir(folder) as entries:
            found = [(e.name, e.is_dir(follow_symlinks=False)) for e in entries]
    except OSError:
        return
    for name, is_folder in found:
        if _LEFT.fullmatch(name):
            yield folder / name
        elif is_folder and levels > 1:
            yield from _left_in(folder / name, levels - 1)


@contextmanager
def fit_checkpoint(workspace: Workspace, *fit: str) -> Iterator[Path]:
    """A folder for what this fit may resume from, under these versions of everything that computes.

    It is gone when the block ends well, and the candidate is there, with those of other fits.

    Args:
        fit: what it is known by, such as digests of its plan and of its rows under the salt.

    Raises:
        DataError: the folder cannot be made.
    """
    known = framed([*fit, *_versions()])
    folder = workspace.checkpoints / hashlib.sha256(known).hexdigest()[:16]
    with making(folder):
        for private in (workspace.checkpoints, folder):  # of parents that it makes, `mkdir` sets no mode
            private.mkdir(mode=0o700, exist_ok=True)
    yield folder
    shutil.rmtree(workspace.checkpoints, ignore_errors=True)


@contextmanager
def journaled(context: RunContext, workspace: Workspace, salt: Salt) -> Iterator[RunContext]:
    """The context with a journal of outcomes, which a later run under these versions and keys takes over.

    When the block ends well, outcomes that it did not use are deleted. So a table that did not change is not
    measured again the next day, and the journal does not grow. A context that has one already keeps it.

    Raises:
        DataError: its folder cannot be made, or is open to others; the key for evidence is no key.
    """
    if context.journal.keeps:
        yield context
        return
    make_private(workspace.outcomes)
    secret = hashlib.sha256(framed([salt.key("outcomes"), evidence_key()])).digest()
    journal = Cache(workspace.outcomes, "\n".join(_versions()), secret)
    yield replace(context, journal=journal)
    journal.delete_unused()


def _versions() -> list[str]:
    return [*map(str, sorted(installed_versions().items()))]
