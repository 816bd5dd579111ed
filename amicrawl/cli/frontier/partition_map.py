"""`amicrawl frontier map`: which frontier file holds which host keys, from a manifest or a directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.frontier.output import (
    HostKey,
    as_text_field,
    host_key_in,
    hour_text,
    key_text,
    text_of,
)
from amicrawl.cli.options import AsJson, json_text, print_lines
from amicrawl.disk import Disk
from amicrawl.errors import InputError
from amicrawl.frontier.format.header import TRAILER_SIZE, unpack_trailer
from amicrawl.frontier.format.manifest import Manifest, ManifestEntry, read_manifest, write_manifest
from amicrawl.frontier.format.reader import FrontierFile
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator


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
            "partitions": [_facts(entry) for entry in manifest.entries],
            "flaws": [
                {"epoch": epoch, "lo": key_text(lo), "hi": key_text(hi), "overlap": overlap}
                for epoch in _epochs(manifest)
                for lo, hi, overlap in manifest.flaws(epoch)
            ],
        }
        if host is not None:
            found["owner"] = None if owner is None else _facts(owner)
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
    """Return the manifest that the frontier files in *directory* would have."""
    paths = sorted(directory.glob("*.meguri"))
    if not paths:
        raise InputError(f"{directory} has no frontier files, *.meguri. Give a directory that has some.")
    entries = []
    for path in paths:
        with FrontierFile.open(path) as file:
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


def _facts(entry: ManifestEntry) -> dict[str, Any]:
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
