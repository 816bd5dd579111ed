"""Repair of a directory that a killed crawl has left: every capture kept that is whole, every row true.

    found                                   becomes
    `ami-00003.warc.gz.open`, or of any     its whole records `ami-00003.warc.gz`, sealed, and what
    other prefix                            follows them `ami-00003.warc.gz.tail`; one without a whole
                                            capture is removed
    a row whose record is not in its file   dropped; its URL is in `lost_urls`
    a response or revisit without a row     a row made from the record
    a journal line that holds no row        reported with its offset; its record, if whole, gets a row
    journals                                rows of `captures.parquet`; one with such a line is kept
                                            besides, as `captures-00000.damaged`
    a table or `crawl.json` half written    removed

A WARC file is cut first, then the table is written, then the file is sealed. Killed at any point, repair
finds next time either the same as before, or a table that holds the rows already, and does the rest.
Sealed files are never changed. A request whose response was lost stays, if it is whole: it was sent.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import OPEN_SUFFIX, OutputFile, explained, remove_durably, rename_durably
from amicrawl.errors import OutputError
from amicrawl.listing import (
    DEFAULT_PREFIX,
    FILE_NAME,
    SUFFIX,
    TABLE_NAME,
    TAIL_SUFFIX,
    check_gathered,
    described,
    known_files,
    last_prefix,
    unsealed_prefix,
)
from amicrawl.reading import Members
from amicrawl.record.captures import row_of
from amicrawl.record.journal import NAMES, journals, read_rows, remove_taken_in
from amicrawl.record.read_back import RECORD_TYPES, rebuilt
from amicrawl.record.warc import GZIP_WINDOW
from amicrawl.terminal import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.listing import SealedFile
    from amicrawl.record.journal import DamagedLine, RowTuple

DAMAGE_LIMIT = 1000
"""Damaged lines that are reported one by one; the others are only counted."""

_COPY_BLOCK = 1024**2
_LONGEST_WARCINFO = 1024**2
_WARC_FILE, _URL = NAMES.index("warc_file"), NAMES.index("url")


@dataclass(slots=True)
class Repaired:
    """What a repair has found and done."""

    sealed: list[SealedFile] = field(default_factory=list)
    """WARC files that were finished."""
    tails: dict[str, int] = field(default_factory=dict)
    """Bytes set aside behind the whole records of a file, by the name of the `.tail`."""
    removed: list[str] = field(default_factory=list)
    """Files in which there was nothing to keep."""
    rows_kept: int = 0
    rows_rebuilt: int = 0
    lost_urls: list[str] = field(default_factory=list)
    """URLs of the rows that were dropped: their captures are not on disk and must be made again."""
    damaged_lines: list[DamagedLine] = field(default_factory=list)
    """Journal lines that held no row; the first `DAMAGE_LIMIT`."""
    damaged_line_count: int = 0

    @property
    def rows_dropped(self) -> int:
        """Rows whose record was not in its file."""
        return len(self.lost_urls)

    @property
    def rows_added(self) -> int:
        """Rows that the index did not have before: the last ones."""
        return self.rows_kept + self.rows_rebuilt

    @property
    def found_anything(self) -> bool:
        """Whether there was something to repair."""
        return self != Repaired()

    def sentence(self) -> str:
        """Say what was found and done, for the operator."""
        text = (
            f"{counted(len(self.sealed), 'WARC file')} sealed, "
            f"{counted(sum(self.tails.values()), 'torn byte')} set aside, "
            f"{counted(self.rows_kept, 'row')} kept, {self.rows_rebuilt:,} rebuilt from their records, "
            f"{self.rows_dropped:,} dropped whose records never arrived, "
            f"{counted(self.damaged_line_count, 'damaged journal line')}."
        )
        return " ".join([text, *(f"{line}." for line in self.damaged_lines[:3])])

    def __str__(self) -> str:
        return self.sentence()


def repair(directory: Path, *, disk: Disk) -> Repaired:
    """Repair *directory*; where nothing is amiss, nothing is written.

    Raises DamagedFileError where `captures.parquet` or `crawl.json` cannot be read, InputError as
    `check_gathered` does, OutputError where something cannot be written, and UsageError where a crawl is
    writing there. It may be run again.
    """
    with DirectoryLock(directory):
        return repair_locked(directory, disk=disk)


def repair_locked(directory: Path, *, disk: Disk) -> Repaired:
    """Do the same for a caller who holds the directory's lock."""
    check_gathered(directory)
    with explained(directory, "repaired"):
        return _Repair(directory, disk=disk).run()


class _Repair:
    """One run of `repair`."""

    def __init__(self, directory: Path, *, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._result = Repaired()
        self._unsealed = _unsealed_files(directory)
        self._sizes: dict[str, int] = known_files(directory)
        """Sizes of sealed files, those in the directory and those that were moved away."""
        self._sizes |= {path.name: path.stat().st_size for path in directory.glob(f"*{SUFFIX}")}
        self._damaged: set[Path] = set()
        self._with_row = {name: set[int]() for name in self._unsealed}
        """Offsets of the records that have a row, for each file whose records are looked through."""

    def run(self) -> Repaired:
        self._remove_leftovers()
        for file in self._unsealed.values():
            self._cut(file)
        journal_paths = journals(self._directory)
        for name, offsets in self._offsets_in_table(set(self._unsealed)).items():
            self._with_row[name] |= offsets
        rows = chain(
            self._true_rows(journal_paths), self._rebuilt_rows(journal_paths), self._no_rows_of_damage()
        )
        first = next(rows, None)
        if first is not None or journal_paths:
            # Arrow is loaded where there is anything to repair: most crawls begin in a new directory.
            from amicrawl.record.table import write_table  # noqa: PLC0415

            write_table(self._directory, chain([first] if first else [], rows), disk=self._disk)
        remove_taken_in(self._directory, disk=self._disk)
        for file in self._unsealed.values():
            self._seal(file)
        return self._result

    def _offsets_in_table(self, names: set[str]) -> dict[str, set[int]]:
        if not names or not (self._directory / TABLE_NAME).exists():
            return {name: set() for name in names}
        from amicrawl.record.table import offsets_in_table  # noqa: PLC0415  # as above

        return offsets_in_table(self._directory, names)

    def _remove_leftovers(self) -> None:
        names = {TABLE_NAME + OPEN_SUFFIX, FILE_NAME + OPEN_SUFFIX}
        tails = {path.name for path in self._directory.glob(f"*{SUFFIX}{TAIL_SUFFIX}{OPEN_SUFFIX}")}
        for name in sorted(names | tails):
            if (self._directory / name).exists():
                remove_durably(self._directory / name, disk=self._disk)

    def _true_rows(self, paths: list[Path]) -> Iterator[RowTuple]:
        """Yield the rows of the journals whose record is there, and those of failed fetches."""
        for path in paths:
            for row in read_rows(path, on_damage=self._note_damage):
                name, offset, length = row[_WARC_FILE : _WARC_FILE + 3]
                if name and not self._holds(name, offset, length):
                    self._result.lost_urls.append(row[_URL])
                    continue
                if name in self._with_row:
                    self._with_row[name].add(offset)
                self._result.rows_kept += 1
                yield row

    def _holds(self, name: str, offset: int, length: int) -> bool:
        """Tell whether the file *name* has a record of *length* bytes at *offset*."""
        if name in self._unsealed:
            return self._unsealed[name].captures.get(offset) == length
        return offset >= 0 and length > 0 and offset + length <= self._sizes.get(name, 0)

    def _rebuilt_rows(self, paths: list[Path]) -> Iterator[RowTuple]:
        """Yield a row for every whole record that has none."""
        if self._damaged:
            self._note_rows_of_sealed_files(paths)
        for name, offsets in self._with_row.items():
            file = self._unsealed.get(name)
            if file is not None and len(offsets) == len(file.captures):
                continue
            path = file.path if file is not None else self._directory / name
            with path.open("rb") as stream:
                for member in Members(stream):
                    if member.fields.get("warc-type") in RECORD_TYPES and member.offset not in offsets:
                        self._result.rows_rebuilt += 1
                        row = row_of(rebuilt(path, member, warc_file=name))
                        yield tuple(row[column] for column in NAMES)

    def _no_rows_of_damage(self) -> Iterator[RowTuple]:
        """Yield no row, and copy the damaged journals, which are known when all rows were read.

        Before there is a table that names them as taken in: those that one names are removed.
        """
        for path in sorted(self._damaged):
            _save_from(path, 0, path.with_suffix(".damaged"), disk=self._disk)
        yield from ()

    def _note_rows_of_sealed_files(self, paths: list[Path]) -> None:
        """Note which records of sealed files have a row; damaged lines may be those of others.

        Files that `captures.parquet` knows are whole in it: rows are taken in once a file is sealed.
        """
        names = {path.name for path in self._directory.glob(f"*{SUFFIX}")} - self._unsealed.keys()
        in_table = self._offsets_in_table(names)
        # One of a single record, whose line is damaged, has no row at all.
        self._with_row |= {name: set() for name, offsets in in_table.items() if not offsets}
        for path in paths:
            for row in read_rows(path, on_damage=lambda _: None):
                name, offset = row[_WARC_FILE : _WARC_FILE + 2]
                if name in names:
                    self._with_row.setdefault(name, in_table[name]).add(offset)

    def _note_damage(self, line: DamagedLine) -> None:
        self._damaged.add(line.path)
        self._result.damaged_line_count += 1
        if len(self._result.damaged_lines) < DAMAGE_LIMIT:
            self._result.damaged_lines.append(line)

    def _cut(self, file: _UnsealedFile) -> None:
        if length := _cut(file, disk=self._disk):
            self._result.tails[file.name + TAIL_SUFFIX] = length

    def _seal(self, file: _UnsealedFile) -> None:
        sealed = _seal(file, disk=self._disk)
        if sealed is not None:
            self._result.sealed.append(sealed)
        else:
            self._result.removed.append(file.path.name)


def _unsealed_files(directory: Path) -> dict[str, _UnsealedFile]:
    """Return the WARC files of this program in *directory* that are not sealed, by their final name."""
    ours = {DEFAULT_PREFIX, last_prefix(directory)}
    files = [
        _read_unsealed(path)
        for path in sorted(directory.iterdir())
        if (prefix := unsealed_prefix(path.name)) is not None and (prefix in ours or _is_signed(path))
    ]
    return {file.name: file for file in files}


@dataclass(slots=True)
class _UnsealedFile:
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


def _read_unsealed(path: Path) -> _UnsealedFile:
    """Read the file *path* up to its first fault; OutputError where a sealed one bears its name."""
    file = _UnsealedFile(path, path.stat().st_size)
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


def _is_signed(path: Path) -> bool:
    """Tell whether *path* begins with a warcinfo record by which this program says that it wrote it."""
    with path.open("rb") as stream:
        first = next(iter(Members(stream)), None)
        if first is None or first.fields.get("warc-type") != "warcinfo":
            return False
        if first.header_length + first.block_length > _LONGEST_WARCINFO:
            return False
        stream.seek(first.offset)
        begin = zlib.decompressobj(GZIP_WINDOW).decompress(stream.read(first.length), _LONGEST_WARCINFO)
        return b"\r\nsoftware: amicrawl/" in begin


def _cut(file: _UnsealedFile, *, disk: Disk) -> int:
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


def _seal(file: _UnsealedFile, *, disk: Disk) -> SealedFile | None:
    """Give *file*, which was cut, its name; None where nothing of it was kept, and it is removed."""
    if not file.kept:
        remove_durably(file.path, disk=disk)
        return None
    target = file.path.with_name(file.name)
    rename_durably(file.path, target, disk=disk)
    return described(target, records=file.records)


def _save_tail(file: _UnsealedFile, *, disk: Disk) -> None:
    _save_from(file.path, file.kept, file.path.with_name(file.name + TAIL_SUFFIX), disk=disk)


def _save_from(path: Path, start: int, target: Path, *, disk: Disk) -> None:
    """Have *target* hold what *path* does from the offset *start* on."""
    output = OutputFile.replacing(target, disk=disk)
    try:
        with explained(path, "read"), path.open("rb") as stream:
            stream.seek(start)
            while block := stream.read(_COPY_BLOCK):
                output.write(block)
        output.seal()
    finally:
        output.close()
