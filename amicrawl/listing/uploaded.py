"""`uploaded.json`: which files of a crawl's directory lie in a bucket, verified.

    format   1
    bucket   the URL of the bucket, as it was given
    files    name, size, records, sha256 of every file that was found whole there, and when
    begun    names of files whose upload was begun; what is there under such a name is this crawl's

It is kept in the directory, where it is replaced in one step, and without `begun` in the bucket. What
it lists may be gone from the directory: the names stay taken, and the captures stay captured. Both
copies are read as hostile: names that are not plain file names are refused.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.disk import explained, replace_file
from amicrawl.errors import DamagedFileError
from amicrawl.jsontext import parsed
from amicrawl.listing.files import SealedFile

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.disk import Disk

MANIFEST_NAME = "uploaded.json"
FORMAT = 1
SIZE_LIMIT = 64 * 1024**2

_PLAIN = re.compile(r"(?:frontier/)?[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class NotAManifestError(Exception):
    """Bytes that are no `uploaded.json`; the text says why."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A file that is in the bucket, verified."""

    file: SealedFile
    at: str
    """When that was found, as a WARC date."""


@dataclass(slots=True)
class UploadManifest:
    """What `uploaded.json` says."""

    bucket: str = ""
    """Empty where nothing was ever uploaded."""
    files: dict[str, Uploaded] = field(default_factory=dict)
    """By name, oldest first."""
    begun: set[str] = field(default_factory=set)

    def encoded(self, *, for_bucket: bool = False) -> bytes:
        """Return the bytes of the file, those of the copy in the bucket if *for_bucket*."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "bucket": self.bucket,
            "files": [{**asdict(each.file), "uploaded": each.at} for each in self.files.values()],
        }
        if not for_bucket:
            content["begun"] = sorted(self.begun)
        return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def write(self, directory: Path, *, disk: Disk) -> None:
        """Replace the `uploaded.json` of *directory*; OutputError where that fails."""
        replace_file(directory / MANIFEST_NAME, self.encoded(), disk=disk)


def is_plain(name: str) -> bool:
    """Tell whether *name* can be a file's name in a crawl's directory, and cannot lead out of it."""
    return _PLAIN.fullmatch(name) is not None and not name.endswith(".open")


def decoded(content: bytes) -> UploadManifest:
    """Read the bytes of an `uploaded.json`; NotAManifestError where they are none."""
    try:
        read = parsed(content)
        if read["format"] != FORMAT:
            raise NotAManifestError(f"it has format {read['format']!r}, and {FORMAT} is known")
        files = [_entry(entry) for entry in read["files"]]
        begun = {str(name) for name in read.get("begun", [])}
        return UploadManifest(str(read["bucket"]), {each.file.name: each for each in files}, begun)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotAManifestError(f"it is not an uploaded.json of this program ({error!r})") from error


def read_manifest(directory: Path) -> UploadManifest:
    """Return what the `uploaded.json` of *directory* says; an empty one where there is none.

    Raises DamagedFileError where it cannot be read as one.
    """
    path = directory / MANIFEST_NAME
    if not path.exists():
        return UploadManifest()
    if path.stat().st_size > SIZE_LIMIT:
        raise DamagedFileError(path, 0, f"larger than {SIZE_LIMIT} bytes; restore it from a copy")
    with explained(path, "read"):
        content = path.read_bytes()
    try:
        return decoded(content)
    except NotAManifestError as error:
        reason = f"{error}; restore it from the copy in the bucket"
        raise DamagedFileError(path, 0, reason) from error


def _entry(entry: dict[str, Any]) -> Uploaded:
    file = SealedFile(entry["name"], entry["size"], entry["records"], entry["sha256"])
    sound = is_plain(file.name) and _SHA256.fullmatch(file.sha256) is not None
    if not sound or type(file.size) is not int or type(file.records) is not int or file.size < 0:
        raise ValueError(f"what it says of {file.name!r} cannot be")
    return Uploaded(file, str(entry["uploaded"]))
