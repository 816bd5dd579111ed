"""Object stores on the loopback, each a process of its own: moto's S3, an emulator of Google's."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Self

import pyarrow.fs as pafs
from loopback import free_port

BUCKET = "archive"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What a child needs in its environment to be let in."""


class ObjectStore:
    """Serves one empty bucket of S3 for as long as the context lasts."""

    def __init__(self) -> None:
        self.port = free_port()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, or start it again with nothing in it."""
        self._process = subprocess.Popen(
            self._command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        request = self._bucket_request()
        deadline = time.monotonic() + 60
        while True:
            assert self._process.poll() is None, f"the object store cannot listen on port {self.port}"
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(request, timeout=60).close()
                return
            assert time.monotonic() < deadline, "the object store does not start"
            time.sleep(0.05)

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def _bucket_request(self) -> urllib.request.Request:
        """Return what makes the bucket, or succeeds once it is there."""
        return urllib.request.Request(f"http://127.0.0.1:{self.port}/{BUCKET}", method="PUT")

    def stop(self) -> None:
        """End it; what it held is gone."""
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def url(self, path: str, *, bucket: str = BUCKET) -> str:
        """Return the URL of *path* in it."""
        where = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        return f"s3://{bucket}/{path}?{where}"

    def filesystem(self) -> pafs.FileSystem:
        """Return the way to it by itself, for a look past the code under test."""
        return pafs.S3FileSystem(
            access_key="key",
            secret_key="secret",
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region="us-east-1",
        )

    def contents(self, path: str) -> dict[str, bytes]:
        """Return the objects below *path*, by name."""
        filesystem = self.filesystem()
        root = f"{BUCKET}/{path}"
        selector = pafs.FileSelector(root, recursive=True, allow_not_found=True)
        found = {}
        for entry in filesystem.get_file_info(selector):
            if entry.type == pafs.FileType.File:
                with filesystem.open_input_stream(entry.path, compression=None) as stream:
                    found[entry.path.removeprefix(f"{root}/")] = stream.read()
        return found


class GoogleStore(ObjectStore):
    """Serves one empty bucket of Google Cloud Storage."""

    def _command(self) -> list[str]:
        where = ["--host", "127.0.0.1", "--port", str(self.port)]
        program = "from gcp_storage_emulator.__main__ import main; main()"
        return [
            *(sys.executable, "-c", program, "start", *where),
            *("--in-memory", "--default-bucket", BUCKET),
        ]

    def _bucket_request(self) -> urllib.request.Request:
        return urllib.request.Request(f"http://127.0.0.1:{self.port}/storage/v1/b/{BUCKET}")

    def url(self, path: str, *, bucket: str = BUCKET) -> str:
        """Return the URL of *path* in it."""
        where = f"endpoint_override=127.0.0.1%3A{self.port}&scheme=http"
        return f"gs://anonymous@{bucket}/{path}?{where}"

    def filesystem(self) -> pafs.FileSystem:
        """Return the way to it by itself, for a look past the code under test."""
        return pafs.GcsFileSystem(
            anonymous=True, endpoint_override=f"127.0.0.1:{self.port}", scheme="http"
        )
