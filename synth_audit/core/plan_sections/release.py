"""The plan's key ``release``: where a passing table goes, and whose approval it waits for."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from synth_audit.core.plugin_config import PluginChoice, file_or_choice

KEY_PREFIX = "ed25519:"
"""Begins a public key: the 32 bytes of an Ed25519 key in base64 follow."""

_LONGEST_NAME = 200
_OWN = ("approvals", "approvers", "not_worse")


class ReleaseChoice(PluginChoice):
    """A target with its settings, and what a release to it waits for beside a pass."""

    approvals: int = Field(0, ge=0, le=20, description="so many different people must approve first")
    approvers: dict[str, str] = Field(
        default_factory=dict, description="who may approve: names with the public keys that `approve` prints"
    )

    not_worse: bool = Field(
        False,
        description="refuse what is worse than the last release, beyond both intervals",
    )

    @model_validator(mode="after")
    def _enough_people(self) -> ReleaseChoice:
        for name, key in self.approvers.items():
            if name != name.strip() or not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
                raise ValueError("an approver's name must be one short line of text")
            key_bytes(key)
        people = {name.casefold() for name in self.approvers}
        if len(people) < len(self.approvers) or len({*map(key_bytes, self.approvers.values())}) < len(people):
            raise ValueError("approvers must differ in name and in key")
        if self.approvals > len(self.approvers):
            raise ValueError(f"{self.approvals} approvals are asked for, of {len(self.approvers)} approvers")
        return self


def key_bytes(text: str) -> bytes:
    """The 32 bytes of a public key.

    Raises:
        ValueError: it is none.
    """
    try:
        found = base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True)
    except (ValueError, binascii.Error):
        found = b""
    if not text.startswith(KEY_PREFIX) or len(found) != 32:
        raise ValueError(f"a public key is {KEY_PREFIX} and 32 bytes in base64")
    return found


def _release(value: object, key: ValidationInfo) -> object:
    if isinstance(value, ReleaseChoice) or not isinstance(value, Mapping):
        return _whole(file_or_choice(value, key), {})
    own = {k: v for k, v in value.items() if k in _OWN}
    return _whole(file_or_choice({k: v for k, v in value.items() if k not in _OWN}, key), own)


def _whole(choice: object, own: Mapping[str, object]) -> object:
    return {**choice, **own} if isinstance(choice, Mapping) else choice


ReleaseTarget = Annotated[ReleaseChoice, BeforeValidator(_release)]
