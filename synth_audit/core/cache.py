"""Keeps what is costly to make and shared by several audits, for the length of one run."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from synth_audit.core.files import replacing
from synth_audit.core.framing import framed


@dataclass(frozen=True)
class Cache:
    """A folder of results under the hash of everything they were made from.

    Without a folder nothing is kept and everything is made anew. The folder holds what was learnt from
    real rows: whoever gives it keeps it restricted and deletes it after the run.

    Attributes:
        scope: part of every key: the commitment to the salt under which the rows were split.
    """

    folder: Path | None = None
    scope: str = ""

    @property
    def keeps(self) -> bool:
        """False without a folder, and on another machine, which has no such folder."""
        return self.folder is not None and self.folder.is_dir()

    def get(self, *inputs: str, make: Callable[[], bytes]) -> bytes:
        """What ``make`` returns, from the folder if it was made from the same inputs before.

        Several processes may ask at once: one makes it, the others wait for it.

        Args:
            inputs: everything that the result depends on, such as content hashes, settings and seeds.
        """
        if self.folder is None or not self.keeps:
            return make()
        path = self.folder / self._key(inputs)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                self.put(*inputs, made=make())
            return path.read_bytes()

    def folder_of(self, *inputs: str, fill: Callable[[Path], bool]) -> Path | None:
        """A folder of files that were made from these inputs; None when they may not be kept.

        Args:
            inputs: see :meth:`get`.
            fill: writes into an empty folder of mode 0700; false when what it made must not be kept.
        """
        if self.folder is None:
            return None
        path = self.folder / self._key(inputs)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return path
            new = path.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)  # of one that failed
            new.mkdir(mode=0o700)
            if not fill(new):
                return None
            new.rename(path)
            return path

    def find(self, *inputs: str) -> bytes | None:
        """What was made from these inputs before; None if nothing was."""
        if self.folder is None or not (path := self.folder / self._key(inputs)).exists():
            return None
        return path.read_bytes()

    def put(self, *inputs: str, made: bytes) -> None:
        """Keep what was made from these inputs."""
        if self.folder is not None:
            with replacing(self.folder / self._key(inputs), private=True) as temporary:
                temporary.write_bytes(made)

    def _key(self, inputs: Sequence[str]) -> str:
        return hashlib.sha256(framed([self.scope, *inputs])).hexdigest()
