"""The README's own example of an audit, as somebody would paste it into a package of their own."""

from __future__ import annotations

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

README = Path(__file__).parents[2] / "README.md"
_EXAMPLE = re.compile(
    r"`synth_audit/audits/(?P<family>\w+)/(?P<name>\w+)\.py`:\n\n```python\n(?P<code>.*?)```", re.DOTALL
)


def _example() -> re.Match[str]:
    [found] = _EXAMPLE.finditer(README.read_text(encoding="utf-8"))
    return found


README_AUDIT = _example()["name"]


def entry_point() -> EntryPoint:
    """The example as an installed package would announce it."""
    example = _example()
    module = ModuleType(f"pasted_{README_AUDIT}")
    sys.modules[module.__name__] = module
    exec(compile(example["code"], str(README), "exec"), vars(module))  # noqa: S102  (our own README)
    return EntryPoint(f"{example['family']}.{README_AUDIT}", module.__name__, "synth_audit.audits")
