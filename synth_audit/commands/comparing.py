"""Two audits beside one another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from synth_audit import api
from synth_audit.commands import options
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say, say_json

if TYPE_CHECKING:
    from synth_audit.core.verdict import GateResult
    from synth_audit.studies.evidence_comparison import EvidenceComparison


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--all", "every", is_flag=True, help="Also gates that did not change.")
@options.as_json
@guarded
def compare(before: Path, after: Path, every: bool, as_json: bool) -> Exit:
    """Show what changed from one audit to another.

    BEFORE and AFTER are evidence files, folders of audits, or workspaces, of which the newest audit is meant.
    Numbers whose intervals have a point in common are not told apart. Needs no data; decides nothing.

    \b
    Example:
      synth-audit compare tumours-audit/review/audits/3f0c tumours-audit
    """
    show_comparison(api.compare(before, after), every=every, as_json=as_json)
    return Exit.PASS


def show_comparison(found: EvidenceComparison, *, every: bool, as_json: bool) -> None:
    """Print the gates that changed, or all of them, or everything as JSON."""
    if as_json:
        say_json(found.to_frame().to_json(orient="records", indent=2))
        return
    for caveat in found.caveats:
        say(f"note: {caveat}", fg="yellow")
    pairs = found.gates if every else found.changed
    width = max((len(p.gate) for p in pairs), default=0)
    for p in pairs:
        say(f"  {p.gate:<{width}}  {_told(p.before)} → {_told(p.after)}: {p.change}")
    alike = len(found.gates) - len(pairs)
    if alike:
        say(f"  {alike} gates did not change; --all shows them")
    say(f"{found.before.verdict} → {found.after.verdict}", bold=True)


def _told(gate: GateResult | None) -> str:
    if gate is None:
        return "no such gate"
    if gate.value is None:
        return str(gate.result)
    span = "" if gate.low is None or gate.high is None else f" [{gate.low:.3g}, {gate.high:.3g}]"
    return f"{gate.result} {gate.value:.3g}{span}"
