"""Text for readers is short and plain: sentences, words and pages keep their limits.

``python tests/test_prose.py [FILE …]`` lists what is too long or forbidden.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).parents[1]

MEAN_WORDS = 20
"""Words per sentence on average, and"""
MOST_WORDS = 30
"""words of the longest: the limits of the project's writing rules."""
RESEARCH_MEAN, RESEARCH_MOST = 25, 70
"""Studies state settings and figures in one sentence; they are read by specialists alone."""
DOCS_WORDS = 25_000
"""Words of all pages outside `docs/research`."""
PAGE_WORDS = 1_800
"""Words of a page that names no limit of its own: about ten minutes."""
PAGE_LIMITS = {
    "README.md": 900,
    "CHANGELOG.md": 1_500,
    "CONTRIBUTING.md": 2_600,
    "docs/index.md": 250,
    "docs/explanation/a-pass.md": 1_200,
}
RESEARCH_WORDS = 5_000

FORBIDDEN = {
    r"strangers?": "control people",
    r"whoever": "name the person",
    r"whomever": "name the person",
    r"nobody|somebody|anybody": "name the person, or “no …”",
    r"told": "say what is reported, to whom",
    r"tells? (?:much|little)": "information in bits",
    r"beside": "next to, compared with, with",
    r"laid": "planted, placed",
    r"given away|gives? away": "attribute inference, membership inference",
    r"stands? out": "margin, unusual",
    r"beyond (?:luck|strangers)": "excess over control",
    r"undecided": "insufficient evidence",
    r"not decided": "insufficient evidence",
    r"pessimistic": "upper bound, lower bound",
    r"few-valued": "quasi-identifier",
    r"sideless": "pooled",
    r"(?:may|might) leave": "may be released",
    r"out there": "released",
    r"strange": "unusual",
    r"blind": "cannot detect",
    r"people of train": "training people",
    r"rows of train": "training rows",
    r"oftener": "more often",
}
"""What the glossary replaces, as patterns, with what to write."""
_FORBIDDEN = {re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE): use for pattern, use in FORBIDDEN.items()}

_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^|\n)\n(?: {4}(?![*\-0-9]).*\n)+")
_END = re.compile(r"(?<=[.!?])[\"”’)*]*\s+(?=[*\"“(‘]*[A-ZΑ-Ω0-9`])|(?<=[.!?][)\"”*])\s+(?=[*A-Z`])")
_WORD = re.compile(r"[^\s]*\w[^\s]*")


@dataclass(frozen=True)
class Text:
    """What is read of a page: its sentences, and the texts of its table cells."""

    sentences: tuple[str, ...]
    cells: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        return sum(map(length, (*self.sentences, *self.cells)))


def length(text: str) -> int:
    """Words of a text; one piece of code is one word."""
    return len(_WORD.findall(text))


def of_markdown(page: str) -> Text:
    """Sentences of a Markdown page without code, pictures and addresses."""
    page = _INDENTED.sub("\n\n", _FENCE.sub("\n\n", page))
    page = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)
    page = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", page)
    page = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", page)
    page = re.sub(r"`+[^`]+`+", "`code`", page)
    blocks: list[str] = []
    cells: list[str] = []
    fresh = True
    for line in page.splitlines():
        stripped = line.strip()
        if re.match(r"\|", stripped):
            row = [cell.strip() for cell in stripped.strip("|").split("|")]
            cells += [cell for cell in row if re.search(r"\w", cell)]
            fresh = True
        elif not stripped or re.match(r"#+ |[-=]{3,}$", stripped):
            fresh = True
        elif (item := re.match(r"(?:[*\-+]|\d+\.) +(.*)", stripped)) is not None:
            blocks.append(item[1])
            fresh = False
        elif fresh:
            blocks.append(stripped)
            fresh = False
        else:
            blocks[-1] += f" {stripped}"
    return Text(tuple(_sentences(blocks)), tuple(_sentences(cells)))


def of_template(source: str) -> Text:
    """Sentences that a template holds itself; what it fills in counts as one word."""
    source = re.sub(r"\{#.*?#\}|<style.*?</style>|<!--.*?-->", "", source, flags=re.DOTALL)
    source = re.sub(r"\{\{.*?\}\}", " code ", source, flags=re.DOTALL)
    source = re.sub(r"\{%.*?%\}", "\n\n", source, flags=re.DOTALL)
    source = re.sub(r"</?(?:b|i|em|strong|a|code|span|small|abbr|time)\b[^>]*>", "", source)
    source = unescape(re.sub(r"<[^>]*>", "\n\n", source))
    blocks = [re.sub(r"\s+", " ", block).strip() for block in re.split(r"\n\s*\n", source)]
    return Text(tuple(s for s in _sentences(blocks) if length(s) > 3))


def of_suite(source: str) -> Text:
    """Sentences that a suite says of its gates."""
    suite = json.loads(source)
    texts = [suite["meta"].get("notes", "")]
    for gate in suite["expectations"]:
        texts += [gate["meta"].get(key, "") for key in ("title", "finding", "reason", "advice")]
    return Text(tuple(_sentences(texts)))


def _sentences(blocks: list[str]) -> Iterator[str]:
    for block in blocks:
        yield from (s.strip() for s in _END.split(block) if s and re.search(r"\w", s))


def read(path: Path) -> Text:
    """The text of a file, by its kind."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".j2":
        return of_template(source)
    return of_suite(source) if path.suffix == ".json" else of_markdown(source)


def faults(text: Text, mean_words: float, most_words: int, *, semicolons: bool = False) -> list[str]:
    """What breaks the rules in a text, each as a line."""
    found = []
    lengths = [length(sentence) for sentence in text.sentences]
    if lengths and mean(lengths) > mean_words:
        found.append(f"{mean(lengths):.1f} words per sentence on average; {mean_words} allowed")
    for sentence in (*text.sentences, *text.cells):
        if length(sentence) > most_words:
            found.append(f"{length(sentence)} words; {most_words} allowed: {sentence}")
        if ";" in sentence and not semicolons:
            found.append(f"a semicolon; make it two sentences: {sentence}")
        for pattern, use in _FORBIDDEN.items():
            if (word := pattern.search(sentence)) is not None:
                found.append(f"“{word[0]}”; write “{use}”: {sentence}")
    return found


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def pages() -> list[Path]:
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def is_research(path: Path) -> bool:
    return ROOT / "docs/research" in path.parents


def faults_of_page(path: Path) -> list[str]:
    """What breaks the rules on one page, its length included."""
    text = read(path)
    if is_research(path):
        found = faults(text, RESEARCH_MEAN, RESEARCH_MOST, semicolons=True)
        limit = RESEARCH_WORDS
    else:
        found = faults(text, MEAN_WORDS, MOST_WORDS)
        limit = PAGE_LIMITS.get(place(path), PAGE_WORDS)
    if (count := len(path.read_text(encoding="utf-8").split())) > limit:
        found.insert(0, f"{count} words; {limit} allowed")
    return found


SHIPPED = [
    *sorted((ROOT / "reports_templates").glob("*.j2")),
    *sorted((ROOT / "expectations").glob("*.json")),
]


@pytest.mark.parametrize("path", pages(), ids=place)
def test_a_page_keeps_its_limits(path):
    assert faults_of_page(path) == []


@pytest.mark.parametrize("path", SHIPPED, ids=place)
def test_templates_and_gates_keep_their_limits(path):
    assert faults(read(path), MEAN_WORDS, MOST_WORDS) == []


def test_the_documentation_is_read_in_two_hours():
    docs = [path for path in (ROOT / "docs").rglob("*.md") if not is_research(path)]
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in docs) <= DOCS_WORDS


def test_the_readme_has_at_most_150_lines():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_sentences_are_found_in_markdown():
    page = (
        "# Head\n\nOne two\nthree. Four `a b c` six.\n\n* five; six\n\n```sh\nno words\n```\n\n"
        "| a cell | b |\n|---|---|\n"
    )
    text = of_markdown(page)
    assert text.sentences == ("One two three.", "Four `code` six.", "five; six")
    assert text.cells == ("a cell", "b")
    assert text.words == 11


def test_faults_are_found():
    text = Text(("word " * 31, "Strangers are laid beside; so.", "Good."))
    said = "\n".join(faults(text, 20, 30))
    for expected in ("31 words", "Strangers", "laid", "beside", "semicolon"):
        assert expected in said
    assert faults(Text(("Good.",)), 20, 30) == []
    assert faults(Text(("word " * 25,)), 20, 30) == ["25.0 words per sentence on average; 20 allowed"]
    assert of_template("{% if a %}<p>Some words are <b>here</b> {{ x }}.</p>{% endif %}").sentences == (
        "Some words are here code .",
    )


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or [*pages(), *SHIPPED]
    for file in chosen:
        seen = read(file)
        bad = faults_of_page(file) if file.suffix == ".md" else faults(seen, MEAN_WORDS, MOST_WORDS)
        average = mean([length(s) for s in seen.sentences] or [0])
        print(f"{place(file)}: {seen.words} words, {average:.1f} per sentence, {len(bad)} faults")  # noqa: T201
        if len(sys.argv) > 1:
            print(*(f"  {line}" for line in bad), sep="\n")  # noqa: T201
