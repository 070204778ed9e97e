"""Where scores of one group stand among those of another: what areas under curves are made of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def placements(these: Floats, those: Floats) -> Floats:
    """Share of ``those`` below each of ``these``, ties half, shape of ``these``; their mean is the AUROC.

    Source: DeLong, DeLong & Clarke-Pearson 1988.
    """
    ordered = np.sort(those)
    both = np.searchsorted(ordered, these, "left") + np.searchsorted(ordered, these, "right")
    share: Floats = both / (2 * len(those))
    return share
