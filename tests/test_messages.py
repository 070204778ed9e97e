"""Every error is short: its parts together have at most 40 words, as far as they stand in the source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from synth_audit import errors

ROOT = Path(__file__).parents[1] / "synth_audit"
MOST = 40
"""Words that a reader takes in at a glance; a name or number that is filled in counts as one."""

PARTS = {"where", "expected", "fix"}
KINDS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
WORD = re.compile(r"[\w'-]+(?:\.\w+)*")


def text(node: ast.AST) -> str:
    """The literal text of an argument."""
    match node:
        case ast.Constant(value=str(known)):
            return known
        case ast.JoinedStr(values=values):
            return "".join(text(v) or "X" for v in values)
        case ast.BinOp(left=left, right=right):
            return text(left) + text(right)
        case ast.IfExp(body=one, orelse=other):
            return max(text(one), text(other), key=len)
    return ""


def messages(source: str) -> Iterator[tuple[int, str]]:
    """Line and words of each error that is made, by its class or by a function with its parts."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            named = {k.arg for k in node.keywords}
            if name in KINDS or len(named & PARTS) > 1:
                parts = [*node.args, *(k.value for k in node.keywords if k.arg in PARTS)]
                yield node.lineno, " ".join(map(text, parts))


def test_no_message_is_longer_than_a_glance() -> None:
    found = [
        (path.relative_to(ROOT), line, len(WORD.findall(said)))
        for path in sorted(ROOT.rglob("*.py"))
        for line, said in messages(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 300, "they are found"
    assert [place for place in found if place[-1] > MOST] == []


def test_parts_of_a_message_count_together() -> None:
    source = 'raise PlanError(f"no {name} here", where="a.b", fix="one " + "two" if x else "")'
    [(line, said)] = messages(source)
    assert (line, said) == (1, "no X here a.b one two")
    assert len(WORD.findall(said)) == 6
