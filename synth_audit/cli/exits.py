"""Exit codes, and the one way to the terminal: lines, JSON and errors."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from tempfile import gettempdir
from typing import IO, TYPE_CHECKING, Any

import click

from synth_audit.errors import SynthAuditError, may_pass
from synth_audit.text import clean, one_line, shortened

if TYPE_CHECKING:
    from synth_audit.pipeline.verify import Check
    from synth_audit.store.evidence import Evidence

_LONGEST_LINE = 2000
"""Characters of a line: more is a text of another program that nobody reads in a terminal."""

_UNSEEN = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_REPORT_IT = "this is a fault of the program or of a plug-in, not of the data; report it with this line"


class Exit(IntEnum):
    """Exit codes, worst last where several apply; an unexpected error counts as an audit's."""

    PASS = 0
    NOT_RELEASED = 1
    BAD_INPUT = 2
    AUDIT_ERROR = 3
    NOT_CHECKABLE = 4
    DOUBTFUL = 5
    """A claimed ε was not refuted, but its 95 % bound is above it."""
    MAY_PASS = 75
    """What failed may succeed later: a lock, a server that does not answer, a full disk (EX_TEMPFAIL)."""
    PIPE_CLOSED = 141
    """The reader of the output has left; a shell reports other programs so: 128 + SIGPIPE."""


def exit_code(evidence: Evidence) -> Exit:
    """3 when an audit errored, 0 on a pass, else 1."""
    if evidence.errored:
        return Exit.AUDIT_ERROR
    return Exit.PASS if evidence.verdict == "pass" else Exit.NOT_RELEASED


def verify_code(checks: Sequence[Check]) -> Exit:
    """1 when something does not hold, else 4 when something, or all of it, could not be checked, else 0."""
    if any(c.holds is False for c in checks):
        return Exit.NOT_RELEASED
    return Exit.PASS if checks and all(c.holds for c in checks) else Exit.NOT_CHECKABLE


class OutputFailed(SynthAuditError):
    """What should be printed cannot be: the disk behind the output is full, for example."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"the output cannot be written ({type(error).__name__}: {os.strerror(error.errno or 0)})",
            where="standard output",
            expected="a terminal, pipe or file that takes what is printed",
            fix="free space, or send the output elsewhere",
        )


class PipeClosed(Exception):
    """Who reads the output has read enough, such as ``head``; no fault of anybody."""


def say(
    text: str = "", *, sign: str = "", fg: str | None = None, bold: bool = False, err: bool = False
) -> None:
    """Print one line, cleaned and cut, since it may repeat a name as others wrote it.

    Args:
        sign: printed before the text; it alone is coloured then.
    """
    line = shortened(one_line(text), _LONGEST_LINE)
    coloured = click.style(sign or line, fg=fg, bold=bold or None)
    _print(coloured + line if sign else coloured, err=err)


def say_whole(text: str, *, err: bool = False) -> None:
    """Print text uncut, such as a path or several lines, cleaned."""
    _print(clean(text), err=err)


def say_json(value: Any) -> None:
    """Print JSON: text that is JSON, a record that can write itself, or plain values.

    Characters that a terminal acts on, which its strings may hold, are written as escapes.
    """
    text = value if isinstance(value, str) else value.to_json() if hasattr(value, "to_json") else None
    text = json.dumps(value, indent=2) if text is None else text
    _print(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text.rstrip("\n")), err=False)


def _print(text: str, *, err: bool) -> None:
    try:
        click.echo(text, err=err, color=False if plain() else None)
    except BrokenPipeError:
        raise PipeClosed from None
    except OSError as error:
        raise OutputFailed(error) from None


def plain() -> bool:
    """True where colour is unwanted: ``NO_COLOR`` is set to something, or the terminal is a dumb one."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def take_any_letter() -> None:
    """Let what the terminal's encoding lacks be printed as a question mark instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or another object in its place
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def give_up_output() -> None:
    """Let what is still to be printed vanish, so that the interpreter does not stumble over it at its end."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            _silence(stream)


def _silence(stream: IO[str]) -> None:
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def complain(error: SynthAuditError) -> None:
    """Print an error; where even that cannot be printed, its exit code must do."""
    what, *rest = str(error).split("\n")
    with suppress(OutputFailed, PipeClosed):
        say(what, sign="error: ", fg="red", bold=True, err=True)
        if rest:
            say_whole("\n".join(rest), err=True)


def complain_of_unexpected(error: Exception) -> Exit:
    """Tell of an error that nothing else has told of; a full disk is no fault of the program."""
    if isinstance(error, OSError) and (may_pass(error) or _nowhere_for_temporary_files()):
        full = "the disk is full, or a quota is used up"
        fix = "free space, also where temporary files are made, and try again; what was there is intact"
        complain(SynthAuditError(full, expected="room for the workspace and its temporary files", fix=fix))
        return Exit.MAY_PASS
    from synth_audit.examination.audit_runner import describe_error

    complain(SynthAuditError(f"unexpected {describe_error(error)}", fix=_REPORT_IT))
    return Exit.AUDIT_ERROR


def _nowhere_for_temporary_files() -> bool:
    """What Python tells of a full disk, where it finds no folder that takes a file, is that there is none."""
    try:
        gettempdir()
    except FileNotFoundError:
        return True
    return False
