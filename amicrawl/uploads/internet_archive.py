"""Buckets that are items of the Internet Archive, by the interfaces that it documents.

    ia://IDENTIFIER           one item
    ia://PREFIX/NAME          the item PREFIX-NAME

A file is one request of its dialect of S3 (archive.org/developers/ias3.html), which makes the item if
there is none, and is in the item minutes later. So no response counts: what has arrived is what the
item's metadata (archive.org/developers/md-read.html) shows, with the size and MD5 of what is kept.
"""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from amicrawl import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from amicrawl.uploads.item_client import ItemClient

SCHEME = "ia"
BLOCK = 1024**2
"""Bytes that are sent or read at a time."""
LONGEST = 100
"""Characters of an identifier; a longer one is cut, and ends with a part of its SHA-256."""

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_SHORTEST = 5
_METADATA = (
    "title", "date", "collection", "creator", "subject", "description", "language", "licenseurl",
    "originalurl", "rights",
)  # fmt: skip
_SIZE_HINT = "size_hint"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MD5 = re.compile(r"[0-9a-f]{32}")
_LARGEST_METADATA = 64 * 1024**2


class Reported(NamedTuple):
    """What the metadata of an item says of a file."""

    size: int
    md5: str
    """In hexadecimal."""


def check_item_url(parts: SplitResult) -> bool:
    """Tell whether *parts* of a URL name an item, and say nothing of it that is not known."""
    try:
        about = parse_qsl(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        return False
    names = [name for name, _ in about]
    sizes = [value for name, value in about if name == _SIZE_HINT]
    return (
        all(map(_PART.fullmatch, _pieces(parts)))
        and len("-".join(_pieces(parts))) >= _SHORTEST
        and not parts.fragment
        and set(names) <= {*_METADATA, _SIZE_HINT}
        and all(size.isascii() and size.isdigit() and len(size) < 19 for size in sizes)
    )


def with_metadata(url: str, metadata: Mapping[str, str]) -> str:
    """Return the *url* of an item with those *metadata* that it does not have yet."""
    parts = urlsplit(url)
    there = parse_qsl(parts.query)
    names = {name for name, _ in there}
    there += [(name, value) for name, value in metadata.items() if value and name not in names]
    return urlunsplit(parts._replace(query=urlencode(there)))


def identifier_of(parts: SplitResult) -> str:
    """Return the identifier of the item that *parts* of a URL name."""
    whole = "-".join(_pieces(parts))
    if len(whole) <= LONGEST:
        return whole
    mark = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return f"{whole[: LONGEST - 17]}-{mark}"


def _pieces(parts: SplitResult) -> list[str]:
    path = parts.path.removeprefix("/").rstrip("/")
    return [parts.netloc, *(path.split("/") if path else [])]


class ItemBucket:
    """An item of the Internet Archive."""

    def __init__(self, url: str, parts: SplitResult, client: ItemClient) -> None:
        """*parts* are those of *url*, and checked."""
        self.url = url
        self.identifier = identifier_of(parts)
        self._client = client
        about = parse_qsl(parts.query)
        self._hint = max([0, *(int(value) for name, value in about if name == _SIZE_HINT)])
        self._metadata = [(name, value) for name, value in about if name != _SIZE_HINT]

    def probe(self) -> None:
        """Have the keys looked at; OSError where they are refused or there is no response."""
        said = self._client.json(f"{self._client.s3}/?check_auth=1", largest=64 * 1024)
        if not isinstance(said, dict) or said.get("error"):
            raise OSError("the Internet Archive refuses the keys")

    def reported(self, name: str) -> Reported | None:
        """Return what the metadata of the item says of the file *name*; None where that is nothing."""
        url = f"{self._client.site}/metadata/{self.identifier}"
        said = self._client.json(url, largest=_LARGEST_METADATA)
        if isinstance(said, dict) and said.get("is_dark"):
            raise OSError(f"the item {self.identifier} is not public any more (dark)")
        files = said.get("files", []) if isinstance(said, dict) else None
        if not isinstance(files, list):
            raise OSError(f"the metadata of {self.identifier} cannot be read")
        for file in files:
            if isinstance(file, dict) and file.get("name") == name:
                size, md5 = str(file.get("size")), str(file.get("md5")).lower()
                # Of a file that is being taken in, it has the name first.
                if size.isascii() and size.isdigit() and len(size) < 19 and _MD5.fullmatch(md5):
                    return Reported(int(size), md5)
        return None

    def size(self, name: str) -> int | None:
        """Return how many bytes the file *name* of the item has; None where it shows none."""
        found = self.reported(name)
        return None if found is None else found.size

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of the file *name*; OSError behind the last where the metadata differs."""
        found = self.reported(_checked(name))
        if found is None:
            raise FileNotFoundError(f"{self.identifier} has no {name}")
        seen, md5 = 0, hashlib.md5(usedforsecurity=False)
        url = f"{self._client.site}/download/{self.identifier}/{name}"
        with self._client.response("GET", url) as response:
            while seen <= found.size and (block := response.read(BLOCK)):
                seen += len(block)
                md5.update(block)
                yield block
        if Reported(seen, md5.hexdigest()) != found:
            raise OSError(f"{name} in {self.identifier} is not what its metadata says")

    def write(self, name: str, blocks: Iterable[bytes], *, size: int, md5: str = "") -> None:
        """Send *blocks*, *size* bytes with that *md5* in hexadecimal, to be the file *name*.

        Once it returns, they were taken, and will be in the item. Raises BusyError where they may be
        taken later: then they are to be handed in anew.
        """
        headers = {
            "Content-Type": "application/octet-stream",
            "x-archive-auto-make-bucket": "1",
            "x-archive-queue-derive": "0",
            "x-archive-size-hint": str(max(size, self._hint)),
            **_metadata_headers(self.identifier, self._metadata),
        }
        if md5:
            headers["Content-MD5"] = base64.b64encode(bytes.fromhex(md5)).decode()
        url = f"{self._client.s3}/{self.identifier}/{_checked(name)}"
        self._client.put(url, headers, blocks, size=size)


def _metadata_headers(identifier: str, metadata: list[tuple[str, str]]) -> dict[str, str]:
    """Return the headers that describe an item; of one that is there they change nothing."""
    given = dict(metadata)
    about = [
        ("mediatype", "web"),
        ("title", given.get("title") or f"Web crawl {identifier}"),
        ("date", given.get("date") or f"{datetime.now(UTC):%Y-%m-%d}"),
        ("scanner", f"amicrawl {__version__}"),
        *(pair for pair in metadata if pair[0] not in {"title", "date"}),
    ]
    return {
        f"x-archive-meta{number:02d}-{name}": value
        if _PLAIN.fullmatch(value)
        else f"uri({quote(value)})"
        for number, (name, value) in enumerate(about, 1)
    }


def _checked(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise OSError(f"{name[:200]!a} cannot be a file of an item")
    return name
