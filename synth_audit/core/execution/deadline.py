"""When work must be over."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from synth_audit.core.errors import OutOfTime


@dataclass(frozen=True)
class Deadline:
    """A moment by the wall clock, which processes and machines share; never, as it comes.

    Attributes:
        at: seconds since 1970. limit: seconds from start to end.
    """

    at: float = math.inf
    limit: float = math.inf

    @classmethod
    def within(cls, seconds: float | None) -> Deadline:
        """So many seconds from now; never if None."""
        return NEVER if seconds is None else cls(time.time() + seconds, seconds)

    def again(self) -> Deadline:
        """As many seconds as this one had, from now."""
        return NEVER if self == NEVER else Deadline.within(self.limit)

    @property
    def left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self.at - time.time())

    @property
    def passed(self) -> bool:
        """True from that moment on."""
        return time.time() >= self.at

    def check(self) -> None:
        """Go on, or raise ``OutOfTime``: what long work calls between its pieces."""
        if self.passed:
            raise OutOfTime


NEVER = Deadline()
