"""The PDF of report and certificate: few pages, none blank, and lines of words."""

import sys
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pypdfium2
import pytest
from click.testing import CliRunner

from synth_audit.cli import main
from synth_audit.errors import PluginError
from synth_audit.findings.verdict import Result
from synth_audit.report import render_report
from synth_audit.report.certificate import render_certificate
from synth_audit.report.page import pdf_of

try:
    import weasyprint  # noqa: F401
except OSError:
    pytest.skip("Pango is not installed: `apt-get install libpangoft2-1.0-0`", allow_module_level=True)


@dataclass(frozen=True)
class Sheet:
    """What one page of a PDF shows.

    Attributes:
        below: number of single letters that stand under another single letter.
        cut_off: text that begins or ends beyond the edge of the page.
    """

    words: int
    below: int
    cut_off: tuple[str, ...]


def sheet(page: pypdfium2.PdfPage) -> Sheet:
    text = page.get_textpage()
    boxes = [text.get_rect(i) for i in range(text.count_rects())]
    pieces = [(text.get_text_bounded(*box).strip(), box) for box in boxes]
    letters = [box for piece, box in pieces if len(piece) == 1 and piece.isalpha()]
    below = sum(abs(a[0] - b[0]) < 6 and b[3] < a[1] + 1 and a[1] - b[3] < 12 for a, b in pairwise(letters))
    cut_off = tuple(piece for piece, box in pieces if box[0] < 0 or box[2] > page.get_width())
    return Sheet(len(text.get_text_range().split()), below, cut_off)


def sheets_of(content: bytes) -> list[Sheet]:
    return [sheet(page) for page in pypdfium2.PdfDocument(content)]


def assert_readable(sheets: list[Sheet], at_most: int) -> None:
    assert len(sheets) <= at_most
    assert min(found.words for found in sheets) >= 10, "a page is blank"
    assert max(found.below for found in sheets) < 3, "text stands one letter per line"
    assert not [found.cut_off for found in sheets if found.cut_off]


@pytest.mark.parametrize(
    "which",
    [
        "passing",
        pytest.param("failing", marks=pytest.mark.slow),
        pytest.param("undecided", marks=pytest.mark.slow),
    ],
)
def test_a_report_prints_on_few_pages(build: ModuleType, which: str) -> None:
    assert_readable(sheets_of(pdf_of(render_report(getattr(build, which)()))), 6)


def test_a_whole_report_prints_its_pictures_readably(build: ModuleType) -> None:
    assert_readable(sheets_of(pdf_of(render_report(build.failing(), full=True))), 20)


@pytest.mark.parametrize(
    "which",
    [
        "passing",
        pytest.param("failing", marks=pytest.mark.slow),
        pytest.param("undecided", marks=pytest.mark.slow),
    ],
)
def test_a_certificate_has_two_pages_and_an_annex(build: ModuleType, which: str) -> None:
    content = pdf_of(render_certificate(getattr(build, which)()))
    assert_readable(sheets_of(content), 6)
    assert where_annex_begins(content) == 2


def where_annex_begins(content: bytes) -> int:
    """Index of its first page; nothing of the certificate may stand on it."""
    texts = [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(content)]
    [found] = [i for i, text in enumerate(texts) if "Annex A. Limits" in text]
    assert texts[found].startswith("Annex A. Limits")
    return found


def test_a_long_reason_leaves_the_certificate_two_pages(build: ModuleType) -> None:
    title = "Two partial records of one person can hardly be joined through the release, whatever two "
    title += "sources hold of this person and of others, and nobody is singled out by a few known columns"
    known = build.failing()
    results = tuple(replace(gate, title=f"{gate.title}. {title}") for gate in known.gates.results)
    warning = "fewer than 10 control rows also occur in train, so that control is not independent. " * 2
    more = [build.gate(f"more{i}", title, Result.FAIL, explanation=title) for i in range(5)]
    report = build.report_of((*results, *more))
    evidence = replace(known, gates=report, warnings=(warning,)).sealed()
    content = pdf_of(render_certificate(evidence))
    assert_readable(sheets_of(content), 6)
    assert where_annex_begins(content) == 2


def test_to_and_pdf_write_both(finished: object, tmp_path: Path) -> None:
    evidence = str(finished.workspace.root)  # type: ignore[attr-defined]
    html, pdf = tmp_path / "page.html", tmp_path / "page.pdf"
    done = CliRunner().invoke(main, ["report", evidence, "--to", str(html), "--pdf", str(pdf)])
    assert done.exit_code == 0, done.output
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert pdf.read_bytes().startswith(b"%PDF")
    assert done.output.split() == [str(html), str(pdf)]


def test_without_weasyprint_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(PluginError) as caught:
        pdf_of("<p>")
    assert "pip install 'synth-audit[pdf]'" in caught.value.fix
