"""The handbook's own example plug-ins, as somebody would paste them into a package of their own."""

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
_EXAMPLE = re.compile(
    r"`synth_audit/(?P<room>audits|generators)/((?P<family>\w+)/)?(?P<name>\w+)\.py`:\n\n```python\n(?P<code>.*?)```",
    re.DOTALL,
)


def _example(file: str) -> re.Match[str]:
    [found] = _EXAMPLE.finditer((ROOT / file).read_text(encoding="utf-8"))
    return found


_FILES = {"audit": "docs/extending.md", "generator": "CONTRIBUTING.md"}
README_AUDIT = _example(_FILES["audit"])["name"]
EXAMPLE_GENERATOR = _example(_FILES["generator"])["name"]


def entry_point(room: str) -> EntryPoint:
    """The example of a room as an installed package would announce it."""
    example = _example(_FILES[room])
    module = ModuleType(f"pasted_{example['name']}")
    sys.modules[module.__name__] = module
    exec(compile(example["code"], _FILES[room], "exec"), vars(module))  # noqa: S102  (our own handbook)
    name = f"{example['family']}.{example['name']}" if example["family"] else example["name"]
    return EntryPoint(name, module.__name__, f"synth_audit.{room}s")
