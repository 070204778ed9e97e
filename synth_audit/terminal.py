"""The one way to the terminal: cleaned text, colour only where it is wanted, no stumbling at its end."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import IO

import click

from synth_audit.core.errors import SynthAuditError
from synth_audit.core.text import clean, one_line, shortened

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
