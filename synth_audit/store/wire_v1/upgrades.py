"""Makes evidence files of earlier versions into the present one, one version after the other.

What an old file said is kept; what it did not say stays unsaid. Its digest is that of the old text, see
:attr:`synth_audit.store.evidence.Evidence.intact`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from synth_audit.core.identity import MeasurementId
from synth_audit.store.wire_v1.models import VERSION

Plain = dict[str, Any]


def upgraded(plain: Mapping[str, Any]) -> Plain:
    """The same evidence in the present form.

    Raises:
        ValueError: it is of a version that is not known, or not what that version wrote.
    """
    found = dict(plain)
    while (version := found.get("schema_version")) != VERSION:
        step = _STEPS.get(version) if isinstance(version, str) else None
        if step is None:
            raise ValueError("another schema version")
        try:
            found = step(found)
        except (AttributeError, KeyError, TypeError, IndexError):
            raise ValueError(f"not what version {version} wrote") from None
    return found


def _from_1_1(old: Plain) -> Plain:
    """1.2 has identities in place of name and scope, salted hashes, the attempt and what a fit spent."""
    names = _Names(old)
    return {
        **old,
        "attempt": 0,
        "ledger": None,
        "salt_commitment": "",
        "tables": {name: {**table, "hmac": ""} for name, table in old["tables"].items()},
        "generator": {**old["generator"], "privacy": None},
        "outcomes": [_outcome_1_1(o, names) for o in old["outcomes"]],
        "gates": _gates_1_1(old["gates"], names),
        "records": _records_1_1(old["records"], names),
        "schema_version": "1.2",
    }


def _from_1_2(old: Plain) -> Plain:
    """1.3 has one account of what a fit spent, in place of a claim of the generator's and an account."""
    generator = old["generator"]
    claim, account = _Claim(**generator["certificate"]), generator["privacy"]
    fields = {"name": generator["name"], "config": generator["config"]}
    if generator.keys() != {"certificate", "privacy", *fields}:
        raise ValueError("not what version 1.2 wrote")
    return {
        **old,
        "generator": {**fields, "privacy": claim.account if account is None else account},
        "schema_version": "1.3",
    }


def _from_1_3(old: Plain) -> Plain:
    """1.4 has curves of the generator's training."""
    if "training" in old["generator"]:
        raise ValueError("not what version 1.3 wrote")
    return {**old, "generator": {**old["generator"], "training": []}, "schema_version": "1.4"}


def _from_1_4(old: Plain) -> Plain:
    """1.5 has the columns that the generator draws together."""
    if "column_groups" in old["generator"]:
        raise ValueError("not what version 1.4 wrote")
    return {**old, "generator": {**old["generator"], "column_groups": []}, "schema_version": "1.5"}


def _from_1_5(old: Plain) -> Plain:
    """1.6 lists earlier audits of the candidate under other settings."""
    if "earlier" in old:
        raise ValueError("not what version 1.5 wrote")
    return {**old, "earlier": [], "schema_version": "1.6"}


def _from_1_6(old: Plain) -> Plain:
    """1.7 says whether the release is fit for purpose, and which gates decide it."""
    gates = old["gates"]
    if "fitness" in old or any("fitness" in result for result in gates["results"]):
        raise ValueError("not what version 1.6 wrote")
    results = [{**result, "fitness": False} for result in gates["results"]]
    return {
        **old,
        "gates": {**gates, "results": results},
        "fitness": "not tested",
        "schema_version": "1.7",
    }


@dataclass(frozen=True)
class _Claim:
    """What a generator said of itself up to version 1.2."""

    claim: str
    reason: str
    epsilon: float | None
    delta: float | None

    @property
    def account(self) -> Plain:
        """An account without a guarantee: what nobody accounted for guarantees nothing."""
        said = {"epsilon": self.epsilon, "delta": self.delta}
        numbers = "".join(f", {name} {value:g}" for name, value in said.items() if value is not None)
        claimed = "" if self.claim == "none" else f"{self.claim}{numbers}, claimed and not accounted for: "
        return {
            "guarantee": None,
            "reason": claimed + self.reason,
            "mechanisms": [],
            "several_rows": False,
            "table_epsilon": 0.0,
            "table_delta": 0.0,
        }


_STEPS: Mapping[str, Callable[[Plain], Plain]] = {
    "1.1": _from_1_1,
    "1.2": _from_1_2,
    "1.3": _from_1_3,
    "1.4": _from_1_4,
    "1.5": _from_1_5,
    "1.6": _from_1_6,
}

_BY_COLUMN = {"associations", "attribute_game", "inference", "marginals"}
"""Audits whose scopes were names of columns, as far as they were any."""
_BY_COLUMN_TOO = {"propensity.giveaway", "prediction.worst_subgroup_loss"}
_RESTS_ON = {
    "exact_match": "record_excess",
    "membership_data_only": "auc",
    "membership_game": "privacy_gain",
}
"""What told what an attack on records was worth; of the others it was the risk."""


class _Names:
    """What a name and a scope of version 1.1 mean."""

    def __init__(self, old: Plain) -> None:
        self.columns = {column["name"] for column in old["columns"]}
        self.subgroups = old["records"]["subgroups"]

    def id(self, name: str, scope: str) -> MeasurementId:
        audit, _, quantity = name.partition(".")
        if scope and quantity in ("leak_equivalent", "reference_ratio"):
            of, _, inner = scope.partition("[")
            return MeasurementId(
                audit, quantity, derived_from=self.id(f"{audit}.{of}", inner.removesuffix("]"))
            )
        if scope and quantity == "worst_subgroup":
            for group in self.subgroups:
                if group["audit"] == audit and scope == f"{group['scope']} by {group['column']}".lstrip():
                    return self.subgroup(group)
        if scope in self.columns and (audit in _BY_COLUMN or name in _BY_COLUMN_TOO):
            return MeasurementId(audit, quantity, column=scope)
        setting, _, column = scope.rpartition(" of ")
        if audit == "attribute_game" and column in self.columns:
            return MeasurementId(audit, quantity, setting, column)
        return MeasurementId(audit, quantity, scope)

    def attack(self, audit: str, scope: str) -> MeasurementId:
        return self.id(f"{audit}.{_RESTS_ON.get(audit, 'risk')}", scope)

    def subgroup(self, group: Plain) -> MeasurementId:
        attack = self.attack(group["audit"], group["scope"])
        return MeasurementId(group["audit"], "worst_subgroup", column=group["column"], derived_from=attack)

    def named(self, thing: Plain) -> Plain:
        """A thing with its identity in place of name and scope."""
        rest = {k: v for k, v in thing.items() if k not in ("name", "scope")}
        return {"id": str(self.id(thing["name"], thing["scope"])), **rest}


def _outcome_1_1(old: Plain, names: _Names) -> Plain:
    audit = old["audit"]
    return {
        **old,
        "measurements": [names.named(m) for m in old["measurements"]],
        "series": [_series_1_1(s, audit, old["measurements"], names) for s in old["series"]],
        "responses": [names.named(r) for r in old["responses"]],
    }


def _series_1_1(old: Plain, audit: str, measured: list[Plain], names: _Names) -> Plain:
    """Boxes without a scope stood for one measurement each, under its scope without underscores."""
    name = f"{audit}.{old['name'].removesuffix('_boxes')}"
    scopes = {m["scope"].replace("_", " "): m["scope"] for m in measured if m["name"] == name}
    several = old["kind"] == "box" and not old["scope"] and set(old["x"]) <= set(scopes)
    places = [str(names.id(name, scopes[x])) for x in old["x"]] if several else []
    return names.named({**old, "name": name}) | {"places": places}


def _gates_1_1(old: Plain, names: _Names) -> Plain:
    """The suite's scopes are read anew; its hash stays that of the old text."""
    suite = {**old["suite"], "expectations": [_limit_1_1(x, names) for x in old["suite"]["expectations"]]}
    every = {x["meta"]["id"] for x in suite["expectations"] if x["kwargs"].get("scope") == "*"}
    results = []
    for result in old["results"]:
        rest = {k: v for k, v in result.items() if k not in ("measurement", "scope")}
        about = names.id(result["measurement"], result["scope"]) if result["measurement"] else None
        results.append({**rest, "measurement": about and str(about), "every": result["gate"] in every})
    return {**old, "suite": suite, "results": results}


def _limit_1_1(expectation: Plain, names: _Names) -> Plain:
    kwargs = expectation["kwargs"]
    if expectation["type"] != "expect_measurement_to_be_within" or kwargs.get("scope", "*") == "*":
        return expectation
    return {**expectation, "kwargs": {**kwargs, "scope": names.id(kwargs["name"], kwargs["scope"]).scope}}


def _records_1_1(old: Plain, names: _Names) -> Plain:
    groups = [
        {"id": str(names.attack(g["audit"], g["scope"])), **_without(g, "audit", "scope")}
        for g in old["groups"]
    ]
    subgroups = [
        {"id": str(names.subgroup(g)), **_without(g, "audit", "scope", "column")} for g in old["subgroups"]
    ]
    return {**old, "groups": groups, "subgroups": subgroups}


def _without(thing: Plain, *keys: str) -> Plain:
    return {k: v for k, v in thing.items() if k not in keys}
