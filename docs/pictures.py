"""Makes the README's pictures of report and certificate in a real browser.

    .venv/bin/python docs/pictures.py WORKSPACE

Shows the workspace's newest audit. Takes Chromium (its name or path
in ``CHROMIUM``, ``chromium`` if left out).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from synth_audit import api

HERE = Path(__file__).resolve().parent
SIZES = {"report": (1280, 1000), "certificate": (1000, 1300)}


def main(workspace: str) -> None:
    """Write ``docs/report.png`` and ``docs/certificate.png``."""
    with TemporaryDirectory() as folder:
        pages = {name: Path(folder, f"{name}.html") for name in SIZES}
        api.render_report(workspace, pages["report"])
        api.write_certificate(workspace, pages["certificate"])
        for name, (width, height) in SIZES.items():
            _photograph(pages[name], HERE / f"{name}.png", width, height)


def _photograph(page: Path, to: Path, width: int, height: int) -> None:
    browser = os.environ.get("CHROMIUM", "chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = [f"--window-size={width},{height}", f"--screenshot={to}"]
    subprocess.run([browser, *options, *size, page.as_uri()], check=True, capture_output=True)  # noqa: S603
    print(to)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
