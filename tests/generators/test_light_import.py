from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("room", ["generators", "sources"])
def test_describing_plug_ins_imports_nothing_heavy(room):
    code = (
        "import importlib, pkgutil, sys\n"
        f"import synth_audit.{room} as room\n"
        "for m in pkgutil.iter_modules(room.__path__): importlib.import_module(f'{room.__name__}.{m.name}')\n"
        "heavy = {'pyvinecopulib', 'sklearn', 'scipy', 'duckdb', 'torch'} & set(sys.modules)\n"
        "sys.exit(' '.join(sorted(heavy)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
