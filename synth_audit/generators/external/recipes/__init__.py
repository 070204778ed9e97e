"""Recipes for generators of others, a file for each, which run under an interpreter of their own.

A recipe is a script with its metadata on top (PEP 723): the packages that are installed, and in
``[tool.synth-audit]`` what is said of it, see :class:`~synth_audit.generators.external.recipe.RecipeInfo`.
It is never imported here. It holds two functions:

``fit(train, columns, folder, seed, settings)``
    learns ``train``, a pandas frame: numbers are floats with NaN or whole ones (dates and times in
    microseconds), labels are text with None. ``columns`` has for each name ``numeric`` and ``nullable``, and
    where the plan declares them ``bounds`` or ``labels``; nothing in it was read off the rows. What was
    learnt goes into ``folder``, which is private.
``sample(folder, rows, seed, settings)``
    returns a frame of ``rows`` rows with the same columns.

The draws of numpy's and torch's global states begin at ``seed`` before either is called. It is None where
``repeats`` is false. A third party's recipe is the module of an entry point in
``synth_audit.recipes``.
"""
