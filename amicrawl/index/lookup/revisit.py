"""Revisits told together with the capture that they repeat. Pure.

A revisit has no payload: it has the digest of a capture that has. Within one answer, the first line with
a digest that is no revisit is taken for the original of all later ones: they take over its `mime` and
`status`, and say where it lies in `orig.length`, `orig.offset` and `orig.filename`. Other lines, and
revisits whose original is not in the answer, have hyphens there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from amicrawl.index.lookup.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACE = ("length", "offset", "filename")


def resolved(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield *rows* with what they repeat."""
    originals: dict[str, dict[str, str]] = {}
    for row in rows:
        fields = row.fields
        digest = fields.get("digest", "").rpartition(":")[2]
        original: dict[str, str] = {}
        if fields.get("mime") != "warc/revisit":
            if digest:
                originals.setdefault(digest, fields)
        elif digest in originals:
            original = originals[digest]
        taken = {name: original[name] for name in ("mime", "status") if name in original}
        places = {f"orig.{name}": original.get(name, "-") for name in _PLACE}
        yield _written(fields | taken | places)


def _written(fields: dict[str, str]) -> Row:
    """Return a row of *fields*, its line as it would be stored."""
    told = {name: value for name, value in fields.items() if name not in {"urlkey", "timestamp"}}
    line = f"{fields['urlkey']} {fields['timestamp']} {json.dumps(told)}"
    return Row(line.encode("utf-8", "replace"))
