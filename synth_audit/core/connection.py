"""A connection as a plan names it: what may be read by anybody, and where each secret is to be found.

A secret itself is in the environment alone. It is fetched for the moment in which a session is opened, and no
object, plan, evidence, log line or error ever holds it.
"""

from __future__ import annotations

import os
import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from synth_audit.core.errors import PlanError

CONNECTION = "connection"
"""Field of a source that holds the name of one of the plan's connections."""

_VARIABLE = r"^[A-Z_][A-Z0-9_]*$"
_SECRET = re.compile(
    r"passw(or)?d|passphrase|\bpwd\b|secret|token|credential|pkcs8|(api|account|access)[-_.]?key$"
    r"|connection[-_.]?string",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"//[^/@]*:[^/@]*@|(passw(or)?d|\bpwd|secret|token|api_?key|accountkey|\bsig)\s*=", re.IGNORECASE
)


def _without_secrets(options: dict[str, str]) -> dict[str, str]:
    for name, value in options.items():
        if _SECRET.search(name) or _LOGIN.search(value):
            raise ValueError(
                f"option {name!r} holds a secret, and a plan is read by many: write `secrets: "
                f"{{{name}: NAME}}` with the name of an environment variable"
            )
    return options


class ConnectionSpec(BaseModel):
    """How to reach a server: one of the plan's ``connections``, which sources and targets name."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    options: Annotated[dict[str, str], AfterValidator(_without_secrets)] = Field(
        default_factory=dict,
        description="named as the driver names them, such as `host` and `user`; all but transport, such as "
        "`sslmode`, stand in the evidence",
    )
    secrets: dict[str, Annotated[str, Field(pattern=_VARIABLE, max_length=200)]] = Field(
        default_factory=dict,
        description="options that are secret: for each the environment variable that holds its value",
    )

    def settings(self) -> dict[str, str]:
        """All options with their values, secrets among them: for the driver, and for nobody else.

        Raises:
            PlanError: an environment variable is not set, or empty.
        """
        found = dict(self.options)
        for option, variable in self.secrets.items():
            value = os.environ.get(variable, "")
            if not value:
                raise PlanError(
                    f"the environment variable {variable} is not set",
                    where=f"connections, secrets.{option}",
                    expected=f"the value of {option!r} in {variable}",
                    fix=f"set {variable} where this runs; it stands in no file of ours",
                )
            found[option] = value
        return found


Connection = Annotated[
    ConnectionSpec,
    WithJsonSchema({"type": "string", "description": "one of the plan's `connections`"}),
]
"""Type of a source's field ``connection``: a name in the plan, what it stands for in the source."""
