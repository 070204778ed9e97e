"""Makes the README's pictures in a real browser, over what `make demo` left in a folder; and sample pages.

    .venv/bin/python docs/pictures.py demo
    .venv/bin/python docs/pictures.py

Without a folder it writes `docs/samples`: report and certificate of a pass and of a refusal, of people who
do not exist. With one: report, certificate, index, and in Dagster the lineage of a table and the checks of a
refused one. This needs Chromium (its name or path in ``CHROMIUM``, ``chromium`` if left out).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from synth_audit import api

HERE = Path(__file__).resolve().parent
RELEASED, REFUSED = "tumours_vine", "tumours_resample"
SIZES = {"report": (1280, 1000), "certificate": (1000, 1300), "index": (1280, 820)}
DAGSTER = {
    "dagster-lineage": (
        f"assets/{RELEASED}/released?view=lineage&lineageScope=upstream&lineageDepth=5",
        (1280, 600),
    ),
    "dagster-checks": (
        f"assets/{REFUSED}/report?view=checks&checkDetail=exact_copies",
        (1280, 760),
    ),
}
PATIENCE = 120
SAMPLES = {"pass": "good", "refusal": "bad"}
SAMPLE_PLAN = {
    "name": "stroke",
    "columns": {"stroke": {"role": "target"}},
    "split": {"made_elsewhere": "random"},
    "review": {
        "purpose": "To show what a reader of this documentation gets",
        "recipient": "Anybody",
        "environment": "A public page",
        "controller": "The authors of synth-audit",
        "legal_basis": "None needed: the people are made up",
        "special_categories": "Health, of people who do not exist",
        "owner": "The authors of synth-audit",
        "contact": "The issue tracker of synth-audit",
        "reviewer": "A reader of this page",
        "review_on": "2027-10-01",
        "valid_until": "2027-11-30",
    },
}


def samples() -> None:
    """Write ``docs/samples/<name>.html`` and ``<name>-certificate.html`` for each name in ``SAMPLES``."""
    with TemporaryDirectory() as made:
        files = api.sample(made)
        for name, release in SAMPLES.items():
            os.environ["XDG_STATE_HOME"] = f"{made}/{name}-account"  # one that has audited nothing before
            out, page = Path(made, name), HERE / "samples" / f"{name}.html"
            api.audit(files["train"], files["control"], files[release], SAMPLE_PLAN, out=out)
            page.parent.mkdir(exist_ok=True)
            api.render_report(out, page, force=True)
            api.write_certificate(out, page.with_stem(f"{name}-certificate"), force=True)
            print(page)  # noqa: T201


def main(folder: Path) -> None:
    """Write ``docs/<name>.png`` for each name in ``SIZES`` and ``DAGSTER``."""
    with TemporaryDirectory() as made:
        pages = {name: Path(made, f"{name}.html") for name in SIZES}
        os.chdir(folder.parent)  # the index shows workspaces by the paths that it was given
        tables = [Path(folder.name, f"{table}-audit") for table in (RELEASED, REFUSED)]
        api.render_report(tables[0], pages["report"])
        api.write_certificate(tables[0], pages["certificate"])
        api.write_index(tables, pages["index"])
        for name, size in SIZES.items():
            _photograph(pages[name].as_uri(), HERE / f"{name}.png", size)
    with _dagster(folder) as address:
        for name, (page, size) in DAGSTER.items():
            _photograph(f"{address}/{page}", HERE / f"{name}.png", size)


@contextmanager
def _dagster(folder: Path) -> Iterator[str]:
    """The address of Dagster's pages over the demo, as long as the block lasts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [
        "-m",
        "dagster_webserver",
        "-h",
        "127.0.0.1",
        "-p",
        port,
        "-m",
        "synth_audit.dagster.demo",
    ]
    where = {"SYNTH_AUDIT_HOME": str(folder), "DAGSTER_HOME": str(folder / "dagster")}
    home = {**os.environ, **where, "DAGSTER_DISABLE_TELEMETRY": "1"}
    with subprocess.Popen([sys.executable, *words], env=home) as server:  # noqa: S603
        try:
            _wait(f"http://127.0.0.1:{port}/server_info")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait(address: str) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            with urlopen(address, timeout=5):  # noqa: S310
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def _photograph(address: str, to: Path, size: tuple[int, int]) -> None:
    browser = os.environ.get("CHROMIUM", "chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    shot = [f"--window-size={size[0]},{size[1]}", "--virtual-time-budget=30000", f"--screenshot={to}"]
    subprocess.run([browser, *options, *shot, address], check=True, capture_output=True)  # noqa: S603
    print(to)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve()) if sys.argv[1:] else samples()
