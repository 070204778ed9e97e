"""anonymeter 1.1.0: its three risks, 500 attacks each; it publishes intervals, and no limit for them."""

from __future__ import annotations

from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
from serving import Answer, Tables, serve

ATTACKS = 500


def judge(tables: Tables) -> Answer:
    data = {"ori": tables["train"], "syn": tables["synthetic"], "control": tables["control"]}
    columns, n = list(tables["train"]), min(ATTACKS, len(tables["control"]))
    half = len(columns) // 2
    found = {}
    for mode in ("univariate", "multivariate"):
        found[mode] = SinglingOutEvaluator(**data, n_attacks=n).evaluate(mode=mode)
    parts = (columns[:half], columns[half:])
    found["linkability"] = LinkabilityEvaluator(**data, n_attacks=n, aux_cols=parts).evaluate(n_jobs=1)
    for secret in columns:
        known = [c for c in columns if c != secret]
        attack = InferenceEvaluator(**data, n_attacks=n, aux_cols=known, secret=secret)
        found[f"inference {secret}"] = attack.evaluate(n_jobs=1)
    risks = {name: attack.risk(confidence_level=0.95) for name, attack in found.items()}
    scores = {name: float(risk.value) for name, risk in risks.items() if not name.startswith("inference")}
    scores["inference, worst"] = max(float(r.value) for n, r in risks.items() if n.startswith("inference"))
    return scores, None


serve(judge, "anonymeter")
