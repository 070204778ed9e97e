"""Replicated uniques and correct attributions by keys: what statistical offices count in synthetic tables."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Bools, Codes


def unique_rows(keys: Codes) -> Bools:
    """Rows whose key no other row of the table has, shape (n,)."""
    alone: Bools = np.bincount(keys)[keys] == 1
    return alone


def replicated_unique(keys: Codes, original: Codes, synthetic: Codes, *, inside: bool) -> Bools:
    """People whose key is unique in the original and unique in the synthetic table, shape (n,).

    ``d_q = 1 and s_q = 1``, with d and s the rows of the original and the synthetic table that have key q.

    Args:
        keys: of the people asked about, shape (n,). original, synthetic: of all rows of the tables.
        inside: whether these people are in the original; if not, each is asked about as if added to it.
    """
    size = 1 + max(int(x.max(initial=0)) for x in (keys, original, synthetic))
    real, made = (np.bincount(x, minlength=size)[keys] for x in (original, synthetic))
    found: Bools = (real == int(inside)) & (made == 1)
    return found


def disclosed_target(keys: Codes, targets: Codes, of_keys: Codes, of_targets: Codes) -> Bools:
    """People whose target is that of all rows of a table which have their key, shape (n,).

    In the paper's terms ``ps_tq = 1`` at the person's own t and q: disclosive in the table, and correct.

    Args:
        keys, targets: of the people asked about, shape (n,) each, from 0. of_keys, of_targets: of the table.
    """
    n_targets = 1 + max(int(x.max(initial=0)) for x in (targets, of_targets))
    size = 1 + max(int(x.max(initial=0)) for x in (keys, of_keys))
    pairs = np.unique(of_keys.astype(np.int64) * n_targets + of_targets)
    key, target = np.divmod(pairs, n_targets)
    only = np.full(size, -1, dtype=np.int64)
    only[key] = target
    only[np.bincount(key, minlength=size) != 1] = -1
    return np.asarray(only[keys] == targets, dtype=np.bool_)
