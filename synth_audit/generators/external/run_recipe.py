"""Runs a recipe under the interpreter that the recipe was installed for; knows nothing of this project.

It is handed the recipe's file, a JSON file that says what the columns are, the settings as JSON, and the
files and numbers of a program of ``external``. Exit status 3: the recipe does not import, 4: its fit failed,
5: its draw failed.
"""

import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_DONE = "fitted"


def main(words: list[str]) -> None:
    """Learn the training rows unless that was done before, then draw."""
    recipe, columns_at, settings_as_text, train, synthetic, rows, model, *seeds = words
    folder, settings = Path(model), json.loads(settings_as_text)
    seed = int(seeds[0]) if seeds else None
    with _ends(3):
        module = _loaded(Path(recipe))
    if not (folder / _DONE).exists():
        columns = json.loads(Path(columns_at).read_text(encoding="utf-8"))
        with _ends(4):
            _seed(seed)
            module.fit(_read(Path(train), columns), columns, folder, seed, settings)
        (folder / _DONE).touch()
    with _ends(5):
        _seed(seed)
        _write(module.sample(folder, int(rows), seed, settings), Path(synthetic))


def _loaded(path: Path) -> ModuleType:
    """The recipe as a module that what it pickles can be found in again."""
    spec = spec_from_file_location("recipe", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["recipe"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _seed(seed: int | None) -> None:
    """Start the global draws of the libraries that a recipe has imported."""
    if seed is not None and "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    if seed is not None and "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def _read(path: Path, columns: dict[str, Any]) -> Any:
    """A frame whose whole numbers are whole, and whose labels are text."""
    import pyarrow.parquet as pq

    frame = pq.read_table(path).to_pandas()
    for name, column in columns.items():
        values = frame[name]
        if not column["numeric"]:
            frame[name] = values.astype(object).where(values.notna(), None)
        elif values.notna().all() and (values == values.round()).all() and (values.abs() < 2**53).all():
            frame[name] = values.astype("int64")
    return frame


def _write(frame: Any, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)


@contextmanager
def _ends(status: int) -> Iterator[None]:
    """End with this status where the recipe fails; what it says goes where the caller sends it."""
    try:
        yield
    except BaseException:  # whatever a library of others raises, an exit of its own too
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
