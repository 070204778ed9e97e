"""The page of the Referees' Table, written from the answers on file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from environments import AUDITORS
from leaks import KINDS, anybody, plain
from referees_table import (
    FEWEST_HONEST,
    OWN,
    Answers,
    auditors_of,
    beaten,
    held_honest,
    leaks_of,
    passed,
    subsampled,
    undecided,
)

_HOW = """# The Referees' Table

The smallest leak, as a share of the people in train, that each auditor of synthetic tables sees. Written by

    .venv/bin/python benchmarks/leak_zoo --out FILE --show --page docs/research/referees.md

from the answers on file, which were collected by this, given again until it was done:

    .venv/bin/python benchmarks/leak_zoo FOLDER --out FILE --rows {rows} --honest {honest} \\
        --shares {fractions} --tables {tables} \\
        --auditors {auditors}

Answers from {first} to {last}; {total} releases put before an auditor, {minutes:.0f} CPU minutes in all, of
which {own:.0f} are this tool's. `--minutes 60` stops the command by itself; given again it goes on.{missing}

**How.** Of a table two fifths of the rows are train and three tenths control. A release is honest (rows
of people outside train and control) but for a share of the people in train, who each leave a row in it;
[below](#the-kinds) stands what they leave, by kind. Every auditor gets the same three files in an
environment of its own and is used as its documentation says (below, and `auditors/ask_*.py`).
*Its own decision* is what the tool says of a release; for this one, that it does not pass: some blocking
gate fails or, where the table says *insufficient evidence*, none fails and some lack evidence.
*Calibrated* is for all alike: some score lies beyond what honest releases of the same table let expect (in
the same guise: mirrored, of independent columns and so on; one
of them has the train and control of the leaks), at 5 % false alarms for
the tool as a whole; the formula is in `referees_table.py`, and the score that showed it follows. Blank:
not asked, or too few honest releases to calibrate by. Sizes lie on a grid, from 5 % up where a tool does not
see that, else down to the first that it does not see: a size says *this, and perhaps less*, and *not at 5 %*
that this was the largest asked.

"""

_ASKED = {
    "synth_audit": "the audits that a blocking gate of the suite `release` rests on, at their defaults; its "
    "scores are the outcomes of these gates, so that calibration would add nothing to its own decision; the "
    "first release of a training table costs the most, as later ones share what planted leaks were measured "
    "at",
    "anonymeter": "singling out by one and by several columns, linkability of two halves of the columns, "
    "inference of each column from all others, 500 attacks each, control given; the point risks, the largest "
    "of all inferences; no limit is documented",
    "sdmetrics": "DCROverfittingProtection, DCRBaselineProtection (of all rows, and of 500), "
    "NewRowSynthesis, DisclosureProtection of the last column by all others; one minus each; no limit is "
    "documented",
    "syntheval": "its preset `privacy` with control as holdout; no limit is documented",
    "synth_mia": "all attacks but Gen-LRA, as its guide has them: area under the curve and true positives at "
    "1 % false ones; labels one-hot, and ordinal for the two kernel densities, which cannot take collinear "
    "columns; no limit is documented. Of its sources, commit 9ef39e1",
}

_LIMITS = """## Limits of this study

* One release of each leak, table and size: a size is a coarse mark, not an estimate, and may move a step with
  the seed.
* Calibrated limits rest on few honest releases and take scores as normal; tools with many scores pay for
  their number.
* Small tables without missing values, text or dates, so that every auditor takes them; larger ones favour
  all.
* `hepatitis` and `simulated` have 552 and 500 people in train, of whom 5 % are 28 and 25; the others 1,000.
* The kinds were collected while this tool was built, and its gates were made to see them: it plays at home.
  Kinds that no one here thought of are not in the table.
* Peers that measure one risk are held against leaks of others, and none of them claims to decide: they
  publish scores for a reader to judge.
"""

_HELD = "\nIn these guises the table's sizes are no findings of this tool: it holds them for any train.\n"

_PASSED = """
In bold: a row of 5 % of the people or more, which should not pass. How many of them an attack finds differs
by kind: who turns the numbers of `mirrored` (5 % of Adult) back to control's finds 27 of these 50 people
nearer than 2 % of the control people are, which is an excess of 2 % of all people in train.
"""

_SUBSAMPLE = """## SDMetrics' issue 934

[The issue](https://github.com/sdv-dev/SDMetrics/issues/934): `num_rows_subsample` draws from the real rows
too, so that a copied row's source is often not there and the score rises. `copula` is drawn as its frames are
(six numbers, three labels, a Gaussian copula), at this study's sizes. DCRBaselineProtection, 1 is
*protected*, by the share of people in train who leave a whole copy, means over the releases:

| table | people copied | releases | all rows | a subsample of 500 |
|---|---|---|---|---|
"""


USUAL = (anybody, plain)


def judged(answers: Answers) -> Answers:
    """Answers of the auditors whose false alarms can be told: asked about a few honest releases."""
    honest = Counter(a["auditor"] for a in answers if not a["share"])
    return [a for a in answers if honest[a["auditor"]] >= FEWEST_HONEST]


def page(answers: Answers, kinds: Iterable[str]) -> str:
    """The whole page in Markdown."""
    answers = judged(answers)
    kinds, tables = list(kinds), sorted({a["table"] for a in answers})
    dates = sorted(str(a["date"]) for a in answers)
    auditors = sorted({a["auditor"] for a in answers})
    missing = [name for name in AUDITORS if name not in auditors]
    shares = sorted({a["share"] for a in answers if a["share"]})
    parts = [
        _HOW.format(
            auditors=" ".join(auditors),
            tables=" ".join(tables),
            rows=" ".join(str(n) for n in sorted({a["rows"] for a in answers})),
            honest=max(a["seed"] for a in answers if not a["share"]) - 999,
            first=dates[0],
            last=dates[-1],
            total=len(answers),
            minutes=sum(a["seconds"] for a in answers) / 60,
            own=sum(a["seconds"] for a in answers if a["auditor"] == OWN) / 60,
            missing=f"\n\n**Unfinished.** Asked too little to tell: {', '.join(missing)}." if missing else "",
            fractions=" ".join(f"{s:g}" for s in shares),
        ),
        *(line + "\n" for line in auditors_of(answers)),
        "\n",
        *(f"* {name}: {how}.\n" for name, how in _ASKED.items() if name in auditors),
        "\n",
    ]
    for table in tables:
        some = [a for a in answers if a["table"] == table]
        parts.append(f"## {table}\n\n")
        parts += [line + "\n" for line in leaks_of(some, kinds)] + ["\n"]
    parts.append("## Where another auditor sees a smaller leak\n\n")
    parts.append("A peer's calibrated reading next to this tool's own decision.\n\n")
    parts += [line + "\n" for line in beaten(answers, kinds)] or ["Nowhere among those asked.\n"]
    wrong, held, parted = passed(answers), held_honest(answers), subsampled(answers)
    parts.append("\n## Leaks that this tool let pass\n\n")
    parts.append("".join(line + "\n" for line in wrong) if wrong else "None of those asked.\n")
    parts.append(_PASSED if any("**" in line for line in wrong) else "")
    parts.append(f"\nOf its alarms at leaks, {undecided(answers)} rest on missing evidence alone.\n\n")
    parts.append("## Honest releases that this tool did not pass\n\n")
    parts.append("".join(line + "\n" for line in held) + _HELD if held else "None of those asked.\n")
    parts += ["\n", _SUBSAMPLE, *(line + "\n" for line in parted)] if parted else []
    parts += ["\n## The kinds\n\n", *(f"* `{kind}`: {told(kind)}\n" for kind in kinds), "\n"]
    return "".join([*parts, _LIMITS])


def told(kind: str) -> str:
    """What people leave by a kind, and how it is dressed, as the functions that make it say."""
    leak = KINDS[kind]
    said = [leak.leaves.__doc__, *(f.__doc__ for f in (leak.people, leak.dress) if f not in USUAL)]
    poor = ["Every other row is of independent columns."] if leak.poor else []
    return " ".join([*(str(doc).strip() for doc in said), *poor])
