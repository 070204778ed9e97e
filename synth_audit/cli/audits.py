"""Commands that attack tables and mechanisms at hand, and show how far to trust the attacks."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

import synth_audit as api
from synth_audit.cli import shared, terminal
from synth_audit.cli.shared import FILE, POSITIVE, CommandJob, main
from synth_audit.cli.terminal import Exit, exit_code, say, say_json, say_whole, short
from synth_audit.errors import PlanError

if TYPE_CHECKING:
    from synth_audit.mechanism_test.examination import MechanismResult

JOB = CommandJob.AUDIT
_MECHANISM_ENDS = {
    "violated": ("red", Exit.NOT_RELEASED),
    "doubtful": ("yellow", Exit.DOUBTFUL),
    "tight": ("green", Exit.PASS),
    "not refuted": ("green", Exit.PASS),
    "not testable": ("yellow", Exit.NOT_CHECKABLE),
}
"""Colour and exit code of each answer."""


@main.command(job=JOB)
@click.argument("folder", type=shared.FOLDER, default=Path("sample"))
def sample(folder: Path) -> Exit:
    """Write sample files for a first audit.

    FOLDER (./sample by default) gets train.csv and control.csv, made-up patients of one population, good.csv,
    a synthetic version that passes, and bad.csv, one that is refused: it repeats patients of train.csv.

    \b
    Example:
      synth-audit sample
    """
    files = api.sample(folder)
    for path in files.values():
        say_whole(f"wrote {path}")
    names = [str(files[name]) for name in ("train", "control", "bad")]
    terminal.say_next(shlex.join(["synth-audit", "audit", *names, "--out", str(folder / "audit")]))
    return Exit.PASS


@main.command(job=JOB)
@click.argument("train", type=FILE)
@click.argument("control", type=FILE)
@click.argument("synthetic", type=FILE)
@click.option("--plan", type=FILE, help="Plan with columns, audits and gates.")
@shared.only
@shared.out
@shared.running
@shared.as_json
def audit(
    train: Path,
    control: Path,
    synthetic: Path,
    plan: Path | None,
    only: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    **running: Unpack[shared.Running],
) -> Exit:
    """Audit a synthetic file made elsewhere.

    TRAIN holds the real rows that the generator learned from. CONTROL holds real rows of the same population
    that it never saw: anything an attacker also learns about control people does not count as a leak. Parquet
    or CSV. Without --out, temporary files with real rows are in TMPDIR, in folders of mode 0700.

    \b
    Examples:
      synth-audit audit train.parquet control.parquet synthetic.parquet --out audit
      synth-audit audit train.csv control.csv synthetic.csv --plan plan.yaml --only exact_match
    """
    evidence = terminal.watched(api.audit, train, control, synthetic, plan, only=only, out=out, **running)
    files = terminal.files_of(out) if out else []
    terminal.show_evidence(evidence, files, as_json=as_json)
    if out is None:
        say("nothing was written; --out FOLDER keeps the report and the evidence", err=True)
        terminal.tell_scratch(plan)
    code = exit_code(evidence)
    if code is not Exit.PASS:
        step = terminal.next_step(evidence, out)
    elif out is None:
        step = f"--out FOLDER writes the table to share; do not share {synthetic} itself"
    else:  # audited rows and values alone, never the audited file
        table = next((file for file in files if file.suffix == ".parquet"), "what `release` writes")
        step = f"share {table}, not {synthetic}"
    terminal.say_next(step, aside=as_json)
    return code


@main.command(job=JOB)
@shared.evidence
@click.option(
    "--suite",
    required=True,
    shell_complete=shared.suite_names,
    help="Gate suite: a file, or one that ships.",
)
@shared.as_json
def gate(evidence: Path, suite: str, as_json: bool) -> Exit:
    """Judge existing evidence by another suite.

    EVIDENCE is an evidence file, the folder of an audit, or a workspace, of which the newest audit is meant.
    Needs no data and writes nothing.

    \b
    Example:
      synth-audit gate audit --suite strict.json
    """
    judged = api.gate(evidence, suite)
    terminal.show_evidence(judged, [], as_json=as_json, trial=True)
    terminal.say_next(terminal.next_step(judged, None), aside=as_json)
    return exit_code(judged)


@main.command(job=JOB)
@shared.plan
@shared.out
@shared.running
@shared.as_json
def exposure(plan: Path, out: Path | None, as_json: bool, **running: Unpack[shared.Running]) -> Exit:
    """Attack the releases of a table together.

    Several releases may each pass and together still reveal a person. Audited as one table are the current
    release, the one before and the newest candidate that passed, as far as they were made from the present
    training rows. Evidence and report lie in together/ in the workspace. Nothing is released or taken back.

    \b
    Example:
      synth-audit exposure tumours.yaml
    """
    from synth_audit.inputs import workspace_of

    evidence = terminal.watched(api.exposure, plan, out, **running)
    together = workspace_of(plan, out).root / "together"
    terminal.show_evidence(evidence, [together], as_json=as_json)
    terminal.say_next(terminal.next_step(evidence, together), aside=as_json)
    return exit_code(evidence)


@main.command(job=JOB)
@click.argument("train", type=FILE)
@click.argument("control", type=FILE)
@click.option("--plan", type=FILE, help="Plan with columns and audits.")
@shared.only
@click.option("--steps", type=click.IntRange(min=2), default=10, show_default=True, help="Sizes of the leak.")
@click.option("--noise/--no-noise", default=True, help="With all kinds of noise, eight times the work.")
@click.option("--seed", type=click.IntRange(min=0), help="Instead of the plan's seed.")
@shared.out
@shared.running
@shared.as_json
def calibrate(
    train: Path,
    control: Path,
    plan: Path | None,
    steps: int,
    noise: bool,
    only: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    as_json: bool,
    **running: Unpack[shared.Running],
) -> Exit:
    """Show how the privacy audits answer leaks.

    Copies of training records are planted in a release of control records, from none to all rows, with and
    without noise. Every audit measures each. TRAIN and CONTROL hold real rows of one population.

    \b
    Example:
      synth-audit calibrate train.parquet control.parquet --only closest_record --no-noise --out audit
    """
    settings = {"steps": steps, "noise": noise, "only": only, "seed": seed, "out": out}
    found = terminal.watched(api.calibrate, train, control, plan, **settings, **running)
    files = [out / "review" / name for name in ("calibration.html", "calibration.json")] if out else []
    if as_json:
        say_json(found)
    else:  # how straight each measurement follows the leak without noise, and where the curves are
        plain = [c for c in found.curves if c.noise.none]
        width = max((len(short(str(c.id))) for c in plain), default=0)
        say(f"{'measurement':<{width}}  no copy  full copy  R² of a line")
        for c in plain:
            first, last = c.points[0].value, c.points[-1].value
            say(f"{short(str(c.id)):<{width}}  {first:>7.3f}  {last:>9.3f}  {c.r_squared:>12.4f}")
        for name, reason in found.silent.items():
            say(f"  {name} gave no number on some leak: {reason}", fg="yellow")
        for path in files:
            say_whole(f"  {path}")
    if out is None:
        terminal.tell_scratch(plan)
    return Exit.PASS


@main.command("test-mechanism", job=JOB)
@click.option("--plan", type=FILE, help="Plan: its generator, budget and columns.")
@click.option("--generator", metavar="NAME", help="One of ours: mst, or '{dp_wgan: {epochs: 5}}'.")
@click.option("--command", metavar="WORDS", help="A program that reads {train} and writes {synthetic}.")
@click.option("--function", metavar="MODULE:NAME", help="Takes a table and n, returns n results at once.")
@click.option("--step", type=click.Choice(["dp_sgd", "marginals"]), help="One step of ours, from inside.")
@click.option("--epsilon", type=POSITIVE, help="What is claimed.")
@click.option("--delta", type=click.FloatRange(min=0, max=1, max_open=True), default=0.0, show_default=True)
@click.option("--replace", is_flag=True, help="Neighbours replace one entity, instead of adding or removing.")
@click.option("--rows", type=click.IntRange(min=1), default=20, show_default=True, help="Of the made tables.")
@click.option("--runs", type=click.IntRange(min=60), default=1000, show_default=True, help="Runs in all.")
@click.option("--seconds", type=POSITIVE, default=1500.0, show_default=True, help="About how long at most.")
@click.option("--neighbours", metavar="MODULE:NAME", help="With --function: [(name, without, having)].")
@click.option("--noise", "multiplier", type=click.FloatRange(min=0.01), default=1.0, help="With --step: σ/C.")
@click.option("--rate", type=click.FloatRange(0, 1, True), default=1.0, help="With --step: of sampling.")
@click.option("--format", type=click.Choice(["csv", "parquet"]), default="csv", help="With --command.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=600.0, help="With --command: one run.")
@click.option("--seed-is-secret", is_flag=True, help="With --command: equal seeds may repeat the noise.")
@click.option("--workers", type=click.IntRange(min=1, max=256), help="Processes to spread the runs over.")
@shared.as_json
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
    from synth_audit.files import Malformed, load_yaml

    try:
        named = generator is None or not generator.lstrip().startswith("{")
        choice = generator if named else load_yaml(str(generator))  # as a plan names it
    except Malformed:
        raise PlanError(
            "the generator's settings are no YAML", where="--generator", expected="'{name: {setting: value}}'"
        ) from None
    found = terminal.watched(api.test_mechanism, generator=choice, **given)
    if as_json:
        say_json(found)
    else:
        _show_mechanism(found)
    return _MECHANISM_ENDS[found.answer][1]


def _show_mechanism(found: MechanismResult) -> None:
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
    colour, _ = _MECHANISM_ENDS[found.answer]
    say(f"{str(found.answer).upper()}: {found.reason}.", fg=colour, bold=True)
