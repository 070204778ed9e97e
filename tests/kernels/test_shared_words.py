"""Texts that share words: whom one stands out to, and that what many texts share tells nothing."""

from __future__ import annotations

import numpy as np

from synth_audit.kernels.shared_words import Words, standing_out_in_words


def words(texts):
    return Words(np.cumsum([0, *map(len, texts)]), np.array([code for text in texts for code in text], int))


def drawn(rng, n):
    return [rng.choice(1000, 8, replace=False) for _ in range(n)]


def test_a_text_stands_out_to_whom_it_has_half_of_the_words_of():
    rng = np.random.default_rng(0)
    people, release = drawn(rng, 100), drawn(rng, 300)
    for i in range(20):
        release[i] = np.concatenate([people[i][:4], release[i][:4]])
    found = standing_out_in_words(words(release), words(people))
    assert found[:20].min() > 15 > found[20:].max()


def test_what_is_shared_with_many_or_with_nobody_does_not_stand_out():
    rng = np.random.default_rng(1)
    phrase = np.arange(2000, 2008)
    release = [*drawn(rng, 100), *(np.concatenate([phrase, x[:2]]) for x in drawn(rng, 50))]
    people = [phrase, np.arange(3000, 3008), np.array([], int)]
    assert standing_out_in_words(words(release), words(people)).max() < 12


def test_twins_of_a_text_do_not_hide_it():
    rng = np.random.default_rng(2)
    people, release = drawn(rng, 3), drawn(rng, 50)
    release[:3] = [people[0]] * 3
    assert standing_out_in_words(words(release), words(people))[0] > 20
