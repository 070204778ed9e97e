"""Makes the workspace that tests keep of version 0.1.0: `python make_workspace.py FOLDER`, then pack it."""

import json
import random
import sys
from pathlib import Path

import synth_audit

folder, draw = Path(sys.argv[1]), random.Random(7)  # noqa: S311  (a made-up table)
folder.mkdir()
rows = [
    f"{draw.randint(18, 90)},{draw.lognormvariate(10, 0.4):.2f},{draw.choice(['yes', 'no'])}"
    for _ in range(240)
]
(folder / "people.csv").write_text("\n".join(["age,income,ill", *rows]) + "\n")
gate = {
    "type": "expect_measurement_to_be_within",
    "kwargs": {"name": "exact_match.excess", "maximum": 0.2},
    "meta": {"id": "copies", "reason": "a made-up table"},
    "severity": "critical",
}
(folder / "gates.json").write_text(json.dumps({"name": "small", "expectations": [gate]}))
plan = {
    "source": "people.csv",
    "generator": {"independent": {"minimum_people": 1}},
    "audits": ["exact_match", "marginals"],
    "gates": "gates.json",
    "release": {"parquet": {"path": "released.parquet"}},
    "seed": 5,
}
(folder / "plan.yaml").write_text(json.dumps(plan))
if not synth_audit.run(folder / "plan.yaml", folder / "audit").passed:
    sys.exit("it did not pass")
