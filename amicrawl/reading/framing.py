"""Where a record begins, what its header says, and how long its block is: WARC 1.0, 1.1, ARC 1, 2.

Read tolerantly: lines may end in LF, a name may be in any case, a folded line belongs to the one before.
An ARC record becomes fields under the names that WARC has for them, so the rest of the room knows one
kind of record. Bytes in, facts out: the disk is `records.py`'s.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HEAD_LIMIT = 1 << 20
"""Bytes that a record's header may have."""
ARC_LINE_LIMIT = 1 << 16
"""Bytes that the line may have which is an ARC record's header."""

WARC_BEGIN = re.compile(rb"(?i:WARC)/[0-9]+\.[0-9]+[ \t]*\r*\n")
_WARC_VERSION = re.compile(rb"/[0-9]+\.[0-9]+\r*\n[A-Za-z][A-Za-z0-9-]*:")
"""What follows `WARC` in a record, strict enough to be found among other bytes."""
_LATER_ARC_LINE = re.compile(
    rb"\n[A-Za-z][A-Za-z0-9+.-]*:\S[^\n]{0,8192} (?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f:]+|-) "
    rb"[0-9]{14,20} [^\n]{1,1024}\n"
)
_ARC = re.compile(
    rb"([A-Za-z][A-Za-z0-9+.-]*:.*?) ([0-9A-Fa-f.:]+|-|\S+) ([0-9]{8,}) (.*?)(\S+)\s*", re.DOTALL
)
_USUAL = (b"WARC/1.0\r\n", b"WARC/1.1\r\n")
USUAL_HEAD = re.compile(
    rb"WARC/1\.[01]\r\n(?:"
    rb"WARC-(?:Type: (?(1)(?!)|(?P<type>[a-z]+))\r\n|Date:(?(2)(?!)|(?P<date>.*+))\n"
    rb"|Target-URI:(?(3)(?!)|(?P<uri>.*+))\n|Payload-Digest:(?(4)(?!)|(?P<digest>.*+))\n"
    rb"|(?!(?i:type|date|target-uri|payload-digest)(?![A-Za-z0-9-])).*+\n)"
    rb"|Content-(?:Type:(?(5)(?!)|(?P<content>.*+))\n|Length: (?(6)(?!)|(?P<length>[0-9]{1,18}))\r\n"
    rb"|(?!(?i:type|length)(?![A-Za-z0-9-])).*+\n)"
    rb"|(?!(?i:warc-|content-))[A-Za-z].*+\n"
    rb"){1,100}(?<=\r\n)\r\n"
)
"""A header as nearly all are written; its groups are what an index takes from it, where that is there.

A name that has a group is in its usual case and there once: the conditions `(?(1)(?!)` let a second one
fail, and such a header is read as any other is. All lines begin with a letter, so none is folded.
"""
USUAL_GROUPS = {
    "warc-type": "type",
    "warc-date": "date",
    "warc-target-uri": "uri",
    "warc-payload-digest": "digest",
    "content-type": "content",
}
"""Name of a field -> group of `USUAL_HEAD`."""
_USUAL_NAMES = """
WARC-Type WARC-Record-ID WARC-Date Content-Length Content-Type WARC-Target-URI WARC-Concurrent-To
WARC-Block-Digest WARC-Payload-Digest WARC-IP-Address WARC-Refers-To WARC-Refers-To-Target-URI
WARC-Refers-To-Date WARC-Truncated WARC-Warcinfo-ID WARC-Filename WARC-Profile
WARC-Identified-Payload-Type WARC-Segment-Number WARC-Segment-Origin-ID WARC-Segment-Total-Length
WARC-Protocol WARC-Cipher-Suite
"""
_NAMES = {name: name.lower() for name in _USUAL_NAMES.split()}
_ARC_BEGIN = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:\S")
_LENGTH = re.compile(r"[0-9]{1,18}")
_USUAL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_MOST_NAMES = 1000
"""Names that are remembered: no writer has more; a file made to fill the memory may."""


def next_warc(data: bytes | bytearray, start: int = 0) -> int:
    """Return where, from *start* on, a WARC record seems to begin in *data*; -1 where none does."""
    # A pattern that begins with a given byte is looked for ten times as fast as letters in any case.
    for version in _WARC_VERSION.finditer(data, start + 4):
        if data[version.start() - 4 : version.start()].upper() == b"WARC":
            return version.start() - 4
    return -1


def next_arc(data: bytes | bytearray, start: int = 0) -> int:
    """Return where, from *start* on, an ARC record seems to begin in *data*; -1 where none does."""
    line = _LATER_ARC_LINE.search(data, max(0, start - 1))
    return line.start() + 1 if line else -1


class RecordHead(NamedTuple):
    """A record's header, read."""

    version: str
    """`WARC/1.1`, `ARC/1`."""
    fields: dict[str, str]
    """By lower-case name; of repeated ones the first."""
    length: int
    """Bytes of the block, as declared; -1 where that is none."""
    strange: str
    """What about it a strict reader would refuse; empty where nothing is."""


def header_text(octets: bytes) -> str:
    """Return *octets* as UTF-8, and each line of which that is not so as Latin-1: nothing is lost."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        lines = octets.split(b"\n")
        return octets.decode("latin-1") if len(lines) == 1 else "\n".join(map(header_text, lines))


def usual_fields(raw: bytes) -> dict[str, str] | None:
    """Return the fields of the WARC header *raw* where it is written as usual; None where it is not."""
    return _usual_fields(header_text(raw)) if raw.startswith(_USUAL) else None


def warc_head(raw: bytes) -> RecordHead | None:
    """Return the header *raw*, which ends with its blank line; None where it is not WARC."""
    text = header_text(raw)
    if raw.startswith(_USUAL) and (fields := _usual_fields(text)) is not None:
        return RecordHead(text[:8], fields, _length(fields.get("content-length", "")), "")
    first, *lines = text.split("\n")
    if first[:5].upper() != "WARC/":
        return None
    fields = _fields(lines)
    version = first.strip()
    strange = "" if first[-2:-1] != "\r" == first[-1:] else "its first line does not end in CRLF"
    if not version.startswith(("WARC/1.0", "WARC/1.1", "WARC/0.1")):
        strange = f"its version is {version[:20]}"
    return RecordHead(version, fields, _length(fields.get("content-length", "")), strange)


def _usual_fields(text: str) -> dict[str, str] | None:
    """Return the fields of a header that has nothing unusual; None where it has.

    Usual are lines `Name: value` with one blank, no other white space at the ends of a value, and no
    name twice. That is most of all headers, and faster than `_fields`.
    """
    if " \r" in text or ":  " in text or not text.endswith("\r\n\r\n"):
        return None
    pairs = [line.split(": ", 1) for line in text.split("\r\n")[1:-2]]
    try:
        fields = {_NAMES[name]: value for name, value in pairs}
    except (KeyError, ValueError):
        if any(len(pair) < 2 or not _learn(pair[0]) for pair in pairs):
            return None
        fields = {_NAMES[name]: value for name, value in pairs}
    # What is printable has no white space but blanks, and no line end.
    return fields if len(fields) == len(pairs) and "".join(fields.values()).isprintable() else None


def _learn(name: str) -> bool:
    """Remember the lower case of *name*; False where it is not a name, or too many are known."""
    if name in _NAMES:
        return True
    if len(_NAMES) >= _MOST_NAMES or not _USUAL_NAME.fullmatch(name):
        return False
    _NAMES[name] = name.lower()
    return True


def _fields(lines: list[str]) -> dict[str, str]:
    # The whole value may be on the second line, of a length and a type as well.
    fields: dict[str, list[str]] = {}
    last = ""
    for line in lines:
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t"):
            if last:
                fields[last].append(line.strip())
        elif colon:
            last = name.strip().lower()
            if last in fields:
                last = ""
            else:
                fields[last] = [value.strip()]
    return {name: " ".join(filter(None, parts)) for name, parts in fields.items()}


def arc_head(line: bytes, *, major: int) -> RecordHead | None:
    """Return what the *line* says that begins an ARC record; None where it is none.

    *major* is the version that the file's first record names: lines of version 2 have ten columns.
    """
    match = _ARC.fullmatch(line)
    if match is None:
        return None
    url, address, date, between, last = map(header_text, match.groups())
    kind = between.strip()
    if major == 2:
        kind = kind.partition(" ")[0]
    is_header = url.startswith("filedesc:")
    fields = {
        "warc-type": "warcinfo" if is_header else "response",
        "warc-target-uri": url,
        "warc-date": date,
        "warc-ip-address": address,
        "content-type": kind,
        "content-length": last,
    }
    if not is_header and url[:5].lower() in ("http:", "https"):
        fields["content-type"] = "application/http; msgtype=response"
        fields["arc-content-type"] = kind
    return RecordHead(f"ARC/{major}", fields, _length(last), "")


def begins_arc(raw: bytes) -> bool:
    """Return whether *raw* begins as an ARC record's line does."""
    return _ARC_BEGIN.match(raw) is not None


def arc_version(block: bytes) -> int:
    """Return the version that the *block* of an ARC file's first record names."""
    return 2 if block[:1] == b"2" else 1


def _length(text: str) -> int:
    return int(text) if _LENGTH.fullmatch(text) else -1
