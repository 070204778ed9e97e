"""The run's cache: made once for the same inputs, also when several ask at the same time."""

from __future__ import annotations

import stat
import threading
import time

import pytest

from synth_audit.execution.context import Cache


def test_the_same_inputs_are_made_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return b"result"

    cache = Cache(tmp_path)
    assert cache.get("train", "seed 1", make=make) == b"result"
    assert cache.get("train", "seed 1", make=make) == b"result"
    assert len(made) == 1
    cache.get("train", "seed 2", make=make)
    cache.get("trainseed", " 1", make=make)
    assert len(made) == 3


def test_without_a_folder_nothing_is_kept():
    assert Cache().get("x", make=lambda: b"1") == b"1"
    assert Cache().get("x", make=lambda: b"2") == b"2"


def test_who_asks_meanwhile_waits(tmp_path):
    made = []

    def slow():
        made.append(1)
        time.sleep(0.2)
        return b"slow"

    asked = [
        threading.Thread(target=Cache(tmp_path).get, args=("k",), kwargs={"make": slow}) for _ in range(4)
    ]
    for thread in asked:
        thread.start()
    for thread in asked:
        thread.join()
    assert made == [1]


def test_what_fails_is_not_kept(tmp_path):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Cache(tmp_path).get("k", make=fail)
    assert Cache(tmp_path).get("k", make=lambda: b"ok") == b"ok"


def test_others_may_not_read_it(tmp_path):
    Cache(tmp_path).get("k", make=lambda: b"learnt from real rows")
    kept = [p for p in tmp_path.iterdir() if p.suffix != ".lock"]
    assert [stat.S_IMODE(p.stat().st_mode) for p in kept] == [0o600]


def test_what_was_put_is_found_and_got(tmp_path):
    cache = Cache(tmp_path)
    assert cache.find("a", "b") is None
    cache.put("a", "b", made=b"1")
    assert cache.find("a", "b") == b"1"
    assert cache.find("ab", "") is None
    assert cache.get("a", "b", make=lambda: b"2") == b"1"
    Cache().put("a", made=b"1")
    assert Cache().find("a") is None
