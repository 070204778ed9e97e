"""Errors as users meet them: complete, and without a word of the data or of a secret."""

from collections.abc import Callable

import pytest

from synth_audit.errors import DataError, SynthAuditError

SECRET = "swordfish"
"""A cell of the tables that sources are tested with."""

_HIDDEN = (SECRET, "sesame", "db.sqlite")
"""The cell, a password, and the place of a database."""


def refusal(
    call: Callable[..., object], *given: object, kind: type[SynthAuditError] = DataError
) -> SynthAuditError:
    """The error of a failing call, checked to have its four parts and to show neither secrets nor causes."""
    with pytest.raises(kind) as caught:
        call(*given)
    error = caught.value
    assert error.what
    assert error.where
    assert error.expected
    assert error.fix
    assert not [word for word in _HIDDEN if word in str(error)]
    assert error.__suppress_context__ or error.__context__ is None
    assert error.__cause__ is None
    return error


def said(call: Callable[..., object], *given: object, kind: type[SynthAuditError] = DataError) -> str:
    """The text of such an error."""
    return str(refusal(call, *given, kind=kind))
