"""Vectors of texts."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.encode import texts as ngrams
from synth_audit.encode.texts import WIDTH, _KeptVectors, _made, greatest_similarity, ngram_vectors
from synth_audit.table.label_forms import standard_form

NOTE = "Patient fell off a horse and broke her left wrist; cast for six weeks."
OTHERS = [
    "Routine check, no complaints. Blood pressure slightly raised.",
    "Admitted with chest pain at night, troponin negative twice.",
    "Vaccinated against influenza, no reaction seen.",
    "Allergic to penicillin, rash after the second dose.",
]


def apart(*texts):
    one, *others = ngram_vectors([standard_form(text) for text in texts])
    return np.linalg.norm(np.array(others) - one, axis=1)


def test_a_note_with_a_word_changed_is_nearer_than_any_other():
    changed = NOTE.replace("six", "eight")
    near, *far = apart(NOTE, changed, *OTHERS)
    assert 0 < near < 0.5
    assert min(far) > 2 * near


def test_case_and_width_move_nothing():
    assert apart(NOTE, NOTE.upper(), f"  {NOTE}").tolist() == [0.0, 0.0]


def test_vectors_have_length_one_and_are_the_same_beside_any_other():
    alone = ngram_vectors([NOTE])
    assert alone.shape == (1, WIDTH)
    assert alone.dtype == np.float32
    assert np.linalg.norm(alone) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(_made([*OTHERS, NOTE])[-1:], alone)
    assert not ngram_vectors([""]).any()
    assert ngram_vectors([]).shape == (0, WIDTH)


def test_the_vector_of_a_text_is_made_once_as_long_as_there_is_room(monkeypatch):
    made = []
    monkeypatch.setattr(ngrams, "_made", lambda texts: made.append(list(texts)) or _made(texts))
    kept = _KeptVectors(3)
    first = kept.vectors([NOTE, OTHERS[0], NOTE])
    assert np.array_equal(first, _made([NOTE, OTHERS[0], NOTE]))
    assert np.array_equal(kept.vectors([OTHERS[1], NOTE]), _made([OTHERS[1], NOTE]))
    assert np.array_equal(kept.vectors([OTHERS[0]]), first[1:2])
    assert made == [[NOTE, OTHERS[0]], [OTHERS[1]]]
    assert np.array_equal(kept.vectors(OTHERS), _made(OTHERS))  # more than there is room for
    assert np.array_equal(kept.vectors([NOTE]), first[:1])
    assert made[2:] == [OTHERS, [NOTE]]


def test_only_the_beginning_of_a_long_text_counts():
    long = "word " * 400
    assert np.array_equal(ngram_vectors([long + "one end"]), ngram_vectors([long + "another"]))


def test_the_most_similar_text_is_found_whatever_the_order():
    texts = ["fever since two days", "a rash on the left knee"]
    others = ["no complaint", "a rash on the right knee", "fever since two days"]
    found = greatest_similarity(texts, others)
    assert found[0] == pytest.approx(1, abs=1e-6)
    assert 0.6 < found[1] < 0.99
    assert np.allclose(found, greatest_similarity(texts, others[::-1]))
