"""Runs a program that reads training rows from one file and writes synthetic rows to another."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from synth_audit import registry
from synth_audit.errors import DataError
from synth_audit.execution.context import for_other_programs
from synth_audit.execution.seeds import as_int_seed
from synth_audit.files import lasting_folder
from synth_audit.generators._model_files import write_model
from synth_audit.plugins.source import hand_over
from synth_audit.table.schema import PublicDomain, Schema, quantitative
from synth_audit.table.table import Table, read_table

Format = Literal["parquet", "csv"]

PLACEHOLDERS = ("{train}", "{synthetic}", "{rows}", "{seed}", "{model}", "{columns}")

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_COMMAND = "generator.external.command"
_BY_HAND = "run the program by hand to see what it prints, which is not shown here: it may quote rows"


class PrivateFolder:
    """A folder of mode 0700 that is deleted with the last reference to it, at the latest when Python ends."""

    def __init__(self, where: Path | None = None) -> None:
        self.path = lasting_folder(where).absolute()  # programs start elsewhere
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class Program:
    """A program with the files that it reads and writes.

    Attributes:
        command: the program and its arguments with placeholders.
        base: the folder it starts in; None for an empty one among its files, so that libraries which write
            where they are leave no rows with the plan.
        folder: where its files are. timeout: longest run, in seconds.
        shown: what it prints goes to standard error; for rows that are made up.
        where: the field of the plan that names it. fix: how its user sees what it prints.
    """

    command: tuple[str, ...]
    base: Path | None
    folder: PrivateFolder = field(repr=False)
    format: Format
    timeout: float
    shown: bool = False
    where: str = _COMMAND
    fix: str = _BY_HAND

    def lay_out(self, train: Table) -> None:
        """Write the training rows, and what is declared of them, where the program will find them."""
        (self.folder.path / "model").mkdir()
        described = json.dumps(columns_of(train.schema), ensure_ascii=False)
        self._columns.write_text(described, encoding="utf-8")
        hand_over(train, self._file("train"), self.folder.path)
        self._place("train").chmod(0o600)  # a source writes for all to read

    def run(self, rows: int, seed: int) -> pa.Table:
        """What the program writes when it is asked for ``rows`` rows.

        Raises:
            DataError: it does not start, fails, takes too long or writes no table that can be read.
        """
        made = self._place("synthetic")
        made.unlink(missing_ok=True)
        values = (self._place("train"), made, rows, seed, self.folder.path / "model", self._columns)
        first, *words = self.command
        for mark, value in zip(PLACEHOLDERS, values, strict=True):
            words = [word.replace(mark, str(value)) for word in words]
        with TemporaryDirectory(dir=self.folder.path, ignore_cleanup_errors=True) as empty:
            start = Path(empty) if self.base is None else self.base
            status = _run([first, *words], start, self.timeout, shown=self.shown, where=self.where)
        if status != 0:
            raise DataError(
                f"the program ended with exit status {status}", where=self.where, expected="0", fix=self.fix
            )
        if not made.is_file():
            raise DataError(
                "the program wrote no table",
                where=self.where,
                expected=f"a {self.format} file at {{synthetic}}",
                fix=self.fix,
            )
        try:
            return self._file("synthetic").read(self.folder.path)
        finally:
            made.unlink(missing_ok=True)

    @property
    def _columns(self) -> Path:
        return self.folder.path / "columns.json"

    def _place(self, name: str) -> Path:
        return self.folder.path / f"{name}.{self.format}"

    def _file(self, name: str) -> Any:
        """The file as a source that can be written too."""
        return registry.build("source", self.format, {"path": str(self._place(name))})


ColumnGroups: TypeAlias = tuple[tuple[str, ...], ...]
"""Names of columns of each group."""

Reading: TypeAlias = Callable[[pa.Table, Schema, int], Table]
"""How what a program wrote becomes so many rows under a schema."""


def rows_of_program(made: pa.Table, schema: Schema, n: int) -> Table:
    """What a program wrote, which must hold the columns and kinds of train.

    Raises:
        DataError: it holds others, or not ``n`` rows.
    """
    table = read_table(made, schema, where="synthetic")
    if table.n_rows != n:
        raise DataError(
            f"the program wrote {table.n_rows:,} rows instead of {n:,}",
            where=_COMMAND,
            expected="as many rows as {rows} says",
            fix="let the program heed {rows}",
        )
    return table


@dataclass(frozen=True, eq=False)
class ProgramModel:
    """Training rows in a private folder, and the program that makes tables from them.

    Attributes:
        schema: the features of train.
        program: what is run; the folder goes when the model does.
        column_groups: columns that it draws together, apart from the others, as the plan says.
        read: how what it writes is read.
    """

    schema: Schema = field(repr=False)
    program: Program
    column_groups: ColumnGroups = ()
    read: Reading = rows_of_program

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Run the program for ``n`` rows with a seed drawn from ``rng``.

        Raises:
            DataError: it does not start, fails, takes too long, or leaves no table of ``n`` rows with the
                columns and kinds of train.
        """
        return self.read(self.program.run(n, as_int_seed(rng)), self.schema, n)

    def batches(self, n: int, rng: np.random.Generator, size: int) -> Iterator[Table]:
        """The rows of one run of the program."""
        return self.sample(n, rng).parts(size)

    def save(self, folder: Path) -> None:
        """Write the schema, and the private folder with its training rows and what the program learnt."""
        base = "" if self.program.base is None else str(self.program.base)
        write_model(folder, (self.schema, base))
        shutil.copytree(self.program.folder.path, folder / "program", dirs_exist_ok=True)


def columns_of(schema: Schema) -> dict[str, dict[str, Any]]:
    """What a program may know of each column beside the rows: nothing of it was read off them.

    Returns:
        For each name ``numeric``, ``nullable``, and where they are declared ``bounds`` or ``labels``.
    """
    numeric = {column.name for column in quantitative(schema)}
    found: dict[str, dict[str, Any]] = {}
    for name, known in PublicDomain.of(schema).columns.items():
        found[name] = {"numeric": name in numeric, "nullable": known.nullable}
        if known.bounds is not None:
            found[name]["bounds"] = list(known.bounds)
        elif known.labels:
            found[name]["labels"] = list(known.labels)
    return found


def _end_with_caller() -> Callable[[], None] | None:
    """What makes the system kill the program when this process dies, however that dies; Linux alone has it.

    The system does so when the *thread* ends that started the program: the one that waits for it.
    """
    if not sys.platform.startswith("linux"):
        return None
    control, parent = ctypes.CDLL(None).prctl, os.getpid()

    def settle() -> None:
        control(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it died in between
            os._exit(1)

    return settle


def _run(words: list[str], start: Path, timeout: float, *, shown: bool, where: str) -> int:
    """The exit status; with the program, or at an interruption or a timeout, all that it started ends."""
    quiet = subprocess.DEVNULL
    said = sys.stderr if shown else quiet
    try:
        # No shell reads the words; the plan that names the program is trusted as the code of a plug-in is.
        process = subprocess.Popen(  # noqa: S603
            words,
            cwd=start,
            stdin=quiet,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env=for_other_programs(),
            preexec_fn=_end_with_caller(),
        )
    except (OSError, ValueError) as error:  # the latter for a word with a null character
        raise DataError(
            f"the program cannot be started ({type(error).__name__})",
            where=where,
            expected="a program on the path, or its full path",
            fix="check the first word of the command",
        ) from None
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise DataError(
            f"the program had not ended after {timeout:g} s",
            where=where,
            expected="an end within `timeout`",
            fix="raise `timeout`, or let the program do less",
        ) from None
    finally:
        # Also when it ended well: what it started and left running would still hold its rows.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
