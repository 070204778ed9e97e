"""How often the interval of the worst of several ways lies beside the truth: figures of docs/methods.md.

One way links a share of the people of train; every way links anybody by chance. The attacks that choose the
worst way on one half of the people and count on the other use the function that is measured here.
"""

from __future__ import annotations

import argparse

import numpy as np

from synth_audit.kernels.held_out import halved, held_out_share

DRAWS, SEED, HALVINGS, LEVEL = 2000, 0, 8, 0.95
TRAIN, CONTROL = 1500, 500
CASES = [(11, 0.02, 0.005), (11, 0.02, 0.02), (1, 0.02, 0.005), (11, 0.0, 0.005), (11, 0.05, 0.005)]
"""Ways, share of the people of train that the first way links, and share that every way links by chance."""


def misses(ways: int, leak: float, chance: float) -> tuple[float, float, float]:
    """Share of draws whose interval ends below the truth or begins above it, and the mean estimate."""
    rng = np.random.default_rng(SEED)
    member = np.arange(TRAIN + CONTROL) < TRAIN
    truth, below, above, values = leak * (1 - chance), 0, 0, []
    for _ in range(DRAWS):
        linked = rng.random((len(member), ways)) < chance
        linked[member, 0] |= rng.random(TRAIN) < leak
        second = halved(member, HALVINGS, rng)
        found, _ = held_out_share(linked, np.ones_like(linked), member, second, LEVEL)
        assert found.interval is not None
        below += found.interval.high < truth
        above += found.interval.low > truth
        values.append(found.value)
    return below / DRAWS, above / DRAWS, float(np.mean(values))


def main() -> None:
    """Print one line for each case."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"{TRAIN} and {CONTROL} people, {DRAWS:,} draws, intervals at {LEVEL:.0%}")
    print("ways  leak   chance  upper bound below truth  lower bound above truth  mean estimate")
    for ways, leak, chance in CASES:
        below, above, mean = misses(ways, leak, chance)
        print(f"{ways:>4}  {leak:.1%}   {chance:.1%}  {below:>23.1%}  {above:>23.1%}  {mean:>13.2%}")


if __name__ == "__main__":
    main()
