"""DNS messages (RFC 1035), as far as it takes to ask whether a name has an address.

    header 12: id, flags, 4 counts | question: name, type, class | answer records | ...

A reply is believed only if it repeats the question and its number; where it breaks the format it says
nothing. Pure: bytes in, values out.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

A, AAAA = 1, 28
"""Types of records: an IPv4 and an IPv6 address."""
NO_ERROR, NO_SUCH_NAME = 0, 3
"""Response codes; any other means that the server could not say."""

_HEADER = struct.Struct(">6H")
_RECORD = struct.Struct(">HHIH")
_QUESTION_END = struct.Struct(">HH")
_RECURSION_DESIRED = 0x0100
_IS_REPLY, _OPCODE, _TRUNCATED, _RCODE = 0x8000, 0x7800, 0x0200, 0x000F
_INTERNET = 1
_MOST_RECORDS = 100
_LONGEST_NAME = 253


class Reply(NamedTuple):
    """What a server says about a name."""

    code: int
    """The response code."""
    has_address: bool
    """Whether there is a record of the type that was asked for, or perhaps one that did not fit."""


def question(name: str, *, kind: int, number: int) -> bytes | None:
    """Return the message that asks for records of type *kind* of *name*; None for what is no DNS name.

    *number*, 0 to 65535, tells replies apart and should not be guessable.
    """
    name = name.rstrip(".")
    try:
        labels = [label.encode("ascii") for label in name.split(".")]
    except UnicodeEncodeError:
        return None
    if len(name) > _LONGEST_NAME or not all(1 <= len(label) <= 63 for label in labels):
        return None
    asked = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    header = _HEADER.pack(number, _RECURSION_DESIRED, 1, 0, 0, 0)
    return header + asked + _QUESTION_END.pack(kind, _INTERNET)


def read_reply(message: bytes, asked: bytes) -> Reply | None:
    """Return what *message* replies to the question *asked*; None where it is no reply to that."""
    if len(message) < len(asked):
        return None
    number, flags, questions, answers, _, _ = _HEADER.unpack_from(message)
    if not flags & _IS_REPLY or flags & _OPCODE or questions != 1:
        return None
    # Servers may change the case of letters.
    if number != _HEADER.unpack_from(asked)[0] or message[12 : len(asked)].lower() != asked[12:].lower():
        return None
    kind, _ = _QUESTION_END.unpack_from(asked, len(asked) - _QUESTION_END.size)
    if flags & _RCODE != NO_ERROR:
        return Reply(flags & _RCODE, has_address=False)
    if flags & _TRUNCATED or answers > _MOST_RECORDS:
        return Reply(NO_ERROR, has_address=True)
    found = _has_record(message, len(asked), answers, kind)
    return None if found is None else Reply(NO_ERROR, found)


def _has_record(message: bytes, at: int, count: int, kind: int) -> bool | None:
    """Tell whether a record of type *kind* is among the *count* from *at* on; None if one is broken."""
    for _ in range(count):
        at = _behind_name(message, at)
        if at < 0 or at + _RECORD.size > len(message):
            return None
        found, network, _, length = _RECORD.unpack_from(message, at)
        at += _RECORD.size + length
        if at > len(message):
            return None
        if found == kind and network == _INTERNET:
            return True
    return False


def _behind_name(message: bytes, at: int) -> int:
    """Return the offset behind the name at *at*; negative where it does not end."""
    while at < len(message):
        length = message[at]
        if length >= 0xC0:  # a pointer to where the rest of the name stands
            return at + 2
        if not length:
            return at + 1
        at += 1 + length
    return -1
