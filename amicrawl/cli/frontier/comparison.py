"""`amicrawl frontier diff` and `map`: two frontiers compared; which file holds which host keys."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.frontier.rows import (
    AnyPath,
    HostKey,
    Limit,
    as_text_field,
    float_value,
    host_key_in,
    hour_text,
    key_text,
    text_of,
)
from amicrawl.cli.options import AsJson, json_text, print_lines
from amicrawl.disk import Disk
from amicrawl.errors import InputError
from amicrawl.meguri import partition_in, string_at
from amicrawl.meguri.format.difference import head_differences, row_differences
from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.header import TRAILER_SIZE, unpack_trailer
from amicrawl.meguri.format.manifest import Manifest, ManifestEntry, read_manifest, write_manifest
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.strings import BEGIN, annex_at
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.meguri.format.difference import RowDifference
    from amicrawl.meguri.format.schema import Partition


_NAMED_BY = {"urls": "url_ref", "hosts": "host_ref"}
_WHAT = {"urls": "URL row", "hosts": "host row"}
_HEX = frozenset({"host_key", "path_key", "content_fp", "simhash"})


New = Annotated[Path, typer.Argument(help="As OLD.")]


def diff(old: AnyPath, new: New, *, limit: Limit = 50, as_json: AsJson = False) -> None:
    """Show which rows were added, removed or changed from OLD to NEW, and in which fields.

    Where in a file a string lies makes no difference. With --json one object a line, all rows.
    Example: amicrawl frontier diff yesterday.meguri ami-out
    """
    before, after = partition_in(old), partition_in(new)
    try:
        print_lines(_as_json(before, after) if as_json else _as_text(before, after, limit))
    except Malformed as error:
        raise InputError(f"{old} and {new} cannot be compared: {error.reason}.") from error


def _as_json(old: Partition, new: Partition) -> Iterator[str]:
    for name, (left, right) in head_differences(old, new).items():
        yield json_text({"what": "head", "field": name, "old": _plain(left), "new": _plain(right)})
    for found in row_differences(old, new):
        yield json_text(_facts(old, new, found))


def _as_text(old: Partition, new: Partition, limit: int) -> Iterator[str]:
    count = 0
    for name, (left, right) in head_differences(old, new).items():
        count += 1
        yield harmless(f"head: {name} {_plain(left)} -> {_plain(right)}")
    kinds = {"added": 0, "removed": 0, "changed": 0}
    for found in row_differences(old, new):
        kind = _kind(found)
        kinds[kind] += 1
        if not limit or sum(kinds.values()) <= limit:
            facts = _facts(old, new, found)
            yield harmless(f"{kind} {_WHAT[found.table]} {facts['key']} {_name(facts)}")
            for name, (left, right) in facts.get("fields", {}).items():
                yield harmless(f"  {name}: {left} -> {right}")
    total = sum(kinds.values())
    if limit and total > limit:
        yield f"... and {total - limit:,} more; --limit says how many are shown"
    if total or count:
        yield ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    else:
        yield "no difference"


def _kind(found: RowDifference) -> str:
    return "added" if found.old is None else "removed" if found.new is None else "changed"


def _facts(old: Partition, new: Partition, found: RowDifference) -> dict[str, Any]:
    side, row = (new, found.new) if found.old is None else (old, found.old)
    assert row is not None
    table = getattr(side, found.table)
    key = key_text(int(table["host_key"][row]))
    if found.table == "urls":
        key += ":" + key_text(int(table["path_key"][row]))
    named = string_at(side.arena, int(table[_NAMED_BY[found.table]][row]))
    facts: dict[str, Any] = {
        "what": _kind(found),
        "table": found.table,
        "key": key,
        **as_text_field("name", named),
    }
    if found.old is not None and found.new is not None:
        facts["fields"] = {
            name: [_value(old, found.table, found.old, name), _value(new, found.table, found.new, name)]
            for name in found.fields
        }
    return facts


def _name(facts: dict[str, Any]) -> str:
    return str(facts.get("name") or facts.get("name_hex") or "-")


def _value(partition: Partition, table: str, row: int, name: str) -> Any:
    """Return what a column says, a reference as its string and an annex as its text."""
    columns = getattr(partition, table)
    if name.endswith("_annex"):
        return _text(annex_at(partition.arena, int(columns[f"{name.removesuffix('_annex')}_ref"][row])))
    if name.endswith("_ref"):
        return _text(string_at(partition.arena, int(columns[name][row])))
    value = columns[name][row].item()
    if name in _HEX:
        return key_text(value)
    return _plain(value)


def _text(octets: bytes | None) -> str | None:
    return None if octets is None else octets.decode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [[_text(part) for part in pair] for pair in value]
    return float_value(value) if isinstance(value, float) else value


Manifests = Annotated[Path, typer.Argument(help="A manifest, or a directory of frontier files.")]
Out = Annotated[
    Path | None,
    typer.Option("-o", "--out", metavar="FILE", help="Write what was found as a manifest."),
]


def show_map(path: Manifests, *, host: HostKey = None, out: Out = None, as_json: AsJson = False) -> None:
    """Show which file holds which host keys, and whether they leave some out or share some.

    Example: amicrawl frontier map partitions/ --host 0x2883ba7dc9aa3289
    """
    manifest = _of_directory(path) if path.is_dir() else read_manifest(path)
    if out is not None:
        write_manifest(manifest, out, disk=Disk())
    owner = None if host is None else manifest.owner(host_key_in(host))
    if as_json:
        found: dict[str, Any] = {
            "partitions": [_map_facts(entry) for entry in manifest.entries],
            "flaws": [
                {"epoch": epoch, "lo": key_text(lo), "hi": key_text(hi), "overlap": overlap}
                for epoch in _epochs(manifest)
                for lo, hi, overlap in manifest.flaws(epoch)
            ],
        }
        if host is not None:
            found["owner"] = None if owner is None else _map_facts(owner)
        print_lines([json_text(found)])
    elif host is not None:
        print_lines([f"host {key_text(host_key_in(host))} -> {_owner_text(owner)}"])
    else:
        print_lines(_lines(manifest))


def _owner_text(owner: ManifestEntry | None) -> str:
    if owner is None:
        return "no owning partition"
    return f"partition {owner.partition_id} ({harmless(text_of(owner.file))})"


def _of_directory(directory: Path) -> Manifest:
    """Return the manifest that the frontier files in *directory*, those with rows, would have."""
    paths = sorted(directory.glob("*.meguri"))
    if not paths:
        raise InputError(f"{directory} has no frontier files, *.meguri. Give a directory that has some.")
    entries = []
    for path in paths:
        with FrontierFile.open(path) as file:
            if BEGIN in dict(file.meta):
                continue
            header, stats = file.header, file.stats
            entries.append(
                ManifestEntry(
                    header.partition_id,
                    path.name.encode("utf-8", "surrogateescape"),
                    header.host_key_lo,
                    header.host_key_hi,
                    file.url_rows,
                    file.host_rows,
                    stats.due_min,
                    stats.bytes_per_url,
                    _footer_crc32c(path),
                    header.created,
                    0,
                )
            )
    return Manifest.of(entries)


def _footer_crc32c(path: Path) -> int:
    with path.open("rb") as file:
        file.seek(-TRAILER_SIZE, os.SEEK_END)
        return unpack_trailer(file.read())[1]


def _epochs(manifest: Manifest) -> list[int]:
    return manifest.epochs() or [0]


def _map_facts(entry: ManifestEntry) -> dict[str, Any]:
    facts: dict[str, Any] = {"partition_id": entry.partition_id, **as_text_field("file", entry.file)}
    facts |= {"host_key_lo": key_text(entry.host_key_lo), "host_key_hi": key_text(entry.host_key_hi)}
    facts |= {"url_rows": entry.url_rows, "host_rows": entry.host_rows, "due_min": entry.due_min}
    facts |= {"due_min_at": hour_text(entry.due_min), "bytes_per_url": round(entry.bytes_per_url, 6)}
    facts |= {"footer_crc32c": f"0x{entry.footer_crc32c:08x}", "created_hours": entry.created}
    return facts | {"created_at": hour_text(entry.created), "epoch": entry.epoch}


def _lines(manifest: Manifest) -> Iterator[str]:
    entries = manifest.entries
    yield f"partition map ({len(entries)} partitions)"
    for entry in entries:
        low, high = key_text(entry.host_key_lo), key_text(entry.host_key_hi)
        yield (
            f"  p{entry.partition_id:<5}  {low} .. {high}  "
            f"{entry.url_rows:10} urls  {entry.host_rows:7} hosts  {entry.bytes_per_url:6.2f} b/url  "
            f"epoch {entry.epoch}  {harmless(text_of(entry.file))}"
        )
    urls, hosts = (
        sum(counts) for counts in ([e.url_rows for e in entries], [e.host_rows for e in entries])
    )
    yield f"  total   {urls} urls  {hosts} hosts"
    epochs = _epochs(manifest)
    for epoch in epochs:
        which = f" in epoch {epoch}" if len(epochs) > 1 else ""
        flaws = [
            f"  coverage {'overlap' if flaw.overlap else 'gap'} "
            f"[{key_text(flaw.lo)}, {key_text(flaw.hi)}]{which}"
            for flaw in manifest.flaws(epoch)
        ]
        yield from flaws or [f"  ranges tile the key space cleanly{which}"]
