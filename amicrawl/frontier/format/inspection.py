"""What a frontier file is, without reading its rows: a text for people and the same as a dictionary.

Header, footer and trailer are checked on opening and all that this needs; damage to a page does not
show. The text is that of the reference, byte for byte, so that either tool can be used in scripts.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from amicrawl.frontier.format.header import CRC32C, Flag
from amicrawl.frontier.format.reader import FrontierFile
from amicrawl.frontier.format.schema import Codec, Encoding

if TYPE_CHECKING:
    from pathlib import Path

_FLAG_NAMES = {
    Flag.SORTED: "sorted",
    Flag.SCHEDULE: "schedule",
    Flag.SEEN_SET: "seenset",
    Flag.STRINGS: "blob",
    Flag.RIBBON: "ribbon",
}
_CHECKSUM_NAMES = {CRC32C: "crc32c"}
_CODEC_NAMES = {Codec.NONE: "none", Codec.ZSTD: "zstd"}


def inspect(path: Path) -> dict[str, Any]:
    """Return what the ends of the frontier file *path* say, as plain values that can be written as JSON.

    Keys of hosts are written in hexadecimal, since readers of JSON round numbers of 64 bits. Raises
    InputError where the file cannot be read and FrontierFileError where its ends are not sound.
    """
    with FrontierFile.open(path) as file:
        header, stats = file.header, file.stats
        columns = [*file.url_columns.values(), *file.host_columns.values()]
        encodings = Counter(Encoding(column.encoding).name.lower() for column in columns)
        return {
            "version": f"{header.version_major}.{header.version_minor}",
            "partition": header.partition_id,
            "size": file.size,
            "host_key_lo": f"{header.host_key_lo:#018x}",
            "host_key_hi": f"{header.host_key_hi:#018x}",
            "urls": header.url_rows,
            "hosts": header.host_rows,
            "url_columns": len(file.url_columns),
            "host_columns": len(file.host_columns),
            "checksum": _CHECKSUM_NAMES[header.checksum_algorithm],
            "codec": _CODEC_NAMES[header.codec],
            "created_hours": header.created,
            "flags": [name for flag, name in _FLAG_NAMES.items() if header.flags & flag],
            "bytes_per_url": stats.bytes_per_url if header.url_rows else None,
            "next_due_hours": [stats.due_min, stats.due_max] if stats.due_max else None,
            "regions": [
                {"name": region.name, "offset": region.offset, "length": region.length}
                for region in file.regions
            ],
            "encodings": dict(sorted(encodings.items())),
            "meta": {_text(key): _text(value) for key, value in file.meta},
        }


def _text(octets: bytes) -> str:
    return octets.decode(errors="backslashreplace")


def inspection_text(found: dict[str, Any]) -> str:
    """Return what `inspect` *found* as lines for people, each with its line feed."""
    lines = [
        f"meguri v{found['version']}  partition {found['partition']}",
        f"  file size      {found['size']} bytes",
        f"  hostkey range  {found['host_key_lo']} .. {found['host_key_hi']}",
        f"  urls           {found['urls']}",
        f"  hosts          {found['hosts']}",
        f"  url columns    {found['url_columns']}",
        f"  host columns   {found['host_columns']}",
        f"  checksum       {found['checksum']}",
        f"  default codec  {found['codec']}",
        f"  created        {found['created_hours']} epoch-hours",
        f"  flags          {'|'.join(found['flags']) or 'none'}",
    ]
    if found["bytes_per_url"] is not None:
        lines.append(f"  bytes/url      {found['bytes_per_url']:.2f}")
    if found["next_due_hours"] is not None:
        least, greatest = found["next_due_hours"]
        lines.append(f"  next-due range {least} .. {greatest} epoch-hours")
    lines.append("  regions:")
    lines += [
        f"    {region['name']:<12} off={region['offset']:<10} len={region['length']}"
        for region in found["regions"]
    ]
    lines.append("  encodings:")
    lines += [f"    {name:<12} {count} cols" for name, count in found["encodings"].items()]
    if found["meta"]:
        lines.append("  meta:")
        lines += [f"    {key} = {value}" for key, value in found["meta"].items()]
    return "".join(f"{line}\n" for line in lines)
