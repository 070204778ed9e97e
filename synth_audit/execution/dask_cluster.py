"""Workers of a Dask cluster: one that is there already, or one that is started on this machine."""

import hashlib
import io
import logging
import os
import pickle
import signal
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any, Self, cast
from weakref import WeakValueDictionary

import pyarrow as pa

from synth_audit.build import build_version
from synth_audit.errors import PlanError, Unavailable
from synth_audit.execution.executor import ONE_AT_A_TIME, WORTH_A_FILE, Ending, Piece, SharedValue
from synth_audit.files import temporary_folder

_PATIENCE = 30
"""Seconds to wait for a scheduler and its first worker."""

_NEVER = "1000 days"
"""Longer than any cluster lives."""

_SEALED = 2**30
"""Bytes that are encrypted at a time; 2 GiB cannot be."""

_NONCE, _KEY = 12, 32
"""Bytes of a nonce, and of a key, of AES-GCM."""

_OTHER_VERSIONS = "this worker has other versions"

_COMPARED = ("numpy", "pandas", "pyarrow", "scikit-learn", "scipy", "pyvinecopulib")
"""Distributions whose versions decide numbers, beside this one."""


@dataclass(frozen=True, eq=False)
class DaskWorkers:
    """The workers of a cluster.

    Calls go straight to Dask: joblib's own way there waits for ever when a worker dies (joblib 1.6), hands
    the parallel parts of a call to the cluster again, and cannot give up what is at work.

    An audit searches all rows on one worker. Searched by ranges of rows, which workers could share, they take
    about twice the processors' time by Gower's distance (`benchmarks/neighbours.py --by-range`).

    What Dask keeps is encrypted, shared values and results alike, since its workers may write it to their
    disks when memory runs short.

    Attributes:
        client: connected to the scheduler. calls: takes them there. own: the cluster if it was started here
            and is ours alone. key: of what Dask keeps; it goes with each call, and calls are not kept.
        sent: by its identity, each table and other shared value that the cluster has. It goes there once,
            however many calls take it, and leaves when it is gone here. contents: by the hash of its bytes,
            since equal tables, such as those with planted leaks of several audits, go there once together.
    """

    client: Any
    calls: Any
    own: Any = None
    key: bytes = field(default_factory=lambda: os.urandom(_KEY), repr=False)
    sent: dict[int, Any] = field(default_factory=dict, repr=False)
    contents: WeakValueDictionary[bytes, Any] = field(default_factory=WeakValueDictionary, repr=False)

    @property
    def size(self) -> int:
        """Calls that are worked on at a time: one in each worker process, whatever threads it has."""
        try:
            return max(1, len(self.client.nthreads()))
        except OSError:
            raise _scheduler_lost() from None

    @property
    def shares_files(self) -> bool:
        """True for our own cluster."""
        return self.own is not None

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Have a call made, once at least: it is made again when its worker dies."""
        if self.client.status != "running":
            raise _scheduler_lost()
        try:
            content, shared = self._without_shared(call)
            made: Future[Any] = self.calls.submit(_called, content, shared, self.key, _versions())
        except Exception as error:  # it cannot be pickled, for which libraries raise what they like
            made = Future()
            made.set_exception(error)
        return made

    def result(self, made: Future[Any]) -> Any:
        """What a call returned; raises what it raised."""
        return made.result().value(self.key)

    def _without_shared(self, call: Callable[[], Any]) -> tuple[bytes, dict[str, Any]]:
        """The call in bytes, and the shared values that it names there, which the cluster has."""
        from cloudpickle import CloudPickler  # here: a code location must not load it

        taken: dict[str, Any] = {}
        send = self._sent

        class CallWriter(CloudPickler):  # type: ignore[misc]  # it has no types
            def persistent_id(self, thing: Any) -> str | None:
                table = isinstance(thing, pa.Table) and thing.nbytes >= WORTH_A_FILE
                if not (table or isinstance(thing, SharedValue)):
                    return None
                try:
                    there = send(thing)
                except pa.ArrowException:  # of types that no stream holds: it goes with the call
                    return None
                taken[there.key] = there
                return str(there.key)

        content = io.BytesIO()
        CallWriter(content, protocol=pickle.HIGHEST_PROTOCOL).dump(call)
        return content.getvalue(), taken

    def _sent(self, thing: pa.Table | SharedValue) -> Any:
        """It on the cluster; the scheduler keeps how it is had, for when a worker dies with it."""
        if id(thing) not in self.sent:
            stream = _streamed(thing) if isinstance(thing, pa.Table) else pickle.dumps(thing)
            content = hashlib.sha256(stream).digest()
            if (there := self.contents.get(content)) is None:
                sealed = Sealed.of(stream, self.key, table=isinstance(thing, pa.Table))
                there = self.contents[content] = self.client.submit(_kept, sealed, pure=False)
            self.sent[id(thing)] = there
            weakref.finalize(thing, self.sent.pop, id(thing), None)
        return self.sent[id(thing)]

    def stop(self, at_work: Collection[Future[Any]]) -> None:
        """Give up what is at work; in our own cluster its processes end, elsewhere they finish it first."""
        for future in at_work:
            future.cancel()
        if self.own is not None:
            _kill(self.own)

    def lost(self, error: Exception) -> bool:
        """True when workers died of a call.

        Raises:
            PlanError: a worker that came later has other versions.
            Unavailable: the scheduler itself has gone, with whatever it was given.
        """
        from distributed.scheduler import KilledWorker

        if error.args == (_OTHER_VERSIONS,):
            raise PlanError(
                "a Dask worker that came later has other versions",
                where="execution.scheduler",
                expected="workers of the same versions and build as here",
                fix="stop it, or install the same versions there, and run the same command",
            ) from None
        if isinstance(error, CancelledError) and self.client.status != "running":
            raise _scheduler_lost() from None
        return isinstance(error, (KilledWorker, CancelledError))


def _streamed(table: pa.Table) -> bytes:
    """The rows of the table alone: a pickle holds the whole of what each chunk is a part of."""
    whole, stream = table.unify_dictionaries(), pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, whole.schema) as writer:
        writer.write_table(whole)
    return cast("bytes", stream.getvalue().to_pybytes())


@dataclass(frozen=True)
class Sealed:
    """Bytes encrypted by AES-GCM.

    Attributes:
        parts: nonce and ciphertext of each GiB. table: whether they are a stream of Arrow, else a pickle.
    """

    parts: tuple[tuple[bytes, bytes], ...] = field(repr=False)
    table: bool = False

    @classmethod
    def of(cls, content: bytes, key: bytes, *, table: bool = False) -> Self:
        """Encrypt some bytes."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        cipher, view, parts = AESGCM(key), memoryview(content), []
        for start in range(0, len(content), _SEALED):
            nonce = os.urandom(_NONCE)
            parts.append((nonce, cipher.encrypt(nonce, view[start : start + _SEALED], None)))
        return cls(tuple(parts), table)

    def value(self, key: bytes) -> Any:
        """The table, or what was pickled; whoever encrypted it had the key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        cipher = AESGCM(key)
        content = b"".join(cipher.decrypt(nonce, part, None) for nonce, part in self.parts)
        return pa.ipc.open_stream(content).read_all() if self.table else pickle.loads(content)  # noqa: S301


def _kept(sealed: Sealed) -> Sealed:
    return sealed


class _CallReader(pickle.Unpickler):
    def __init__(self, content: bytes, shared: Mapping[str, Sealed], key: bytes) -> None:
        super().__init__(io.BytesIO(content))
        self._value = cache(lambda name: shared[name].value(key))  # one object, however often it is named

    def persistent_load(self, name: str) -> Any:
        return self._value(name)


def _called(content: bytes, shared: Mapping[str, Sealed], key: bytes, versions: Mapping[str, str]) -> Sealed:
    """Make a call; its bytes come from the process that started it, in which nobody else has a part.

    Whatever is raised on the way makes a piece that failed: Dask would log it, and its text may hold values.

    Raises:
        RuntimeError: this worker came after the others were compared, and has other versions.
    """
    from cloudpickle import dumps

    if versions != _versions():
        raise RuntimeError(_OTHER_VERSIONS)
    with ONE_AT_A_TIME:  # before tables are decrypted: a worker may have several threads
        try:
            made = dumps(_CallReader(content, shared, key).load()())
        except BaseException:  # among them panics of libraries in Rust
            made = dumps(Piece[Any](Ending.FAILED))
        return Sealed.of(made, key)


@contextmanager
def connected(workers: int, scheduler: str | None) -> Iterator[DaskWorkers]:
    """A cluster for the length of the block.

    Args:
        workers: of a cluster on this machine, without ``scheduler``. It is reached over the loopback device
            with keys made for it, since whoever reaches a scheduler can have any code run.

    Raises:
        PlanError: Dask is not installed, a scheduler is reached without encryption or keys, or its workers
            have other versions.
        Unavailable: no scheduler with workers answers.
    """
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise PlanError(
            "the executor `dask` needs Dask, which is not installed",
            where="execution.executor",
            expected="dask, distributed and cryptography",
            fix="pip install 'synth-audit[dask]', here and on the workers",
        ) from error
    with ExitStack() as stack:
        # What Dask logs of a lost scheduler are tracebacks; one error says it.
        logger = logging.getLogger("distributed.client")
        stack.callback(setattr, logger, "disabled", logger.disabled)
        logger.disabled = True
        target: Any = scheduler
        security = None
        if scheduler is None:
            target = stack.enter_context(_started(workers))
        else:
            security = _security(scheduler)
        try:
            client = stack.enter_context(
                distributed.Client(target, set_as_default=False, timeout=_PATIENCE, security=security)
            )
            client.wait_for_workers(1, timeout=_PATIENCE)
        except (OSError, TimeoutError, ValueError) as error:
            raise Unavailable(
                f"no Dask scheduler with a worker answers ({type(error).__name__})",
                where=f"execution.scheduler: {scheduler or 'on this machine'}",
                expected="an address such as tls://10.0.0.5:8786",
                fix="start `dask scheduler` and `dask worker ADDRESS`, or correct the address",
            ) from None
        _compare(client, _versions())
        # Tables travel with the calls: a file could only be named if every worker had it. For the whole
        # block, since a thread beside it may be in the middle of warnings of its own.
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        yield DaskWorkers(client, client.get_executor(pure=False), None if scheduler else target)


def _scheduler_lost() -> Unavailable:
    return Unavailable(
        "the Dask scheduler has gone in the middle of the work",
        where="execution.scheduler",
        expected="a scheduler that runs until the work is done",
        fix="start it and its workers again, and run the same command",
    )


def _security(scheduler: str) -> Any:
    """The keys for a scheduler, since real rows travel to its workers; None on this machine's loopback.

    Raises:
        PlanError: it is reached over a network without encryption, or a key or certificate is not configured.
    """
    from distributed.comm import parse_address
    from distributed.security import Security

    scheme, rest = parse_address(scheduler)
    host = rest.rsplit(":", 1)[0].strip("[]")
    if scheme != "tls":
        with suppress(ValueError):  # a name such as 127.0.0.1.example.org is another machine
            if host == "localhost" or ip_address(host).is_loopback:
                return None
        raise PlanError(
            "real rows would travel to this scheduler unencrypted",
            where="execution.scheduler",
            expected="a tls:// address, or tcp:// on this machine (127.0.0.1)",
            fix="start scheduler and workers with `--tls-ca-file`, `--tls-cert` and `--tls-key`",
        )
    security = Security(require_encryption=True)
    keys = {"ca-file": "tls_ca_file", "client.cert": "tls_client_cert", "client.key": "tls_client_key"}
    if missing := [
        f"distributed.comm.tls.{key}" for key, name in keys.items() if not getattr(security, name)
    ]:
        raise PlanError(
            f"Dask is not told where the keys for a tls:// scheduler lie: {', '.join(missing)}",
            where="execution.scheduler",
            expected="the files of a certificate authority, a client certificate and its key",
            fix="set them in ~/.config/dask/distributed.yaml, or as DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY",
        )
    return security


@contextmanager
def _started(workers: int) -> Iterator[Any]:
    """A cluster on this machine; when the block ends its processes do, and then its files go.

    It gives no worker up for lost: it would close the nanny of one that happens to be between two processes
    a while after an earlier one ended, start no other, and wait for ever once all are gone.
    """
    from dask import config
    from distributed import LocalCluster

    with (
        config.set({"distributed.deploy.lost-worker-timeout": _NEVER}),
        temporary_folder() as folder,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=True,
            dashboard_address="127.0.0.1:0",  # any free port: a fixed one may be another cluster's
            local_directory=folder,
            memory_limit=0,  # as for processes: nothing is spilled to disk or killed early
            silence_logs=logging.ERROR,
        ) as cluster,
    ):
        yield cluster


def _kill(cluster: Any) -> None:
    """End the workers of a cluster on this machine; their nannies, which run here, start others.

    Not by Dask's own restart, which asks workers to close and now and then loses one for good.
    """
    before = {nanny: nanny.pid for nanny in cluster.workers.values()}
    for pid in before.values():
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + _PATIENCE
    while any(pid and nanny.pid == pid for nanny, pid in before.items()) and time.monotonic() < until:
        time.sleep(0.02)


def _compare(client: Any, here: Mapping[str, str]) -> None:
    """Refuse workers that might compute other numbers than these versions."""
    for address, there in client.run(_versions).items():
        if other := sorted(name for name in here if there.get(name) != here[name]):
            raise PlanError(
                f"a Dask worker has another version of {', '.join(other)}",
                where=f"execution.scheduler: worker {address}",
                expected=", ".join(f"{name} {here[name]}" for name in other),
                fix="install the same versions and build on the workers as here, and restart them",
            )


@cache
def _versions() -> dict[str, str]:
    return {"synth-audit": build_version()} | {name: version(name) for name in _COMPARED}
