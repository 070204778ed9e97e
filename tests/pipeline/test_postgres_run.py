"""From a table in PostgreSQL to one beside it, and back; the password is nowhere but in the environment."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.core.errors import PlanError
from synth_audit.core.fingerprint import fingerprint
from synth_audit.sources.postgres import Postgres

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
