"""ZipNum clusters written from sorted lines, one pass, in the memory of one block.

`cluster.idx` gets its name last: a directory without one is not a cluster, so a kill leaves nothing that
looks whole. The same lines and sizes give the same bytes.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from amicrawl.archive.index.zipnum.cluster import (
    BLOCK_LINES,
    IDX_NAME,
    LOC_NAME,
    METADATA_NAME,
    SHARD_LINES,
    SHARD_NAME,
    BlockLocation,
    idx_line,
    json_idx_head,
    json_idx_line,
    key_of,
    pack,
)
from amicrawl.archive.lines import is_keyed
from amicrawl.disk import OutputFile, explained, remove_durably, replace_file
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from amicrawl.disk import Disk

_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_LEGENDS = (b" CDX ", b"CDX ", b"!meta ")


@dataclass(slots=True)
class WrittenCluster:
    """What went into a cluster, and what did not."""

    lines: int = 0
    blocks: int = 0
    shards: int = 0
    duplicates: int = 0
    """Lines left out because the line before was the same, byte for byte."""
    rejected: int = 0
    """Lines left out because they are not index lines."""


def write_zipnum(
    lines: Iterable[bytes],
    directory: Path,
    *,
    disk: Disk,
    on_rejected: Callable[[bytes, str], None] = lambda _line, _reason: None,
    block_lines: int = BLOCK_LINES,
    shard_lines: int = SHARD_LINES,
    title: str = "",
    replace: bool = False,
) -> WrittenCluster:
    """Write *lines*, CDXJ or CDX in byte order, as a cluster into *directory*, which is made if needed.

    A line with or without LF. Legends are left out, and so is a line that equals the one before. What is
    no index line goes to *on_rejected* with the reason. InputError where the lines are not in order, or
    a legend says that their keys are not SURTs;
    UsageError where there is a cluster already and *replace* is false, or sizes that cannot be.
    """
    blocks_per_shard = blocks_of_shard(block_lines, shard_lines)
    with explained(directory, "made"):
        directory.mkdir(parents=True, exist_ok=True)
    _make_room(directory / IDX_NAME, disk=disk, replace=replace)
    written = WrittenCluster()
    checked = checked_lines(lines, written, on_rejected)
    blocks = enumerate(blocks_of(checked, block_lines), 1)
    # What is not an index is refused here, before there is a file.
    first = next(blocks, None)
    with closing(OutputFile.replacing(directory / IDX_NAME, disk=disk)) as idx:
        while first is not None:
            path = directory / SHARD_NAME.format(written.shards)
            with closing(OutputFile.replacing(path, disk=disk)) as shard:
                for line in write_shard(
                    chain([first], islice(blocks, blocks_per_shard - 1)), shard, written
                ):
                    idx.write(line)
                shard.seal()
            first = next(blocks, None)
        for name, content in descriptions(written.shards, title).items():
            replace_file(directory / name, content, disk=disk)
        idx.seal()
    return written


def blocks_of_shard(block_lines: int, shard_lines: int) -> int:
    """Return how many blocks a shard has; UsageError for sizes that cannot be."""
    if not 1 <= block_lines <= shard_lines:
        raise UsageError("A block has at least one line, and a shard at least as many lines as a block.")
    return shard_lines // block_lines


def write_shard(
    blocks: Iterable[tuple[int, tuple[bytes, list[bytes]]]], shard: OutputFile, written: WrittenCluster
) -> Iterator[bytes]:
    """Write numbered *blocks* to *shard*, and yield the line of each for `cluster.idx`."""
    written.shards += 1
    for number, (key, block) in blocks:
        member = pack(b"".join(block))
        written.blocks += 1
        written.lines += len(block)
        yield idx_line(BlockLocation(key, shard.path.name, shard.tell(), len(member), number))
        shard.write(member)


def descriptions(shards: int, title: str) -> dict[str, bytes]:
    """Return the files of a cluster that say where its *shards* are, and its *title* if it has one."""
    names = [SHARD_NAME.format(number) for number in range(shards)]
    files = {LOC_NAME: "".join(f"{name}\t{name}\n" for name in names)}
    if title:
        # YAML reads what JSON writes.
        files[METADATA_NAME] = f"title: {json.dumps(title)}\n"
    return {name: text.encode() for name, text in files.items()}


def write_blocks(
    lines: Iterable[bytes], path: Path, *, disk: Disk, block_lines: int = BLOCK_LINES
) -> WrittenCluster:
    """Write *lines*, CDXJ in byte order, to *path* as blocks, and where they are to `idx_path_of` it.

    That is the format `cdxj-gzip-1.0`, which WACZ packages have too. The index gets its name last.
    Raises as `write_zipnum` does.
    """
    if block_lines < 1:
        raise UsageError("A block has at least one line.")
    _make_room(idx_path_of(path), disk=disk, replace=True)
    written = WrittenCluster()
    with ExitStack() as opened:
        idx = OutputFile.replacing(idx_path_of(path), disk=disk)
        opened.callback(idx.close)
        packed = OutputFile.replacing(path, disk=disk)
        opened.callback(packed.close)
        idx.write(json_idx_head(path.name))
        checked = checked_lines(lines, written, lambda _line, _reason: None)
        for member in json_members(blocks_of(checked, block_lines), idx.write, written):
            packed.write(member)
        packed.seal()
        idx.seal()
    return written


def json_members(
    blocks: Iterable[tuple[bytes, list[bytes]]],
    add_idx_line: Callable[[bytes], object],
    written: WrittenCluster,
) -> Iterator[bytes]:
    """Yield each of *blocks* as a gzip member, after its line of the index went to *add_idx_line*."""
    offset = 0
    for key, block in blocks:
        member = pack(b"".join(block))
        add_idx_line(json_idx_line(BlockLocation(key, "", offset, len(member))))
        offset += len(member)
        written.blocks += 1
        written.lines += len(block)
        yield member


def idx_path_of(path: Path) -> Path:
    """Return where the index of the blocks in *path* lies: `X.idx` beside `X.cdxj.gz`."""
    name = path.name.removesuffix(".gz")
    return path.with_name(f"{name.removesuffix('.cdxj').removesuffix('.cdx')}.idx")


def _make_room(idx: Path, *, disk: Disk, replace: bool) -> None:
    """See to it that no index speaks of the shards that are going to change."""
    if not idx.exists():
        return
    if not replace:
        raise UsageError(
            f"{idx.parent} holds a ZipNum cluster already. Name another directory, or add --replace."
        )
    remove_durably(idx, disk=disk)


def checked_lines(
    lines: Iterable[bytes], written: WrittenCluster, on_rejected: Callable[[bytes, str], None]
) -> Iterator[bytes]:
    """Yield the lines that belong into a cluster, LF at their ends; InputError if not in order."""
    last = b""
    for given in lines:
        line = given.rstrip(b"\r\n")
        if not line or line.startswith(_LEGENDS):
            if line.startswith(_LEGENDS[:2]) and not is_keyed(line):
                raise InputError(
                    f"The keys are not SURTs in an index that begins with {_start_of(line)}, as those "
                    "of wget, so nothing can be looked up. Index its WARC files: "
                    "amicrawl index FILES --zipnum DIR"
                )
            continue
        try:
            _check(line)
        except ValueError as error:
            written.rejected += 1
            on_rejected(line, str(error))
            continue
        if line <= last:
            if line == last:
                written.duplicates += 1
                continue
            raise InputError(
                f"The index lines are not in byte order: {_start_of(line)} is behind {_start_of(last)}. "
                "Sort them first, as LC_ALL=C sort does."
            )
        last = line
        yield line + b"\n"


def _check(line: bytes) -> None:
    """Raise ValueError, with the reason, where *line* is not an index line."""
    key_of(line)
    # Beside those that could pass for ends of lines or of columns: some sort before LF, and so the order
    # of lines would depend on whether it counts.
    if _CONTROL.search(line):
        raise ValueError("a control character")
    if not is_keyed(line):
        raise ValueError("its key is a URL, and not the SURT of one")


def _start_of(line: bytes) -> str:
    return ascii(line[:100].decode("utf-8", "replace"))


def blocks_of(lines: Iterable[bytes], size: int) -> Iterator[tuple[bytes, list[bytes]]]:
    """Cut *lines*, which end in LF, into blocks of *size*; yield each behind its first line's key."""
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if len(block) == size:
            yield key_of(block[0]), block
            block = []
    if block:
        yield key_of(block[0]), block
