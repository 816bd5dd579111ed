"""Reads what lies in a bucket as who takes over a crawl does: a pipeline, a worker, a task of Spark."""

from __future__ import annotations

import contextlib
import http.server
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, ExitCode, OutputError
from amicrawl.fleet.checkpoints.checkpoint import restore_checkpoint
from amicrawl.fleet.checkpoints.job_bucket import fetch
from amicrawl.fleet.sharing.worker import fetch_state
from amicrawl.fleet.spark.bucket_objects import read_json
from amicrawl.uploads.bucket import open_bucket
from amicrawl.uploads.internet_archive import ItemBucket
from amicrawl.uploads.item_client import ItemClient

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """Have everything that takes from the bucket in the working directory take from it."""
    url, out = Path("bucket").absolute().as_uri(), Path("out").absolute()
    takers: dict[str, Callable[[Path], object]] = {
        "checkpoint": lambda to: restore_checkpoint(to, url, disk=Disk()),
        "shelf": lambda to: fetch(to, url, checkpoints=[], disk=Disk()),
        "task": lambda _: read_json(open_bucket(url, disk=Disk()), "checkpoint.json"),
        "partition": lambda to: fetch_state(to, url, disk=Disk()),
        "item": lambda _: _metadata(Path("bucket") / "checkpoint.json"),
    }
    codes = [ExitCode.DONE]
    for name, take in takers.items():
        directory = out / name
        directory.mkdir(parents=True)
        try:
            take(directory)
        except AmicrawlError as error:
            sys.stderr.write(f"{name}: {str(error)[:2000]}\n")
            codes.append(error.exit_code)
    return int(max(codes))


def _metadata(path: Path) -> None:
    """Read what *path* holds as the metadata of an item of the Internet Archive."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            # Who has read enough closes.
            with contextlib.suppress(ConnectionError):
                self.wfile.write(path.read_bytes())

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    keys = {"IA_ACCESS_KEY_ID": "a", "IA_SECRET_ACCESS_KEY": "b", "IA_ENDPOINT_URL": endpoint}
    client = ItemClient(environment=keys)
    url = "ia://crawls"
    try:
        ItemBucket(url, urlsplit(url), client).reported("a")
    except OSError as error:
        raise OutputError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
