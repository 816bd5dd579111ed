"""Pages that a browser has shown in a crawl: their titles and screenshots, out of the WARC files.

The records made of a page are before its response (`urn:text:URL`, `urn:screenshot:URL`), and the index
names the response. So what is between the record before and the response is read, a few megabytes at
most, and what is in it under the URL of the page is taken; anything else is as if it were not there.
"""

from __future__ import annotations

import io
import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from starlette.responses import Response

from amicrawl.archive.report import latest_pages
from amicrawl.disk import OPEN_SUFFIX
from amicrawl.errors import AmicrawlError, InputError
from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.wording import plain
from amicrawl.listing import process_directories
from amicrawl.reading import records_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

LARGEST = 4 << 20
"""Bytes of the largest picture that is shown."""
_LARGEST_SLICE = 16 << 20
_LONGEST_TITLE = 300
_JPEG = b"\xff\xd8\xff"
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_KEY = re.compile(r"[0-9a-f-]{36}")
"""What is unique to a page, so that a browser may keep its picture."""
_KEPT = 64
_MOST_JOBS = 8


class _PageRecords(NamedTuple):
    """What is in the records made of a page."""

    title: str
    picture: bytes


class ShownPages:
    """The latest pages of the crawl in one directory. For one thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made: OrderedDict[str, _PageRecords] = OrderedDict()

    def of(self, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return what is shown of the pages *rows*, as `LiveFigures.pages` has them, newest first."""
        found = [self._page(row) for row in rows]
        return sorted(found, key=lambda page: -page["at"])

    def picture(self, key: str) -> bytes | None:
        """Return the screenshot, a JPEG, of the page with *key*; None where there is none (any more)."""
        made = self._made.get(key)
        return made.picture or None if made is not None else None

    def _page(self, row: Mapping[str, Any]) -> dict[str, Any]:
        key = row["record_id"][len("<urn:uuid:") : -1]
        if key not in self._made:
            self._made[key] = self._read(row)
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        made = self._made[key]
        return {
            "key": key if made.picture and _KEY.fullmatch(key) else "",
            "url": plain(row["url"]),
            "title": made.title,
            "said": plain(str(row["status"] or row["error"].partition(":")[0])),
            "is_bad": not 200 <= row["status"] < 400,
            "fault": _fault(row["meta_json"]),
            "at": row["fetched_at"] / 1000,
        }

    def _read(self, row: Mapping[str, Any]) -> _PageRecords:
        begins, ends, name = row["begins"], row["warc_offset"], row["warc_file"]
        title, picture = "", b""
        if begins is None or not 0 <= begins < ends <= begins + _LARGEST_SLICE:
            return _PageRecords(title, picture)
        path = self._file(name)
        if path is None:
            return _PageRecords(title, picture)
        try:
            with path.open("rb") as stream:
                stream.seek(begins)
                piece = stream.read(ends - begins)
            for record in records_of(
                io.BytesIO(piece), path, on_broken=lambda _: None, block_cap=LARGEST + 1
            ):
                if record.type != "resource" or not record.uri.endswith(f":{row['url']}"):
                    continue
                if record.uri.startswith("urn:text:"):
                    first = record.content(8 * _LONGEST_TITLE).partition(b"\n\n")[0]
                    title = plain(first.decode("utf-8", "replace"), limit=_LONGEST_TITLE)
                elif record.uri.startswith("urn:screenshot:"):
                    content = record.content(LARGEST + 1)
                    is_one = content.startswith(_JPEG) and len(content) <= LARGEST
                    picture = content if is_one else b""
        except (OSError, InputError):
            return _PageRecords("", b"")
        return _PageRecords(title, picture)

    def _file(self, name: str) -> Path | None:
        """Return the WARC file *name* of the crawl, which may still be written."""
        if not _FILE.fullmatch(name):
            return None
        for where in (self._directory, *process_directories(self._directory)):
            for path in (where / name, where / f"{name}{OPEN_SUFFIX}"):
                if path.is_file() and not path.is_symlink():
                    return path
        return None


class JobPages:
    """The latest pages of jobs whose directories are here. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Path, ShownPages] = OrderedDict()

    def of(self, directory: Path | None) -> list[dict[str, Any]]:
        """Return the latest pages of the crawl in *directory*; none where its index cannot be read."""
        if directory is None:
            return []
        try:
            rows = latest_pages(directory)
        except (OSError, AmicrawlError):
            return []
        with self._lock:
            shown = self._jobs.setdefault(directory, ShownPages(directory))
            self._jobs.move_to_end(directory)
            while len(self._jobs) > _MOST_JOBS:
                self._jobs.popitem(last=False)
            return shown.of(rows)

    def picture(self, directory: Path | None, key: str) -> Response:
        """Return the screenshot of one of those pages; raises Problem without one."""
        with self._lock:
            shown = None if directory is None else self._jobs.get(directory)
            return picture_of(shown.picture(key) if shown is not None else None)


def picture_of(found: bytes | None) -> Response:
    """Return the response with the picture *found*; raises Problem without one."""
    if found is None:
        raise Problem(404, "There is no picture of that page among the latest.")
    headers = {
        "content-security-policy": "default-src 'none'; sandbox",
        "cache-control": "private, max-age=3600, immutable",
    }
    return Response(found, media_type="image/jpeg", headers=headers)


def _fault(meta: str) -> str:
    """Return why a page was not shown as a whole, by the `meta_json` of its row."""
    try:
        said = orjson.loads(meta) if "page_fault" in meta else {}
    except ValueError:
        return ""
    return plain(str(said.get("page_fault", "")), limit=300) if isinstance(said, dict) else ""
