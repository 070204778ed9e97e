"""Invented evidence for the tests of report and browser; one small audited table for those of stages."""

import errno
import gc
import importlib.util
import itertools
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

# Tests run beside one another, and so do the processes that some of them start: threads on top only contend.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# Where Python is told to keep no compiled modules, each of these processes would compile thousands anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import settings

from synth_audit import registry
from synth_audit.pipeline import stages as pipeline
from synth_audit.plan.plan import Plan, load_plan
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.report import write_report
from synth_audit.store.evidence import Evidence, read_evidence
from synth_audit.store.workspace import Workspace
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

sys.dont_write_bytecode = False  # this process, too, which has been told already

_FOLDER = Path(__file__).parent / "report"

# What this account remembers of training tables: nothing before the tests, and nothing of them afterwards.
_ACCOUNT = tempfile.TemporaryDirectory(prefix="synth-audit-tests-")
_ACCOUNTS = itertools.count()
os.environ["XDG_STATE_HOME"] = _ACCOUNT.name


def _load(name: str, file: str) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _FOLDER / file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


for _name in ("refusals", "made_tables"):  # imported by tests, which are no package
    _load(_name, f"../{_name}.py")
_ENTROPY = _load("seeded_entropy", "../seeded_entropy.py")
_ENTROPY.install()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    """A fixture's draws follow from its name, whichever test asks for it first."""
    with _ENTROPY.seeded(f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """A test's draws follow from its name."""
    with _ENTROPY.seeded(item.nodeid):
        return (yield)


@pytest.fixture
def seeded_as() -> Callable[[str], AbstractContextManager[None]]:
    """Draws under another name than the test's."""
    found: Callable[[str], AbstractContextManager[None]] = _ENTROPY.seeded
    return found


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account that remembers no training table."""
    monkeypatch.setenv("XDG_STATE_HOME", f"{_ACCOUNT.name}/{next(_ACCOUNTS)}")


@pytest.fixture(autouse=True)
def _few_plantings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One planted leak of each class: how large detection limits are is asked in the tests of recognition."""
    if "recognition" not in request.path.parts:
        monkeypatch.setattr("synth_audit.audits.recognition.detection_limit.PLANTINGS", (1, 1))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A PostgreSQL server of this session's own; tests that ask for it are skipped where there is none."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra `warehouse` is not installed")
    room = _load("postgres_server", "../postgres_server.py")
    programs = room.binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: `apt-get install postgresql` runs these tests")
    with room.running(programs) as server:
        yield server


@pytest.fixture
def postgres(postgres_server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The server, with its password where plans look for it, and an empty schema ``clinic``."""
    room = sys.modules["postgres_server"]
    monkeypatch.setenv(room.VARIABLE, room.PASSWORD)
    postgres_server.run("DROP SCHEMA IF EXISTS clinic CASCADE", "DROP SCHEMA IF EXISTS released CASCADE")
    postgres_server.run("CREATE SCHEMA clinic")
    return postgres_server


@pytest.fixture(scope="session")
def build() -> ModuleType:
    """The module that makes evidence."""
    _load("report_pieces", "pieces.py")
    return _load("report_builder", "builder.py")


for _name in ("reading", "sweeps"):  # imported by tests of the report, which are no package
    _load(f"report_{_name}", f"{_name}.py")


@pytest.fixture
def one(build: ModuleType) -> AuditOutcome:
    """One audit whose numbers all see a full copy."""
    outcome: AuditOutcome = build.answering(build.closest_record())
    return outcome


def _unflushed(descriptor: int) -> None:
    """What ``fsync`` adds shows only when a machine loses power, which no test can bring about."""
    os.fstat(descriptor)  # fails as it would on a descriptor that is none


os.fsync = _unflushed  # several hundred milliseconds of every run of a plan; processes started here do flush


# A busy machine is no fault. The same examples come every time, so that more of them would find no more.
settings.register_profile("patient", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("search", deadline=None, max_examples=200)  # new ones: --hypothesis-profile=search
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share what is made once, for their file or at some cost, stay in one process."""
    for item in items:
        _group(item)
        names = sorted({mark.args[0] for mark in item.iter_markers("xdist_group")})
        if names and config.getoption("loadgroup", False) and hasattr(item, "_id"):
            # pytest 9.2 does not look where xdist 3.8 notes the group, so that all tests were dealt one by
            # one and what they share was made in each process (pytest-xdist #1386). Noted twice does no harm.
            item._id = type(item._id).parse(f"{item.nodeid}@{'_'.join(names)}")


def _group(item: pytest.Item) -> None:
    info = getattr(item, "_fixtureinfo", None)
    made = info.name2fixturedefs if info else {}
    if item.get_closest_marker("xdist_group") is not None:
        return
    if "complete" in made:
        item.add_marker(pytest.mark.xdist_group("complete"))
    elif "module" in {found[-1].scope for found in made.values()}:
        item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))


gc.disable()  # while modules are imported, which are here to stay


def pytest_collection_finish() -> None:
    """Looking for garbage among modules and tests again and again would find hardly any."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000)


CANARY = "Zanzibar-7391"
"""A rare value of the sensitive table that nobody without access to it may see."""


def people(n: int = 240, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    cities = [("north", "south", "east")[i] for i in rng.integers(0, 3, n)]
    cities[:4] = [CANARY] * 4
    return pa.table(
        {
            "person": [f"Person-{seed}-{i:05d}" for i in range(n)],
            "age": age,
            "income": np.round(rng.lognormal(10, 0.4, n), 2),
            "city": cities,
            "ill": np.where(age + rng.normal(0, 15, n) > 55, "yes", "no"),
        }
    )


def gate(ident: str, name: str, maximum: float, severity: str = "critical") -> dict[str, Any]:
    return {
        "type": "expect_measurement_to_be_within",
        "kwargs": {"name": name, "maximum": maximum},
        "meta": {"id": ident, "reason": "for the test"},
        "severity": severity,
    }


def suite_of(*gates: dict[str, Any], name: str = "small") -> dict[str, Any]:
    return {"name": name, "expectations": list(gates)}


SALT = bytes(range(32)).hex() + "\n"


def place_salt(workspace: Workspace) -> None:
    """Give a workspace the salt of all tests, so that its split and its fits are always the same."""
    workspace.prepare().salt.write_text(SALT)
    workspace.salt.chmod(0o600)


@dataclass(frozen=True)
class Case:
    """A folder with a plan, its source, its suite and its workspace."""

    folder: Path

    @property
    def plan(self) -> Plan:
        return load_plan(self.folder / "plan.yaml")

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.folder / "out")

    @property
    def evidence(self) -> Evidence:
        return read_evidence(self.workspace.newest.evidence)

    @property
    def synthetic(self) -> pa.Table:
        return pq.read_table(self.workspace.synthetic)

    def replan(self, **changes: object) -> Plan:
        path = self.folder / "plan.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))
        return self.plan

    def set_gates(self, *gates: dict[str, Any]) -> None:
        (self.folder / "gates.json").write_text(json.dumps(suite_of(*gates)))


@pytest.fixture(scope="session")
def canary() -> str:
    return CANARY


@pytest.fixture(scope="session")
def with_salt() -> Callable[[Workspace], None]:
    """Places the salt of all tests in a workspace."""
    return place_salt


@pytest.fixture(scope="session")
def make_people() -> Callable[..., pa.Table]:
    return people


@pytest.fixture(scope="session")
def make_gate() -> Callable[..., dict[str, Any]]:
    return gate


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[..., Any]], None]:
    """Has plans know a generator of a test's own by this name."""

    def add(name: str, made_by: Callable[..., Any]) -> None:
        known = registry.build

        def build(room: Any, asked: str, config: Any, **more: Any) -> Any:
            return made_by(**config) if asked == name else known(room, asked, config, **more)

        monkeypatch.setattr(registry, "build", build)

    return add


@pytest.fixture
def write_suite() -> Callable[..., None]:
    """Writes a suite of one gate, on copies, into the working folder."""

    def write(maximum: float = 0.2, *, name: str = "small") -> None:
        suite = suite_of(gate("copies", "exact_match.excess", maximum), name=name)
        Path("gates.json").write_text(json.dumps(suite))

    return write


@pytest.fixture(scope="session")
def make_case() -> Callable[..., Case]:
    """Makes a folder ready to run; nothing has run in it."""

    def make(folder: Path, **changes: object) -> Case:
        folder.mkdir(exist_ok=True)
        pq.write_table(people(), folder / "people.parquet")
        case = Case(folder)
        case.set_gates(gate("copies", "exact_match.excess", 0.2))
        plan = {
            "source": {"parquet": {"path": "people.parquet"}},
            "columns": {"person": {"role": "identifier"}, "ill": {"role": "target"}},
            "rules": ["age >= 18"],
            "generator": {"independent": {"minimum_people": 1}},
            "gates": "gates.json",
            "release": {"parquet": {"path": "out-of-the-house/released.parquet"}},
            "seed": 5,
        }
        (folder / "plan.yaml").write_text(yaml.safe_dump(plan | changes))
        place_salt(case.workspace)
        return case

    return make


CHEAP = ("exact_match", "marginals")
"""An attack and a comparison that take hundredths of a second: enough where any evidence will do."""

QUICK = {
    "prediction": {"models": ["logistic"], "repeats": 1},
    "propensity": {"trees": 20, "folds": 3},
    "recognition": {"detection": False},
}
"""Settings that only save time; an audit that is not named here runs as it comes."""


@pytest.fixture(scope="session")
def every_audit() -> list[dict[str, object]]:
    """The audits that run by default, as a plan lists them."""
    return [{name: QUICK.get(name, {})} for name in registry.default_audits()]


def _finish(case: Case) -> Case:
    pipeline.produce(case.plan, case.workspace)
    write_report(case.workspace)
    shutil.rmtree(case.workspace.outcomes)  # what a test replaces must be measured
    return case


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, make_case: Callable[..., Case]) -> Case:
    """All stages and the report but no release, with cheap audits, and a pass. Not to be altered."""
    return _finish(make_case(tmp_path_factory.mktemp("finished") / "case", audits=list(CHEAP)))


@pytest.fixture(scope="session")
def complete(
    tmp_path_factory: pytest.TempPathFactory,
    make_case: Callable[..., Case],
    every_audit: list[dict[str, object]],
) -> Case:
    """The same with every default audit, for what only all of them can show. Not to be altered."""
    return _finish(make_case(tmp_path_factory.mktemp("complete") / "case", audits=every_audit))


@pytest.fixture
def case(finished: Case, tmp_path: Path) -> Case:
    """A copy of the finished case."""
    return Case(Path(shutil.copytree(finished.folder, tmp_path / "case")))


@dataclass
class Disk:
    """A disk with room for so many files more; ``full`` once one found none."""

    room: int
    full: bool = False


@pytest.fixture
def full_disk() -> Callable[[int], AbstractContextManager[Disk]]:
    """Within a block so many files reach the disk, and no other: flushing it says that it is full."""

    @contextmanager
    def fill(room: int) -> Iterator[Disk]:
        disk, real = Disk(room), os.fsync

        def fsync(descriptor: int) -> None:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return real(descriptor)
            disk.room, disk.full = disk.room - 1, disk.full or disk.room <= 0
            if disk.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(descriptor)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            yield disk

    return fill


@pytest.fixture(scope="session")
def tables_of():
    """Tables under the schema of the first."""

    def make(*frames):
        schema = infer_schema(pa.table(frames[0]))
        return [read_table(pa.table(f), schema, where="table") for f in frames]

    return make


@pytest.fixture(scope="module")
def two_threads():
    """Blocks of work are spread over two threads, whatever the machine and the other tests are told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "2")
        yield
