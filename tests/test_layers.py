import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("layers", Path(__file__).with_name("layers.py"))
assert _SPEC is not None
layers = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(layers)


def found(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return layers.faults(root)


def test_the_real_tree_has_no_faults():
    assert layers.faults() == []


def test_the_real_tree_is_looked_at():
    seen = dict(layers.modules(layers.ROOT))
    assert {"synth_audit", "synth_audit.plan.plan", "synth_audit.cli", "dagster_project"} <= set(seen)
    every = [name for module in seen if "pipeline" in module for _, name in layers.imports(seen[module])]
    assert "synth_audit.errors.DataError" in every
    assert all(layers.layer_of(module) is not None for module in seen)


UP, ARRAYS, PLUGIN, RELATIVE, DAGSTER = (
    "points up",
    "it takes arrays",
    "plug-in knows another plug-in",
    "relative import",
    "only synth_audit.dagster may",
)


KIND = "ask the kind for what is needed"
WHOLE = "ask for columns, batches or a sample"


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("table/table.py", "from synth_audit.stats import roc", UP),
        ("table/table.py", "import synth_audit.verdict.judge", UP),
        ("table/table.py", "import synth_audit", UP),
        ("table/table.py", "from synth_audit import generators", UP),
        ("table/table.py", "from synth_audit import *", UP),
        ("neighbours/gower.py", "from synth_audit.generators.vine import Vine", UP),
        ("neighbours/gower.py", "from synth_audit.encode.codes import codes", UP),
        ("neighbours/gower.py", "from synth_audit.table.table import Table", ARRAYS),
        ("neighbours/gower.py", "from synth_audit.table import cache", ARRAYS),
        ("neighbours/gower.py", "if TYPE_CHECKING:\n    from synth_audit.table.schema import Column", ARRAYS),
        ("generators/vine.py", "from synth_audit.pipeline import stages", UP),
        ("audits/privacy/exact_match.py", "from synth_audit import audit", UP),
        ("verdict/judge.py", "from synth_audit.api import audit", UP),
        ("verdict/judge.py", "from synth_audit.report.page import render", UP),
        ("store/evidence.py", "from synth_audit.examination.audit_runner import run_audits", UP),
        ("examination/examine.py", "from synth_audit.verdict.suite import Suite", UP),
        ("verdict/judge.py", "from synth_audit.pipeline import stages", UP),
        ("pipeline/stages.py", "from synth_audit.studies.sweep import sweep", UP),
        ("studies/sweep.py", "from synth_audit.report import write_report", UP),
        ("report/svg.py", "from synth_audit.cli import main", UP),
        ("api/a.py", "from synth_audit.cli.terminal import progress_bar", UP),
        ("cli/a.py", "from synth_audit.dagster.demo import main", UP),
        ("table/table.py", "def f():\n    from synth_audit.verdict import judge", UP),
        ("table/table.py", "class A:\n    def f(self):\n        import synth_audit.cli", UP),
        ("table/table.py", "if TYPE_CHECKING:\n    from synth_audit.stats import roc", UP),
        ("table/table.py", "try:\n    import synth_audit.api as a\nexcept ImportError:\n    pass", UP),
        ("table/deep/down.py", "from synth_audit.verdict import judge", UP),
        ("generators/resample.py", "from synth_audit.generators import vine", PLUGIN),
        ("generators/resample.py", "from synth_audit.generators.vine import Vine", PLUGIN),
        ("generators/resample.py", "import synth_audit.generators.vine", PLUGIN),
        ("generators/resample.py", "import synth_audit.generators", PLUGIN),
        ("generators/vine.py", "from synth_audit.generators.vine_two import Vine", PLUGIN),
        ("generators/vine.py", "from synth_audit.generators.other import _private", PLUGIN),
        ("generators/__init__.py", "from synth_audit.generators import vine", PLUGIN),
        ("generators/resample.py", "from synth_audit.generators.vine.model import VineModel", PLUGIN),
        ("generators/_margins.py", "from synth_audit.generators.vine import column_codec", PLUGIN),
        ("generators/_margins.py", "from synth_audit.generators.vine import Vine", PLUGIN),
        ("generators/vine.py", "from synth_audit.sources import _files", PLUGIN),
        ("audits/privacy/b.py", "from synth_audit.audits.privacy.exact_match import X", PLUGIN),
        ("audits/privacy/b.py", "from synth_audit.audits.privacy.exact_match import _x", PLUGIN),
        ("audits/privacy/b.py", "from synth_audit.audits.privacy import exact_match", PLUGIN),
        ("audits/privacy/b.py", "from synth_audit.audits.fidelity import marginals", PLUGIN),
        ("audits/privacy/b.py", "from synth_audit.audits import fidelity", PLUGIN),
        ("audits/privacy/b.py", "from synth_audit.generators.vine import Vine", PLUGIN),
        ("audits/privacy/b.py", "def f():\n    from synth_audit.sources.csv import Csv", PLUGIN),
        ("audits/privacy/b.py", "if column.kind.numeric:\n    pass", KIND),
        ("generators/vine.py", "step = float(self.column.kind.whole)", KIND),
        ("encode/codes.py", "numbers = [c for c in columns if not c.kind.numeric]", KIND),
        ("table/rules.py", "def f(kind):\n    return kind.instants", KIND),
        ("studies/a.py", "if column.kind.scale is Scale.NOMINAL:\n    pass", KIND),
        ("audits/privacy/b.py", "if isinstance(column.kind, TextLabels):\n    pass", KIND),
        ("audits/privacy/b.py", "if isinstance(column.kind.part, NumberPart):\n    pass", KIND),
        ("store/a.py", "if str(column.kind) == 'datetime':\n    pass", KIND),
        ("store/a.py", "if column.kind.name in ('integer', 'continuous'):\n    pass", KIND),
        ("report/a.py", "match column.kind.name:\n    case 'boolean':\n        pass", KIND),
        ("table/table.py", "from .plan import Plan", RELATIVE),
        ("table/table.py", "from . import plan", RELATIVE),
        ("generators/resample.py", "from . import vine", RELATIVE),
        ("generators/resample.py", "def f():\n    from ..verdict import judge", RELATIVE),
        ("table/table.py", "import dagster", DAGSTER),
        ("verdict/judge.py", "def f():\n    import dagster as dg", DAGSTER),
        ("cli/a.py", "from dagster import asset", DAGSTER),
        ("cli/a.py", "import dagster.core", DAGSTER),
        ("audits/privacy/b.py", "def f(table):\n    return table.data.column('x')", WHOLE),
        ("pipeline/stages.py", "rows = [t.data for t in tables]", WHOLE),
    ],
)
def test_a_fault_is_found(tmp_path, file, text, why):
    faults = found(tmp_path, {f"synth_audit/{file}": text})
    assert len(faults) == 1
    assert faults[0].startswith(f"synth_audit/{file}:")
    assert faults[0].endswith(why)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("synth_audit/table/table.py", "from synth_audit.table.schema import Schema\nimport numpy"),
        ("synth_audit/encode/codes.py", "from synth_audit.table.table import Table"),
        (
            "synth_audit/generators/vine.py",
            "from synth_audit.generators._margins import margin",
        ),
        ("synth_audit/generators/vine.py", "from synth_audit.generators import _margins"),
        ("synth_audit/generators/vine/model.py", "from synth_audit.generators.vine import column_codec"),
        (
            "synth_audit/generators/vine/__init__.py",
            "from synth_audit.generators.vine.model import VineModel",
        ),
        ("synth_audit/generators/vine.py", "from synth_audit.encode.univariate import Margin"),
        ("synth_audit/audits/privacy/b.py", "from synth_audit.audits.privacy import _shared"),
        ("synth_audit/audits/privacy/b.py", "from synth_audit.audits._shared import f"),
        ("synth_audit/generators/deep/__init__.py", "from synth_audit.generators.deep.net import Net"),
        ("synth_audit/pipeline/stages.py", "from synth_audit.generators.vine import Vine"),
        ("synth_audit/report/svg.py", "from synth_audit.store.evidence import Evidence"),
        ("synth_audit/cli/a.py", "from synth_audit import api"),
        ("synth_audit/table/people.py", "rows = table.data"),
        ("synth_audit/sources/csv.py", "rows = table.data"),
        ("synth_audit/audits/privacy/b.py", "values = table.column('x')"),
        ("synth_audit/column_kinds/integer.py", "if column.kind.numeric:\n    pass"),
        ("synth_audit/table/schema.py", "if column.kind.scale is Scale.NOMINAL:\n    pass"),
        ("synth_audit/audits/privacy/b.py", "cells = column.kind.anchored_cells(train, column)"),
        ("synth_audit/report/a.py", "if series.kind == 'box':\n    scale = kind.scale(series)"),
        ("synth_audit/table/table.py", "import dagsterlike"),
        ("dagster_project/assets.py", "import dagster as dg\nfrom synth_audit.pipeline import stages"),
    ],
)
def test_what_points_down_is_no_fault(tmp_path, file, text):
    assert found(tmp_path, {file: text}) == []


def test_every_fault_is_listed_with_its_line(tmp_path):
    text = "import numpy\nimport synth_audit.cli\n\nfrom synth_audit import api\n"
    faults = found(tmp_path, {"synth_audit/table/a.py": text, "synth_audit/verdict/b.py": "import dagster"})
    assert [f.partition(" imports")[0] for f in faults] == [
        "synth_audit/table/a.py:2",
        "synth_audit/table/a.py:4",
        "synth_audit/verdict/b.py:1",
    ]


def test_a_module_that_another_room_alone_uses_belongs_there(tmp_path):
    files = {
        "synth_audit/stats/rare.py": "",
        "synth_audit/stats/shared.py": "",
        "synth_audit/store/verb.py": "",
        "synth_audit/encode/cells.py": "from synth_audit.stats import rare, shared",
        "synth_audit/encode/codes.py": "def g():\n    from synth_audit.stats.shared import h",
        "synth_audit/api/evidence.py": "from synth_audit.store.verb import v",
    }
    alone = "synth_audit/stats/rare.py is imported by synth_audit.encode.cells alone: it belongs there"
    assert found(tmp_path, files) == [alone]


def test_a_flat_folder_of_many_files_is_a_fault(tmp_path):
    files = {f"synth_audit/stats/a{i}.py": "" for i in range(layers.MOST_FILES + 1)}
    assert found(tmp_path, files) == ["synth_audit/stats holds more than 25 files"]
