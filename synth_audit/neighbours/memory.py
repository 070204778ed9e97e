"""How much a search holds at a time. Its memory and time depend on it, its answers do not."""

SCORES = 2**18
"""Scores of one block: a MiB in single precision, which a processor's cache holds."""

TILE = 2**12
"""Reference rows that are scored together where none are ruled out: blocks of 64 queries each."""

QUERIES = 2**12
"""Queries that meet the reference together, so that each numpy call has enough to do."""

BOUNDS = 2**24
"""Pairs of a query and a leaf of which a bound is held: 64 MiB in single precision."""

EXACT = 2**20
"""Pairs whose distance is computed exactly at a time."""

TREE = 2**17
"""Rows of the reference that are in a tree at a time."""

DEVICE_QUERIES, DEVICE_REFERENCES = 2**11, 2**15
"""Rows of which all pairs are scored at a time on a GPU: a quarter of a GiB in single precision."""

DEVICE_PAIRS = 2**24
"""Fewer pairs than this are scored before they have reached a GPU."""
