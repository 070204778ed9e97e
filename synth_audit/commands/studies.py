"""Many audits for one question: how audits answer leaks, and which generator to choose."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Unpack

import click

from synth_audit import api, console
from synth_audit.commands import options
from synth_audit.exits import Exit, guarded, sweep_code
from synth_audit.terminal import say, say_json


@click.command()
@click.argument("train", type=click.Path(path_type=Path))
@click.argument("control", type=click.Path(path_type=Path))
@click.option("--plan", type=click.Path(path_type=Path), help="Plan with columns and audits.")
@click.option("--only", multiple=True, metavar="NAME", help="Calibrate only this audit; repeatable.")
@click.option("--steps", type=click.IntRange(min=2), default=10, show_default=True, help="Sizes of the leak.")
@click.option("--noise/--no-noise", default=True, help="With all kinds of noise, eight times the work.")
@click.option("--seed", type=click.IntRange(min=0), help="Instead of the plan's seed.")
@options.out
@options.running
@options.as_json
@guarded
def calibrate(
    train: Path,
    control: Path,
    plan: Path | None,
    only: tuple[str, ...],
    steps: int,
    noise: bool,
    seed: int | None,
    out: Path | None,
    as_json: bool,
    **running: Unpack[api.Execution],
) -> Exit:
    """Show how the privacy audits answer leaks.

    Copies of real rows are planted among people never seen, from none to all rows, with and without noise;
    every audit measures each. TRAIN and CONTROL hold real rows of one population.

    \b
    Example:
      synth-audit calibrate train.parquet control.parquet --only closest_record --no-noise --out audit
    """
    with console.progress_bar() as progress:
        found = api.calibrate(
            train,
            control,
            plan,
            steps=steps,
            noise=noise,
            only=only,
            seed=seed,
            out=out,
            progress=progress,
            **running,
        )
    files = [out / "review" / name for name in ("calibration.html", "calibration.json")] if out else []
    console.show_calibration(found, files, as_json=as_json)
    if out is None:
        console.tell_scratch()
    return Exit.PASS


@click.command()
@options.plan
@options.out
@click.option("--fresh", is_flag=True, help="Pull the source again and keep no candidate of earlier sweeps.")
@options.running
@options.as_json
@guarded
def frontier(
    plan: Path, out: Path | None, fresh: bool, as_json: bool, **running: Unpack[api.Execution]
) -> Exit:
    """Try several generators and choose among those that pass.

    Sweeps the settings and generators under `frontier` in the plan; a vine without them climbs its
    truncation levels. Each candidate is audited in a folder of its own, at a level of confidence
    corrected for their number. What an interrupted sweep finished is kept. Nothing is released.

    \b
    Examples:
      synth-audit frontier tumours.yaml
      synth-audit frontier tumours.yaml --out audits/tumours --workers 2
      synth-audit release tumours.yaml --candidate vine-truncation-5
    """
    settled = api.as_plan(plan)
    if settled.release is None:
        say("note: the plan names no `release`; to add one later means to sweep again", err=True)
    workspace = api.workspace_of(settled, out)
    with console.progress_bar() as progress:
        found = api.frontier(settled, workspace.root, fresh=fresh, progress=progress, **running)
    words = ["synth-audit", "release", str(plan), *(["--out", str(out)] if out else [])]
    files = [workspace.frontier_page, workspace.frontier]
    command = shlex.join(words) if settled.release is not None else ""
    console.show_frontier(found, files, command, as_json=as_json)
    return sweep_code(found)


@click.command()
@options.plan
@options.running
@options.as_json
@guarded
def estimate(plan: Path, as_json: bool, **running: Unpack[api.Execution]) -> Exit:
    """Say how long a run of a plan should take.

    Runs it on small parts of its table, of 1,000 and 4,000 rows, and extrapolates. Nothing is kept,
    and no privacy budget is debited.

    \b
    Example:
      synth-audit estimate tumours.yaml --workers 4
    """
    with console.progress_bar() as progress:
        found = api.estimate(plan, progress=progress, **running)
    if as_json:
        say_json(json.dumps({**asdict(found), "expected": found.expected}, indent=2))
        return Exit.PASS
    small, large = found.sizes
    say(f"{'stage':<14}{small:>9,} rows{large:>9,} rows{found.rows:>12,} rows")
    for s in found.stages:
        first, second = s.measured
        say(f"{s.name:<14}{first:>12.1f} s{second:>12.1f} s{s.expected:>15,.0f} s")
    say(f"about {_length(found.expected)}, and less where audits look at a part of the rows", bold=True)
    return Exit.PASS


def _length(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
