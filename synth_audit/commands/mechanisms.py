"""The verb that asks whether a claimed ε holds."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synth_audit import api, console
from synth_audit.commands import options
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say, say_json

if TYPE_CHECKING:
    from synth_audit.mechanism_test.result import MechanismResult

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
@options.as_json
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
    from synth_audit.core.errors import PlanError
    from synth_audit.core.strict_yaml import Malformed, load_yaml

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
