"""One self-contained HTML page from a template: its style sheet, its policy, nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from synth_audit.core.text import shortened
from synth_audit.report import words
from synth_audit.resources import resource_folder

_FOLDER = "reports_templates"
_LONGEST = 200_000
"""Letters of one text on a page; only a plan comes near it."""


def page(template: str, *, extra_style: str = "", **values: object) -> str:
    """Fill a template; the page may load and run nothing but its own style sheet.

    Args:
        extra_style: rules of this page alone; no text from outside may stand in them.
    """
    style = (resource_folder(_FOLDER) / "style.css").read_text(encoding="utf-8") + extra_style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    filled = _environment().get_template(template)
    return filled.render(**values, style=Markup(style), policy=policy) + "\n"  # noqa: S704  (our own sheet)


def fragment(template: str, **values: object) -> str:
    """Fill a template that is a piece of somebody else's page, and has a style of its own."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(resource_folder(_FOLDER)),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _cleaned(value: object) -> object:
    """Plain text loses characters that could mislead, and what is endless; markup was cleaned when made."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return words.clean(shortened(value, _LONGEST))
