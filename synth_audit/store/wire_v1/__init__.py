"""The evidence file: its form, apart from the values that the program works with.

``models`` says what may stand in the file, ``writing`` and ``reading`` turn values into it and back, and
``upgrades`` make files of earlier versions into this one. A name that changes within the program changes
nothing here, and whatever changes here is another version, with an upgrade and a file of the old one among
the tests.
"""

from __future__ import annotations

from synth_audit.store.wire_v1.models import VERSION
from synth_audit.store.wire_v1.reading import parse, schema
from synth_audit.store.wire_v1.writing import OUTSIDE, content_of, text_of

__all__ = ["OUTSIDE", "VERSION", "content_of", "parse", "schema", "text_of"]
