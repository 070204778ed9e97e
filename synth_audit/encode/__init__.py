"""Arrays from tables. A column is read once, by its kind, into one of six views of its rows.

| view | of one column, n rows | from |
|---|---|---|
| codes | whole numbers 0 … k − 1 that several tables share, −1 missing | :meth:`.encoded.Encoded.codes` |
| ranks | whole numbers in the order of values, for trees | :meth:`.encoded.Encoded.ranks` |
| coordinates | of a Euclidean space, one or more | :meth:`.encoded.Encoded.coordinates`, :mod:`.embedding` |
| mixed | numbers on train's scale and codes, for Gower's distance | :meth:`.encoded.Encoded.mixed` |
| cells | a few cells that train fixes, missing among them, 0 … size − 1 | :mod:`.cells` |
| places | of labels in a list of k: 0 … k − 1, k for others, −1 missing | :class:`.codes.Vocabulary` |

The first four are views of an :class:`.encoded.Encoded` table, which groups equal rows too. The others are
fixed on train and then taken of any table. So are numbers whose ranks carry dependence (:mod:`.ranks`) and
the distribution of one column (:mod:`.univariate`). What texts say is in :mod:`.texts`.
"""
