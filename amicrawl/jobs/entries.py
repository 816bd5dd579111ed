"""Log entries in the three shapes that ArchiveBot has. Pure: JSON text in, an entry out, and back.

* `Download`: one response, or one failed attempt.
* `Ignore`: a URL that an ignore expression, or a rule named in brackets, has excluded.
* `Stdout`: what a program said, for people.

No other type may be written: ArchiveBot's page stops at one that it does not know.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Literal

LONGEST_ENTRY = 65_536
"""Bytes of an entry that is written; a longer URL or message is cut."""
LARGEST_READ = 1 << 20
"""Bytes of an entry that is read; ArchiveBot's relay breaks above."""

Source = Literal["accept_url", "handle_result", "handle_pre_response"]
_LONGEST_FIELD = 8_192


class NotAnEntryError(ValueError):
    """A string that is not a log entry; the message says why."""


@dataclass(frozen=True, slots=True)
class Download:
    """One response, or one failed attempt."""

    ts: float
    """When, Unix seconds."""
    url: str
    """As it was queued, not as a redirect spelled it."""
    response_code: int
    """The status, an FTP reply code, or 0 for none."""
    wget_code: str = "OK"
    """`OK`, or what went wrong."""

    @property
    def is_error(self) -> bool:
        """Whether it counts as an error: 500 and above, or something went wrong."""
        return self.response_code >= 500 or self.wget_code != "OK"

    @property
    def is_warning(self) -> bool:
        """Whether it is shown as a warning: 400 to 499."""
        return 400 <= self.response_code <= 499

    def fields(self) -> dict[str, Any]:
        """Return what is written, in ArchiveBot's order."""
        return {
            "ts": self.ts,
            "url": self.url,
            "response_code": self.response_code,
            "wget_code": self.wget_code,
            "is_error": self.is_error,
            "is_warning": self.is_warning,
            "type": "download",
        }


@dataclass(frozen=True, slots=True)
class Ignore:
    """A URL that was kept out."""

    ts: float
    """When, Unix seconds."""
    url: str
    pattern: str
    """The expression as stored, or a rule in brackets."""
    source: str = "accept_url"
    """At which step: before fetching (`accept_url`), or afterwards."""

    def fields(self) -> dict[str, Any]:
        """Return what is written, in ArchiveBot's order."""
        return {
            "ts": self.ts,
            "url": self.url,
            "pattern": self.pattern,
            "source": self.source,
            "type": "ignore",
        }


@dataclass(frozen=True, slots=True)
class Stdout:
    """What a program said."""

    ts: float
    """When, Unix seconds."""
    message: str
    """May hold several lines; whole ones, where we write it."""

    def fields(self) -> dict[str, Any]:
        """Return what is written, in ArchiveBot's order."""
        return {"ts": self.ts, "message": self.message, "type": "stdout"}


Entry = Download | Ignore | Stdout


def encoded(entry: Entry) -> str:
    """Return *entry* as it is stored: at most `LONGEST_ENTRY` bytes, whatever it holds."""
    fields = entry.fields()
    text = json.dumps({name: _cut(value, _LONGEST_FIELD) for name, value in fields.items()})
    # ASCII-only JSON writes a character outside the first plane as twelve.
    if len(text) > LONGEST_ENTRY:
        text = json.dumps({name: _cut(value, _LONGEST_FIELD // 8) for name, value in fields.items()})
    return text


def parsed(text: str) -> Entry:
    """Return the entry in *text*; raises NotAnEntryError, saying why, for what is none."""
    if len(text) > LARGEST_READ:
        raise NotAnEntryError(f"it has {len(text)} characters")
    try:
        fields = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise NotAnEntryError(f"it is not JSON: {str(error)[:100]}") from error
    if not isinstance(fields, dict):
        raise NotAnEntryError("it is JSON, but no object")
    shape = fields.get("type")
    if shape == "download":
        code = fields.get("response_code")
        if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 9999:
            raise NotAnEntryError("response_code is not a status")
        return Download(_when(fields), _text(fields, "url"), code, _text(fields, "wget_code"))
    if shape == "ignore":
        return Ignore(
            _when(fields), _text(fields, "url"), _text(fields, "pattern"), _text(fields, "source")
        )
    if shape == "stdout":
        return Stdout(_when(fields), _text(fields, "message"))
    raise NotAnEntryError("its type is none of download, ignore, stdout")


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _when(fields: dict[str, Any]) -> float:
    ts = fields.get("ts")
    if isinstance(ts, bool) or not isinstance(ts, (int, float)) or not 0 <= ts < 1e11 or math.isnan(ts):
        raise NotAnEntryError("ts is not a time")
    return ts


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise NotAnEntryError(f"{name} is not a string")
    # JSON may spell half a surrogate pair, and what came as bytes may not have been UTF-8.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _cut(value: Any, longest: int) -> Any:
    if not isinstance(value, str):
        return value
    cut = value if len(value) <= longest else value[: longest - 1] + "…"
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode()
