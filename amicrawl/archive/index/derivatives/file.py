"""WARC files made from others: a warcinfo record first, then records that refer to those of the source.

    X.warc.gz -> X.warc.wat.gz, X.warc.wet.gz      WARC/1.1, a gzip member a record

Values that came from a source file are untrusted: what could end a line or is not printable never
reaches a field. A file has its name only once it is whole.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, NamedTuple

from isal import igzip_lib

from amicrawl import __version__
from amicrawl.archive.lines import url_of
from amicrawl.clock import warc_date
from amicrawl.disk import Disk, OutputFile
from amicrawl.record import record_ids, target_uri
from amicrawl.record.warc import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from amicrawl.reading import Record


SOFTWARE = f"amicrawl/{__version__}"
_CONFORMS_TO = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_ID = re.compile(r"<[!-;=?-~]{1,1000}>")
_W3C_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z")
_ARC_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})[0-9]{0,3}")


class Publisher(NamedTuple):
    """Who has sidecars made; empty texts are left out."""

    operator: str = ""
    publisher: str = ""
    address: str = ""
    """The IP address of the machine."""


NOT_NAMED = Publisher()


@dataclass(frozen=True)
class Maker:
    """Who makes the files, when, and with what chance: everything that is not in the source."""

    disk: Disk = field(default_factory=Disk)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    random: Callable[[int], bytes] = os.urandom
    hostname: str = ""


class DerivativeFile:
    """One such file, being written."""

    def __init__(self, path: Path, *, maker: Maker, about: Iterable[tuple[str, str]]) -> None:
        """Begin *path*; *about* is what its warcinfo says besides who made it, and when."""
        self.began = maker.clock()
        self.records = 0
        """Records in it, the warcinfo aside."""
        self.path = path
        self._ids = record_ids(maker.random, batch=64)
        self._file = OutputFile.replacing(path, disk=maker.disk)
        said = [
            ("Software-Info", SOFTWARE),
            ("Extracted-Date", format_datetime(self.began, usegmt=True)),
            ("hostname", maker.hostname),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", _CONFORMS_TO),
            *about,
        ]
        block = "".join(f"{name}: {_line(value)}\r\n" for name, value in said if value).encode()
        self._append(
            [
                ("WARC-Type", "warcinfo"),
                ("WARC-Date", warc_date(self.began)),
                ("WARC-Filename", _line(path.name)),
                ("WARC-Record-ID", self._ids()),
                ("Content-Type", "application/warc-fields"),
            ],
            block,
        )

    def add(self, kind: str, block: bytes, *, date: str, fields: Iterable[tuple[str, str]]) -> None:
        """Add a record of type *kind* with *fields* behind its date; empty ones are left out."""
        self.records += 1
        head = [("WARC-Type", kind), ("WARC-Date", date), ("WARC-Record-ID", self._ids())]
        self._append([*head, *((name, value) for name, value in fields if value)], block)

    def seal(self) -> int:
        """Give the file its name; return its size in bytes."""
        size = self._file.tell()
        self._file.seal()
        return size

    def close(self) -> None:
        """Leave the file as it is; its name says that it is not whole."""
        self._file.close()

    def _append(self, fields: Iterable[tuple[str, str]], block: bytes) -> None:
        lines = "\r\n".join(f"{name}: {_line(value)}" for name, value in fields)
        head = f"WARC/1.1\r\n{lines}\r\nContent-Length: {len(block)}\r\n\r\n".encode()
        self._file.write(igzip_lib.compress(head + block + b"\r\n\r\n", LEVEL, igzip_lib.COMP_GZIP))


def _line(value: str) -> str:
    """Return *value* so that it stays on its line."""
    if value.isprintable():
        return value
    return "".join(c if c.isprintable() else " " for c in value).strip()


class LeftOutError(Exception):
    """A record, or something of it, that should be in a product and cannot be; its text says why."""


def uri_of(record: Record) -> str:
    """Return the URL of *record* as its index line has it; empty where there is none.

    As the value of a field, without characters that do not print and up to 30,000 bytes.
    """
    url = url_of(record)
    if not url.isprintable():
        url = "".join([c if c.isprintable() else target_uri(c) for c in url])
    return url.encode()[:30_000].decode(errors="ignore")


def reference_to(record: Record) -> str:
    """Return what `WARC-Refers-To` calls *record*: its id; of ARC, file and offset; empty if unknown."""
    if record.version.startswith("ARC"):
        return f"<urn:arc:{target_uri(record.path.name)}:{record.offset}>"
    return record.record_id if _ID.fullmatch(record.record_id) else ""


def date_of(record: Record) -> str | None:
    """Return the date of *record* in the form of WARC, or None where it has none."""
    if _W3C_DATE.fullmatch(record.date):
        return record.date
    match = _ARC_DATE.fullmatch(record.date)
    return "{}-{}-{}T{}:{}:{}Z".format(*match.groups()) if match else None
