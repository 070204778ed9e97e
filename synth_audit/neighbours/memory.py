"""How many pairs of rows a search holds at a time. Its memory and time depend on it, its answers do not."""

CACHE = 2**17
"""Scores that are added up column by column, or of a leaf: half a MiB, which a processor's cache holds."""

TILE = 2**14
"""Reference rows that are scored together where they do not stand in leaves."""

PRODUCTS = 2**22
"""Scores of one matrix product: 16 MiB, long enough for the blocks of the library that multiplies."""

EXACT = 2**20
"""Pairs whose distance is computed exactly at a time."""

BOUNDS = 2**24
"""Pairs of a query and a leaf of which a bound is held."""

DEVICE_QUERIES, DEVICE_REFERENCES = 2**11, 2**15
"""Rows of which all pairs are scored at a time on a GPU: a quarter of a GiB in single precision."""
