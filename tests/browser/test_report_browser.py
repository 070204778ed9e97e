"""The report in a real browser: shown whole, under its own policy, at the width of a phone."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from report_sweeps import sweep  # made importable by conftest.py

from synth_audit.report import render_report
from synth_audit.report.study_pages import render_frontier

pytestmark = pytest.mark.xdist_group("browser")  # they share one look at all pages
KINDS = ("passing", "failing", "undecided", "hostile", "crowded")
PAGES = (*KINDS, "brief", "sweep")
PHONE = 390
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# The pages forbid scripts, so another page frames them and measures from outside.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><pre id="out"></pre>
%s<script>
const seen = {};
const measure = (event) => {
  const page = event.target.contentDocument, shown = (e) => e.getClientRects().length > 0;
  page.querySelectorAll("details").forEach((d) => { d.open = true; });
  const pictures = [...page.querySelectorAll("svg[role=img]")];
  const small = (s) => { const r = s.getBoundingClientRect(); return !(r.width > 50 && r.height > 20); };
  const clipped = pictures.flatMap((s) => {
    const box = s.viewBox.baseVal;
    return [...s.querySelectorAll("text")].filter((t) => {
      const b = t.getBBox();
      return b.x < -3 || b.y < -3 || b.x + b.width > box.width + 3 || b.y + b.height > box.height + 3;
    }).map((t) => t.textContent);
  });
  const gates = [...page.querySelectorAll(".gatelist > li")];
  seen[event.target.id] = {
    width: page.documentElement.scrollWidth,
    heading: page.querySelector("h2").textContent,
    gates: gates.filter(shown).map((g) => g.querySelector(".sign > span").textContent),
    pictures: pictures.length,
    broken: pictures.filter(small).length,
    styled: gates.length ? getComputedStyle(gates[0]).display : "block",
    clipped: clipped,
  };
  document.getElementById("out").textContent = JSON.stringify(seen);
};
document.querySelectorAll("iframe").forEach((f) => { f.onload = measure; f.src = f.id + ".html"; });
</script>"""


def browser() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = f"no browser found; looked for {', '.join(NAMES)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def run(folder: Path, *arguments: str) -> tuple[str, list[str]]:
    """Standard output of a headless run, and what the page's console said."""
    done = subprocess.run(
        [
            browser(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
            "--allow-file-access-from-files", "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}", *arguments,
        ],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout, re.findall(r"CONSOLE[^\"]*(\".*)", done.stderr)


@pytest.fixture(scope="module")
def seen(build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[str]]:
    """What was measured in each report at phone width, and the console."""
    folder = tmp_path_factory.mktemp("reports")
    for kind in KINDS:
        page = render_report(getattr(build, kind)(), full=True)
        (folder / f"{kind}.html").write_text(page, encoding="utf-8")
    (folder / "brief.html").write_text(render_report(build.failing()), encoding="utf-8")
    (folder / "sweep.html").write_text(render_frontier(sweep()), encoding="utf-8")
    frames = "".join(
        f'<iframe id="{kind}" width="{PHONE}" height="2000" frameborder="0"></iframe>' for kind in PAGES
    )
    (folder / "frame.html").write_text(FRAME % frames, encoding="utf-8")
    dom, console = run(folder, "--dump-dom", (folder / "frame.html").as_uri())
    found = re.search(r'<pre id="out">(\{.*?\})</pre>', dom, re.DOTALL)
    assert found, "no report was loaded"
    return json.loads(html.unescape(found[1])), console


@pytest.mark.parametrize("kind", KINDS)
def test_verdict_and_gates_are_shown(
    seen: tuple[dict[str, Any], list[str]], kind: str, build: ModuleType
) -> None:
    page = seen[0][kind]
    assert page["heading"].startswith("This synthetic table m")
    words = {"pass": "Pass", "fail": "Fail", "insufficient evidence": "Insufficient evidence"}
    expected = [words[g.result] for g in getattr(build, kind)().gates.results]
    assert sorted(page["gates"]) == sorted(expected)


def test_nothing_is_blocked_or_complained_about(seen: tuple[dict[str, Any], list[str]]) -> None:
    pages, console = seen
    assert console == []
    assert {page["styled"] for page in pages.values()} <= {"block", "flex"}  # unstyled: list-item


@pytest.mark.parametrize("kind", PAGES)
def test_no_picture_is_broken_or_cut(seen: tuple[dict[str, Any], list[str]], kind: str) -> None:
    page = seen[0][kind]
    assert page["pictures"] >= 1
    assert page["broken"] == 0
    assert page["clipped"] == []


@pytest.mark.parametrize("kind", PAGES)
def test_a_phone_shows_it_without_sideways_scrolling(
    seen: tuple[dict[str, Any], list[str]], kind: str
) -> None:
    assert seen[0][kind]["width"] <= PHONE


def test_the_policy_stops_a_script(build: ModuleType, tmp_path: Path) -> None:
    page = render_report(build.passing()).replace("</body>", "<script>document.title = 'run'</script></body>")
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    dom, console = run(tmp_path, "--dump-dom", (tmp_path / "report.html").as_uri())
    assert "<title>run</title>" not in dom
    assert any("Content Security Policy" in line for line in console)


def test_it_can_be_pictured_and_printed(build: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(render_report(build.passing()), encoding="utf-8")
    address = (tmp_path / "report.html").as_uri()
    picture, print_ = f"--screenshot={tmp_path / 'page.png'}", f"--print-to-pdf={tmp_path / 'page.pdf'}"
    run(tmp_path, picture, print_, "--window-size=1200,900", address)
    assert (tmp_path / "page.png").stat().st_size > 40_000
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
