"""The words of *insufficient evidence*: why a gate could not decide, and what would let it decide.

Gates, reports, certificates, the command line and Dagster take their sentences from here. ``where`` is the
measurement as it is called.
"""

HEADLINE = "This synthetic table must not be released yet: the evidence is insufficient."
MEANING = "The interval reaches both sides of the limit, or no number can be relied on. This is not a pass."
ENDED = "had insufficient evidence"
"""How gates and candidates ended, behind their number."""

MORE = "attempts (or control rows, with as many more training rows)"
"""What more evidence is counted in."""

# Why a number decides nothing, from the measurement itself.
DECIDES_NOTHING = "{where} decides nothing: {why}."
NOT_REPORTED = "no audit reported it"
REPORTED_TWICE = "{count} numbers claim to be it"
NOT_FINITE = "it is not a finite number"
TOO_FEW = "only {n:,} of the {needed:,} attempts that it needs could be made"
NO_INTERVAL = "it came without a confidence interval"
UPSIDE_DOWN = "its confidence interval is upside down"
PASSES_A_COPY = "a full copy of the training rows would pass this limit"

STRADDLES = "The {level}interval, {ends}, reaches beyond {limits}, so the evidence is insufficient."
COARSE = "The smallest leak that would reliably be found is {value}, above the limit {most}."
ENOUGH_PEOPLE = (
    "Estimate: about {needed:,} control people instead of {n:,}, and training people in proportion, would be "
    "enough if the limit falls with the square root of their number."
)

# Why a measurement is blind.
NOT_TRIED = "the known-answer check did not try {what}"
NO_ANSWER = "no answer to planted leaks was kept"

# Why a measurement is absent, and what to do: by what became of its audit.
NOT_RUN = (
    "The audit {audit} was not part of this run.",
    "Run the audit: add {audit} to the plan's `audits`, or leave out `--only`.",
)
ERROR = (
    "The audit {audit} ended in an error ({reason}).",
    "The audit failed, which says nothing about the table: mend its cause and audit again.",
)
NOT_APPLICABLE = (
    "The audit {audit} was not applicable: {reason}.",
    "Give the audit what it lacks: other settings under `audits`, control rows, or a role in the plan's "
    "`columns` (such as `role: target`).",
)
NOT_MEASURED = "The audit {audit} ran but could not measure it; its notes say why."
NO_REFERENCE = "A ratio needs a reference that was measured on control rows and is not 0."
OTHER_SCOPE = "The number exists with the scope {scopes}: name one in the gate."
NOTHING_TO_MEASURE = "The table gives the audit nothing to measure here; see what it reports instead."

# What more evidence would do.
AT_THE_LIMIT = "The value is exactly at the limit: more attempts would not be likely to decide it."
TOO_MANY = "More than {times} times the attempts or rows would be needed."
OUTLOOK = (
    "Estimate: about {needed:,} attempts or rows instead of {n:,} would decide it if the value stays "
    "{value}. It would then be a {way}."
)
WOULD_DECIDE = f"Estimate: about {{n:,}} {MORE} would decide it if the value stays as it is."
REPEAT = f"Repeat the audit with at least {{n:,}} {MORE}."
WOULD_FAIL = "The value itself is beyond the limit. If it stays there, more evidence ends in a fail."
ALREADY_LOST = "Another gate has failed: more evidence here would not let the table leave."
UNSEEN = "What was not found may be there unseen."
NO_OUTLOOK = "More rows may not help."

# Checks of the table itself.
NOT_EVALUATED = "{what} could not be evaluated."
CHECKED_TIMES = "The table was checked {times} times for this, not {wanted}."
COLUMNS_UNCHECKED = "The released columns themselves were not checked exactly once."

# Games against a privacy guarantee.
GAME_CUT_SHORT = (
    "The audit {audit} did not come to an end, so it is not known whether it would refute the claim."
)
GAME_NOT_COMPUTED = "The lower bound on epsilon of the audit {audit} could not be computed."
MORE_TIME = "Allow more time (`execution.deadline`), or more iterations, and audit again."

# Questions about people.
QUESTION_UNMEASURED = "{criterion} could not be tested on this table."
QUESTION_OPEN = "{criterion} could not be decided on this table: the evidence is insufficient."
NO_RESULT = "its audit gave no result"
OPEN_GATES = "see the gate {gates}"
BROKEN_OFF = "an error ended {audits}"
OPEN_QUESTIONS_ADVICE = "See what the gates on these audits lack, and add audits that the plan leaves out."
