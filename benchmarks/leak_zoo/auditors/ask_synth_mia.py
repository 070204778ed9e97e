"""Synth-MIA (9ef39e1, September 2025): its attacks on membership; it publishes scores and no limit.

As its guide has it, control is halved into strangers and a reference, and the encoder is fitted on the
release, labels one-hot; the two attacks by kernel densities get ordinal labels, since one-hot columns are
collinear and leave them without an answer. Gen-LRA is left out: it fits a density anew for each person.
"""

from __future__ import annotations

import math
import sys

from serving import Answer, Tables, serve
from synth_mia import attackers
from synth_mia.utils import TabularPreprocessor, create_random_equal_dfs

TOO_DEAR = ("GenLRA",)
DENSITIES = ("DOMIAS", "DensityEstimate")


def judge(tables: Tables) -> Answer:
    train, made = tables["train"], tables["synthetic"]
    strangers, reference = create_random_equal_dfs(tables["control"], len(tables["control"]) // 2, num_dfs=2)
    encoded = {}
    for encoding in ("one-hot", "ordinal"):
        encoder = TabularPreprocessor(
            fit_target="synth", categorical_encoding=encoding, numeric_encoding="standard"
        )
        encoder.fit(train, strangers, made)
        encoded[encoding] = encoder.transform(train, strangers, made, reference)[:4]
    scores = {}
    for name in sorted(set(attackers.__all__) - set(TOO_DEAR)):
        attack = getattr(attackers, name)()
        four = encoded["ordinal" if name in DENSITIES else "one-hot"]
        try:
            truth, guess = attack.attack(*four)
            found = attack.eval(truth, guess, metrics=["roc"], target_fprs=[0.01])
        except Exception as error:  # whatever an attack cannot cope with here leaves the others theirs
            print(f"{name} cannot answer: {type(error).__name__}", file=sys.stderr)
            found = {}
        scores[f"{name} AUC"] = float(found.get("auc_roc", math.nan))
        scores[f"{name} TPR at 1 %"] = float(found.get("tpr_at_fpr_0.01", math.nan))
    return scores, None


serve(judge, "synth-mia")
