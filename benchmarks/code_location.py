"""What importing the Dagster code location costs, and which heavy packages it brings in."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

HEAVY = ("torch", "opacus", "sklearn", "pyvinecopulib", "great_expectations")
PROGRAM = (
    "import sys, synth_audit.dagster.demo as d; d.defs(); "
    f"print([name for name in {HEAVY!r} if name in sys.modules])"
)


def seconds(program: str) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout.strip()


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    bare = statistics.median(seconds("import dagster")[0] for _ in range(3))
    runs = [seconds(PROGRAM) for _ in range(3)]
    ours = statistics.median(t for t, _ in runs)
    print(f"code location {ours:.2f} s, {ours / bare:.2f} times `import dagster`; heavy: {runs[0][1]}")


if __name__ == "__main__":
    main()
