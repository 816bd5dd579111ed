"""Whether a frontier file is sound, which shows when all of it was read; and what it says of itself.

`partition_in` and `check_rows` demand what the format does: rows in the order of their keys, a schedule
and statistics that agree with the times of the rows. `verify` demands what a frontier of ours never
lacks besides.

`inspect` says what a file is without reading its rows, as a text for people or as a dictionary. Header,
footer and trailer are checked on opening and all that this needs; damage to a page does not show. The
text is that of the reference, byte for byte, so that either tool can be used in scripts.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.footer import RegionId
from amicrawl.meguri.format.header import CRC32C, Flag
from amicrawl.meguri.format.layout import check_sums
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.schedule import ScheduleCheck
from amicrawl.meguri.format.schema import (
    HOST_REFERENCES,
    URL_REFERENCES,
    Codec,
    Encoding,
    KeyOrder,
    Partition,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy as np

    from amicrawl.meguri.format.schema import Columns

    Pages = Callable[[str], Iterator[tuple[int, np.ndarray]]]

_ROWS_AT_ONCE = 1 << 16


def read_partition(path: Path) -> Partition:
    """Return everything in the file *path*; the errors are those of `open` and `partition_in`."""
    with FrontierFile.open(path) as file:
        return partition_in(file)


def partition_in(file: FrontierFile) -> Partition:
    """Return everything in *file*, once it is known to be what the format demands."""
    file.check_regions()
    partition = Partition(
        urls={name: file.url_column(name) for name in file.url_columns},
        hosts={name: file.host_column(name) for name in file.host_columns},
        seen_filter=file.seen_filter(),
        arena=file.arena(),
        partition_id=file.header.partition_id,
        created=file.header.created,
        host_key_lo=file.header.host_key_lo,
        host_key_hi=file.header.host_key_hi,
        meta=file.meta,
    )
    _check(file, _slices(partition.urls), _slices(partition.hosts), equal_keys=True)
    _check_sums(file)
    return partition


def check_rows(file: FrontierFile) -> None:
    """Read keys and times page by page; FrontierFileError where the format is violated.

    The same as `partition_in` demands of the rows, in the memory that `verify` takes.
    """
    _check(file, file.url_pages, file.host_pages, equal_keys=True)
    _check_sums(file)


def verify(file: FrontierFile) -> None:
    """Read everything; FrontierFileError at the first thing that a file of a frontier may not have.

    That is stricter than the format and than `partition_in`: it refuses a key that comes twice, a
    reference to a string that is missing, a blob that is not a filter. Memory is needed for a page,
    two bytes for each row and eight for each scheduled one where there is a schedule.
    """
    file.check_regions()
    # Key columns and times are read when they are compared, the others only to see that they can be.
    for name in file.url_columns:
        if name not in {"host_key", "path_key", "next_due"}:
            _exhaust(file.url_pages(name))
    for name in file.host_columns:
        if name != "host_key":
            _exhaust(file.host_pages(name))
    _check_filter(file)
    arena_length = file.copy_arena(lambda _: None)
    _check(file, file.url_pages, file.host_pages, equal_keys=False)
    _check_references(file, arena_length)
    _check_sums(file)


def _exhaust(pages: Iterator[tuple[int, np.ndarray]]) -> None:
    for _ in pages:
        pass


def _slices(columns: Columns) -> Pages:
    def pages(name: str) -> Iterator[tuple[int, np.ndarray]]:
        column = columns[name]
        for first in range(0, len(column), _ROWS_AT_ONCE):
            yield first, column[first : first + _ROWS_AT_ONCE]

    return pages


def _check(file: FrontierFile, urls: Pages, hosts: Pages, *, equal_keys: bool) -> None:
    url_region, host_region = file.regions[:2]
    with file.placed(url_region.offset, f"{url_region.name}.path_key"):
        order = KeyOrder("URL", equal_keys=equal_keys)
        for (_, host_keys), (_, path_keys) in zip(urls("host_key"), urls("path_key"), strict=True):
            order.add(host_keys, path_keys)
    with file.placed(host_region.offset, f"{host_region.name}.host_key"):
        order = KeyOrder("host", equal_keys=equal_keys)
        for _, host_keys in hosts("host_key"):
            order.add(host_keys)
    _check_times(file, urls)


def _check_times(file: FrontierFile, urls: Pages) -> None:
    """Check statistics and schedule against the column they are about."""
    least, greatest = 0, 0
    schedule = file.schedule()
    check = ScheduleCheck(schedule) if schedule is not None else None
    place = next((region for region in file.regions if region.id == RegionId.SCHEDULE), file.regions[0])
    for first, due in urls("next_due"):
        scheduled = due[due != 0]
        if len(scheduled):
            least = min(least or int(scheduled.min()), int(scheduled.min()))
            greatest = max(greatest, int(scheduled.max()))
        if check is not None:
            with file.placed(place.offset, place.name):
                check.add(first, due)
    if (file.stats.due_min, file.stats.due_max) != (least, greatest):
        with file.placed(file.header.footer_offset, "footer"):
            raise Malformed(
                f"statistics: due from {file.stats.due_min}, but the rows are from {least} to {greatest}"
            )


def _check_sums(file: FrontierFile) -> None:
    with file.placed(file.header.footer_offset, "footer"):
        check_sums(file.footer, file.header)


def _check_references(file: FrontierFile, arena_length: int) -> None:
    """Check that no reference points behind the arena; where it is nothing, readers see no string."""
    tables = (file.url_columns, URL_REFERENCES), (file.host_columns, HOST_REFERENCES)
    for region, (columns, names) in zip(file.regions, tables, strict=False):
        for name in names:
            entry = columns[name]
            if entry.zone is not None and entry.zone[1] and entry.zone[1] >= arena_length:
                with file.placed(entry.first_page_offset, f"{region.name}.{name}"):
                    raise Malformed(
                        f"reference to byte {entry.zone[1]} of {arena_length} bytes of strings"
                    )


def _check_filter(file: FrontierFile) -> None:
    """Check that the blob of the seen-set is as long as its own head says; its bits prove nothing."""
    blob = file.seen_filter()
    if not blob:
        return
    region = next(region for region in file.regions if region.id == RegionId.SEEN_SET)
    with file.placed(region.offset, region.name):
        if blob[:2] == b"\1\0" and len(blob) >= 32:
            expected = 32 + 64 * int.from_bytes(blob[8:16], "little")
        elif blob[:2] == b"\1\1" and len(blob) >= 24:
            expected = 24 + (blob[2] * int.from_bytes(blob[16:24], "little") + 7) // 8
        else:
            raise Malformed("the seen-set is not a filter")
        if len(blob) != expected:
            raise Malformed(f"a seen-set of {len(blob)} bytes instead of {expected}")


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
            "meta": {_text(key): _text(value) for key, value in file.footer.meta},
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
