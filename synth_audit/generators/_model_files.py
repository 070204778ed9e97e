"""A fitted model as a text with its arrays beside it, neither of which holds code.

A model is a value: dataclasses of this project, whose fields are numbers, texts, arrays, schemas, vines of
pyvinecopulib, and dataclasses, sequences and mappings of these again. So no model says how it is written.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from synth_audit.plugins.generator import CheckedSettings
from synth_audit.table.schema import Schema, float_to_plain, schema_from_plain, schema_to_plain

_PLAIN, _ARRAYS = "model.json", "arrays.npz"

_ROOMS = ("synth_audit.generators.", "synth_audit.encode.", "synth_audit.stats.")
"""Where dataclasses of a model may be defined: a text must not name any other, whoever wrote it."""

_PROGRAMS = "synth_audit.generators.external"
"""Models there run programs, and are made by the plan alone."""

_COPULAS = ("pyvinecopulib:Bicop", "pyvinecopulib:Vinecop")
"""Classes of another library, by the names under which every version has them."""

_Model = TypeVar("_Model")


def write_model(folder: Path, model: object) -> None:
    """Write what :func:`read_model` reads: ``model.json``, and ``arrays.npz`` where there are arrays.

    Raises:
        TypeError: it holds something that no model is made of.
    """
    arrays: dict[str, Any] = {}
    (folder / _PLAIN).write_text(json.dumps(_plain(model, arrays), allow_nan=False), encoding="utf-8")
    if arrays:
        np.savez(folder / _ARRAYS, allow_pickle=False, **arrays)


class SavedWhole:
    """A model whose fields are all that there is to save."""

    def save(self, folder: Path) -> None:
        """Write the model, which holds what was learnt from train: whoever gives the folder restricts it."""
        write_model(folder, self)


def read_model(folder: Path, kind: type[_Model]) -> _Model:
    """The model that was written there; sequences are tuples then, and draws are equal to the last bit.

    Args:
        kind: of the model; a tuple for several values.

    Raises:
        TypeError: the file holds another.
        ValueError: it names a class that no model is made of.
    """
    plain = json.loads((folder / _PLAIN).read_text(encoding="utf-8"))
    if not (folder / _ARRAYS).exists():
        found = _value(plain, {})
    else:
        with np.load(folder / _ARRAYS, allow_pickle=False) as arrays:
            found = _value(plain, arrays)
    if not isinstance(found, kind):
        raise TypeError("the file holds a model of another kind")
    return found


class FitsWhole(CheckedSettings):
    """A generator whose models are saved whole."""

    def load(self, folder: Path) -> Any:
        """The model that was saved there."""
        return read_model(folder, SavedWhole)


def _plain(value: Any, arrays: dict[str, Any]) -> Any:
    """As JSON values; what is no number, text or sequence becomes a mapping of one key, its sort.

    Args:
        arrays: where arrays are put, by names of which the values speak.
    """
    if isinstance(value, Schema):
        return {"schema": schema_to_plain(value)}
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {"labels": value.tolist()}
        arrays[name := f"a{len(arrays)}"] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {"mapping": [[key, _plain(one, arrays)] for key, one in value.items()]}
    if isinstance(value, tuple | list):
        return [_plain(one, arrays) for one in value]
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else {"number": float_to_plain(value)}
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item(), arrays)
    name = _name(type(value))
    if is_dataclass(value):
        return {name: {f.name: _plain(getattr(value, f.name), arrays) for f in fields(value)}}
    return {name: json.loads(value.to_json())}


def _value(plain: Any, arrays: Mapping[str, Any]) -> Any:
    """What :func:`_plain` was given."""
    if isinstance(plain, list):
        return tuple(_value(one, arrays) for one in plain)
    if not isinstance(plain, dict):
        return plain
    [(sort, content)] = plain.items()
    match sort:
        case "schema":
            return schema_from_plain(content)
        case "labels":
            return np.array(content, dtype=object)
        case "array":
            return arrays[content]
        case "mapping":
            return {key: _value(one, arrays) for key, one in content}
        case "number":
            return float(content)
    kind = _named(sort)
    if hasattr(kind, "__dataclass_fields__"):
        return kind(**{key: _value(one, arrays) for key, one in content.items()})
    if not _filled(content):
        raise ValueError("a matrix of a copula holds another number of values than it says")
    return kind.from_json(json.dumps(content))


def _filled(plain: Any) -> bool:
    """Whether each matrix holds what its shape says: else the library reads beyond, and the process dies."""
    if isinstance(plain, list):
        return all(map(_filled, plain))
    if not isinstance(plain, dict):
        return True
    if "shape" in plain and len(plain.get("data") or ()) != prod(plain["shape"]):
        return False
    return all(map(_filled, plain.values()))


def _name(kind: type) -> str:
    """The class as ``module:class``.

    Raises:
        TypeError: no model is made of it.
    """
    library = kind.__module__.split(".")[0]
    name = f"{library if library == 'pyvinecopulib' else kind.__module__}:{kind.__qualname__}"
    if not _may_name(name):
        raise TypeError(f"no model is made of {kind.__qualname__}")
    return name


def _may_name(name: str) -> bool:
    """Whether a text may name this class."""
    return name in _COPULAS or (name.startswith(_ROOMS) and not name.startswith(_PROGRAMS))


def _named(name: str) -> Any:
    """The class of this name: where it is defined, not where it is imported too.

    Raises:
        ValueError: no model is made of it.
    """
    module, _, own = name.partition(":")
    try:
        kind = getattr(import_module(module), own, None) if _may_name(name) else None
    except ImportError:
        kind = None
    defined = isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module
    if kind is None or not (defined or name in _COPULAS):
        raise ValueError("the text names a class that no model is made of")
    return kind
