"""A training that was broken off goes on where it was, unless it protects anybody."""

import json
import os
import signal

import numpy as np
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit import registry
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.encode.univariate import Margin
from synth_audit.generators._deep import training, transforms
from synth_audit.generators._marginal.marginals import Conditional
from synth_audit.generators._model_files import read_model, write_model
from synth_audit.generators.cart import Cart
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema import PublicDomain
from synth_audit.table.schema_inference import ColumnSpec

_STEPPED = {"steps": 5, "hidden": 8}
_BY_STEPS = {**_STEPPED, "margins": 0}
_GAN = {**_BY_STEPS, "batch": 10, "noise": 4, "critic_steps": 2}
_ATTENTION = {**_STEPPED, "width": 8, "mixtures": 2}
_EPOCHS = {"epochs": 3, "hidden": 8}
SETTINGS = {
    "tvae": {**_EPOCHS, "latent": 2},
    "ctgan": {**_EPOCHS, "noise": 4},
    "tab_ddpm": {**_STEPPED, "levels": 3},
    "attention_ae": _ATTENTION,
    "attention_vae": _ATTENTION,
    "attention_gan": {**_ATTENTION, "gan_steps": 4, "gan_hidden": 8, "critic_steps": 2},
    "table_diffusion": {**_BY_STEPS, "levels": 2},
    "dp_ctgan": _GAN,
    "pate_gan": {"rounds": 5, "teachers": 3, "votes": 4, "batch": 8, "hidden": 8, "noise": 4, "margins": 0},
    "dp_auto_gan": {**_GAN, "latent": 2, "autoencoder_steps": 4},
}
SPECS = {
    "x": ColumnSpec(kind="continuous", bounds=(-9, 9), nullable=False),
    "label": ColumnSpec(kind="categorical", categories=("low", "high"), nullable=False),
}


class BrokenOff(Exception):
    """What ends a training in these tests."""


@pytest.fixture(autouse=True)
def every_step(monkeypatch):
    """The state is kept after every step. Two modes suffice: a mixture of ten takes most of a fit."""
    monkeypatch.setattr(training, "_EVERY", 0.0)
    monkeypatch.setattr(transforms, "MOST", 2)


def rows(seed=0, n=120):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return table_of({"x": x, "label": np.where(x > 0, "high", "low")}, SPECS)


def context(folder, progress=lambda *said: None, seed=0, epsilon=None):
    train = rows()
    accountant = Accountant(None if epsilon is None else Budget(epsilon, 1e-5), unit=Unit.ROW)
    return FitContext(
        rng=np.random.default_rng(seed),
        accountant=accountant,
        public_domain=PublicDomain.of(train.schema),
        checkpoint=folder,
        progress=progress,
    )


def fitted(name, handed, train=None, **changes):
    generator = registry.build("generator", name, SETTINGS[name] | changes)
    model = generator.fit(train or rows(), handed)
    drawn = model.sample(40, np.random.default_rng(1))
    return drawn.numbers("x").tolist(), drawn.labels("label").tolist(), handed.course.of_losses()


def breaking(told, at, end):
    """Progress that is noted, and that ends the fit at its ``at``-th step."""

    def progress(what, done, total):
        told.append(done)
        if len(told) == at:
            end()

    return progress


def broken_off(name, folder, at=3, **changes):
    def end():
        raise BrokenOff

    told = []
    with pytest.raises(BrokenOff):
        fitted(name, context(folder, breaking(told, at, end)), **changes)
    assert any(folder.iterdir())


@pytest.fixture(scope="module")
def whole_tvae():
    """A training of ``tvae`` that nothing broke off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transforms, "MOST", 2)
        return fitted("tvae", context(None))


@pytest.mark.parametrize(
    ("name", "at"), [*((name, 3) for name in SETTINGS), ("attention_gan", 8), ("dp_auto_gan", 8)]
)
def test_what_was_broken_off_ends_as_if_nothing_had_been(tmp_path, name, at):
    all_told, left = [], []
    whole = fitted(name, context(None, lambda what, done, total: all_told.append(done)))
    broken_off(name, tmp_path, at)
    again = fitted(name, context(tmp_path, lambda what, done, total: left.append(done)))
    assert again == whole, "rows and curves"
    assert left == all_told[at - 1 :], "the step that was not ended, and those after it"


def test_what_was_killed_ends_as_if_nothing_had_been(tmp_path, whole_tvae):
    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        try:
            fitted("tvae", context(tmp_path, breaking([], 3, die)))
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    [kept] = tmp_path.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert fitted("tvae", context(tmp_path)) == whole_tvae


@pytest.mark.parametrize("name", ["table_diffusion", "dp_ctgan", "dp_auto_gan", "tvae"])
def test_under_a_budget_nothing_is_left_and_nothing_is_taken_up(tmp_path, name):
    changes = {} if name == "tvae" else {"sampling_rate": 1.0}  # whose cost is quick to add up
    broken_off(name, tmp_path, at=4, **changes)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    told = []
    handed = context(tmp_path, lambda what, done, total: told.append(done), epsilon=5.0)
    fitted(name, handed, **changes)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert told[0] == 1


@pytest.mark.parametrize(
    "other",
    [
        {"train": rows(seed=1)},
        {"seed": 1},
        {"learning_rate": 0.01},
        {"batch": 40},
        {"epochs": 4},
        {"regularised": False},
    ],
    ids=str,
)
def test_the_state_of_another_training_is_ignored_and_that_is_said(tmp_path, other):
    seed = other.get("seed", 0)
    changes = {key: value for key, value in other.items() if key != "seed"}
    whole = fitted("tvae", context(None, seed=seed), **changes)
    broken_off("tvae", tmp_path)
    said = []
    handed = context(tmp_path, lambda what, done, total: said.append((what, done)), seed=seed)
    assert fitted("tvae", handed, **changes) == whole
    assert said[0] == ("train: checkpoint of another table, plan or setting is ignored", 0)
    assert said[1][1] == 1


@pytest.mark.parametrize("kind", ["cut", "pickled", "empty"])
def test_a_state_that_cannot_be_read_is_ignored_and_that_is_said(tmp_path, kind, whole_tvae):
    broken_off("tvae", tmp_path)
    [path] = tmp_path.iterdir()
    if kind == "pickled":
        with np.load(path) as file:
            arrays = dict(file)
        np.savez(path, **{**arrays, "digest": np.array([{"code": "object"}], dtype=object)})
    else:
        path.write_bytes(path.read_bytes()[: 200 if kind == "cut" else 0])
    said = []
    assert fitted("tvae", context(tmp_path, lambda what, done, total: said.append(what))) == whole_tvae
    assert said[0] == "train: checkpoint cannot be read and is ignored"


@pytest.mark.parametrize("edited", ["done", "weights", "renamed", "shape"])
def test_a_state_that_was_edited_by_hand_is_ignored_and_that_is_said(tmp_path, edited, whole_tvae):
    broken_off("tvae", tmp_path)
    [path] = tmp_path.iterdir()
    with np.load(path) as file:
        arrays = dict(file)
    name = next(key for key in arrays if key.endswith("weight"))
    if edited == "done":
        arrays["done"] = np.array(10**6)
    elif edited == "renamed":
        arrays["network/other"] = arrays.pop(name)
    else:
        arrays[name] = arrays[name] + 1 if edited == "weights" else arrays[name][:1]
    np.savez(path, **arrays)
    said = []
    assert fitted("tvae", context(tmp_path, lambda what, done, total: said.append(what))) == whole_tvae
    assert said[0] == "train: checkpoint was altered after it was written and is ignored"


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fitted("tvae", context(None))
    assert not any(tmp_path.iterdir())


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
