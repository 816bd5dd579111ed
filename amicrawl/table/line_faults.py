"""Lines of a CDXJ file: what of each goes into a row, and why a line gives none.

A line is `urlkey SP timestamp SP object`. The timestamp has 14 digits, or 17, of which the last three
are dropped. Numbers may be written as JSON numbers or as texts. What the line does not have is a null, a
missing offset or length is -1, a status that is not a number of 16 bits is -1. Anything else that is
not as it should be makes the line a reject, with one of the reasons that `fault_of` gives.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING_NUMBER = -1
LARGEST_NUMBER = 2**63 - 1
LARGEST_STATUS = 2**15 - 1

_TIMESTAMP = re.compile(rb"[0-9]{14}(?:[0-9]{3})?")
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_NUMBER_FIELDS = ("offset", "length")


def fault_of(line: bytes, text_fields: Mapping[str, str]) -> str | None:
    """Return why *line*, without its LF, gives no row; None where it does.

    *text_fields* are the columns taken as they are, each with the field of the line that holds it.
    """
    parts = line.split(b" ", 2)
    if len(parts) < 3:
        return "not a key, a timestamp and an object with a space between each"
    key, timestamp, written = parts
    if not key or not _is_utf8(key):
        return "the key is not text in UTF-8" if key else "the key is empty"
    if reason := _fault_of_timestamp(timestamp):
        return reason
    try:
        fields = orjson.loads(written)
    except orjson.JSONDecodeError:
        return "what follows the timestamp is not one JSON value"
    if not isinstance(fields, dict):
        return "what follows the timestamp is not a JSON object"
    return _fault_of_fields(fields, text_fields)


def number_of(value: object) -> int:
    """Return the offset or length that *value* stands for; ValueError, with a reason, for others."""
    if value is None or value in ("", "-"):
        return MISSING_NUMBER
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("is not a whole number")  # noqa: TRY004  # it is the data's fault, not the caller's
    if not MISSING_NUMBER <= value <= LARGEST_NUMBER:
        raise ValueError("is negative, or does not fit in 64 bits")
    return value


def status_of(value: object) -> int:
    """Return the HTTP status that *value* stands for; -1 where it is not a whole number of 16 bits."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_STATUS:
        return MISSING_NUMBER
    return value


def _fault_of_timestamp(timestamp: bytes) -> str | None:
    if not _TIMESTAMP.fullmatch(timestamp):
        return "the timestamp is not of 14 digits"
    try:
        datetime.strptime(timestamp[:14].decode(), "%Y%m%d%H%M%S")  # noqa: DTZ007  # only whether it is one
    except ValueError:
        return "the timestamp is not a moment of the calendar"
    return None


def _fault_of_fields(fields: Mapping[str, Any], text_fields: Mapping[str, str]) -> str | None:
    if fields.get("url") is None:
        return "the field url is missing"
    for name in ("url", "filename", *text_fields.values()):
        if not isinstance(fields.get(name, ""), str | None):
            return f"{name} is not a text"
    for name in _NUMBER_FIELDS:
        try:
            number_of(fields.get(name))
        except ValueError as error:
            return f"{name} {error}"
    return None


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True
