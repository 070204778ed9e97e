"""Calls on their way to another process: what they say is pickled, the tables in them go as files to map."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import pyarrow as pa

from synth_audit.core.arrow_files import Place, Shelf
from synth_audit.core.table import Table

Done = TypeVar("Done")

WORTH_A_FILE = 2**16
"""Bytes of a table from which on it goes as a file."""


@dataclass(frozen=True)
class Packed(Generic[Done]):
    """A call without its tables; making it maps them."""

    content: bytes

    def __call__(self) -> Done:
        """Make the call.

        Raises:
            Exception: whatever the call raises, or what it is made of cannot be had here.
        """
        # Packed by the process that started this one, in which nobody else has a part.
        call = cast("Callable[[], Done]", _Unpickler(io.BytesIO(self.content)).load())
        return call()


def packed(call: Callable[[], Done], shelf: Shelf) -> Packed[Done]:
    """The call for a process on this machine.

    Tables that lie in a mapped file stay where they are.

    Args:
        shelf: where other tables are put; its folder must last until the call was made.

    Raises:
        Exception: the call cannot be pickled.
    """
    from cloudpickle import CloudPickler  # here: a code location must not load it

    class Pickler(CloudPickler):  # type: ignore[misc]  # it has no types
        def persistent_id(self, thing: Any) -> Place | None:
            if not isinstance(thing, pa.Table) or thing.nbytes < WORTH_A_FILE:
                return None
            try:
                return shelf.place(thing)
            except pa.ArrowException:  # of types that no file holds: it goes with the others
                return None

        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, Table) and thing.place is not None and thing.place.path.exists():
                return Table.at, (thing.place, thing.schema, thing.known_fingerprint)
            return super().reducer_override(thing)

    content = io.BytesIO()
    Pickler(content, protocol=pickle.HIGHEST_PROTOCOL).dump(call)
    return Packed(content.getvalue())


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, place: Place) -> pa.Table:
        return place.mapped()
