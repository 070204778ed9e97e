"""Files are replaced whole, and nothing but files is."""

from __future__ import annotations

import os
import stat

import pytest

from synth_audit.files import replacing


def write(path, text):
    with replacing(path) as temporary:
        temporary.write_text(text)


def interrupted(path):
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt


def test_a_file_is_replaced_and_a_failure_leaves_it(tmp_path):
    path = tmp_path / "new" / "x.txt"
    write(path, "one")
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_text() == "one"
    write(path, "two")
    assert path.read_text() == "two"
    assert os.listdir(path.parent) == ["x.txt"]


def test_what_is_no_file_is_never_replaced(tmp_path):
    """Whoever may do anything and says `--to /dev/null` would break that for the whole machine."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    for path in (pipe, link):
        with pytest.raises(FileExistsError):
            write(path, "text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(link.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]
