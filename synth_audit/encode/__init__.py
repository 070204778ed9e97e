"""Arrays from tables. A column is read once, by its kind, into one of six views of its rows.

| view | of one column, n rows | from |
|---|---|---|
| codes | whole numbers 0 … k − 1 that several tables share, −1 missing | :func:`.codes.codes` |
| places | of labels in a list of k: 0 … k − 1, k for others, −1 missing | :class:`.codes.Vocabulary` |
| cells | a few cells that train fixes, missing among them, 0 … size − 1 | :mod:`.cells` |
| ranks | float64 whose order carries dependence, NaN missing | :mod:`.ranks`, :func:`.codes.value_ranks` |
| coordinates | of a Euclidean space, one or more | :mod:`.distances`, :mod:`.embedding`, :mod:`.predictors` |
| mixed | numbers on train's scale and codes, for Gower's distance and for near copies | :mod:`.distances` |

Codes and places have shape (n,). Rows are grouped by :func:`.cells.row_groups`. Distributions of one column
are in :mod:`.univariate`, what a release holds that train does not in :mod:`.novelty`, and what texts say in
:mod:`.texts`.
"""
