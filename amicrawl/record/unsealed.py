"""A WARC file that a killed crawl did not finish: what of it is whole, and how it is finished.

    whole records with a capture among them   sealed under the file's name
    what follows them                         `<name>.tail`
    a warcinfo record and nothing else        removed

A request whose response was lost stays, if it is whole: it was sent. Both steps, `cut` and `seal`, may
be done again after a kill at any point.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amicrawl.disk import OPEN_SUFFIX, OutputFile, explained, remove_durably, rename_durably
from amicrawl.errors import OutputError
from amicrawl.record.members import Members
from amicrawl.record.naming import TAIL_SUFFIX
from amicrawl.record.rebuild import RECORD_TYPES
from amicrawl.record.sealed import described

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.record.sealed import SealedFile

_COPY_BLOCK = 1024**2
_LONGEST_WARCINFO = 1024**2


@dataclass(slots=True)
class UnsealedFile:
    """A file `ami-00000.warc.gz.open`, read through once."""

    path: Path
    size: int
    end: int = 0
    """Where its last whole record ends."""
    records: int = 0
    """Whole records."""
    captures: dict[int, int] = field(default_factory=dict)
    """Lengths of the whole response and revisit members, by offset."""
    fault: str = ""
    """Why the records end where they do; empty where the file ends there too."""

    @property
    def name(self) -> str:
        """Its name once it is sealed."""
        return self.path.name.removesuffix(OPEN_SUFFIX)

    @property
    def kept(self) -> int:
        """Bytes that are sealed: 0 where no capture is whole."""
        return self.end if self.captures else 0


def read_unsealed(path: Path) -> UnsealedFile:
    """Read the file *path* up to its first fault; OutputError where a sealed one bears its name."""
    file = UnsealedFile(path, path.stat().st_size)
    target = path.with_name(file.name)
    if target.exists():
        raise OutputError(f"{path} and {target} are both there. Move one of them away and start again.")
    with path.open("rb") as stream:
        members = Members(stream)
        for member in members:
            file.records += 1
            if member.fields.get("warc-type") in RECORD_TYPES:
                file.captures[member.offset] = member.length
    file.end, file.fault = members.end, members.fault
    return file


def is_signed(path: Path) -> bool:
    """Tell whether *path* begins with a warcinfo record by which this program says that it wrote it."""
    with path.open("rb") as stream:
        first = next(iter(Members(stream)), None)
        if first is None or first.fields.get("warc-type") != "warcinfo":
            return False
        if first.header_length + first.block_length > _LONGEST_WARCINFO:
            return False
        stream.seek(first.offset)
        return b"\r\nsoftware: amicrawl/" in gzip.decompress(stream.read(first.length))


def cut(file: UnsealedFile, *, disk: Disk) -> int:
    """Save what follows the whole records of *file*, and cut it off; return how many bytes that were.

    Afterwards the whole records are on disk for good, still under the `.open` name.
    """
    is_empty = not file.captures and file.end == file.size and file.records <= 1
    tail = 0 if is_empty else file.size - file.kept
    if tail:
        _save_tail(file, disk=disk)
    if file.kept:
        with explained(file.path, "cut"):
            disk.truncate(file.path, file.kept)
    return tail


def seal(file: UnsealedFile, *, disk: Disk) -> SealedFile | None:
    """Give *file*, which was cut, its name; None where nothing of it was kept, and it is removed."""
    if not file.kept:
        remove_durably(file.path, disk=disk)
        return None
    target = file.path.with_name(file.name)
    rename_durably(file.path, target, disk=disk)
    return described(target, records=file.records)


def _save_tail(file: UnsealedFile, *, disk: Disk) -> None:
    path = file.path.with_name(file.name + TAIL_SUFFIX)
    output = OutputFile.replacing(path, disk=disk)
    try:
        with explained(file.path, "read"), file.path.open("rb") as stream:
            stream.seek(file.kept)
            while block := stream.read(_COPY_BLOCK):
                output.write(block)
        output.seal()
    finally:
        output.close()
