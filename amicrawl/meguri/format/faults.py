"""What can be wrong with a frontier file, and the error that says where."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from amicrawl.errors import DamagedFileError

if TYPE_CHECKING:
    from pathlib import Path


class FileFault(StrEnum):
    """The kinds of fault that readers of the format distinguish."""

    SHORT = "short"
    """Fewer bytes than the smallest file has."""
    BAD_MAGIC = "bad_magic"
    """It does not begin or end as the format says; so does a file that was cut."""
    CHECKSUM = "checksum"
    """Bytes differ from those that were written."""
    UNSUPPORTED = "unsupported"
    """A version, checksum or codec that this reader does not know."""
    CORRUPT = "corrupt"
    """The checksums hold, but what they cover contradicts itself or the format."""
    NOT_SORTED = "not_sorted"
    """Rows are not in the order of their keys, or a key comes twice."""
    DECOMPRESSION = "decompression"
    """A compressed block cannot be opened, or holds more or less than it says."""


class Malformed(Exception):  # noqa: N818  # it is caught in this room and becomes the error below
    """Bytes break a rule of the format; raised where neither file nor place is known."""

    def __init__(self, reason: str, *, fault: FileFault = FileFault.CORRUPT, at: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fault = fault
        self.at = at
        """Bytes from the start of what was being read to where the fault shows."""


class FrontierFileError(DamagedFileError):
    """A frontier file that cannot be trusted: which, where, in what part of it, and what is wrong."""

    def __init__(self, path: Path, offset: int, region: str, reason: str, *, fault: FileFault) -> None:
        super().__init__(path, offset, f"{region}: {reason}")
        self.region = region
        """Such as `header`, `footer`, `url_table.next_due` or `string_blob`."""
        self.fault = fault
