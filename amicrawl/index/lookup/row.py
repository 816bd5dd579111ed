"""One line of an index as its fields, and fields as text again. Pure.

A line is CDXJ, or CDX of 7, 9, 10 or 11 columns. Values are text here, whatever the JSON had. What comes
out is one line, however hostile the value: blanks and control characters of a text column are escaped.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FIRST = ("urlkey", "timestamp", "url", "mime", "status", "digest")
_COLUMNS: Final = {
    7: (*_FIRST, "length"),
    9: (*_FIRST, "redirect", "offset", "filename"),
    10: (*_FIRST, "redirect", "robotflags", "offset", "filename"),
    11: (*_FIRST, "redirect", "robotflags", "length", "offset", "filename"),
}
_ALIASES: Final = {
    "original": "url",
    "u": "url",
    "mimetype": "mime",
    "m": "mime",
    "statuscode": "status",
    "t": "timestamp",
    "k": "urlkey",
    "d": "digest",
    "o": "offset",
    "l": "length",
    "s": "length",
    "f": "filename",
}
_UNFIT = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")


def field_name(name: str) -> str:
    """Return the name of the field that *name*, its own or one of other servers, stands for."""
    return _ALIASES.get(name, name)


class Row:
    """A line of an index; its fields are read when they are asked for."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        """The line as it is stored, without its LF."""

    @property
    def timestamp(self) -> str:
        """The second field: digits."""
        return self.line.partition(b" ")[2].partition(b" ")[0].decode("ascii", "replace")

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields by name, `urlkey` and `timestamp` first; those alone if the rest is unreadable."""
        key, timestamp, rest = ([*self.line.split(b" ", 2), b"", b""])[:3]
        first = {
            "urlkey": key.decode("utf-8", "replace"),
            "timestamp": timestamp.decode("ascii", "replace"),
        }
        if rest.startswith(b"{"):
            try:
                found = orjson.loads(rest)
            except orjson.JSONDecodeError:
                return first
            return first | {name: _text(value) for name, value in found.items()}
        columns = self.line.decode("utf-8", "replace").split(" ")
        names = _COLUMNS.get(len(columns), ())
        return first | {name: value for name, value in zip(names, columns, strict=False) if value != "-"}


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _as_cdxj(row: Row, names: Sequence[str]) -> bytes:
    if not names:
        return row.line + b"\n"
    fields = row.fields
    chosen = {name: fields[name] for name in names if name in fields}
    head = f"{fields['urlkey']} {fields['timestamp']} "
    return (head + json.dumps(chosen) + "\n").encode("utf-8", "replace")


def _as_json(row: Row, names: Sequence[str]) -> bytes:
    fields = row.fields
    chosen = {name: fields[name] for name in names if name in fields} if names else fields
    return (json.dumps(chosen) + "\n").encode("utf-8", "replace")


def _as_text(row: Row, names: Sequence[str]) -> bytes:
    if not names:
        return row.line + b"\n"
    fields = row.fields
    return (" ".join(_column(fields.get(name, "")) for name in names) + "\n").encode("utf-8", "replace")


def _column(value: str) -> str:
    return (
        _UNFIT.sub(lambda found: "".join(f"%{octet:02X}" for octet in found[0].encode()), value) or "-"
    )


FORMATS: Final[dict[str, tuple[str, Callable[[Row, Sequence[str]], bytes]]]] = {
    "cdxj": ("text/x-cdxj", _as_cdxj),
    "json": ("application/x-ndjson", _as_json),
    "text": ("text/plain; charset=utf-8", _as_text),
}
"""Media type and writer of each form of output; a writer takes a row and the fields that are wanted."""
