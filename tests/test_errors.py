from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from synth_audit.errors import problems_of


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int


class Outer(BaseModel):
    inner: Inner


def test_every_problem_is_named_by_its_key_and_no_input_is_repeated():
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"inner": {"n": "swordfish", "colour": "swordfish"}})
    said = problems_of(caught.value)
    assert "inner.n: Input should be a valid integer" in said
    assert "; unknown key 'inner.colour'" in said
    assert "swordfish" not in said
