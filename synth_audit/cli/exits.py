"""How a command ends, the options that commands share, and the one way to the terminal."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import wraps
from pathlib import Path
from tempfile import gettempdir
from typing import IO, TYPE_CHECKING, Any, TypeVar, get_args

import click

from synth_audit.errors import ReleaseRefused, SynthAuditError, may_pass
from synth_audit.run.workplace import Device, ExecutorName
from synth_audit.text import clean, one_line, shortened

if TYPE_CHECKING:
    from synth_audit.pipeline.verify import Check
    from synth_audit.store.evidence import Evidence
    from synth_audit.studies.frontier import FrontierRecord


_LONGEST_LINE = 2000
_UNSEEN = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


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


def say_json(text: str) -> None:
    """Print JSON; characters that a terminal acts on, which its strings may hold, are written as escapes."""
    _print(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text.rstrip("\n")), err=False)


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


def _print(text: str, *, err: bool) -> None:
    try:
        click.echo(text, err=err, color=False if plain() else None)
    except BrokenPipeError:
        raise PipeClosed from None
    except OSError as error:
        raise OutputFailed(error) from None


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


def sweep_code(record: FrontierRecord) -> Exit:
    """0 when a candidate was chosen, else 3 when one gave no table or an audit errored, else 1."""
    if record.chosen is not None:
        return Exit.PASS
    broken = any(c.problem for c in record.candidates)
    return Exit.AUDIT_ERROR if broken else Exit.NOT_RELEASED


_REPORT_IT = "this is a fault of the program or of a plug-in, not of the data; report it with this line"


def guarded(command: Callable[..., Exit]) -> Callable[..., None]:
    """End with the command's exit code; print errors without traceback or cell value."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            _refuse_lost_folder()
            with _ending_in_order():
                code = command(*args, **kwargs)
        except PipeClosed:
            code = Exit.PIPE_CLOSED
        except ReleaseRefused as error:
            _complain(error)
            code = Exit.NOT_RELEASED
        except SynthAuditError as error:
            _complain(error)
            code = Exit.MAY_PASS if may_pass(error) else Exit.BAD_INPUT
        except MemoryError:
            _complain(_too_large())
            code = Exit.AUDIT_ERROR
        except Exception as error:  # its text may hold a cell value, so only kind and place are shown
            code = _complain_of_unexpected(error)
        give_up_output()
        sys.exit(code)

    return run


class CommandGroup(click.Group):
    """The group of all verbs; what fails before or beside a verb ends as orderly as the verb itself."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line; help and version are printed here."""
        with _telling_closed_pipes():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb, or print its help."""
        with _telling_closed_pipes():
            return super().invoke(ctx)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a verb and end the process; see :meth:`click.Command.main`."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        take_any_letter()
        code: object = Exit.BAD_INPUT
        try:
            code = super().main(args, prog_name, complete_var, False, **extra)
        except click.Abort:
            code = Exit.NOT_RELEASED
            _complain(SynthAuditError("interrupted"))
        except click.ClickException as error:
            code = error.exit_code
            _show_usage(error)
        except PipeClosed:
            code = Exit.PIPE_CLOSED
        except OSError as error:
            _complain(OutputFailed(error))
            code = Exit.MAY_PASS if may_pass(error) else Exit.BAD_INPUT
        give_up_output()
        sys.exit(code if isinstance(code, int) else Exit.PASS)


@contextmanager
def _telling_closed_pipes() -> Iterator[None]:
    """Click prints help itself and would end with 1 where nobody reads it, which means not released here."""
    try:
        yield
    except BrokenPipeError:
        raise PipeClosed from None


def _show_usage(error: click.ClickException) -> None:
    """What click says of a command line, whose words it repeats, cut and cleaned."""
    message = "\n".join(map(shortened, error.format_message().splitlines()))
    ctx = getattr(error, "ctx", None)
    with suppress(OutputFailed, PipeClosed):
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            say_whole(message, err=True)
            return
        if ctx is not None:
            say_whole(f"{ctx.get_usage()}\nTry '{ctx.command_path} --help' for help.\n", err=True)
        say_whole(f"Error: {message}", err=True)


def _complain_of_unexpected(error: Exception) -> Exit:
    """Tell of an error that nothing else has told of; a full disk is no fault of the program."""
    if isinstance(error, OSError) and (may_pass(error) or _nowhere_for_temporary_files()):
        full = "the disk is full, or a quota is used up"
        fix = "free space, also where temporary files are made, and try again; what was there is intact"
        _complain(SynthAuditError(full, expected="room for the workspace and its temporary files", fix=fix))
        return Exit.MAY_PASS
    from synth_audit.examination.audit_runner import describe_error

    _complain(SynthAuditError(f"unexpected {describe_error(error)}", fix=_REPORT_IT))
    return Exit.AUDIT_ERROR


def _nowhere_for_temporary_files() -> bool:
    """What Python tells of a full disk, where it finds no folder that takes a file, is that there is none."""
    try:
        gettempdir()
    except FileNotFoundError:
        return True
    return False


def _too_large() -> SynthAuditError:
    return SynthAuditError(
        "there is not enough memory",
        expected="tables that fit into this machine's memory several times",
        fix="fewer rows (`rows` in the plan), or a larger machine",
    )


def _refuse_lost_folder() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise SynthAuditError(
            f"the working folder cannot be found ({type(error).__name__})",
            where="the folder that the command was started in",
            expected="a folder that still exists",
            fix="go to another folder, for example with `cd`, and run it again",
        ) from None


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let a request to end (SIGTERM) act as Ctrl-C does, so that temporary folders are deleted.

    Not as an exit: that would be taken for an error of the audit at work.
    """

    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only there may a handler be set
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _complain(error: SynthAuditError) -> None:
    """Print an error; where even that cannot be printed, its exit code must do."""
    what, *rest = str(error).split("\n")
    with suppress(OutputFailed, PipeClosed):
        say(what, sign="error: ", fg="red", bold=True, err=True)
        if rest:
            say_whole("\n".join(rest), err=True)


Command = TypeVar("Command", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
out = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for restricted/ and review/."
)
_RUNNING = (
    click.option(
        "--workers",
        type=click.IntRange(min=1, max=256),
        help="Processes to spread audits and games over; the numbers do not depend on it.",
    ),
    click.option(
        "--executor",
        type=click.Choice(get_args(ExecutorName)),
        help="Where the work is done; what --workers and --scheduler imply if left out.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler, such as tls://10.0.0.5:8786."),
    click.option(
        "--deadline",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Longest time of a candidate's audits; what has not ended by then passes no gate.",
    ),
    click.option(
        "--device",
        type=click.Choice(get_args(Device)),
        help="What networks are computed on; cpu if left out.",
    ),
)


def running(command: Command) -> Command:
    """Where the work is done: one set of options for every command that audits, above the plan's own."""
    for option in reversed(_RUNNING):
        command = option(command)
    return command


plan = click.argument("plan", type=click.Path(path_type=Path))
evidence = click.argument("evidence", type=click.Path(path_type=Path))
