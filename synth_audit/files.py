"""Files: written wholly or not at all, found by the paths that users give; YAML and JSON read strictly."""

import errno
import fcntl
import json
import os
import re
import secrets
import stat
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import yaml

TEMPORARY = "synth-audit-"
"""How the names of temporary folders begin."""

IN_MEMORY = Path("/dev/shm")  # noqa: S108 (folders in it are private)
"""Where Linux mounts a file system that lies in memory."""

_SCRATCH: ContextVar[Path | None] = ContextVar("scratch", default=None)

MOST_BYTES = 64 * 2**20
"""Of a file that people write; what is longer, perhaps endless such as a device, is none."""

LARGEST_RECORD = 1 << 30
"""Bytes; a file beyond it is no evidence, and reading it would only exhaust the memory."""

_REMOTE = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]+:(?=/)|(?:abfss?|az|duckdb|file|gcs|gs|hf|https?|md|motherduck|mysql|postgres"
    r"|postgresql|s3|snowflake|sqlite|wasbs?):)",
    re.IGNORECASE,
)

MOST_LEVELS = 64
"""Lists and mappings within each other; a plan or a suite needs five."""

MOST_VALUES = 1_000_000
"""Values, each alias counted as all that it stands for: nine lines of aliases can stand for a billion."""

_TWICE = "a key occurs twice"

_NOT_ITS_TAG = "a value is not what its form or tag says"

_TOO_DEEP = f"it nests more than {MOST_LEVELS} levels deep"

_TOO_MANY = f"it stands for more than {MOST_VALUES:,} values"

_NO_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What the loader raises on texts such as `!!timestamp x`, `!!bool x` or `!!int ""`."""


def place(path: Path) -> str:
    """One name for a file however its path is spelt: device and inode, else the path without links.

    Hard links, symbolic links and a file system that ignores case lead to one inode.
    """
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return f"{found.st_dev}:{found.st_ino}"


@contextmanager
def scratch_in(folder: Path) -> Iterator[None]:
    """Let temporary folders be made in this one for the length of a block, where nobody says otherwise.

    For what has no context at hand, such as a model that is loaded. It holds for the thread of the caller.
    """
    before = _SCRATCH.set(folder)
    try:
        yield
    finally:
        _SCRATCH.reset(before)


def scratch() -> Path | None:
    """The folder of :func:`scratch_in`, if the caller is in such a block."""
    return _SCRATCH.get()


def stays_in_memory() -> bool:
    """Whether the caller's temporary files lie in memory, since no real row may be written to a disk."""
    place = scratch()
    return place is not None and place.is_relative_to(IN_MEMORY)


def temporary_folder(where: Path | None = None) -> TemporaryDirectory[str]:
    """A folder of mode 0700 for the length of a block.

    Args:
        where: the folder it is made in; that of :func:`scratch_in` if None, else the system's place for them.
    """
    return TemporaryDirectory(prefix=TEMPORARY, dir=where or _SCRATCH.get())


def lasting_folder(where: Path | None = None) -> Path:
    """A folder of mode 0700, made where :func:`temporary_folder` makes it, that the caller deletes."""
    return Path(mkdtemp(prefix=TEMPORARY, dir=where or _SCRATCH.get()))


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary name beside ``path`` that takes its place when the block ends without an exception.

    The new file is flushed to disk before it is moved, so that a crash at any moment leaves either
    the old content or the new. After an exception the temporary file is gone and ``path`` untouched.

    Args:
        private: the file has mode 0600 from its first byte on, and a folder that is made for it 0700.

    Raises:
        OSError: the folder cannot be made or written to, or a device, a pipe or the like stands there, which
            a file in its place would break for everybody.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileExistsError(errno.EEXIST, "no ordinary file", str(path))
    path.parent.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        if private:
            temporary.touch(mode=0o600, exist_ok=False)
        yield temporary
        flush(temporary)
        temporary.replace(path)
    except BaseException:  # an interruption too: what was written may be real rows and must not stay
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # some file systems cannot flush a folder; the file itself is safe
        flush(path.parent)


def create_once(path: Path, content: bytes) -> bool:
    """Put a private file (mode 0600) at ``path`` unless something is there; True when this call put it there.

    Of several processes at once one succeeds, and the others find its file whole.

    Raises:
        OSError: the folder cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            if not _moved_alone(temporary, path):
                return False
    finally:
        temporary.unlink(missing_ok=True)
    with suppress(OSError):
        flush(path.parent)
    return True


def _moved_alone(temporary: Path, path: Path) -> bool:
    """Move a file to a place where nothing is, one process at a time."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if os.path.lexists(path):
            return False
        temporary.replace(path)
        return True
    finally:
        os.close(folder)


def flush(path: Path) -> None:
    """Let what was written to a file, or into a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def problem_of(path: str) -> str:
    """Why a text cannot be the path of a file on this machine; empty when it can.

    A URL would be taken for a folder's name: a release to `s3://bucket/x` would land beside the plan.
    """
    if not path.strip():
        return "path must name a file"
    if "\0" in path:
        return "path holds a null character"
    if not in_utf8(path):
        return "path is not written in UTF-8; rename the file or folder"
    if remote := _REMOTE.match(path):
        return (
            f"{remote['scheme']} is no path of this machine, and there is no source for it yet; "
            "fetch or send the file by other means, and start a file's name that has a colon at /"
        )
    return ""


def in_utf8(path: str) -> bool:
    """False for names of bytes that are no text: neither Parquet nor a record could take them."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_plain(path: Path, *, largest: int = LARGEST_RECORD) -> bytes:
    """Content of a regular file.

    Raises:
        OSError: it is missing, unreadable, a link, no regular file, or larger than ``largest`` bytes.
    """
    # Without O_NONBLOCK the opening of a pipe would wait for a writer that never comes.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode):
            raise OSError(f"not a regular file: {path.name}")
        if known.st_size > largest:
            raise OSError(f"too large: {path.name}")
        return file.read()


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises:
        OSError: it cannot be read. ValueError: it is not UTF-8, too long, or the path cannot be one.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    return content.decode("utf-8-sig")


class Malformed(ValueError):
    """A text that is no YAML or JSON, or none that may be used.

    Attributes:
        reason: what is wrong, in words that repeat nothing of the text; empty where only its form is wrong.
        line: counted from one; 0 when it is not known.
    """

    def __init__(self, reason: str = "", line: int = 0) -> None:
        super().__init__(reason or "the text is malformed")
        self.reason = reason
        self.line = line


def load_yaml(text: str) -> Any:
    """Values of a YAML text; raises :class:`Malformed`."""
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Malformed(line=mark.line + 1 if mark else 0) from None
    except _NO_VALUE as error:
        raise error if isinstance(error, Malformed) else Malformed(_NOT_ITS_TAG) from None


def load_json(text: str) -> Any:
    """Values of a JSON text; raises :class:`Malformed`, also for NaN, which is no JSON."""
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_number)
    except RecursionError:
        raise Malformed(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise Malformed(line=error.lineno) from None
    except ValueError as error:  # such as a number of 5,000 digits
        raise error if isinstance(error, Malformed) else Malformed(_NOT_ITS_TAG) from None
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        level = [
            part
            for whole in level
            if isinstance(whole, (dict, list))
            for part in (whole.values() if isinstance(whole, dict) else whole)
        ]
        if not level:
            return value
    raise Malformed(_TOO_DEEP)


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, refusing doubled keys, values that are none, and what grows without end.

    Depth and size are known while the text is composed, before any value is made of it.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._level = 0
        self._extents: dict[int, tuple[int, int]] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        line = self.line + 1  # of the scanner, which is at most one token ahead
        self._level += 1
        if self._level > MOST_LEVELS:
            raise Malformed(_TOO_DEEP, line)
        alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        self._level -= 1
        if node is not None and id(node) not in self._extents:
            if alias:
                raise Malformed("an alias stands for what it is a part of", line)
            self._extents[id(node)] = self._extent(node, line)
        return node

    def _extent(self, node: yaml.Node, line: int) -> tuple[int, int]:
        """Levels and values of a node whose parts are known."""
        parts: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            parts = node.value
        extents = [self._extents[id(part)] for part in parts]
        levels = 1 + max((level for level, _ in extents), default=0)
        values = 1 + sum(n for _, n in extents)
        if levels > MOST_LEVELS:
            raise Malformed(_TOO_DEEP, line)
        if values > MOST_VALUES:
            raise Malformed(_TOO_MANY, line)
        return levels, values

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _NO_VALUE as error:
            if isinstance(error, Malformed):
                raise
            raise Malformed(_NOT_ITS_TAG, node.start_mark.line + 1) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise Malformed("a list or mapping stands for a key", key_node.start_mark.line + 1)
            if key in found:
                raise Malformed(_TWICE, key_node.start_mark.line + 1)
            found[key] = self.construct_object(value_node, deep=True)
        return found


def _no_number(constant: str) -> None:
    raise Malformed(f"{constant} is no JSON")


def _distinct(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Malformed(_TWICE)
    return found
