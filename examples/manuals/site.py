"""Unpack documentation packages, and serve their files as a plain web server does.

The media type is that of the name, without a charset. A manual page, which is packed, is sent with a
content coding.
"""

from __future__ import annotations

import hashlib
import mimetypes
import subprocess
import threading
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

PACKAGES = (
    "rust-doc",
    "debian-handbook",
    "postgresql-doc-15",
    "python3.11-doc",
    "manpages-dev",
    "debian-reference-ja",
    "debian-faq-ru",
    "maint-guide-ru",
)
"""Manuals of five kinds: generated references, books, manual pages, and two other scripts."""

_TYPES = mimetypes.MimeTypes()
_OWN_TYPES = {".js": "text/javascript", ".woff2": "font/woff2", ".svg": "image/svg+xml"}


class UnpackError(Exception):
    """A package could not be downloaded or unpacked."""


def unpack(packages: Sequence[str], cache: Path) -> Path:
    """Return the directory below *cache* with *packages*, downloaded and unpacked if necessary."""
    trees, downloads = cache / "trees", cache / "packages"
    downloads.mkdir(parents=True, exist_ok=True)
    trees.mkdir(exist_ok=True)
    for package in packages:
        tree = trees / package
        if tree.exists():
            continue
        if not list(downloads.glob(f"{package}_*.deb")):
            _run(["apt-get", "download", package], downloads)
        (file,) = downloads.glob(f"{package}_*.deb")
        _run(["dpkg-deb", "-x", str(file), str(tree.with_suffix(".part"))], downloads)
        tree.with_suffix(".part").rename(tree)
    return trees


def chosen_files(trees: Path, *, most: int) -> dict[str, Path]:
    """Return at most *most* files of each package by their paths in URLs: the same sample every time."""
    chosen: dict[str, Path] = {}
    for tree in sorted(each for each in trees.iterdir() if each.is_dir()):
        found = [each for each in tree.rglob("*") if each.is_file() and not each.is_symlink()]
        names = {quote(f"/{each.relative_to(trees).as_posix()}"): each for each in found}
        drawn = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:most]
        chosen |= {name: names[name] for name in sorted(drawn)}
    return chosen


def declared(file: Path) -> dict[str, str]:
    """Return the fields that say what *file* is: `Content-Type` and `Content-Encoding`, if known."""
    kind, coding = _TYPES.guess_type(file.name)
    kind = _OWN_TYPES.get(file.suffix, kind)
    fields = {}
    if file.suffix == ".gz" and coding == "gzip":
        fields["Content-Encoding"] = "gzip"
        kind = "text/troff" if "/man/" in str(file) else kind or "text/plain"
    if kind:
        fields["Content-Type"] = kind
    return fields


class ManualsSite:
    """A server of *files*, by path, on a free port of this machine for as long as it is entered."""

    def __init__(self, files: Mapping[str, Path], *, port: int = 0) -> None:
        """Listen on *port*, or on a free one."""
        handler = type("Handler", (_Handler,), {"files": files})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    files: Mapping[str, Path]
    protocol_version = "HTTP/1.1"
    # Header and body are two writes; with delayed acknowledgements a page would take 40 ms.
    wbufsize = 65_536
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        file = self.files.get(quote(unquote(urlsplit(self.path).path)))
        if file is None:
            self._send(HTTPStatus.NOT_FOUND, {"Content-Type": "text/plain"}, b"Not found.\n")
            return
        headers = {"Last-Modified": formatdate(file.stat().st_mtime, usegmt=True), **declared(file)}
        self._send(HTTPStatus.OK, headers, file.read_bytes())

    def _send(self, status: HTTPStatus, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # as in the base class
        """Log nothing."""


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnpackError(f"{' '.join(command)} failed: {done.stderr.strip()}")
