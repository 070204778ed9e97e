"""Auditors in environments of their own: each is a script that answers requests in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().with_name("auditors")
PEERS = {
    "anonymeter": ("anonymeter==1.1.0", "pyarrow"),
    "sdmetrics": ("sdmetrics==0.32.0", "pyarrow"),
    "syntheval": ("syntheval==1.7.3", "pyarrow"),
}
NOT_PACKAGED = ("synth_mia",)
"""Peers on no package index: put an environment that has one into the folder of environments yourself."""

AUDITORS = ("synth_audit", *PEERS, *NOT_PACKAGED)


def interpreter(auditor: str, environments: Path) -> Path:
    """The auditor's Python; a peer's environment is made unless it is there."""
    folder = environments.absolute() / auditor
    if auditor in NOT_PACKAGED:
        return folder / "bin" / "python"
    if auditor not in PEERS:
        return Path(sys.executable)
    if not (folder / "ready").exists():
        print(f"installing {auditor} into {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *PEERS[auditor]]
        subprocess.run(install, check=True)
        (folder / "ready").touch()
    return folder / "bin" / "python"


class Auditor:
    """An auditor's process, started when first asked."""

    def __init__(self, name: str, environments: Path) -> None:
        self.name = name
        environments.mkdir(parents=True, exist_ok=True)
        script = SCRIPTS / f"ask_{name}.py"
        self.process = subprocess.Popen(
            [str(interpreter(name, environments)), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=environments,  # one of the peers leaves a file where it works
            text=True,
        )

    def ask(self, files: dict[str, str]) -> dict[str, Any]:
        """Its answer about three files; see ``auditors/serving.py``."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(files), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with exit code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
