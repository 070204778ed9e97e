"""The power of detection limits: with which probability a leak of their size is found."""

POWER = 0.95
"""As usual for tests. How the recognition audit measures its limits is calibrated for it: another power also
takes another quantile in ``audits/recognition/detection_limit.py``."""

SURELY = f"with {100 * POWER:g} % probability"
"""The same for a reader."""
