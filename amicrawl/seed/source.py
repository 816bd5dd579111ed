"""Sources: where a seed list is read from (file, pipe, standard input, opener), and unpacked.

The one module of this package that touches the disk. Nothing here seeks: a pipe is as good as a file.
Failures of the system become `InputError`, with a sentence, also in the middle of a read.

gzip (RFC 1952) and Zstandard (RFC 8878) are known by their first bytes and read in a stream; several
members or frames in a row are one. However well the input was packed, a block that comes out has at most
16 MiB, so that a list of a few kilobytes cannot fill the memory. Data that ends inside a member, or does
not agree with its checksum, is an `InputError` after the last block that could be read.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import zstandard
from isal import isal_zlib

from amicrawl.errors import InputError, UsageError
from amicrawl.seed.formats import is_web, starts_markup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Fetch = Callable[[str], BinaryIO]
    """Opens an http(s) URL for reading. Which hosts may be contacted is its business.

    It raises InputError or OSError where it cannot; so do the reads of what it returns.
    """


OUTPUT_BLOCK = 256 * 1024
"""Bytes that unpacked blocks are aimed at."""

_ZSTD_INPUT = 512
"""Bytes given to the Zstandard decoder at once: it knows no limit, and 4 can stand for 128 KiB."""
_ZSTD_WINDOW = 1 << 27
"""Largest window, in bytes, that a frame may request: that of `zstd --long`."""
_GZIP = 31
"""The `wbits` of zlib that mean a gzip header and trailer."""


class Packing(StrEnum):
    """How a source is packed."""

    GZIP = "gzip"
    ZSTD = "zstd"


def packing_of(head: bytes) -> Packing | None:
    """Tell from its first four bytes how a source is packed; None where it is not."""
    if head.startswith(b"\x1f\x8b\x08"):
        return Packing.GZIP
    # A skippable frame (RFC 8878, 3.1.2) may come first: pzstd writes one.
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return Packing.ZSTD
    return None


def unpacked(blocks: Iterable[bytes], packing: Packing, *, name: str) -> Iterator[bytes]:
    """Yield what *blocks* hold; *name* is what the source is called in an InputError."""
    try:
        yield from gunzipped(blocks) if packing is Packing.GZIP else _unzstd(blocks)
    except (isal_zlib.error, zstandard.ZstdError) as error:  # type: ignore[misc]  # the stub has an instance
        raise InputError(
            f"{name} is damaged: its {packing} data does not unpack ({error}). Get a complete copy."
        ) from error
    except EOFError as error:
        raise InputError(
            f"{name} is cut: it ends inside its {packing} data. Get a complete copy."
        ) from error


def gunzipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what the gzip members in *blocks* hold; raise EOFError where the last one has no end."""
    member = None
    for block in blocks:
        packed = block
        more = False
        while packed or more:
            if member is None:
                # Padding between and behind members is common: tapes, block devices, old tools.
                packed = packed.lstrip(b"\0")
                if not packed:
                    break
                member = isal_zlib.decompressobj(wbits=_GZIP)
            content = member.decompress(packed, OUTPUT_BLOCK)
            yield content
            if member.eof:
                packed, member, more = member.unused_data, None, False
            else:
                packed, more = member.unconsumed_tail, len(content) == OUTPUT_BLOCK
    if member is not None:
        raise EOFError


def _unzstd(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what the frames in *blocks* hold; raise EOFError where the last one has no end."""
    gathered: list[bytes] = []
    size = 0
    try:
        for piece in _zstd_pieces(blocks):
            gathered.append(piece)
            size += len(piece)
            if size >= OUTPUT_BLOCK:
                yield b"".join(gathered)
                gathered, size = [], 0
    except (EOFError, zstandard.ZstdError):
        yield b"".join(gathered)
        raise
    yield b"".join(gathered)


def _zstd_pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame = None
    for block in blocks:
        for start in range(0, len(block), _ZSTD_INPUT):
            packed = block[start : start + _ZSTD_INPUT]
            while packed:
                frame = frame or decompressor.decompressobj()
                yield frame.decompress(packed)
                packed, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError


STANDARD_INPUT = "-"

_READ = 64 * 1024
_MAGIC = 12
_SNIFF = 4096
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


_EARLIER = re.compile(r"captures-[0-9]{5,12}\.parquet")


def earlier_indexes(directory: Path) -> list[Path]:
    """Return the capture indexes that ami 0.2 or 0.3 left in *directory*, in order: numbered ones."""
    try:
        paths = list(directory.iterdir())
    except (OSError, ValueError):  # no directory, or nothing that can be one
        return []
    return sorted(path for path in paths if _EARLIER.fullmatch(path.name))


@dataclass(frozen=True, slots=True)
class SeedSource:
    """An opened seed list, its packing undone."""

    name: str
    """What faults and errors call it."""
    head: bytes
    """How it begins: empty only if it is empty; 4 KiB if it begins like markup and has as many."""
    blocks: Iterator[bytes]
    """All of it, `head` included; raises InputError where it cannot be read on."""
    path: Path | None
    """Where it lies, if it is a plain file that is not packed and may be read from any place."""


@contextmanager
def opened(source: str, *, fetch: Fetch | None, stdin: BinaryIO | None) -> Iterator[SeedSource]:
    """Open *source*: a path, an http(s) URL (through *fetch*), or `-` for *stdin*.

    Raises InputError where it cannot be opened or read, UsageError for a URL without *fetch*.
    """
    if source == STANDARD_INPUT:
        # The caller closes it.
        yield _begun("standard input", stdin or _standard_input(), path=None)
        return
    path = None if is_web(source) else Path(source)
    with _open_file(path) if path else _open_web(source, fetch) as file:
        yield _begun(source, file, path=path if path and path.is_file() else None)


def _standard_input() -> BinaryIO:
    # Not Python's buffered one: a thread that waits in it would abort the interpreter when it ends.
    return open(0, "rb", buffering=0, closefd=False)  # a descriptor, not ours


def _open_file(path: Path) -> BinaryIO:
    try:
        return path.open("rb", buffering=0)
    except FileNotFoundError as error:
        raise InputError(f"Seed file {path} does not exist. Check the path.") from error
    except IsADirectoryError as error:
        hint = path / "captures.parquet"
        advice = f"Give {hint} to crawl it again." if hint.exists() else "Give a file in it."
        raise InputError(f"Seed file {path} is a directory. {advice}") from error
    except PermissionError as error:
        raise InputError(f"Seed file {path} may not be read. Change its permissions.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"Seed file {path} cannot be opened: {error}. Check the path.") from error


def _open_web(url: str, fetch: Fetch | None) -> BinaryIO:
    if fetch is None:
        raise UsageError(f"Nothing here fetches {url}. Download it first and give the file.")
    try:
        return fetch(url)
    except OSError as error:
        raise InputError(
            f"{url} cannot be fetched: {error}. Check the URL, or download it first."
        ) from error


def _begun(name: str, file: BinaryIO, *, path: Path | None) -> SeedSource:
    """Read the first bytes of *file* and undo its packing."""
    head, blocks = _beginning(_read(name, file), _MAGIC)
    packing = packing_of(head)
    if packing:
        blocks = unpacked(blocks, packing, name=name)
        path = None
    head, blocks = _beginning(blocks, _MAGIC)
    if starts_markup(head):
        head, blocks = _beginning(blocks, _SNIFF)
    if packing and packing_of(head):
        raise InputError(f"{name} is packed twice. Unpack it once and give the result.")
    if head.startswith(_UTF_16):
        raise InputError(f"{name} is UTF-16 text. Convert it to UTF-8 (iconv -f UTF-16 -t UTF-8).")
    return SeedSource(name, head, blocks, path)


def _read(name: str, file: BinaryIO) -> Iterator[bytes]:
    # `read` of a buffered pipe waits until it has all it was to read; `read1` hands on what came.
    read = getattr(file, "read1", file.read)
    try:
        while block := read(_READ):
            yield block
    except OSError as error:
        raise InputError(f"{name} cannot be read on: {error}. Check the disk or connection.") from error


def _beginning(blocks: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """Return at least *size* bytes of *blocks*, fewer only at their end, and *blocks* with them again.

    What comes of an InputError while they are gathered is left to the reader, where anything was read.
    """
    head = b""
    while len(head) < size:
        try:
            block = next(blocks, None)
        except InputError as error:
            if not head:
                raise
            return head, chain([head], _raising(error))
        if block is None:
            break
        head += block
    return head, chain([head] if head else [], blocks)


def _raising(error: InputError) -> Iterator[bytes]:
    yield b""
    raise error
