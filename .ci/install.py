"""Install the project and its pinned packages beside the Python that runs this, with the extras named.

`--lowest` before the extras takes the lowest versions that the project allows.

uv does in seconds what takes pip minutes, so it goes first. It does not read pip's settings: those that say
where packages come from are handed to it. Where pip has a setting that has no counterpart here, or uv cannot
be had or does not succeed, pip does the work.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq")
EVERYTHING = ("dev", "deep")
FLAGS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "constraint": "--constraints",
}
"""Settings of pip that say where packages come from, and which, as uv calls them."""
HARMLESS = {
    "cache-dir", "cert", "default-timeout", "disable-pip-version-check", "no-cache-dir", "no-input",
    "progress-bar", "retries", "root-user-action", "timeout",
}  # fmt: skip
"""Settings that uv can do without; ``cert`` it takes from the environment."""


def settings(listed: str) -> dict[str, list[str]]:
    """Values by name of what ``pip config list`` prints; its last place, the environment, weighs most."""
    found = re.findall(r"^(:env:|global|install)\.([\w-]+)='(.*)'$", listed, re.MULTILINE)
    places = (":env:", "install", "global")
    ordered = sorted(found, key=lambda line: -places.index(line[0]))
    return {name: value.replace("\\n", " ").split() for _, name, value in ordered}


def uv_arguments(given: dict[str, list[str]]) -> list[str] | None:
    """What uv is told of pip's settings; None where it cannot be told all that matters."""
    if set(given) - set(FLAGS) - HARMLESS:
        return None
    return [word for name, flag in FLAGS.items() for value in given.get(name, []) for word in (flag, value)]


def succeeds(words: list[str], environment: dict[str, str] | None = None) -> bool:
    """Run a command; True when it ends well."""
    return subprocess.run(words, env=environment, check=False).returncode == 0  # noqa: S603


def wanted(words: Sequence[str]) -> list[str]:
    """What either installer is asked for by the words of the command line."""
    lowest = "--lowest" in words[:1]
    extras = words[1:] if lowest else words
    versions = ".ci/lowest.txt" if lowest else "constraints.txt"
    return ["-c", versions, "-e", f".[{','.join(extras or EVERYTHING)}]"]


def by_uv(asked: Sequence[str]) -> bool:
    """Try it with uv; True when all is installed."""
    words = [*PIP, "config", "list"]
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout  # noqa: S603
    given = settings(listed)
    arguments = uv_arguments(given)
    if arguments is None or not succeeds([*PIP, "install", "-c", "constraints.txt", "uv"]):
        return False
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        return False
    # Kept beside the environment while it works, uv's cache becomes its files instead of being copied.
    with tempfile.TemporaryDirectory(dir=sys.prefix) as cache:
        environment = {**os.environ, "UV_CACHE_DIR": cache}
        if "cert" in given:
            environment.setdefault("SSL_CERT_FILE", *given["cert"])
        words = [uv, "pip", "install", "-q", "--python", sys.executable]
        words += ["--index-strategy", "unsafe-best-match"]  # the best of all indexes, as pip has it
        return succeeds([*words, *arguments, *asked], environment)


if __name__ == "__main__":
    os.chdir(ROOT)
    packages = wanted(sys.argv[1:])
    sys.exit(0 if by_uv(packages) or succeeds([*PIP, "install", *packages]) else 1)
