"""Marks of a page: what machines read of it, whatever somebody wrote into the page."""

from __future__ import annotations

import time

import pytest

from synth_audit.store.reports import read_marks

PAGE = '<html><main id="main" data-evidence-digest="ab" data-verdict="pass"><li data-gate="copies">{}</li>'


@pytest.mark.parametrize(
    "unit",
    [
        "<a ",
        "<!--",
        '<a b="',
        "<a b='",
        "</",
        "<![CDATA[",
        'data-gate="x" ',
        "<style>",
        "<a>",
        '<a b="" c>',
        "&",
    ],
)
def test_a_page_is_read_in_time_that_grows_with_its_length(unit):
    begun = time.process_time()
    read_marks(PAGE.format(unit * 300_000))
    assert time.process_time() - begun < 20  # a parser that starts anew at each unit takes hours


def test_marks_of_a_page():
    found = read_marks(PAGE.format("a &lt; b, data-gates and data-gate"))
    assert found is not None
    assert found.audit == {"data-evidence-digest": "ab", "data-verdict": "pass"}
    assert found.gates == ({"data-gate": "copies"},)


@pytest.mark.parametrize(
    "text",
    ["data-gate = 1", "data-gate=&quot;x&quot;", "data-evidence-digest is data-gate", "&lt;li data-gate >"],
)
def test_a_text_that_names_marks_is_none(text):
    found = read_marks(PAGE.format(f'<p title="{text.replace(">", "&gt;")}" hidden>{text}</p>'))
    assert found is not None
    assert found.gates == ({"data-gate": "copies"},)


@pytest.mark.parametrize(
    "content",
    [
        '<main data-evidence-digest="cd">',
        '<i DATA-GATE="other">',
        "<i data-gate='other'>",
        '<i title=">" data-gate="other">',
        '<i data-gate="a" data-gate="b">',
        '<li data-gate="a" data-gate="b">',
        '<li data-gate="a" data-evidence-digest="b">',
        '<i data-gate="a" data-evidence-digest="b">',
        "<i data-gate>",
        '<i\ndata-gate="other">',
        '<!-- <li data-gate="other"> -->',
        '<i title="<li data-gate="other" data-result="pass">',
        '<style><li data-gate="other"></style>',
        '<title><li data-gate="other"></title>',
        '<template><li data-gate="other"></template>',
        '<select><li data-gate="other"></select>',
        '<td data-gate="other">',
        '<li data-gate="&ampx;">',
    ],
)
def test_marks_that_others_may_read_otherwise_are_not_clear(content):
    assert read_marks(PAGE.format(content)) is None
