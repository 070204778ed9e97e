"""Models as files: what comes back is what was written, and no text makes anything but a model."""

from __future__ import annotations

import json

import numpy as np
import pytest

from synth_audit.generators._marginal.graphical_model import Conditional
from synth_audit.generators._model_files import from_text, read_model, to_text, write_model
from synth_audit.generators.cart import Cart
from synth_audit.stats.margins import Margin

MARGIN = Margin(np.array([0.1, 2.0]), np.array([0.0, 1.0]), 0.5, (-np.inf, np.inf))
PARTS = {
    "margin": MARGIN,
    "numbers": (1, 0.1, float("nan"), None, True, "text", np.float64(0.3), np.int64(4)),
    "labels": np.array(["a", None], dtype=object),
    "by place": {3: np.arange(4, dtype=np.int32), 1: Conditional((), (0,), np.ones((2, 3)))},
}


def through_files(model, folder):
    write_model(folder, model)
    return read_model(folder, dict)


@pytest.mark.parametrize("way", ["files", "text"])
def test_what_comes_back_is_what_was_written(way, tmp_path):
    again = through_files(PARTS, tmp_path) if way == "files" else from_text(to_text(PARTS))
    assert list(again) == list(PARTS)
    assert again["margin"].limits == MARGIN.limits
    assert again["margin"].knots.tolist() == MARGIN.knots.tolist()
    assert np.isnan(again["numbers"][2])
    assert again["numbers"][:2] + again["numbers"][3:] == (1, 0.1, None, True, "text", 0.3, 4)
    assert again["labels"].tolist() == ["a", None]
    assert list(again["by place"]) == [3, 1]
    assert again["by place"][3].dtype == np.int32
    assert again["by place"][1].weights.shape == (2, 3)


def test_the_text_is_plain_json(tmp_path):
    write_model(tmp_path, PARTS)
    for text in (to_text(PARTS), (tmp_path / "model.json").read_text()):
        json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "synth_audit.pipeline.release:Release",
        "subprocess:Popen",
        "pyvinecopulib_of_others:Vinecop",  # would import a module that was put on the path
        "pyvinecopulib:read_json",
        "synth_audit.generators.arf:FitContext",  # imported there, and defined elsewhere
        "synth_audit.generators.arf:np",
        "synth_audit.generators.external.program:Program",
        "synth_audit.generators.nothing:Nothing",
    ],
)
def test_a_text_makes_nothing_but_models(name):
    with pytest.raises(ValueError, match="names a class that no model is made of"):
        from_text(json.dumps({name: {}}))


def test_a_damaged_copula_is_refused_before_the_library_reads_it():
    copula = {"fam": "Frank", "par": {"data": [], "shape": [50, 50]}, "rot": 0, "vt": ["c", "c"]}
    with pytest.raises(ValueError, match="another number of values than it says"):
        from_text(json.dumps({"pyvinecopulib:Bicop": copula}))


def test_a_file_gives_a_generator_no_model_but_its_own(tmp_path):
    write_model(tmp_path, MARGIN)
    with pytest.raises(TypeError, match="a model of another kind"):
        Cart().load(tmp_path)


def test_what_no_model_is_made_of_is_not_written():
    with pytest.raises(TypeError, match="no model is made of object"):
        to_text(object())
