"""Files of lines, packed with gzip or bzip2 or not, read in blocks of whole lines. Reads only.

For readers that take millions of lines: a block is one list, made in one step. Several gzip members
behind each other, as ZipNum has them, are one text. A file that breaks off or cannot be unpacked gives
what could be read, then DamagedFileError; memory stays bounded whatever the bytes are.
"""

from __future__ import annotations

import bz2
import codecs
import sys
import zlib
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from isal import igzip, isal_zlib

from amicrawl.disk import is_unfinished, readable, refuse_pipe
from amicrawl.errors import DamagedFileError, InputError, UsageError
from amicrawl.reading import ZSTD_BEGINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

BLOCK_BYTES = 4 << 20
"""Bytes that are unpacked at a time, about."""
STDIN = Path("-")
"""Standard input, where a command allows it."""
LONGEST_LINE = 64 << 20
"""Bytes after which what has no end is taken for no line."""
ARCHIVE_BEGINS = (b"WARC/", b"filedesc:")
"""How WARC and ARC files begin."""

PARQUET_BEGINS = b"PAR1"
"""How Parquet files begin."""

_PIECE = 1 << 16
_STEP = 1 << 13
_GZIP_WINDOW = 31
# The stubs take IsalError for a value.
_BROKEN = cast("tuple[type[Exception], ...]", (EOFError, OSError, isal_zlib.IsalError))
_GZIP, _BZIP2, _ZIP = b"\x1f\x8b", b"BZh", b"PK\x03\x04"
_SUFFIXES = (".cdxj", ".cdxj.gz")


def line_blocks(path: Path, *, block_bytes: int = BLOCK_BYTES) -> Iterator[list[bytes]]:
    """Yield the lines of *path*, without their LF, in lists of about *block_bytes* bytes.

    Raises InputError where the file cannot be read, DamagedFileError behind the last whole line of one
    that is damaged.
    """
    for block in octet_blocks(path, block_bytes=block_bytes):
        lines = block.split(b"\n")
        lines.pop()
        yield lines


def octet_blocks(
    path: Path, *, block_bytes: int = BLOCK_BYTES, on_read: Callable[[int], None] = lambda _: None
) -> Iterator[bytes]:
    """Yield the lines of *path* as octets, some whole lines at a time, each ended by LF.

    A last line that has no LF is given one. *on_read* receives how many bytes of the file, packed as it
    is, each step read. The path `-` is standard input. Errors as `line_blocks`.
    """
    with _opened(path) as (file, stream):
        rest: list[bytes] = []
        is_first, read = True, 0
        for block in _blocks(stream, path, block_bytes):
            if path != STDIN:
                on_read(file.tell() - read)
                read = file.tell()
            if is_first:
                refuse_archive(path, block)
                is_first, block = False, block.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901
            end = block.rfind(b"\n") + 1
            if not end:
                rest.append(block)
                if sum(map(len, rest)) > LONGEST_LINE:
                    raise DamagedFileError(
                        path, 0, f"a line is longer than {LONGEST_LINE} bytes: this is not CDXJ"
                    )
                continue
            yield b"".join([*rest, memoryview(block)[:end]])
            rest = [block[end:]] if end < len(block) else []
        if rest:
            yield b"".join([*rest, b"\n"])


ARCHIVE_ENDINGS = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")
"""How the names of WARC and ARC files end."""


def archive_files(named: Sequence[Path]) -> list[Path]:
    """Return the files in *named*: of a directory those that bear the name of a WARC or ARC file.

    Raises InputError where one is not there, or where there is none in all of them.
    """
    files: dict[Path, None] = {}
    for path in named:
        if path.is_dir():
            files |= dict.fromkeys(_files_below(path, ARCHIVE_ENDINGS))
        elif path.exists():
            files[path] = None
        else:
            raise InputError(f"{path} does not exist. Check the path.")
    if not files:
        *endings, last = ARCHIVE_ENDINGS
        raise InputError(
            f"{', '.join(map(str, named))}: no file that ends in {', '.join(endings)} or {last} is "
            "there. Give files, or a directory that has some."
        )
    return list(files)


def files_in(places: Sequence[Path], *, suffixes: tuple[str, ...] = _SUFFIXES) -> list[Path]:
    """Return the files that *places* stand for: of a directory, those that end in *suffixes*.

    They come in the order of *places*, those of a directory by name, directories below it included.
    Raises InputError for what is not there, and for a directory that has none; UsageError for one that
    has every line twice.
    """
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            files = _files_below(place, suffixes)
            refuse_collection(place, (path.relative_to(place).as_posix() for path in files))
            if not files:
                made = " `amicrawl index FILES -o DIR` makes them." if ".cdxj" in suffixes else ""
                raise InputError(f"{place} holds no file that ends in {' or '.join(suffixes)}.{made}")
            found += files
        elif place.exists():
            found.append(place)
        else:
            raise InputError(f"{place} does not exist. Check the path.")
    return list(dict.fromkeys(found))


def _files_below(directory: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the finished files in *directory*, and in those below it, that end in *suffixes*."""
    return sorted(
        path
        for path in directory.rglob("*")
        if path.name.endswith(suffixes)
        and path.is_file()
        and not is_unfinished(path.relative_to(directory))
    )


def refuse_archive(path: Path, begin: bytes) -> None:
    """Raise InputError where *begin*, the first bytes of the file *path*, are not those of lines.

    WARC, ARC and Parquet files are refused, packages, and what is packed with Zstandard.
    """
    if begin.startswith(_ZIP):
        raise InputError(f"{path} is a package. Unpack it, and name the index in its directory indexes.")
    if begin.startswith(PARQUET_BEGINS):
        raise InputError(
            f"{path} is a Parquet file, and what is wanted is an index in lines: CDXJ or CDX."
        )
    if begin.startswith(ARCHIVE_BEGINS):
        raise InputError(
            f"{path} is a WARC or ARC file, and what is wanted is an index of one. Make it first: "
            f"amicrawl index {path}"
        )
    if begin.startswith(ZSTD_BEGINS):
        raise InputError(
            f"{path} is packed with Zstandard, and what is wanted is an index, packed with gzip at "
            f"most. If it is an archive, make its index: amicrawl index {path}"
        )


def refuse_collection(directory: object, files: Iterable[str]) -> None:
    """Raise UsageError where *files* below *directory* are an index and the merged one: lines twice.

    So they are of any collection in it.
    """
    folders = {str(folder) for file in files for folder in PurePosixPath(file).parents}
    for folder in sorted(folders):
        above, _, name = folder.rpartition("/")
        if name == "cdxj" and f"{above}/merged".removeprefix("/") in folders:
            place = f"{directory}/{above}" if above else directory
            raise UsageError(f"{place}: cdxj and merged hold the same captures. Name one of the two.")


def _blocks(stream: Any, path: Path, size: int) -> Iterator[bytes]:
    """Yield *stream* in blocks; what was unpacked before a fault comes before the error."""
    # A read that meets a fault gives nothing of what it had, so packed files are read in small pieces.
    piece_bytes = size if isinstance(stream, BufferedReader) else _PIECE
    whole = 0
    while True:
        pieces: list[bytes] = []
        fault: Exception | None = None
        try:
            while sum(map(len, pieces)) < size and (piece := stream.read1(piece_bytes)):
                pieces.append(piece)
        except _BROKEN as error:
            # bz2 says with an OSError of its own that bytes do not unpack.
            if isinstance(error, OSError) and error.errno is not None:
                fault = InputError(f"{path} cannot be read: {error.strerror or error}.")
            else:
                if isinstance(stream, igzip.IGzipFile) and path != STDIN:
                    pieces += _until_fault(path, whole + sum(map(len, pieces)))
                reason = f"it cannot be unpacked any further ({error}); what came before is read"
                # Of what was unpacked: a pipe does not say where it is.
                fault = DamagedFileError(path, whole + sum(map(len, pieces)), reason)
        whole += sum(map(len, pieces))
        if pieces:
            yield b"".join(pieces)
        if fault:
            raise fault
        if not pieces:
            return


def _until_fault(path: Path, at: int) -> Iterator[bytes]:
    """Yield what of *path*, packed with gzip, can be unpacked from byte *at* on."""
    for data in _steps_to_fault(path):
        if at < len(data):
            yield data[max(at, 0) :]
        at -= len(data)


def _steps_to_fault(path: Path) -> Iterator[bytes]:
    unpacker = None
    with suppress(OSError, zlib.error), path.open("rb") as stream:
        while piece := stream.read(_STEP):
            before = unpacker and unpacker.copy()
            try:
                data, unpacker = _unpacked(piece, unpacker)
                yield data
            except zlib.error:
                # A step that meets the fault gives nothing of what it had. So the last ones are a byte.
                for place in range(len(piece)):
                    data, before = _unpacked(piece[place : place + 1], before)
                    yield data


def _unpacked(rest: bytes, unpacker: zlib._Decompress | None) -> tuple[bytes, zlib._Decompress | None]:
    """Return what *rest* stands for behind what *unpacker* was given, and what unpacks the next bytes.

    There is no unpacker between two members, where zeros may stand.
    """
    data = []
    while rest := rest if unpacker else rest.lstrip(b"\0"):
        unpacker = unpacker or zlib.decompressobj(_GZIP_WINDOW)
        data.append(unpacker.decompress(rest))
        rest, unpacker = unpacker.unused_data, None if unpacker.eof else unpacker
    return b"".join(data), unpacker


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BufferedReader, Any]]:
    """Open *path*: the file as it is, and what it holds when unpacked."""
    with readable(path):
        if path != STDIN:
            refuse_pipe(path)
        stream = cast("BufferedReader", sys.stdin.buffer) if path == STDIN else path.open("rb")
    with stream:
        head = stream.peek(len(_BZIP2))
        if head.startswith(_GZIP):
            with cast("Any", igzip).IGzipFile(fileobj=stream) as unpacked:
                yield stream, unpacked
        elif head.startswith(_BZIP2):
            with bz2.BZ2File(stream) as unpacked:
                yield stream, unpacked
        else:
            yield stream, stream
