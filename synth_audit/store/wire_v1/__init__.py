"""The evidence file: its form, apart from the values that the program works with.

``models`` says what may stand in the file, ``writing`` and ``reading`` turn values into it and back. A name
that changes within the program changes nothing here. The form is frozen with version 0.1.0 of the package:
any other form is another format, and refused.
"""

from __future__ import annotations

from synth_audit.store.wire_v1.models import VERSION
from synth_audit.store.wire_v1.reading import parse, schema
from synth_audit.store.wire_v1.writing import content_of, text_of

__all__ = ["VERSION", "content_of", "parse", "schema", "text_of"]
