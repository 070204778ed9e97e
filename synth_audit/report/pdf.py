"""A page as PDF, by WeasyPrint: no browser, and nothing is fetched."""

from __future__ import annotations

import logging
from typing import NoReturn

from synth_audit.core.errors import PluginError


def pdf_of(page: str) -> bytes:
    """The page as it prints.

    Raises:
        PluginError: WeasyPrint, or the library Pango under it, is not installed.
    """
    try:
        from weasyprint import HTML
    except (ImportError, OSError) as error:
        raise PluginError(
            f"a PDF takes WeasyPrint, which cannot be imported ({type(error).__name__})",
            where="--pdf",
            expected="the extra `pdf`, and the system library Pango",
            fix="pip install 'synth-audit[pdf]' (Debian: apt install libpango-1.0-0 libpangoft2-1.0-0); or "
            "print the HTML page from a browser",
        ) from None
    logging.getLogger("weasyprint").setLevel(logging.ERROR)  # what only screens understand is no fault
    content: bytes = HTML(string=page, url_fetcher=_refuse).write_pdf()
    return content


def _refuse(url: str, *_: object, **__: object) -> NoReturn:
    """Pages are self-contained; a fetch would tell somebody who reads what."""
    raise ValueError("a page may fetch nothing")
