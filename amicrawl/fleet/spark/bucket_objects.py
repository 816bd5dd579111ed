"""What lies where in the bucket of a crawl over Spark.

OUT/run.json                   which driver is at work, and that it is
OUT/p00003/                    partition 3: what a crawl with this bucket leaves, its frontier too
OUT/p00003/batches-00000.json  links for others: [[recipient, batch in base64], ...]
OUT/p00003/answer.json         what came of it, once it had nothing left
OUT/p00003.checkpoint-0/       see `fleet/checkpoints/checkpoint.py`
OUT/captures/p00003.parquet    its index: these files together are the dataset
OUT/manifest.json              all partitions, their counts and files; written last
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.jsontext import parsed
from amicrawl.uploads import small_object

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.uploads import Bucket

RUN = "run.json"
MANIFEST = "manifest.json"
RESULT = "answer.json"
CAPTURES = "captures"

_LARGEST = 256 << 20
_BLOCK = 4 << 20


def directory_of(number: int) -> str:
    """Return the name of the directory of partition *number*."""
    return f"p{number:05d}"


def batches_name(number: int) -> str:
    """Return the name of the object *number* with batches of a partition."""
    return f"batches-{number:05d}.json"


def read_json(bucket: Bucket, name: str) -> Any:
    """Return what the object *name* says; None where there is none, or no JSON. Raises OSError."""
    content = small_object(bucket, name, largest=_LARGEST)
    try:
        return None if content is None else parsed(content)
    except ValueError:
        return None


def write_json(bucket: Bucket, name: str, said: object) -> None:
    """Put *said* under *name*. Raises OSError."""
    content = orjson.dumps(said)
    bucket.write(name, iter([content]), size=len(content))


def packed(batch: str) -> str:
    """Return *batch*, text with surrogates for octets that are not UTF-8, as JSON takes it."""
    return base64.b64encode(batch.encode("utf-8", "surrogateescape")).decode("ascii")


def unpacked(text: str) -> str:
    """Return the batch that `packed` made *text* of. Raises ValueError for another text."""
    return base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")


def copy_file(bucket: Bucket, name: str, path: Path) -> None:
    """Put the file *path* under *name*. Raises OSError."""

    def blocks() -> Iterator[bytes]:
        with path.open("rb") as stream:
            while read := stream.read(_BLOCK):
                yield read

    bucket.write(name, blocks(), size=path.stat().st_size)
