"""What a reader of the evidence must be told because of how the plan is set up."""

from __future__ import annotations

from synth_audit.core.plan import Plan
from synth_audit.workflow.evidence import GeneratorRecord
from synth_audit.workflow.suite import Suite


def about_external(generator: GeneratorRecord) -> tuple[str, ...]:
    """A finished table may have been made from control rows too; a program run here never saw them."""
    if generator.name != "external" or generator.config.get("command"):
        return ()
    return (
        "the table was made elsewhere before this split: if control rows were among those it was made from, "
        "every comparison with control understates the risk",
    )


def about_settings(plan: Plan, suite: Suite) -> tuple[str, ...]:
    """Limits are reasoned for an audit's own settings; a plan that changes them must say so to its reader."""
    gated = {g.limit.audit for g in suite.measured if g.blocking and g.limit}
    changed = [c for c in plan.audits if c.name in gated and c.config]
    return tuple(
        f"the plan changes {', '.join(sorted(c.config))} of {c.name}, which a blocking gate judges; "
        "its limit was set for the audit's own settings"
        for c in changed
    )
