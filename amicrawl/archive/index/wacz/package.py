"""WACZ packages: WARC files with their index and a list of their pages, in one ZIP file (WACZ 1.1.1).

    archive/NAME.warc.gz     the WARC files, stored as they are: a reader can fetch single records
    indexes/index.cdx.gz     CDXJ lines in byte order, blocks of them packed (`cdxj-gzip-1.0`)
    indexes/index.idx        where those blocks are
    pages/pages.jsonl        the pages
    datapackage.json         what is in the package: sizes and SHA-256 of all the above
    datapackage-digest.json  SHA-256 of that

Nothing is held in memory whole: files are copied piece by piece and summed up on the way, index lines
are sorted on disk. The same files, description and moment give the same bytes. What of a WARC file
cannot be read is reported; the file goes into the package as it is, because an archive does not throw
bytes away.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC
from itertools import chain
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from amicrawl import __version__
from amicrawl.archive.index.wacz.pages import PageList
from amicrawl.archive.index.zipnum.cluster import json_idx_head
from amicrawl.archive.index.zipnum.writer import WrittenCluster, blocks_of, json_members
from amicrawl.archive.lines import IndexOptions, cdxj_lines, external_sort
from amicrawl.disk import OutputFile, explained, readable, refuse_pipe
from amicrawl.errors import InputError, UsageError
from amicrawl.reading import paired, read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Self

    from amicrawl.archive.index.wacz.pages import PageLine
    from amicrawl.disk import Disk
    from amicrawl.reading import Broken, Record

VERSION = "1.1.1"
WACZ_SUFFIXES = (".warc", ".warc.gz")
"""Names of the files that a package may hold."""
BLOCK_LINES = 1_024
"""Index lines of a block."""

_OPTIONS = IndexOptions(post=True)  # replay in a browser looks up what was posted, too
_INDEX = "index.cdx.gz"
_IDX = "index.idx"
_PIECE = 1024**2
_SORT_MEMORY = 64 * 1024**2
_UNFIT_IN_NAME = re.compile(r"[^a-z0-9._-]+")
_MODE = 0o100644 << 16
_UNIX = 3
_FIRST_YEAR, _LAST_YEAR = 1980, 2107  # what two seconds in a field of 32 bits can say


class ZipEntry(NamedTuple):
    """A file in a package."""

    path: str
    """Its name in the package."""
    size: int
    """Bytes, unpacked."""
    sha256: str
    """Lower-case hex, of the unpacked bytes."""


class Description(NamedTuple):
    """What a package says about itself."""

    created: datetime
    """Creation time; also the time of every file in the package."""
    title: str = ""
    description: str = ""
    """Markdown."""
    main_page: str = ""
    """URL of the page to begin with; has to be one of its pages."""


@dataclass(slots=True)
class Packed:
    """What went into a package."""

    warcs: int = 0
    lines: int = 0
    """Index lines."""
    pages: int = 0
    broken: int = 0
    """Places in the WARC files that could not be read."""
    entries: list[ZipEntry] = field(default_factory=list)


def write_wacz(
    warcs: Sequence[Path],
    path: Path,
    *,
    description: Description,
    disk: Disk,
    on_broken: Callable[[Broken], None] = lambda _broken: None,
    is_page: Callable[[Record], bool] = lambda _record: True,
) -> Packed:
    """Pack *warcs* as *path*, in the order given, and return what went in.

    What cannot be read goes to *on_broken*. Of the pages, those are listed that *is_page* is true of.
    Raises UsageError for names that a package cannot have, or a main page that is not in it; InputError
    for a file that cannot be read or changes meanwhile.
    """
    names = _names_in_package(warcs, path)
    packed = Packed()

    def report(broken: Broken) -> None:
        packed.broken += 1
        on_broken(broken)

    with ZipPackage(path, moment=description.created, disk=disk) as package:
        with explained(path, "written"), _scratch(path, disk) as listed, _scratch(path, disk) as idx:
            pages = PageList(listed, is_page, main_page=description.main_page)
            # Each file is read for its index while what was copied of it is still in memory.
            lines = (
                line
                for warc, name in zip(warcs, names, strict=True)
                for line in _packed_and_indexed(
                    warc, package, packed, name=name, report=report, on_record=pages.add
                )
            )
            ordered = external_sort(lines, memory=_SORT_MEMORY, scratch=path.parent)
            index = _write_index(package, ordered, idx, packed)
            packed.entries += [index, _write_scratch(package, f"indexes/{_IDX}", idx)]
            pages.finish()
            packed.entries.append(_write_scratch(package, "pages/pages.jsonl", listed))
        packed.pages = pages.count
        manifest_bytes = _datapackage(description, packed.entries, pages.main())
        manifest = package.add("datapackage.json", [manifest_bytes], packed=True)
        digest = {"path": "datapackage.json", "hash": f"sha256:{manifest.sha256}"}
        package.add("datapackage-digest.json", [_json(digest)], packed=True)
    return packed


def _names_in_package(warcs: Sequence[Path], path: Path) -> list[str]:
    """Return what each of *warcs* is called in the package: its name, or where others have it too, more.

    Directories stand in front of it then, as many as it takes: `monday~ami-00000.warc.gz`. Every crawl
    begins with a file of the same name, and a collection is often of several.
    """
    if path.suffix != ".wacz":
        raise UsageError(f"{path} has to end in .wacz: readers know such a package by its name.")
    if not warcs:
        raise UsageError("There is no WARC file to pack.")
    for warc in warcs:
        if not warc.name.endswith(WACZ_SUFFIXES):
            raise UsageError(f"{warc} cannot go into a package: only .warc and .warc.gz can.")
        try:
            str(warc.absolute()).encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{str(warc)!a} cannot go into a package: the name is not UTF-8. Give it another one."
            ) from error
    paths = [warc.absolute().parts[1:] for warc in warcs]
    ways = [["~".join(parts[-n:]) for parts in paths] for n in range(1, max(map(len, paths)) + 1)]
    counts = [Counter(way) for way in ways]
    names = [
        next((way[at] for way, count in zip(ways, counts, strict=True) if count[way[at]] == 1), "")
        for at in range(len(warcs))
    ]
    taken = Counter(names)
    for warc, name in zip(warcs, names, strict=True):
        if not name or taken[name] > 1:
            raise UsageError(
                f"{warc} is named twice, or has the name of another file. Name each file once."
            )
    return names


def _scratch(path: Path, disk: Disk) -> IO[bytes]:
    with explained(path.parent, "written to"):
        return disk.temporary(path.parent)


def _packed_and_indexed(
    warc: Path,
    package: ZipPackage,
    packed: Packed,
    *,
    name: str,
    report: Callable[[Broken], None],
    on_record: Callable[[Record], None],
) -> Iterator[bytes]:
    """Copy *warc* into the package as *name*, then yield its index lines."""
    before = _state(warc)
    entry = package.add(f"archive/{name}", _pieces_of(warc), packed=False, size=before[0])
    packed.entries.append(entry)
    packed.warcs += 1
    for record, partner in paired(read_records(warc, on_broken=report)):
        on_record(record)
        if record.seekable:
            for line in cdxj_lines(record, filename=name, options=_OPTIONS, partner=partner):
                yield line.encoded()
    if _state(warc) != before:
        raise InputError(f"{warc} was changed while it was packed. Pack it when nothing writes to it.")


def _state(path: Path) -> tuple[int, int]:
    with readable(path):
        found = path.stat()
    return found.st_size, found.st_mtime_ns


def _pieces_of(path: Path) -> Iterator[bytes]:
    with readable(path):
        refuse_pipe(path)
        with path.open("rb") as stream:
            while piece := stream.read(_PIECE):
                yield piece


def _write_index(
    package: ZipPackage, ordered: Iterable[bytes], idx: IO[bytes], packed: Packed
) -> ZipEntry:
    """Write the index, and into *idx* where its blocks are."""
    blocks = blocks_of(ordered, BLOCK_LINES)
    # The first line in order is known once all are: by then every file has been copied, and the package
    # can take the next entry.
    first = next(blocks, None)
    idx.write(json_idx_head(_INDEX))
    written = WrittenCluster()
    members = json_members(chain([first] if first else [], blocks), idx.write, written)
    entry = package.add(f"indexes/{_INDEX}", members, packed=False)
    packed.lines = written.lines
    return entry


def _write_scratch(package: ZipPackage, path: str, scratch: IO[bytes]) -> ZipEntry:
    size = scratch.tell()
    scratch.seek(0)
    return package.add(path, iter(lambda: scratch.read(_PIECE), b""), packed=True, size=size)


def _datapackage(description: Description, entries: Sequence[ZipEntry], main: PageLine | None) -> bytes:
    moment = description.created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    manifest: dict[str, object] = {
        "profile": "data-package",
        "wacz_version": VERSION,
        "title": description.title,
        "description": description.description,
        "created": moment,
        "modified": moment,
        "software": f"amicrawl/{__version__}",
    }
    if main is not None:
        manifest |= {"mainPageUrl": main.url, "mainPageDate": main.moment}
    manifest["resources"] = [
        {
            "name": name,
            "path": entry.path,
            "hash": f"sha256:{entry.sha256}",
            "bytes": entry.size,
        }
        for name, entry in zip(_names_of(entries), entries, strict=True)
    ]
    return _json({name: value for name, value in manifest.items() if value})


def _names_of(entries: Sequence[ZipEntry]) -> Iterator[str]:
    """Yield a name for each entry: in lower case, without odd characters, no two alike."""
    seen: set[str] = set()
    for entry in entries:
        plain = _UNFIT_IN_NAME.sub("-", entry.path.rpartition("/")[2].lower())
        name, number = plain, 1
        while name in seen:
            number += 1
            name = f"{number}-{plain}"
        seen.add(name)
        yield name


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


class ZipPackage:
    """A ZIP file being written as a stream of entries; leaving its context normally seals it.

    Entries are stored or deflated, of any size (ZIP64 where needed), without data descriptors. The same
    entries and moment give the same bytes.
    """

    def __init__(self, path: Path, *, moment: datetime, disk: Disk) -> None:
        """Begin `path`.open; every entry is dated *moment*. OutputFile says which errors there are."""
        self._file = OutputFile.replacing(path, disk=disk)
        self._zip = zipfile.ZipFile(cast("IO[bytes]", _Seekable(self._file)), "w")
        utc = moment.astimezone(UTC)
        year = min(max(utc.year, _FIRST_YEAR), _LAST_YEAR)
        self._date = (year, utc.month, utc.day, utc.hour, utc.minute, utc.second)

    def add(self, path: str, pieces: Iterable[bytes], *, packed: bool, size: int = 0) -> ZipEntry:
        """Write an entry from its *pieces*, deflated where *packed*, and return it.

        *size* is how many bytes to expect: a file above 2 GiB that is not announced is refused halfway.
        """
        info = zipfile.ZipInfo(path, self._date)
        info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        info.external_attr, info.create_system, info.file_size = _MODE, _UNIX, size
        digest, total = hashlib.sha256(), 0
        with self._zip.open(info, "w") as entry:
            for piece in pieces:
                entry.write(piece)
                digest.update(piece)
                total += len(piece)
        return ZipEntry(path, total, digest.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._zip.close()
                self._file.seal()
            else:
                # zipfile would write a directory for what is there when it is collected.
                self._zip.fp = None
        finally:
            self._file.close()


class _Seekable:
    """An OutputFile as `zipfile` wants a file: headers are written over once sizes are known."""

    def __init__(self, file: OutputFile) -> None:
        self._file = file
        self._position = 0

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> int:
        self._position = position
        return position

    def write(self, block: bytes) -> int:
        end = self._file.tell()
        if self._position == end:
            self._file.write(block)
        elif self._position + len(block) <= end:
            self._file.write_at(self._position, block)
        else:
            raise OSError("a header would run into what follows it")
        self._position += len(block)
        return len(block)

    def flush(self) -> None:
        """Nothing is held back."""
