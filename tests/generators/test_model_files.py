"""Models as files: what comes back is what was written, and no text makes anything but a model."""

from __future__ import annotations

import json

import numpy as np
import pytest

from synth_audit.encode.univariate import Margin
from synth_audit.generators._marginal.marginals import Conditional
from synth_audit.generators._model_files import read_model, write_model
from synth_audit.generators.cart import Cart

MARGIN = Margin(np.array([0.1, 2.0]), np.array([0.0, 1.0]), 0.5, (-np.inf, np.inf))
PARTS = {
    "margin": MARGIN,
    "numbers": (1, 0.1, float("nan"), None, True, "text", np.float64(0.3), np.int64(4)),
    "labels": np.array(["a", None], dtype=object),
    "by place": {3: np.arange(4, dtype=np.int32), 1: Conditional((), (0,), np.ones((2, 3)))},
}


def test_what_comes_back_is_what_was_written(tmp_path):
    write_model(tmp_path, PARTS)
    json.loads((tmp_path / "model.json").read_text(), parse_constant=pytest.fail)
    again = read_model(tmp_path, dict)
    assert list(again) == list(PARTS)
    assert again["margin"].limits == MARGIN.limits
    assert again["margin"].knots.tolist() == MARGIN.knots.tolist()
    assert np.isnan(again["numbers"][2])
    assert again["numbers"][:2] + again["numbers"][3:] == (1, 0.1, None, True, "text", 0.3, 4)
    assert again["labels"].tolist() == ["a", None]
    assert list(again["by place"]) == [3, 1]
    assert again["by place"][3].dtype == np.int32
    assert again["by place"][1].weights.shape == (2, 3)


COPULA = {"fam": "Frank", "par": {"data": [], "shape": [50, 50]}, "rot": 0, "vt": ["c", "c"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pyvinecopulib:Bicop", COPULA, "another number of values than it says"),
        *(
            (name, {}, "names a class that no model is made of")
            for name in [
                "os:system",
                "synth_audit.pipeline.release:Release",
                "subprocess:Popen",
                "pyvinecopulib_of_others:Vinecop",  # would import a module that was put on the path
                "pyvinecopulib:read_json",
                "synth_audit.generators.arf:FitContext",  # imported there, and defined elsewhere
                "synth_audit.generators.arf:np",
                "synth_audit.generators.external.program:Program",
                "synth_audit.generators.nothing:Nothing",
            ]
        ),
    ],
)
def test_a_text_makes_nothing_but_sound_models(name, content, message, tmp_path):
    (tmp_path / "model.json").write_text(json.dumps({name: content}))
    with pytest.raises(ValueError, match=message):
        read_model(tmp_path, object)


def test_a_file_gives_a_generator_no_model_but_its_own(tmp_path):
    write_model(tmp_path, MARGIN)
    with pytest.raises(TypeError, match="a model of another kind"):
        Cart().load(tmp_path)


def test_what_no_model_is_made_of_is_not_written(tmp_path):
    with pytest.raises(TypeError, match="no model is made of object"):
        write_model(tmp_path, object())
