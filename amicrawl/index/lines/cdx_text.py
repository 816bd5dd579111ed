"""CDX: the older index line, columns between single spaces, named by the legend that begins the file.

Columns that are not known hold a hyphen. Nothing in a column may be blank, so the line is made of values
that are fit for it already (`cdxj.py`). Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.index.lines.cdxj import CdxjLine

_COLUMNS = {
    "N": "urlkey",
    "b": "timestamp",
    "a": "url",
    "m": "mime",
    "s": "status",
    "k": "digest",
    "r": "redirect",
    "M": "robotflags",
    "S": "length",
    "V": "offset",
    "g": "filename",
}


class Layout(StrEnum):
    """What an index line looks like."""

    CDXJ = "cdxj"
    CDX9 = "cdx9"
    CDX10 = "cdx10"
    CDX11 = "cdx11"

    @property
    def letters(self) -> str:
        """The legend's letters; empty for CDXJ, which has no legend."""
        return {"cdx9": "NbamskrVg", "cdx10": "NbamskrMVg", "cdx11": "NbamskrMSVg"}.get(self.value, "")

    @property
    def legend(self) -> bytes:
        """The first line of a file; empty for CDXJ. It sorts before every other line."""
        return f" CDX {' '.join(self.letters)}\n".encode() if self.letters else b""

    @property
    def ending(self) -> str:
        """What the name of a file ends with."""
        return ".cdx" if self.letters else ".cdxj"


def cdx_line(line: CdxjLine, layout: Layout) -> bytes:
    """Return *line* in *layout*; digests lose the label of their algorithm."""
    values = {**line.fields, "urlkey": line.key, "timestamp": line.timestamp}
    values["digest"] = values.get("digest", "").rpartition(":")[2]
    # A field that was asked for may bear the name of a column that other indexers leave empty.
    values["redirect"] = ""
    columns = [_fit(values.get(_COLUMNS[letter], "")) for letter in layout.letters]
    return " ".join(columns).encode("utf-8", "surrogateescape") + b"\n"


def _fit(value: str) -> str:
    return "".join(value.split()) or "-"
