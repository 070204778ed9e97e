"""The certificate: two pages for the one who signs, and an annex; the report has all numbers."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args

from pydantic import BaseModel

from synth_audit.build import build_version, resource_folder
from synth_audit.files import load_yaml
from synth_audit.findings.verdict import Result
from synth_audit.plan.plan import Plan
from synth_audit.report import assessment as remaining
from synth_audit.report import gates as judged
from synth_audit.report import words
from synth_audit.report.chapters import Fact, has_numbers
from synth_audit.report.known_answer import sharpness
from synth_audit.report.page import alerts_of, page, subject_of
from synth_audit.report.signatures import counting_approvals, doubt_of, waiting, wanted_approvals
from synth_audit.store.approvals import Approval
from synth_audit.store.evidence import Evidence
from synth_audit.store.locate import LocatedEvidence, released_evidence
from synth_audit.store.reports import WRITTEN_BY, Marks, audit_marks, certificate_as_written, read_marks
from synth_audit.text import listed
from synth_audit.verdict.criteria import ANSWERS, CONTRACT, CRITERIA, Answer, AnswerState, answers
from synth_audit.verdict.gate_decision import first_few

COMPARED_WITH = "data-compared-with"
"""Mark of the page: the digest of the release that it compares with; absent where there is none."""

AS_OF = "data-as-of"
"""Mark of the page: the day on which it was written, where something on it was over by then."""

_ANEW = "`synth-audit report --certificate` writes it anew"
_MOST_REASONS, _MOST_STEPS, _MOST_SETTINGS = 5, 3, 20
_MOST_COLUMNS = 30
"""Columns of the release that are named: more fill the first page, and the report lists them all."""

_OF_THE_TABLE = {
    *("name", "connections", "source", "columns", "rules"),
    *("generator", "rows", "privacy", "release", "review", "seed"),
}
"""Keys of a plan that no audit measures by, or that have a place of their own in certificate and annex."""

_VALUES = "values"
"""What gates on the form of values are about: a forgotten rounding breaks the contract and is new content."""

FILE = "demands.yaml"


def render_certificate(
    evidence: Evidence,
    approvals: Sequence[Approval] = (),
    previous: Evidence | None = None,
    today: date | None = None,
) -> str:
    """The certificate as one self-contained HTML page; the same arguments give the same text, byte for byte.

    Args:
        approvals: that lie beside the evidence, whether they count or not.
        previous: evidence of the last release before this one.
        today: in UTC; what is over by then is said to be. None for a page on which nothing is over.
    """
    return page("certificate.html.j2", it=certificate_view(evidence, approvals, previous, today))


def check_certificate(evidence: Evidence, text: str, found: LocatedEvidence) -> tuple[bool | None, str]:
    """Whether a page is the certificate of this evidence with the approvals beside it, and what to say of it.

    None where another build wrote it and no recorded hash can tell, or where the release that it compares
    with is not at hand.
    """
    marks = read_marks(text)
    if marks is not None and marks.written_by != build_version():
        return _check_other_build(evidence, marks.audit, text, found)
    other = marks.audit.get(COMPARED_WITH) if marks else None
    previous = released_evidence(found.workspace, other) if other and found.workspace else None
    if other and previous is None:
        return None, f"the release {other[:12]} that it compares with is not at hand"
    written = _day(marks.audit.get(AS_OF)) if marks else None
    if text == render_certificate(evidence, found.approvals(), previous, written):
        return True, "rendered anew and compared byte for byte"
    return False, f"not what evidence and approvals give; {_ANEW}"


def _check_other_build(
    evidence: Evidence, marks: Marks, text: str, found: LocatedEvidence
) -> tuple[bool | None, str]:
    """Check a certificate that cannot be rendered anew, by its marks and the hash recorded of its bytes."""
    if not audit_marks(evidence).items() <= marks.items():
        return False, f"its digest, verdict or attempt is not that of the evidence; {_ANEW}"
    same = certificate_as_written(found, text.encode())
    if same:
        return True, "another build wrote it; its bytes are as they were written"
    # An approver without access to the restricted folder writes the certificate anew and records nothing.
    if same is None or counting_approvals(evidence, found.approvals()):
        return None, f"another build wrote it; {_ANEW}"
    return False, f"another build wrote it, or somebody who altered it; {_ANEW}"


def certificate_view(
    evidence: Evidence,
    approvals: Sequence[Approval] = (),
    previous: Evidence | None = None,
    today: date | None = None,
) -> dict[str, Any]:
    """Everything the certificate shows, by its name in the template."""
    alerts = alerts_of(evidence)
    verdict = judged.verdict_view(evidence, unmeasured=(), sound=not alerts)
    risks = remaining.residual_risks(evidence, previous)
    stopped = () if alerts else _by_cause(evidence)
    reasons = (verdict.explanation,) if alerts else _reasons(evidence, risks, stopped)
    passed = not alerts and evidence.verdict is Result.PASS
    stated = [key for key in words.SCOPE if passed or key != "valid_until"]
    over = {key for key in words.DAYS if key in stated and _is_over(_review(evidence).get(key), today)}
    signatures = tuple((a, doubt_of(a, evidence), _is_over(a.until, today)) for a in approvals)
    marks = {**audit_marks(evidence), WRITTEN_BY: build_version()}
    if previous is not None:
        marks[COMPARED_WITH] = previous.digest
    if today is not None and (over or any(ended for *_, ended in signatures)):
        marks[AS_OF] = today.isoformat()
    return {
        "subject": subject_of(evidence),
        "columns": f"Columns of the release: {first_few(words.released_columns(evidence), _MOST_COLUMNS)}.",
        "alerts": alerts,
        "sign": judged.sign_of(Result.INSUFFICIENT) if passed and "valid_until" in over else verdict.sign,
        "headline": verdict.headline,
        "warnings": () if alerts else tuple(filter(None, (r.answer.warning for r in risks))),
        "questions": verdict.questions,
        "reasons": reasons[:_MOST_REASONS],
        "more_reasons": len(reasons) - _MOST_REASONS,
        "steps": tuple(dict.fromkeys(filter(None, (c.first.next_step for c in stopped))))[:_MOST_STEPS],
        "not_measured": remaining.not_measured(evidence, risks),
        "scope": _scope(evidence, stated, over),
        "unstated": _unstated(evidence, [key for key in stated if key != "reports"]),
        "criteria": risks,
        "train_people": judged.train_people(evidence),
        "found_from": remaining.found_from(evidence),
        "sharpness": sharpness(evidence),
        "assessment": remaining.assessment(evidence, risks),
        "previous": previous,
        "limits": _limits(evidence),
        "guidelines": guidelines(evidence, _said(evidence, approvals, previous)),
        "signatures": signatures,
        "waiting": waiting(evidence, approvals),
        "passed": passed,
        "refused": bool(alerts) or evidence.verdict is Result.FAIL,
        "expired": words.moment(str(_review(evidence)["valid_until"])) if "valid_until" in over else "",
        "evidence": evidence,
        "settings": _settings(evidence),
        "build": build_version(),
        "marks": marks,
    }


def _review(evidence: Evidence) -> Mapping[str, Any]:
    return evidence.plan.get("review") or {}


def _day(iso: object) -> date | None:
    try:
        return date.fromisoformat(str(iso))
    except ValueError:
        return None


def _is_over(last_day: object, today: date | None) -> bool:
    day = _day(last_day)
    return day is not None and today is not None and today > day


@dataclass(frozen=True)
class Cause:
    """Gates with one result and one cause; the first of them says it best."""

    result: Result
    about: str
    first: judged.GateView
    others: tuple[judged.GateView, ...]

    @property
    def sentence(self) -> str:
        """What the first found and what the others found, in people where they count them."""
        text = f"{words.RESULT_WORDS[self.result]}: {_in_people(self.first)}. {self.first.columns}".strip()
        if self.others and self.about != _VALUES:
            text += f" Also: {judged.first_findings([_in_people(g) for g in self.others])}."
        return text


def _in_people(gate: judged.GateView) -> str:
    found = remaining.finding_of(gate)
    return gate.found_in_people if found == gate.found else found


def _reasons(
    evidence: Evidence, risks: Sequence[remaining.ResidualRisk], stopped: Sequence[Cause]
) -> tuple[str, ...]:
    """Why the verdict is what it is: what failed or is open, by cause, or what came nearest to a limit."""
    blockers = tuple(words.sentence(b) for b in evidence.gates.blockers)
    if stopped or blockers:
        return (*(cause.sentence for cause in stopped), *blockers)
    return (judged.tally(judged.gates_of(evidence)), *_closest_call(risks))


def _closest_call(risks: Sequence[remaining.ResidualRisk]) -> Iterator[str]:
    """The criterion whose number came nearest to its limit, in people where it counts them."""
    deciding = [r.gate for r in risks if r.gate is not None and r.gate.result.blocking]
    for gate in remaining.nearest_first(deciding)[:1]:
        risk = next(r for r in risks if r.gate is gate)
        found = (
            remaining.finding_of(gate) if risk.share is None else f"{risk.answer.criterion}, {risk.people}"
        )
        yield f"Closest to its limit: {found}. Annex A has the limit and its reason."


def _by_cause(evidence: Evidence) -> tuple[Cause, ...]:
    """What keeps the table in: failures first, the most direct harm first, leak-equivalents last.

    Suites list gates from the most direct harm on, and what follows from the same cause is only named.
    """
    risks = {o.audit: o.info.risk for o in evidence.outcomes if o.info is not None}
    causes: dict[tuple[Result, str], list[judged.GateView]] = {}
    # What the gate on answers says, each criterion says by itself.
    stopped = [g for g in judged.obstacles(evidence) if g.result.gate != ANSWERS]
    for gate in stopped:
        causes.setdefault((gate.result.result, _about(gate, risks)), []).append(gate)
    found = []
    for (result, about), gates in causes.items():
        # The contract says best what is wrong with the form of values.
        first = next((g for g in gates if g.result.gate == CONTRACT), gates[0])
        found.append(Cause(result, about, first, tuple(g for g in gates if g is not first)))
    return tuple(found)


def _limits(evidence: Evidence) -> tuple[tuple[str, judged.GateView], ...]:
    """Gates on the criteria, then every other that decides, so that none is counted and not listed."""
    listed = [(c, gate) for c in CRITERIA for gate in remaining.gates_on(evidence, c)]
    places = {gate.place for _, gate in listed}
    others = [g for g in judged.gates_of(evidence) if g.result.blocking and g.place not in places]
    return (*listed, *(("other", gate) for gate in others))


def _about(gate: judged.GateView, risks: Mapping[str, str]) -> str:
    """What gates of one cause have in common: the criterion, or the form of values."""
    about = gate.result.measurement
    if gate.result.gate == CONTRACT or (about is not None and gate.unit == "flag"):
        return _VALUES
    return gate.result.gate if about is None else risks.get(about.audit, about.audit)


def _scope(evidence: Evidence, keys: Iterable[str], over: set[str]) -> tuple[Fact, ...]:
    stated = {key: str(value) for key, value in _review(evidence).items() if value}
    told = {key: words.moment(text) if key in words.DAYS else text for key, text in stated.items()}
    return tuple(
        Fact(words.SCOPE[key], told[key], words.DAYS[key] if key in over else "")
        for key in keys
        if key in told
    )


def _unstated(evidence: Evidence, keys: Iterable[str]) -> str:
    """Those of these keys that the plan does not state, as the page calls them; empty where it states all."""
    missing = [words.SCOPE[key].lower() for key in keys if not _review(evidence).get(key)]
    return f"Not stated in the plan: {', '.join(missing)}." if missing else ""


def _said(evidence: Evidence, approvals: Sequence[Approval], previous: Evidence | None) -> Mapping[str, str]:
    """Where a section stands that says something."""
    found = {"columns": "Report: Columns"}
    if previous is not None:
        found["comparison"] = "This page: What was tested, and what remains"
    if evidence.generator.privacy.guarantee is not None:
        found["guarantee"] = "Report: Formal privacy guarantee"
    if 0 < wanted_approvals(evidence) <= len({a.by for a in counting_approvals(evidence, approvals)}):
        found["approvals"] = "This page: Signatures"
    return found


def _settings(evidence: Evidence) -> tuple[str, ...]:
    """The settings of audits and gates that the plan states, and the audits, where it lists them."""
    stated = {key: value for key, value in evidence.plan.items() if key not in _OF_THE_TABLE}
    audits = stated.pop("audits", ())
    found = [f"Audits: {', '.join(audit['name'] for audit in audits)}"] if audits else []
    found += [f"{_meaning(keys)}: {value}" for keys, value in _flat((), stated)]
    for audit in audits:
        found += [
            f"{_in_words(keys)}: {value}" for keys, value in _flat((audit["name"],), audit.get("config", {}))
        ]
    more = f"{words.counted(len(found) - _MOST_SETTINGS, 'more setting')} in the report"
    return (*found[:_MOST_SETTINGS], *([more] * (len(found) > _MOST_SETTINGS)))


def _meaning(keys: Sequence[str]) -> str:
    """``Share of entities kept from the generator`` for ``split``, ``control``; else the keys."""
    models: tuple[Any, ...] = (Plan,)
    text = ""
    for key in keys:
        fields = next(
            (m.model_fields for m in models if isinstance(m, type) and issubclass(m, BaseModel)), {}
        )
        if key not in fields:
            return _in_words(keys)
        text, annotation = fields[key].description or "", fields[key].annotation
        models = (annotation, *get_args(annotation))
    # What follows a semicolon or colon is for the author of a plan.
    return words.sentence(re.split("[;:]", text)[0], end="") if text else _in_words(keys)


def _in_words(keys: Sequence[str]) -> str:
    """``Marginals, n bootstrap``."""
    return words.sentence(", ".join(keys).replace("_", " "), end="")


def _flat(prefix: tuple[str, ...], settings: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat((*prefix, key), value)
        else:
            yield (*prefix, key), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class DemandRow:
    """One demand of a guideline: measured or not, where or why not, and what became of its criteria."""

    demand: str
    measured: bool
    where: str
    answers: tuple[Answer, ...]

    @property
    def done(self) -> str:
        """``tried`` where it was done without a usable outcome."""
        open_ = {a.state for a in self.answers} == {AnswerState.INSUFFICIENT}
        return ("tried" if open_ else "yes") if self.measured else "no"

    @property
    def outcomes(self) -> Iterator[tuple[str, str]]:
        """Each state with its kind, and of several criteria those that it is of."""
        for state in AnswerState:
            mine = [a for a in self.answers if a.state is state]
            of = f": {listed([a.criterion for a in mine])}" if len(self.answers) > 1 else ""
            if mine:
                yield mine[0].kind, f"{state.capitalize()}{of}"


@dataclass(frozen=True)
class Guideline:
    """What one guideline asks.

    Attributes:
        source: publisher, title and date.
        checked: which text of the publisher its demands were compared with; empty where with none.
    """

    name: str
    source: str
    checked: str
    demands: tuple[DemandRow, ...]


def frameworks() -> tuple[Mapping[str, Any], ...]:
    """The guidelines with their demands, as they stand in the file."""
    text = (resource_folder("reports_templates") / FILE).read_text(encoding="utf-8")
    return tuple(load_yaml(text))


def guidelines(evidence: Evidence, said: Mapping[str, str]) -> tuple[Guideline, ...]:
    """Each guideline with its demands: measured or not, and where.

    Args:
        said: by section, where it stands; a section that says nothing is left out.
    """
    known = answers(evidence.outcomes, evidence.gates.results)
    return tuple(
        Guideline(
            framework["name"],
            framework["source"],
            framework.get("checked", ""),
            tuple(
                DemandRow(d["demand"], *_measured(d, evidence, said), _asked(d, evidence, known))
                for d in framework["demands"]
            ),
        )
        for framework in frameworks()
    )


def _measured(demand: Mapping[str, Any], evidence: Evidence, said: Mapping[str, str]) -> tuple[bool, str]:
    """Whether it is measured or stated, and where; else why not."""
    if where := said.get(demand.get("section", "")):
        return True, where
    keys, review = demand.get("review", ()), _review(evidence)
    assert set(keys) <= set(words.SCOPE)
    if keys and all(review.get(key) for key in keys):
        return True, "This page: Scope and validity"
    if keys:
        return False, _unstated(evidence, keys)
    asked = _audits(demand, evidence)
    measured = [o.info.title for o in evidence.outcomes if o.audit in asked and o.info and has_numbers(o)]
    if measured:
        return True, f"Report: {', '.join(measured)}"
    return False, demand.get("open", "no audit of this run measures it")


def _asked(demand: Mapping[str, Any], evidence: Evidence, known: Iterable[Answer]) -> tuple[Answer, ...]:
    """The criterion of a demand, or those that its audits are about, if any of them gave a number."""
    asked = [o for o in evidence.outcomes if o.audit in _audits(demand, evidence)]
    measured = any(map(has_numbers, asked))
    about = {demand.get("criterion"), *(o.info.risk for o in asked if o.info and measured)}
    return tuple(a for a in known if a.criterion in about)


def _audits(demand: Mapping[str, Any], evidence: Evidence) -> set[str]:
    criterion = demand.get("criterion")
    assert criterion is None or criterion in CRITERIA
    about = {o.audit for o in evidence.outcomes if o.info is not None and o.info.risk == criterion}
    return about if criterion else set(demand.get("audits", ()))
