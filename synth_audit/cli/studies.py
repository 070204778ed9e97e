"""Commands that run many audits or fits for one question."""

from __future__ import annotations

import json
import shlex
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from synth_audit import api
from synth_audit.cli import console, exits
from synth_audit.cli.exits import Exit, guarded, say, say_json, sweep_code

if TYPE_CHECKING:
    from synth_audit.mechanism_test.distinguishing import MechanismResult


@click.command()
@click.argument("train", type=click.Path(path_type=Path))
@click.argument("control", type=click.Path(path_type=Path))
@click.option("--plan", type=click.Path(path_type=Path), help="Plan with columns and audits.")
@click.option("--only", multiple=True, metavar="NAME", help="Calibrate only this audit; repeatable.")
@click.option("--steps", type=click.IntRange(min=2), default=10, show_default=True, help="Sizes of the leak.")
@click.option("--noise/--no-noise", default=True, help="With all kinds of noise, eight times the work.")
@click.option("--seed", type=click.IntRange(min=0), help="Instead of the plan's seed.")
@exits.out
@exits.running
@exits.as_json
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
@exits.plan
@exits.out
@click.option("--fresh", is_flag=True, help="Pull the source again and keep no candidate of earlier sweeps.")
@exits.running
@exits.as_json
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
@exits.plan
@exits.running
@exits.as_json
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


_COLOURS = {
    "violated": "red",
    "doubtful": "yellow",
    "tight": "green",
    "not refuted": "green",
    "not testable": "yellow",
}
_CODES = {
    "violated": Exit.NOT_RELEASED,
    "not testable": Exit.NOT_CHECKABLE,
    "doubtful": Exit.DOUBTFUL,
}


@click.command("test-mechanism")
@click.option("--plan", type=click.Path(path_type=Path), help="Plan: its generator, budget and columns.")
@click.option("--generator", metavar="NAME", help="One of ours: mst, or '{dp_wgan: {epochs: 5}}'.")
@click.option("--command", metavar="WORDS", help="A program that reads {train} and writes {synthetic}.")
@click.option("--function", metavar="MODULE:NAME", help="Takes a table and n, returns n results at once.")
@click.option("--step", type=click.Choice(["dp_sgd", "marginals"]), help="One step of ours, from inside.")
@click.option("--epsilon", type=click.FloatRange(min=0, min_open=True), help="What is claimed.")
@click.option("--delta", type=click.FloatRange(min=0, max=1, max_open=True), default=0.0, show_default=True)
@click.option("--replace", is_flag=True, help="Neighbours replace one entity, instead of adding or removing.")
@click.option("--rows", type=click.IntRange(min=1), default=20, show_default=True, help="Of the made tables.")
@click.option("--runs", type=click.IntRange(min=60), default=1000, show_default=True, help="Runs in all.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=1500.0,
    show_default=True,
    help="About how long at most; slow mechanisms then run less often.",
)
@click.option(
    "--neighbours", metavar="MODULE:NAME", help="With --function: returns [(name, without, having)]."
)
@click.option("--noise", "multiplier", type=click.FloatRange(min=0.01), default=1.0, help="With --step: σ/C.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True, max=1),
    default=1.0,
    help="With --step: of sampling.",
)
@click.option("--format", type=click.Choice(["csv", "parquet"]), default="csv", help="With --command.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=600.0, help="With --command: one run.")
@click.option("--seed-is-secret", is_flag=True, help="With --command: equal seeds may repeat the noise.")
@click.option("--workers", type=click.IntRange(min=1, max=256), help="Processes to spread the runs over.")
@exits.as_json
@guarded
def test_mechanism(as_json: bool, generator: str | None, **given: Any) -> Exit:
    """Ask whether a claimed ε holds.

    Runs a mechanism many times on worst-case neighbouring tables and tells them apart. A true claim is called
    violated with probability 0.001 at most; a claim that is not refuted may still be false. Exactly one of
    --plan, --generator, --command, --function and --step is tested.

    \b
    Exit codes: 0 not refuted or tight, 1 violated, 2 bad input, 4 too few runs to refute the claim,
    5 doubtful: the 95 % bound is above the claim, and more runs would decide.

    \b
    Examples:
      synth-audit test-mechanism --plan tumours.yaml --runs 400 --workers 2
      synth-audit test-mechanism --generator mst --epsilon 1 --delta 1e-5
      synth-audit test-mechanism --command 'python mine.py {train} {synthetic} {seed}' --epsilon 1
      synth-audit test-mechanism --function mine:noisy_sum --epsilon 1 --delta 1e-5 --runs 1000000
      synth-audit test-mechanism --step marginals --noise 4 --runs 1000000
      synth-audit test-mechanism --step dp_sgd --noise 1.1 --rate 0.5 --runs 20000
    """
    with console.progress_bar() as progress:
        found = api.test_mechanism(generator=_choice(generator), progress=progress, **given)
    if as_json:
        say_json(found.to_json())
    else:
        _show(found)
    return _CODES.get(found.answer, Exit.PASS)


def _choice(text: str | None) -> Any:
    """A generator as a plan names it."""
    if text is None or not text.lstrip().startswith("{"):
        return text
    from synth_audit.errors import PlanError
    from synth_audit.files import Malformed, load_yaml

    try:
        return load_yaml(text)
    except Malformed:
        raise PlanError(
            "the generator's settings are no YAML", where="--generator", expected="'{name: {setting: value}}'"
        ) from None


def _show(found: MechanismResult) -> None:
    """The answer, and what it rests on."""
    say(f"{found.mechanism}: claims {found.claim.sentence}")
    say()
    if found.tested:
        say(f"  pilot {found.pilot:,} runs, tested {found.tested:,}; neighbours: {found.case}")
        say(f"  looked at: {found.score}")
        say(f"  rule: {found.rule}")
    if found.counts is not None:
        c = found.counts
        say(f"  claims: {c.claimed:,} in {c.runs:,} runs, {c.right:,} right")
        say(
            f"  ε is at least {found.epsilon_at_least:.3g} ({100 * found.level:g} % confidence), "
            f"{found.epsilon_shown:.3g} ({100 * found.level_shown:g} %); "
            f"the most that these runs could have shown: {found.largest:.3g}"
        )
    if found.failed:
        say(f"  {found.failed:,} of the tested runs gave no release", fg="yellow")
    for finding in found.findings:
        say(f"  inside: {finding.what}", fg="red")
    for note in found.notes:
        say(f"  note: {note}", fg="yellow")
    say()
    sentence = f"{str(found.answer).upper()}: {found.reason}."
    say(textwrap.fill(sentence, 10_000), fg=_COLOURS[found.answer], bold=True)
