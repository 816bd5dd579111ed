"""Lines of an index, CDXJ and CDX, as they are written. Pure.

    com,example)/ 20260731120000 {"url": "http://example.com/", "mime": "text/html", ...}

CDXJ is one line a capture, `key timestamp {json}`, sorted for replay tools to search. CDX is the older
form: columns between single spaces, named by the legend that begins the file; what is not known is a
hyphen. Which lines a record has is decided in `record_lines.py`.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import NamedTuple

from amicrawl.urls import surt

_quoted = json.encoder.encode_basestring_ascii
_LEGEND = re.compile(rb" ?CDX ")
_URL = re.compile(rb"https?://", re.IGNORECASE)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
_USUAL_FIELDS = ("url", "mime", "status", "digest", "length", "offset", "filename")
_USUAL_LINE = "{} {} {{" + ", ".join(f'"{name}": {{}}' for name in _USUAL_FIELDS) + "}}\n"
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


class CdxjLine(NamedTuple):
    """A line."""

    key: str
    timestamp: str
    """14 digits, UTC."""
    fields: dict[str, str]

    def text(self) -> str:
        """Return the line as it is written, line end included, all of it ASCII but the key."""
        if tuple(self.fields) == _USUAL_FIELDS:
            return _USUAL_LINE.format(self.key, self.timestamp, *map(_quoted, self.fields.values()))
        values = ", ".join([f"{_quoted(name)}: {_quoted(value)}" for name, value in self.fields.items()])
        return f"{self.key} {self.timestamp} {{{values}}}\n"

    def encoded(self) -> bytes:
        """Return the line's text in UTF-8."""
        return self.text().encode("utf-8", "surrogateescape")


class Layout(StrEnum):
    """What an index line looks like."""

    CDXJ = "cdxj"
    CDX9 = "cdx9"
    CDX10 = "cdx10"
    CDX11 = "cdx11"

    @property
    def columns(self) -> str:
        """A letter for each column, as in the legend; empty for CDXJ, which has no columns."""
        return {"cdx9": "NbamskrVg", "cdx10": "NbamskrMVg", "cdx11": "NbamskrMSVg"}.get(self.value, "")

    @property
    def legend(self) -> bytes:
        """The first line of a file; empty for CDXJ. It sorts before every other line."""
        return f" CDX {' '.join(self.columns)}\n".encode() if self.columns else b""

    @property
    def ending(self) -> str:
        """What the name of a file ends with."""
        return ".cdx" if self.columns else ".cdxj"


def cdx_line(line: CdxjLine, layout: Layout) -> bytes:
    """Return *line* in *layout*; digests lose the label of their algorithm."""
    values = {**line.fields, "urlkey": line.key, "timestamp": line.timestamp}
    values["digest"] = values.get("digest", "").rpartition(":")[2]
    # A field that was requested may bear the name of a column that other indexers leave empty.
    values["redirect"] = ""
    columns = [_fit(values.get(_COLUMNS[column], "")) for column in layout.columns]
    return " ".join(columns).encode("utf-8", "surrogateescape") + b"\n"


def is_keyed(line: bytes) -> bool:
    """Return whether *line* of an index begins with a SURT, or as a legend with the letters of one.

    The key of wget's CDX is the URL. A URL without a SURT is its own key in every index.
    """
    if legend := _LEGEND.match(line):
        return line.startswith(b"N b ", legend.end())
    if not _URL.match(line):
        return True
    key = line.partition(b" ")[0]
    return surt(key).encode() == key


def _fit(value: str) -> str:
    """Return *value* as a column: what would end it percent-encoded, a hyphen where there is nothing."""
    return _BLANK.sub(lambda match: percent_encoded(match[0]), value) or "-"


def percent_encoded(text: str) -> str:
    """Return *text* with each byte of its UTF-8 percent-encoded."""
    return "".join(f"%{octet:02X}" for octet in text.encode())
