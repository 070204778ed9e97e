"""What guidelines ask, and whether this audit measured it: a table of facts, and no claim of compliance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synth_audit.core.strict_yaml import load_yaml
from synth_audit.judging.criteria import CRITERIA
from synth_audit.report.audits import has_numbers
from synth_audit.report.certificate_view import DemandRow
from synth_audit.resources import resource_folder
from synth_audit.store.evidence import Evidence

FILE = "demands.yaml"


def frameworks() -> tuple[Mapping[str, Any], ...]:
    """The guidelines with their demands, as they stand in the file."""
    text = (resource_folder("reports_templates") / FILE).read_text(encoding="utf-8")
    return tuple(load_yaml(text))


def demand_rows(evidence: Evidence, said: Mapping[str, str]) -> tuple[DemandRow, ...]:
    """Each demand: measured or not, and where.

    Args:
        said: by section, where it stands; a section that says nothing is left out.
    """
    return tuple(
        DemandRow(framework["name"] if i == 0 else "", d["demand"], *_measured(d, evidence, said))
        for framework in frameworks()
        for i, d in enumerate(framework["demands"])
    )


def _measured(demand: Mapping[str, Any], evidence: Evidence, said: Mapping[str, str]) -> tuple[bool, str]:
    """Whether it is measured or stated, and where; else why not."""
    if where := said.get(demand.get("section", "")):
        return True, where
    asked = _audits(demand, evidence)
    measured = [o.info.title for o in evidence.outcomes if o.audit in asked and o.info and has_numbers(o)]
    if measured:
        return True, f"Annex: {', '.join(measured)}"
    return False, demand.get("open", "no audit of this run measures it")


def _audits(demand: Mapping[str, Any], evidence: Evidence) -> set[str]:
    criterion = demand.get("criterion")
    assert criterion is None or criterion in CRITERIA
    about = {o.audit for o in evidence.outcomes if o.info is not None and o.info.risk == criterion}
    return about if criterion else set(demand.get("audits", ()))
