import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from types import ModuleType

import pytest

from synth_audit.findings.measurement import Direction, Measurement, MeasurementId
from synth_audit.findings.verdict import Result
from synth_audit.report import render_report
from synth_audit.report.chapters import worst_first
from synth_audit.report.gates import gate_views
from synth_audit.store.evidence import parse_evidence
from synth_audit.store.reports import marks_of, read_marks
from synth_audit.verdict import insufficient_evidence as lacking

KINDS = ("passing", "failing", "undecided", "hostile", "crowded")
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Elements with their attributes, text by nearest element, and whether every element was closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.stack: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack:
            self.texts.append((self.stack[-1], data))

    @property
    def text(self) -> str:
        return " ".join(" ".join(t for tag, t in self.texts if tag != "style").split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.elements if t == tag]


@pytest.fixture(scope="module")
def pages(build: ModuleType) -> dict[str, str]:
    return {kind: render_report(getattr(build, kind)()) for kind in KINDS}


@pytest.fixture(scope="module")
def full_pages(build: ModuleType) -> dict[str, str]:
    return {kind: render_report(getattr(build, kind)(), full=True) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("full", [False, True])
def test_well_formed_and_self_contained(
    pages: dict[str, str], full_pages: dict[str, str], kind: str, full: bool
) -> None:
    page = Page((full_pages if full else pages)[kind])
    assert page.stack == []
    assert not {"script", "link", "iframe", "object", "embed", "img", "form", "base"} & {
        t for t, _ in page.elements
    }
    for _, attributes in page.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        for name in ("href", "src", "xlink:href", "action"):
            assert (attributes.get(name) or "#").startswith("#")
        assert "url(" not in (attributes.get("fill") or "").replace("url(#", "")
    style = "".join(t for tag, t in page.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("full", [False, True])
def test_links_and_labels_lead_somewhere_and_ids_are_unique(
    pages: dict[str, str], full_pages: dict[str, str], kind: str, full: bool
) -> None:
    page = Page((full_pages if full else pages)[kind])
    ids = Counter(a["id"] for _, a in page.elements if a.get("id"))
    assert [i for i, n in ids.items() if n > 1] == []
    for tag, attributes in page.elements:
        if tag == "a":
            assert (attributes["href"] or "")[1:] in ids
        for target in (attributes.get("aria-labelledby") or "").split():
            assert target in ids
        if match := re.fullmatch(r"url\(#(.+)\)", attributes.get("fill") or ""):
            assert match[1] in ids


def test_the_policy_names_exactly_our_style(pages: dict[str, str]) -> None:
    style = re.search(r"<style>(.*?)</style>", pages["passing"], re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policies = [a["content"] or "" for a in Page(pages["passing"]).all("meta") if a.get("http-equiv")]
    assert len(policies) == 1
    assert "default-src 'none'" in policies[0]
    assert f"style-src 'sha256-{digest}'" in policies[0]
    assert "unsafe" not in policies[0]


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("passing", "This synthetic table may be released."),
        ("failing", "This synthetic table must not be released."),
        ("undecided", "This synthetic table must not be released yet: the evidence is insufficient."),
    ],
)
def test_the_verdict_is_a_sentence(pages: dict[str, str], kind: str, sentence: str) -> None:
    page = Page(pages[kind])
    headings = [t.strip() for tag, t in page.texts if tag == "h2"]
    assert headings[0] == sentence
    assert page.text.count("This synthetic table m") == 2  # the title and the heading


@pytest.mark.parametrize("kind", KINDS)
def test_every_gate_appears_with_result_and_limit(
    pages: dict[str, str], full_pages: dict[str, str], kind: str, build: ModuleType
) -> None:
    text, full = Page(pages[kind]).text, Page(full_pages[kind]).text
    gates = getattr(build, kind)().gates.results
    for gate in gates:
        assert gate.gate.replace("\u202e", "\ufffd") in full
        assert gate.reason.rstrip(".").replace("\u202e", "\ufffd") in full
        assert gate.advice.rstrip(".").replace("\u202e", "\ufffd") in text
    assert len(re.findall(r'<li id="gate-\d+"', pages[kind])) == len(gates)


def test_what_keeps_the_release_in_comes_first(pages: dict[str, str]) -> None:
    groups = re.findall(r'<details class="group.*?<summary>', pages["failing"], re.DOTALL)
    assert [("open>" in group) for group in groups] == [True, True, False, False, False, False, False]
    membership, singling_out = re.findall(r'<li id="gate-\d+" class="(\w+)"', pages["failing"])[:2], "open"
    assert membership == ["fail", "pass"]
    assert re.findall(r'<li id="gate-\d+" class="(\w+)"', pages["failing"])[2] == singling_out
    outlook = lacking.WOULD_DECIDE.format(n=5400)
    assert outlook in pages["undecided"]
    assert outlook not in pages["failing"]
    assert "The audit density_ratio ended in an error." in pages["undecided"]


def test_advice_comes_after_what_decides(build: ModuleType) -> None:
    advisory = build.gate("advisory", "a", Result.FAIL, blocking=False)
    blind = build.gate("blind", "b", Result.INSUFFICIENT, blocking=False)
    gates = (blind, build.gate("fine", "f"), advisory, build.gate("deciding", "d", Result.INSUFFICIENT))
    order = [g.result.gate for g in gate_views(build.evidence((), build.report_of(gates)))]
    assert order == ["deciding", "advisory", "fine", "blind"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_has_title_description_and_table(
    pages: dict[str, str], full_pages: dict[str, str], kind: str
) -> None:
    pictures = re.findall(r'<svg [^>]*role="img".*?</svg>', pages[kind], re.DOTALL)
    assert pictures
    for picture in pictures:
        assert re.search(r"<title [^>]*>[^<]+</title><desc [^>]*>[^<]+</desc>", picture)
    figures = re.findall(r"<figure>.*?</figure>", full_pages[kind], re.DOTALL)
    assert figures or kind in ("undecided", "crowded")
    assert all("<table" in f and "<details" in f for f in figures)
    outside = re.sub(r"<figure>.*?</figure>", "", pages[kind], flags=re.DOTALL)
    in_table_or_gate = re.findall(r'<div class="strip"><svg', outside)
    assert outside.count('role="img"') == len(in_table_or_gate)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("full", [False, True])
def test_headings_are_in_order_and_table_heads_have_scope(
    pages: dict[str, str], full_pages: dict[str, str], kind: str, full: bool
) -> None:
    page = Page((full_pages if full else pages)[kind])
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert all(a.get("scope") in ("row", "col") for a in page.all("th"))
    assert page.all("html")[0]["lang"] == "en"
    assert {"header", "main", "nav", "footer"} <= {t for t, _ in page.elements}


def test_hostile_text_stays_text(pages: dict[str, str], build: ModuleType) -> None:
    page = Page(pages["hostile"])
    assert build.HOSTILE.replace("\u202e", "\ufffd") in page.text
    assert "\u202e" not in pages["hostile"]
    assert "<script" not in pages["hostile"].lower()


@pytest.mark.parametrize("kind", KINDS)
def test_machines_read_of_a_page_what_the_evidence_says(
    pages: dict[str, str], build: ModuleType, kind: str
) -> None:
    found, wanted = read_marks(pages[kind]), marks_of(getattr(build, kind)())
    assert found is not None
    assert (found.audit, found.gates) == (wanted.audit, wanted.gates)


def test_hundreds_of_columns_are_only_on_the_full_page_worst_first(
    pages: dict[str, str], full_pages: dict[str, str]
) -> None:
    table = re.search(r"<h3>[^<]*one by one: 300 values.*?</table>", full_pages["hostile"], re.DOTALL)
    assert table is not None
    shares = [float(x) for x in re.findall(r'</th><td data-label="Value">([\d.]+)\u00a0%</td>', table[0])]
    assert len(shares) == 300
    assert shares == sorted(shares, reverse=True)
    assert "one by one" not in pages["hostile"]
    assert re.search(r"worst first: [^<]*299 99.7\u00a0%[^<]*\.</li>", pages["hostile"]), "a gate judges them"
    assert "300 columns" in pages["hostile"]


def test_worst_first_knows_both_directions_and_missing_values() -> None:
    def order(direction: Direction) -> list[str]:
        values = {"a": 0.2, "b": float("nan"), "c": 0.9}
        group = [Measurement(MeasurementId("x", "y", s), v, direction=direction) for s, v in values.items()]
        return [m.id.setting for m in worst_first(group)]

    assert order(Direction.LOWER) == ["b", "c", "a"]
    assert order(Direction.HIGHER) == ["b", "a", "c"]
    assert order(Direction.NEUTRAL) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("undecided", "ended in an error and measured nothing. LinAlgError in density_ratio.py, line 81."),
        ("undecided", "could not be applied and measured nothing. It needs a sensitive column"),
        ("undecided", "2 audits measured, 2 failed, 1 not applicable: Inference of a secret"),
        ("undecided", "ImportError while loading the plug-in."),
        ("undecided", "Audits that could not be placed"),
        ("passing", "All 4 deciding gates passed."),
        ("passing", "Singling out: within limit"),
        ("passing", "Linkability: not tested No audit for it was part of this run."),
        ("passing", "Inference: insufficient evidence Its audit gave no result."),
        ("passing", "Not answered: The plan has no audit for it."),
        ("passing", "Not answered: The audits for it gave no result."),
        ("hostile", "3 of 100 wanted, fewer than the 50 needed"),
    ],
)
def test_what_was_not_measured_is_said(pages: dict[str, str], kind: str, sentence: str) -> None:
    assert sentence in Page(pages[kind]).text


def test_numbers_stand_beside_their_reference(pages: dict[str, str], full_pages: dict[str, str]) -> None:
    assert "80.1\u00a0%" in pages["passing"]
    assert "79.7 to 80.5\xa0%" in pages["passing"]
    assert "a release independent of who was in train" in Page(full_pages["passing"]).text
    assert "95\xa0% interval (wilson): 79.7 to 80.5\xa0%" in full_pages["passing"]


def test_the_evidence_is_identified(pages: dict[str, str], build: ModuleType) -> None:
    evidence = build.passing()
    for mark in (evidence.digest, evidence.plan_sha256, evidence.gates.suite_sha256):
        assert mark in pages["passing"]
    assert all(t.hmac in pages["passing"] for t in evidence.tables.values())
    assert str(evidence.tables["synthetic"].sha256) in pages["passing"]
    assert evidence.salt_commitment in pages["passing"]
    assert str(evidence.tables["synthetic"].sha256) not in pages["failing"]
    assert "my signature does not release it" in pages["failing"]
    assert "my signature does not release it" not in pages["passing"]


def test_same_evidence_same_bytes(pages: dict[str, str], build: ModuleType) -> None:
    assert render_report(build.failing()) == pages["failing"]


@pytest.mark.parametrize("kind", KINDS)
def test_read_back_from_its_file_it_gives_the_same_report(
    pages: dict[str, str], kind: str, build: ModuleType
) -> None:
    assert render_report(parse_evidence(getattr(build, kind)().to_json())) == pages[kind]


def test_a_forged_verdict_is_not_repeated(build: ModuleType) -> None:
    forged = replace(build.failing(), verdict=Result.PASS, digest="")
    page = Page(render_report(forged))
    assert "may be released" not in page.text
    assert "The recorded verdict does not follow from the results of the gates." in page.text


def test_changed_evidence_is_not_believed(build: ModuleType) -> None:
    changed = replace(build.passing(), seed=8)
    text = Page(render_report(changed)).text
    assert "This report must not be used to decide." in text
    assert "This synthetic table may be released." not in text


def test_evidence_without_its_digest_is_not_believed(build: ModuleType) -> None:
    text = Page(render_report(replace(build.passing(), digest=""))).text
    assert "This report must not be used to decide." in text


def test_a_suite_without_gates_never_allows(build: ModuleType) -> None:
    text = Page(render_report(build.evidence((), build.report_of(())))).text
    assert "No gate decides about this table" in text
    assert "must not be released yet" in text


def test_commands_in_backticks_become_code_and_stay_escaped(build: ModuleType) -> None:
    warned = replace(build.passing(), warnings=("run `synth-audit <b>`",)).sealed()
    assert "Run <code>synth-audit &lt;b&gt;</code>." in render_report(warned)


def test_names_without_end_make_no_page_without_end(build: ModuleType) -> None:
    evidence = replace(
        build.passing(), table="n" * 100_000, warnings=("w" * 100_000, "\x1b[31mred\u202e" * 1000)
    )
    page = render_report(evidence)
    assert len(page) < len(render_report(build.passing())) + 200_000
    assert "n" * 300 not in page
    assert not {"\x1b", "\u202e"} & set(page)
