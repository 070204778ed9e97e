"""From a table in PostgreSQL to one beside it, and back; the password is nowhere but in the environment."""

import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.errors import PlanError
from synth_audit.sources.postgres import Postgres
from synth_audit.table.content_hash import fingerprint

pytestmark = pytest.mark.xdist_group("postgres")

PASSWORD = b"sesame-opens-77"


@pytest.fixture
def plan(make_case, tmp_path, postgres):
    place = {"connection": "clinic", "table": "clinic.people"}
    case = make_case(
        tmp_path / "case",
        connections={"clinic": postgres.connection()},
        source={"postgres": place},
        release={"postgres": place | {"table": "released.people"}},
        audits=["exact_match"],
    )
    source = Postgres(connection=case.plan.connections["clinic"], table="clinic.people")
    source.write(pq.read_table(case.folder / "people.parquet"), case.folder)
    return case


def content(plan):
    return plan.build_release().read(plan.base)


def test_the_whole_way_twice_and_back(plan, postgres, capfd):
    case, out = plan, plan.workspace.root
    first = api.run(case.plan, out)
    assert first.verdict == "pass"
    before = content(case.plan)
    postgres.run("DELETE FROM clinic.people WHERE age > 85")
    assert api.run(case.plan, out).verdict == "pass"
    assert fingerprint(content(case.plan)) != fingerprint(before)
    api.rollback(case.plan, out)
    assert fingerprint(content(case.plan)) == fingerprint(before)
    assert all(check.holds is not False for check in api.verify(out))
    said = "".join(capfd.readouterr()).encode()
    written = [file.read_bytes() for file in case.folder.rglob("*") if file.is_file()]
    assert len(written) > 10
    assert not any(PASSWORD in text for text in [*written, said])
    assert postgres.run("SELECT count(*) FROM released.people__previous")[0][0] > 0


def test_the_source_is_not_replaced_under_another_address_of_its_server(plan, postgres):
    place = {"connection": "other", "table": "clinic.people"}
    other = {"clinic": postgres.connection(), "other": postgres.connection(host="localhost")}
    changed = plan.replan(connections=other, release={"postgres": place})
    with pytest.raises(PlanError, match="replace the source"):
        api.run(changed, plan.workspace.root)


KILLED = """
import os, signal, sys
from pathlib import Path
from synth_audit.plan.plan import load_plan
from synth_audit.pipeline import stages
from synth_audit.sources.postgres import writing
from synth_audit.store.workspace import Workspace

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(writing, sys.argv[3], die)
stages.release_synthetic(load_plan(sys.argv[1]), Workspace(Path(sys.argv[2])))
"""


@pytest.mark.parametrize("moment", ["_commit"])
def test_a_kill_in_the_middle_leaves_the_last_release_and_the_next_run_recovers(plan, postgres, moment):
    case, out = plan, plan.workspace.root
    api.run(case.plan, out)
    before = fingerprint(content(case.plan))
    postgres.run("DELETE FROM clinic.people WHERE age > 85")
    api.run(case.plan, out, release=False)
    words = [sys.executable, "-c", KILLED, str(case.folder / "plan.yaml"), str(out), moment]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert fingerprint(content(case.plan)) == before
    left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'synth_audit_staged%'"
    assert postgres.run(left) == [(0,)]
    assert [c.what for c in api.verify(out) if c.holds is False] == ["pointer to what was released"]
    record = api.release(case.plan, out)
    assert fingerprint(content(case.plan)) == record.table.sha256 != before
    assert all(check.holds is not False for check in api.verify(out))
    api.rollback(case.plan, out)
    assert fingerprint(content(case.plan)) == before
