"""What commands share: arguments and options, the group that `--help` lists by job, and how each ends."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from click.shell_completion import CompletionItem

from synth_audit.build import build_version
from synth_audit.cli import terminal
from synth_audit.cli.terminal import Exit, OutputFailed, PipeClosed
from synth_audit.errors import ReleaseRefused, SynthAuditError, may_pass
from synth_audit.execution import Device, ExecutorName, telemetry
from synth_audit.text import shortened

if TYPE_CHECKING:
    from synth_audit.inputs import Running as Running

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)
POSITIVE = click.FloatRange(min=0, min_open=True)

plan = click.argument("plan", type=FILE)
evidence = click.argument("evidence", type=FILE)
out = click.option("--out", type=FOLDER, help="Folder for restricted/ and review/.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
candidate = click.option(
    "--candidate", metavar="NAME", help="A candidate that `frontier` tried, instead of the plan's own."
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
        type=POSITIVE,
        metavar="SECONDS",
        help="Longest time of a candidate's audits; what has not ended by then passes no gate.",
    ),
    click.option(
        "--device",
        type=click.Choice(get_args(Device)),
        help="What networks are computed on; cpu if left out.",
    ),
)


def plugin_names(_: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of audits for options about audits, else of every plug-in, each with its title."""
    from synth_audit import registry

    rooms: tuple[registry.PluginGroup, ...] = ("audit",)
    if param.name == "name":
        rooms = ("source", "generator", "audit")
    return [
        CompletionItem(name, help=str(ref.info.title))
        for room in rooms
        for name, ref in registry.catalogue(room).items()
        if name.startswith(incomplete)
    ]


def suite_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suites that ship, beside files."""
    from synth_audit.verdict.suite import shipped_suites

    found = [CompletionItem(name) for name in shipped_suites() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def running(command: Command) -> Command:
    """Where the work is done: one set of options for every command that audits, above the plan's own."""
    for option in reversed(_RUNNING):
        command = option(command)
    return command


only = click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=plugin_names,
    help="Run only this audit; repeatable.",
)


class CommandJob(StrEnum):
    """What commands are for: headings of `--help`, in this order."""

    AUDIT = "Audit tables"
    PIPELINE = "Run a plan"
    RELEASE = "Release"
    INSPECT = "Inspect audits"
    PLUGINS = "Plug-ins"


class _Listed(click.Command):
    """What `--help` lists under a job; where it cannot print, it ends as other output does."""

    def __init__(self, *args: Any, job: CommandJob | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.job = job

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line; help and version are printed here."""
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError:
            raise PipeClosed from None
        except OSError as error:
            raise OutputFailed(error) from None


class Verb(_Listed):
    """A command that returns its exit code, also after an error."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command where it was started, if that place is still there."""
        try:
            _refuse_lost_folder()
            return super().invoke(ctx)
        except Exception as error:  # here, as click itself would end with 1 after a broken pipe to a worker
            return _told(error)


class CommandGroup(_Listed, click.Group):
    """A group of commands; what fails before or beside a command ends as orderly as the command itself."""

    command_class = Verb
    group_class = type

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by their jobs, each in the order of declaration."""
        jobs: list[CommandJob | None] = [None, *CommandJob]
        widest = max(map(len, self.commands))
        for job in jobs:
            told = [
                (f"{name:<{widest}}", command.get_short_help_str(formatter.width - 6 - widest))
                for name, command in self.commands.items()
                if getattr(command, "job", None) is job
            ]
            if told:
                with formatter.section("Commands" if job is None else job):
                    formatter.write_dl(told)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and end the process; see :meth:`click.Command.main`."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        terminal.take_any_letter()
        try:
            with _ending_in_order():
                code = super().main(args, prog_name, complete_var, False, **extra)
        except Exception as error:
            code = _told(error)
        terminal.give_up_output()
        sys.exit(code if isinstance(code, int) else Exit.PASS)


def _told(error: Exception) -> int:
    """Print an error without traceback or value; return the exit code that it ends in."""
    match error:
        case PipeClosed():
            return Exit.PIPE_CLOSED
        case click.ClickException():
            _show_usage(error)
            return error.exit_code
        case click.Abort():
            terminal.complain(SynthAuditError("interrupted"))
            return Exit.NOT_RELEASED
        case SynthAuditError():
            terminal.complain(error)
            refused = isinstance(error, ReleaseRefused)
            return Exit.NOT_RELEASED if refused else Exit.MAY_PASS if may_pass(error) else Exit.BAD_INPUT
        case MemoryError():
            terminal.complain(
                SynthAuditError(
                    "there is not enough memory",
                    expected="tables that fit into this machine's memory several times",
                    fix="fewer rows (`rows` in the plan), or a larger machine",
                )
            )
            return Exit.AUDIT_ERROR
    # Its text may hold a cell value, so only kind and place are shown.
    return terminal.complain_of_unexpected(error)


def _show_usage(error: click.ClickException) -> None:
    """What click says of a command line, whose words it repeats, cut and cleaned."""
    message = "\n".join(map(shortened, error.format_message().splitlines()))
    ctx = getattr(error, "ctx", None)
    with suppress(OutputFailed, PipeClosed):
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            terminal.say_whole(message, err=True)
            return
        if ctx is not None:
            terminal.say_whole(f"{ctx.get_usage()}\nTry '{ctx.command_path} --help' for help.\n", err=True)
        terminal.say_whole(f"Error: {message}", err=True)


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


def _tell_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        terminal.say(f"synth-audit, version {build_version()}")
        ctx.exit()


@click.group(
    cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and its build, and exit.",
)
def main() -> None:
    """Decide whether a synthetic table may be released: attack it, measure it, judge it, report it.

    \b
    Start here:
      synth-audit sample                                      write files to try it on
      synth-audit demo                                        see it work on real data
      synth-audit audit train.csv control.csv synthetic.csv   judge files made elsewhere
      synth-audit init data.csv && synth-audit run data.yaml  the whole way for one table

    \b
    Completion: eval "$(_SYNTH_AUDIT_COMPLETE=bash_source synth-audit)"   (or zsh_source; fish_source)

    \b
    Exit codes: 0 pass, 1 not released (fail or insufficient evidence), 2 bad input, 3 an audit errored,
    4 not checkable here (verify, rerun), 5 doubtful (test-mechanism), 75 try again later: a lock, a server
    that does not answer, a full disk.
    """
    telemetry.switch_on()
