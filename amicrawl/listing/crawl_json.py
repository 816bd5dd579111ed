"""`crawl.json`: what a crawl was to do, what came of it, and which files it left.

    format            1
    software          amicrawl/<version>
    state             running, or finished; a killed crawl's stays "running" until the next one begins
    started, finished UTC times; finished is null while running
    finish_reason     why it ended; null while running
    unfinished        whether it left URLs that are due, or lines of its seed list; null while running
    asked             arguments as given
    settings          settings as followed
    versions          of the libraries it depends on
    warc_prefix       what names of its WARC files begin with
    counts            numbers by name
    links             in a crawl that follows links: what became of them, by name
    ignored           URLs that each ignore pattern has kept out
    unkept            in a crawl that follows links: what it could not keep, as `unkept.Unkept` counts it
    files             name, size, records and sha256 of every sealed file of the directory, oldest
                      first; files that were moved away since are still listed
    earlier           the crawls this directory has seen before: state, times, reason and counts

It is written when a crawl begins, whenever a file is sealed, and at the end; each time as a new file
that replaces the old one, so that a reader never sees half of it.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl import __version__
from amicrawl.clock import warc_date
from amicrawl.disk import explained, replace_file
from amicrawl.errors import DamagedFileError
from amicrawl.jsontext import parsed, written
from amicrawl.listing.files import DEFAULT_PREFIX, SealedFile, described_warc
from amicrawl.listing.uploaded import is_plain, read_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from amicrawl.disk import Disk

FILE_NAME = "crawl.json"
FORMAT = 1
SIZE_LIMIT = 64 * 1024**2
EARLIER_LIMIT = 1000
"""Crawls of a directory that are remembered."""


class CrawlJson:
    """The `crawl.json` of one crawl."""

    def __init__(
        self,
        directory: Path,
        *,
        started: datetime,
        asked: Mapping[str, Any],
        settings: Mapping[str, Any],
        versions: Mapping[str, str],
        disk: Disk,
        warc_prefix: str = DEFAULT_PREFIX,
        is_again: bool = False,
    ) -> None:
        """Say that a crawl is running. Nothing that is secret may be in *asked* and *settings*.

        With *is_again*, that may have been said before: what is there of the same start is this crawl.
        WARC files of the directory that are listed nowhere, which a killed crawl leaves, are read and
        listed. Raises DamagedFileError where the directory's `crawl.json` is none.
        """
        before = read_crawl_json(directory)
        self._directory = directory
        self._disk = disk
        self._files = {entry["name"]: entry for entry in before.get("files", [])}
        self._json: dict[str, Any] = {
            "format": FORMAT,
            "software": f"amicrawl/{__version__}",
            "state": "running",
            "started": warc_date(started),
            "finished": None,
            "finish_reason": None,
            "unfinished": None,
            "asked": dict(asked),
            "settings": dict(settings),
            "versions": dict(versions),
            "warc_prefix": warc_prefix,
            "counts": {},
            "links": {},
            "ignored": {},
            "unkept": {},
            "files": [],
            "earlier": [*before.get("earlier", []), *_summary_of(before)][-EARLIER_LIMIT:],
        }
        if is_again and before.get("started") == self._json["started"]:
            self._json["earlier"] = before.get("earlier", [])
        self._list_unlisted()
        self._write()

    @property
    def files(self) -> list[SealedFile]:
        """The sealed files of the directory, in the order they are listed."""
        return [SealedFile(**entry) for entry in self._files.values()]

    def add_file(self, file: SealedFile) -> None:
        """List *file*, in place of one of the same name."""
        self._files[file.name] = asdict(file)
        self._write()

    def finish(
        self,
        reason: str,
        *,
        finished: datetime,
        counts: Mapping[str, Any],
        unfinished: bool | None = None,
        links: Mapping[str, int] | None = None,
        ignored: Mapping[str, int] | None = None,
        unkept: Mapping[str, Any] | None = None,
    ) -> None:
        """Say that the crawl has ended, why, and what came of it."""
        self._json |= {
            "state": "finished",
            "finished": warc_date(finished),
            "finish_reason": reason,
            "unfinished": unfinished,
            "counts": dict(counts),
            "links": dict(links or {}),
            "ignored": dict(ignored or {}),
            "unkept": dict(unkept or {}),
        }
        self._write()

    def _list_unlisted(self) -> None:
        # Those that were uploaded, and perhaps removed, in case crawl.json itself was moved away.
        for name, uploaded in read_manifest(self._directory).files.items():
            if name.endswith(".warc.gz"):
                self._files.setdefault(name, asdict(uploaded.file))
        for path in sorted(self._directory.glob("*.warc.gz")):
            if path.name not in self._files:
                with explained(path, "read"):
                    self._files[path.name] = asdict(described_warc(path))

    def _write(self) -> None:
        self._json["files"] = list(self._files.values())
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        content = written(self._json, option=options)
        replace_file(self._directory / FILE_NAME, content, disk=self._disk)


def listed_files(directory: Path) -> list[SealedFile]:
    """Return the files that the `crawl.json` of *directory* lists, oldest first.

    Raises DamagedFileError where it is not one.
    """
    return [SealedFile(**entry) for entry in read_crawl_json(directory).get("files", [])]


def known_files(directory: Path) -> dict[str, int]:
    """Return the sizes of the files that `crawl.json` and `uploaded.json` in *directory* list, by name.

    Some may have been moved away or removed since. Raises DamagedFileError where one of the two cannot
    be read.
    """
    uploaded = {name: each.file.size for name, each in read_manifest(directory).files.items()}
    return uploaded | {file.name: file.size for file in listed_files(directory)}


def last_prefix(directory: Path) -> str:
    """Return what names of WARC files began with in the last crawl of *directory*.

    An earlier one has left nothing unfinished: the next crawl has repaired it. Raises as `listed_files`.
    """
    return str(read_crawl_json(directory).get("warc_prefix") or DEFAULT_PREFIX)


def read_crawl_json(directory: Path) -> dict[str, Any]:
    """Return the `crawl.json` of *directory*, whose files are of their types; empty where there is none.

    Raises DamagedFileError where it is not one: it may come from a bucket.
    """
    path = directory / FILE_NAME
    if not path.exists():
        return {}
    if path.stat().st_size > SIZE_LIMIT:
        raise DamagedFileError(path, 0, f"larger than {SIZE_LIMIT} bytes; move it away and start again")
    with explained(path, "read"):
        content = path.read_bytes()
    try:
        crawl: dict[str, Any] = parsed(content)
        for entry in crawl.get("files", []):
            _check(SealedFile(**entry))
        for said in (*crawl.get("earlier", []), crawl.get("asked") or {}):
            dict(said)
    except (AttributeError, TypeError, ValueError) as error:
        reason = "not a crawl.json of this program; move it away and start again"
        raise DamagedFileError(path, 0, reason) from error
    return crawl


def _check(file: SealedFile) -> None:
    numbers = type(file.size) is int and type(file.records) is int and file.size >= 0
    if not (is_plain(file.name) and numbers and isinstance(file.sha256, str)):
        raise ValueError(f"what it says of {file.name!r} cannot be")


def _summary_of(crawl: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is kept of an earlier crawl; a list, empty where there was none."""
    if not crawl:
        return []
    kept = ("state", "software", "started", "finished", "finish_reason", "counts")
    summary = {name: crawl.get(name) for name in kept}
    asked = dict(crawl.get("asked") or {})
    summary["asked"] = {name: asked[name] for name in ("url", "file") if name in asked}
    if summary["state"] == "running":
        summary["state"] = "killed"
    return [summary]
