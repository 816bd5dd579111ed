"""What an archive holds: a crawler that brought less home than it was sent for has not won.

    python -m benchmarks.contents URLS ARCHIVE...

prints, as a JSON object, how many response records the archives hold, how many of the URLs in the list
URLS have none, and how many bytes the archives take. It is a process of its own so that the one that
measures stays small: the kernel counts a child's peak memory from its parent's size on.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fastwarc.warc import ArchiveIterator, WarcRecordType

if TYPE_CHECKING:
    from collections.abc import Iterator


def response_urls(path: Path) -> Iterator[str]:
    """Yield the target URL of each response record in *path*, a WARC or WACZ file."""
    if path.suffix != ".wacz":
        with path.open("rb") as file:
            yield from _response_urls(file)
        return
    with zipfile.ZipFile(path) as packed:
        for name in packed.namelist():
            if name.endswith(".warc.gz"):
                with packed.open(name) as member:
                    yield from _response_urls(member)


def _response_urls(file: IO[bytes]) -> Iterator[str]:
    for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=False):
        yield record.headers["WARC-Target-URI"].strip("<>")


def main(arguments: list[str]) -> int:
    """Look at the files that *arguments* name."""
    wanted = set(Path(arguments[0]).read_text().split())
    archives = [Path(name) for name in arguments[1:]]
    found = [url for path in archives for url in response_urls(path)]
    reply = {
        "responses": len(found),
        "missing": len(wanted - set(found)),
        "archive_bytes": sum(path.stat().st_size for path in archives),
    }
    sys.stdout.write(json.dumps(reply) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
