"""Whether something rare is more frequent in one sample than another of the same population allows."""

from __future__ import annotations


def chance_of_more(new: int, usual: int, n_new: int, n_usual: int) -> float:
    """How likely so many of ``new + usual`` rare events fall on the first sample, if each row may have one.

    ``P(X ≥ new)`` of ``X ~ Binomial(new + usual, n_new / (n_new + n_usual))``: the exact test that two
    Poisson rates are equal (Przyborowski & Wilenski 1940).

    Args:
        new, usual: events in either sample. n_new, n_usual: their rows.

    Returns:
        in (0, 1]; small where the first sample has more than the second lets expect.
    """
    from scipy.special import betainc  # here, since a code location must not load it

    if new == 0:
        return 1.0
    return float(betainc(new, usual + 1, n_new / (n_new + n_usual)))
