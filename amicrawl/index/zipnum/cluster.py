"""ZipNum clusters: sorted index lines in gzip members, and a short index of those. Pure; no disk.

    cdx-00000.gz ...   shards: gzip members, called blocks, of 3,000 lines each
    cluster.idx        one line a block: what its first line begins with, where it lies, its number
    cluster.loc        one line a shard: its name, and where it is
    metadata.yaml      the collection's title

A line of `cluster.idx` is `urlkey SP timestamp TAB shard TAB offset TAB length TAB number`, the number
counted from 1 over all shards; readers do without it. The lines are in byte order, so one binary search
in a file that is a few thousandths of the index finds the blocks that can hold a key.

Of the same family is `cdxj-gzip-1.0`, the index inside WACZ packages: one file of blocks, and an index
whose first line names it and whose others have the place as JSON.

What is read is taken for hostile: a line that does not follow this raises ValueError with the reason.
"""

from __future__ import annotations

import json
import zlib
from typing import NamedTuple

import orjson

IDX_NAME = "cluster.idx"
LOC_NAME = "cluster.loc"
METADATA_NAME = "metadata.yaml"
SHARD_NAME = "cdx-{:05d}.gz"

BLOCK_LINES = 3_000
"""Lines of a block."""
SHARD_LINES = 9_000_000
"""Lines after which the next shard is begun: 3,000 blocks, so about as many as a block has lines."""
JSON_FORMAT = "cdxj-gzip-1.0"
META = b"!meta 0 "

LONGEST_BLOCK = 64 * 1024**2
"""Bytes of a block, packed or not, that is read."""

_GZIP = 31
_LEVEL = 6


class Block(NamedTuple):
    """Where a block lies."""

    key: bytes
    """Urlkey, space and timestamp of its first line."""
    shard: str
    """Name of its file; empty where the index belongs to one file only."""
    offset: int
    length: int
    """Bytes of the gzip member."""
    number: int | None = None
    """Which block of the cluster it is, from 1."""


def key_of(line: bytes) -> bytes:
    """Return urlkey, space and timestamp of an index line; ValueError where it does not begin so."""
    urlkey, _, rest = line.partition(b" ")
    timestamp, _, rest = rest.partition(b" ")
    if not (urlkey and timestamp.isdigit() and rest.strip()):
        raise ValueError("no urlkey, timestamp and fields, with a space between")
    if b"\t" in urlkey:
        raise ValueError("a tab in the urlkey, where indexes of blocks have their separator")
    return urlkey + b" " + timestamp


def idx_line(block: Block) -> bytes:
    """Return the line of `cluster.idx` for *block*."""
    rest = f"\t{block.shard}\t{block.offset}\t{block.length}"
    if block.number is not None:
        rest += f"\t{block.number}"
    return block.key + rest.encode() + b"\n"


def parse_idx_line(line: bytes) -> Block:
    """Read a line of `cluster.idx`."""
    key, *rest = line.rstrip(b"\r\n").split(b"\t")
    if len(rest) not in {3, 4}:
        raise ValueError("not four or five columns with a tab between")
    shard, *numbers = rest
    if not all(number.isdigit() and len(number) <= 18 for number in numbers):
        raise ValueError("offset, length and number have to be digits")
    offset, length, *number = map(int, numbers)
    return _checked(Block(key, shard.decode("utf-8"), offset, length, number[0] if number else None))


def json_idx_head(filename: str) -> bytes:
    """Return the first line of the index of the `cdxj-gzip-1.0` file *filename*."""
    return META + json.dumps({"format": JSON_FORMAT, "filename": filename}).encode() + b"\n"


def json_idx_line(block: Block) -> bytes:
    """Return the line for *block* in such an index."""
    return (
        block.key + b" " + json.dumps({"offset": block.offset, "length": block.length}).encode() + b"\n"
    )


def parse_json_idx_head(line: bytes) -> str:
    """Return the name of the file that the index with this first line belongs to."""
    found = orjson.loads(line.removeprefix(META))
    if not (line.startswith(META) and isinstance(found, dict) and found.get("format") == JSON_FORMAT):
        raise ValueError(f"no index of the format {JSON_FORMAT}")
    filename = found.get("filename")
    if not isinstance(filename, str):
        raise ValueError("it does not name the file it belongs to")  # noqa: TRY004  # bytes are bad, not we
    return filename


def parse_json_idx_line(line: bytes) -> Block:
    """Read a line, not the first, of an index of the format `cdxj-gzip-1.0`."""
    urlkey, timestamp, place = line.split(b" ", 2)
    found = orjson.loads(place)
    offset, length = (
        (found.get("offset"), found.get("length")) if isinstance(found, dict) else (None, None)
    )
    if not (isinstance(offset, int) and isinstance(length, int) and offset >= 0 and length >= 0):
        raise ValueError("not a JSON object with offset and length")
    return _checked(Block(urlkey + b" " + timestamp, "", offset, length))


def _checked(block: Block) -> Block:
    if block.length > LONGEST_BLOCK:
        raise ValueError(f"a block of {block.length} bytes, more than {LONGEST_BLOCK}")
    return block


def pack(lines: bytes) -> bytes:
    """Return *lines* as one gzip member; the same bytes whenever and wherever it is made."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(lines) + packer.flush()


def unpack(member: bytes) -> list[bytes]:
    """Return the lines in a gzip *member*, without their LF; ValueError where it is not whole."""
    inflater = zlib.decompressobj(_GZIP)
    try:
        text = inflater.decompress(member, LONGEST_BLOCK)
    except zlib.error as error:
        raise ValueError(f"a block that cannot be inflated ({error})") from error
    if not inflater.eof:
        raise ValueError(f"a block that is cut, or longer than {LONGEST_BLOCK} bytes")
    return text.removesuffix(b"\n").split(b"\n")
