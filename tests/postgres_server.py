"""A PostgreSQL server for tests: the system's programs, loopback, a free port, a folder of its own."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

PASSWORD = "sesame-opens-77"
USER = "admin"
VARIABLE = "SYNTH_AUDIT_TEST_PASSWORD"


def binaries() -> Path | None:
    """Folder of PostgreSQL's programs; None where they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    known = shutil.which("initdb")
    place = found[-1] if found else Path(known).resolve() if known else None
    return place.parent if place is not None and (place.parent / "postgres").exists() else None


@dataclass
class Server:
    port: int
    folder: Path
    programs: Path
    _stack: ExitStack = field(default_factory=ExitStack)

    def options(self, **changes: str) -> dict[str, str]:
        known = {"host": "127.0.0.1", "port": str(self.port), "dbname": "postgres", "user": USER}
        return known | changes

    def connection(self, **changes: str) -> dict[str, Any]:
        """As a plan names it."""
        return {"options": self.options(**changes), "secrets": {"password": VARIABLE}}

    @contextmanager
    def cursor(self, **changes: str) -> Iterator[Any]:
        from adbc_driver_postgresql import dbapi

        words = self.options(password=PASSWORD) | changes
        address = " ".join(f"{name}={value}" for name, value in words.items())
        with dbapi.connect(address, autocommit=True) as opened, opened.cursor() as cursor:
            yield cursor

    @cached_property
    def _own(self) -> Any:
        """One session for all statements: the driver reads the catalogue of types each time it opens one."""
        return self._stack.enter_context(self.cursor())

    def run(self, *statements: str) -> list[Any]:
        """Run statements; what the last one answers."""
        for statement in ("RESET ALL", *statements):
            self._own.execute(statement)
        return list(self._own.fetchall())

    def stop(self, mode: str = "fast") -> None:
        words = ["pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop"]
        _as_server(self.programs, words)

    def start(self) -> None:
        settings = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off "
            "-c shared_buffers=16MB -c max_connections=20"
        )
        data = self.folder / "data"
        words = ["pg_ctl", "-D", str(data), "-w", "-o", settings, "-l", f"{data}.log", "start"]
        _as_server(self.programs, words)


@contextmanager
def running(programs: Path) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="synth-audit-postgres-"))
    try:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
            shutil.chown(secret, "postgres")
        made = ["initdb", "-D", str(folder / "data"), "-U", USER, "-A", "scram-sha-256", "-E", "UTF8"]
        _as_server(programs, [*made, "--no-locale", "--no-sync", "--pwfile", str(secret)])
        server = _started(folder, programs)
        try:
            yield server
        finally:
            server._stack.close()
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_server(programs: Path, words: list[str]) -> None:
    """Run one of its programs; as its own user where we are root, as which it refuses to run."""
    command = [str(programs / words[0]), *words[1:]]
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


def _started(folder: Path, programs: Path) -> Server:
    """A server at a free port; at another where a program took the port meanwhile."""
    for again in (True, True, False):
        server = Server(_free_port(), folder, programs)
        try:
            server.start()
        except subprocess.CalledProcessError:
            if not again:
                raise
        else:
            break
    return server


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
