"""A model of the release that guesses a secret: what it remembers of single rows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats
from synth_audit.audits.privacy._predictors import GuessRule, forest_features
from synth_audit.neighbours.gower import Mixed

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesClassifier

_LEVELS = np.linspace(0, 1, 9)
"""Shares of the release rows, by how sure the forest is of them, that the margin may take over."""


def reconstructed(
    judge: GuessRule, known: Mixed, secrets: Floats, asked: Mixed, n_trees: int, seed: int
) -> tuple[Floats, float]:
    """Guesses at secrets by a forest that learnt from release rows, or by the commonest value.

    Trees are grown to single rows, so that what a release repeats of a person is remembered. A guess is the
    class with most votes where its share of votes is at least t, else the commonest class; t is the quantile,
    of these shares out of bag, with which most release rows are guessed rightly out of bag.

    Args:
        known: n release rows without the secret, n ≥ 1. secrets: theirs, none missing, shape (n,).
        asked: m rows of the same preparation.

    Returns:
        Guesses, shape (m,), and the share of release rows of which the forest is sure enough.

    Source: after Annamalai, Gadotti & Rocher 2024, with trees in place of marginal queries.
    """
    classes, guess = judge.classes(secrets)
    common = int(np.bincount(classes).argmax())
    if len(guess) == 1 or len(known) < 2:
        return np.repeat(guess[common], len(asked)), 0.0
    forest = _grown(known, classes, n_trees, seed)
    votes = forest.oob_decision_function_
    seen = ~np.isnan(votes).any(axis=1)
    sure, share = _threshold(votes[seen], classes[seen], common)
    votes = forest.predict_proba(forest_features(asked))
    best = np.where(votes.max(axis=1) >= sure, forest.classes_[votes.argmax(axis=1)], common)
    found: Floats = guess[best]
    return found, share


def _grown(known: Mixed, classes: Codes, n_trees: int, seed: int) -> ExtraTreesClassifier:
    from sklearn.ensemble import ExtraTreesClassifier  # here, so that looking around stays light

    forest = ExtraTreesClassifier(n_trees, bootstrap=True, oob_score=True, random_state=seed, n_jobs=1)
    with warnings.catch_warnings():
        # Rows that are in every bag are left out; a secret of many labels in few rows is what it is.
        warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="sklearn")
        forest.fit(forest_features(known), classes)
    return forest


def _threshold(votes: Floats, classes: Codes, common: int) -> tuple[float, float]:
    """Share of votes from which the forest is asked, and of how many rows; (infinite, 0) for none of them.

    Args:
        votes: out of bag, shape (n, k). classes: positions of the columns of ``votes``, shape (n,).
    """
    if not len(votes):
        return np.inf, 0.0
    sureness = votes.max(axis=1)
    right, plain = votes.argmax(axis=1) == classes, classes == common
    limits = [*np.quantile(sureness, _LEVELS[:-1]), np.inf]
    taken: list[Bools] = [sureness >= limit for limit in limits]
    best = int(np.argmax([np.where(t, right, plain).mean() for t in taken]))
    return float(limits[best]), float(taken[best].mean())
