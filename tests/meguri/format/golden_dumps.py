"""Golden frontier files as dumps: a selection beside this module, the full set where it is at hand."""

from __future__ import annotations

import json
import tempfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meguri.format.frontier_files import encode_partition

from amicrawl.disk import Disk
from amicrawl.meguri.dump import read_dump
from amicrawl.meguri.format.schema import Codec
from amicrawl.meguri.format.writer import WriteOptions
from amicrawl.meguri.snapshot import Copies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.meguri.format.schema import Partition

SELECTION = Path(__file__).parent / "data"
VECTOR_FILES = Path(__file__).parents[2] / "data" / "vectors"


_ROW_FIELDS = ("url_fields", "urls", "host_fields", "hosts", "arena_hex")


def selected(name: str) -> dict[str, Any]:
    """Return a selected file: its `dump`, `write_options` and `sha256`."""
    with (SELECTION / "dumps.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            found: dict[str, Any] = json.loads(line)
            if found["file"] == name:
                return found
    raise LookupError(name)


def golden_files() -> Iterator[tuple[Path, dict[str, Any], dict[str, Any]]]:
    """Yield each stored file of the full set whose rows are given, what is said of it, and its dump."""
    files = VECTOR_FILES / "files"
    for line in (files / "index.jsonl").read_text().splitlines():
        said = json.loads((files / json.loads(line)["dump"]).read_text())
        if not said["stored"] or "first_urls" in said:
            continue
        yield files / said["file"], said, dump_in(said)


def dump_in(said: dict[str, Any]) -> dict[str, Any]:
    """Return the dump, with the fields that ours have, in a golden description of a file."""
    rows = said if "urls" in said else json.loads((VECTOR_FILES / "files" / said["rows_in"]).read_text())
    dump = {
        name: said["header"][name]
        for name in ("partition_id", "host_key_lo", "host_key_hi", "created_hours")
    }
    dump |= {"meta": said["meta"]} | {name: rows[name] for name in _ROW_FIELDS}
    if "arena" not in said:
        dump["arena_hex"] = ""
    dump["seen_filter_hex"] = said["seen_filter"]["blob"] if "seen_filter" in said else None
    return dump


def options_of(said: dict[str, Any]) -> WriteOptions:
    given = said["write_options"]
    return WriteOptions(
        codec=Codec(given["codec"]),
        schedule=given["schedule"],
        max_page_rows=given["max_page_rows"],
        equal_keys=True,
    )


def partition_of(text: bytes | str) -> Partition:
    """Return the partition that the dump *text* describes."""
    octets = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    with Copies(Path(tempfile.gettempdir()), Disk()) as copies:
        return read_dump(BytesIO(octets), copies)


def sha256_of(partition: Partition) -> str:
    """Return the digest of *partition* as a plain uncompressed file."""
    octets = encode_partition(partition, WriteOptions(codec=Codec.NONE, equal_keys=True))
    return sha256(octets).hexdigest()
