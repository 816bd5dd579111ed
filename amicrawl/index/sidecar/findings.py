"""What the detectors find, and the block of a metadata record that holds it. Pure.

A block is lines joined by line feeds, the last without one; a line is there where something was found:

    Identified-Payload-Type: {"fido": "text/html", "python-magic": "text/html"}
    Preservation-Identifier: fmt/99
    Charset-Detected: {"encoding": "ascii", "confidence": 1.0}
    Languages-cld2: {"reliable": true, "text-bytes": 16199, "languages": [{"name": "ENGLISH", ...}]}
    Soft-404-Detected: 0.022243
    Detection-Error: {"charset": "ValueError"}
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPES = "Identified-Payload-Type"
PUID = "Preservation-Identifier"
CHARSET = "Charset-Detected"
LANGUAGES = "Languages-cld2"
SOFT_404 = "Soft-404-Detected"
ERROR = "Detection-Error"
SOURCE_FILE = "WARC-Source-Filename"
SOURCE_OFFSET = "WARC-Source-Offset"
"""Fields of a record that tie it to its source where that has no identifiers."""
NAMES = (TYPES, PUID, CHARSET, LANGUAGES, SOFT_404, ERROR)
"""The names of a block's lines, in their order."""


class Charset(NamedTuple):
    """A character set."""

    name: str
    """As chardet spells it: `ascii`, `utf-8`, `Windows-1252`."""
    codec: str
    """The codec of Python that reads it."""
    confidence: float
    """0 to 1."""


class Language(NamedTuple):
    """One of the languages of a text, under the names that CLD2 has for its figures."""

    name: str
    code: str
    """CLD2's: ISO 639-1 mostly, but `iw`, `zh-Hant`, `xx-Cher`."""
    covered: int
    """Percent of the text."""
    score: float


class Languages(NamedTuple):
    """The languages of a text."""

    reliable: bool
    text_bytes: int
    """Bytes of text in UTF-8, markup left out."""
    languages: tuple[Language, ...]
    """Up to three, the one that covers most first."""


class Identity(NamedTuple):
    """What one detector of types takes a payload for."""

    media_type: str = ""
    puid: str = ""
    """PRONOM's identifier; empty where there is none."""


@dataclass(slots=True)
class Findings:
    """All that was found out about one payload."""

    types: dict[str, str] = field(default_factory=dict)
    """Media types by the detector that says so, `fido` first."""
    puid: str = ""
    charset: Charset | None = None
    languages: Languages | None = None
    soft_404: float | None = None
    """The probability that the page says that there is no such page."""
    errors: dict[str, str] = field(default_factory=dict)
    """Detectors that failed, and at what."""

    def is_empty(self) -> bool:
        """Return whether there is nothing to say."""
        return not (self.types or self.puid or self.charset or self.languages or self.errors) and (
            self.soft_404 is None
        )


def encode_block(found: Findings) -> bytes:
    """Return the block of a metadata record that holds *found*."""
    lines = []
    if found.types:
        lines.append(f"{TYPES}: {_json(found.types)}")
    if found.puid:
        lines.append(f"{PUID}: {found.puid}")
    if found.charset is not None:
        charset = {"encoding": found.charset.name, "confidence": found.charset.confidence}
        lines.append(f"{CHARSET}: {_json(charset)}")
    if found.languages is not None:
        lines.append(f"{LANGUAGES}: {_json(_languages(found.languages))}")
    if found.soft_404 is not None:
        lines.append(f"{SOFT_404}: {_json(found.soft_404)}")
    if found.errors:
        lines.append(f"{ERROR}: {_json(found.errors)}")
    return "\n".join(lines).encode("ascii", "replace")


def parse_block(block: bytes) -> dict[str, Any]:
    """Return the lines of *block* by name: JSON as what it stands for, anything else as text.

    A line without a colon is passed over, and of repeated names the first counts. Sidecars of other
    tools read the same way.
    """
    fields: dict[str, Any] = {}
    for line in block.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon and name not in fields:
            fields[name] = _value(value.strip())
    return fields


def _value(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
"""One for all values: to make it takes longer than to decode one."""


def _languages(found: Languages) -> dict[str, Any]:
    return {
        "reliable": found.reliable,
        "text-bytes": found.text_bytes,
        "languages": [
            {"name": name, "code": code, "text-covered": covered, "score": score}
            for name, code, covered, score in found.languages
        ],
    }


def _json(value: Mapping[str, Any] | float) -> str:
    return json.dumps(value)
