"""Requests to the Internet Archive: its addresses, its keys, and files that are sent to it.

The keys are a header of each request. They go to hosts of the Internet Archive over TLS, and to no
other, whatever a redirect says; neither they nor what could hold them is part of an error.
"""

from __future__ import annotations

import configparser
import http.client
import os
import re
import select
import ssl
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from amicrawl import __version__
from amicrawl.errors import UsageError
from amicrawl.jsontext import parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SILENCE = 120
"""Seconds without a byte after which a request has failed."""
ACCEPTING = 600
"""Seconds that a response to a whole file may take."""

_S3, _SITE = "https://s3.us.archive.org", "https://archive.org"
_ENDPOINT = "IA_ENDPOINT_URL"
_KEY = re.compile(r"[!-9;-~]{1,200}")
_ITS_OWN = re.compile(r"https://([a-z0-9-]{1,63}\.){0,9}archive\.org(:443)?", re.IGNORECASE)
_PRINTABLE = re.compile(r"[!-~]+")
_LARGEST_REASON = 16 * 1024
_LARGEST_INI = 64 * 1024
_REDIRECTS = 5
_BUSY = (429, 500, 502, 503, 504)
_GOING_AHEAD = 5.0
_LONGEST_PAUSE = 300.0
_ENDLESS = "the Internet Archive redirects without end"


class BusyError(OSError):
    """The Internet Archive takes nothing now; it may `after` so many seconds, if that is known."""

    def __init__(self, text: str, after: float | None = None) -> None:
        super().__init__(text)
        self.after = after


class ItemClient:
    """Requests with the keys of one account. Every method raises OSError where one fails."""

    def __init__(self, *, environment: Mapping[str, str] = os.environ) -> None:
        """*environment* has the keys, or says where they are.

        Raises UsageError where there are none, or the endpoint in it is none.
        """
        self._access, self._secret = _keys(environment)
        self.s3, self.site = _endpoints(environment)
        """The addresses of its dialect of S3 and of its other interfaces."""
        self._own = urlsplit(self.s3)[:2]
        self._elsewhere: dict[str, str] = {}
        """Where the next file of a URL is to be sent to, after a redirect that came too late."""

    def put(self, url: str, headers: Mapping[str, str], blocks: Iterable[bytes], *, size: int) -> None:
        """Send *blocks*, *size* bytes, with *headers* to *url*.

        Raises BusyError where they may be taken later: then they are to be handed in anew.
        """
        headers = {**headers, "Content-Length": str(size), "Expect": "100-continue"}
        target = self._elsewhere.pop(url, url)
        for _ in range(_REDIRECTS):
            sent = _Counted(blocks, size)
            try:
                with self.response("PUT", target, headers, sent):
                    return
            except _MovedError as error:
                target = self._followed(target, error.location)
                if sent.size:
                    self._elsewhere[url] = target
                    raise BusyError("the Internet Archive takes it elsewhere", after=0.0) from None
        raise OSError(_ENDLESS)

    def json(self, url: str, *, largest: int) -> Any:
        """Return the JSON at *url*, of *largest* bytes at most."""
        with self.response("GET", url) as response:
            content = response.read(largest + 1)
            if response.length and len(content) <= largest:
                raise http.client.IncompleteRead(b"")
        if len(content) > largest:
            raise OSError(f"the Internet Archive sends more than {largest:,} bytes of metadata")
        try:
            return parsed(content)
        except ValueError as error:
            raise OSError("the Internet Archive sends metadata that cannot be read") from error

    @contextmanager
    def response(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: _Counted | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """Give the response to a request, which has succeeded; BusyError where it may later."""
        with _as_os_errors():
            for _ in range(_REDIRECTS):
                with closing(self._connection(url)) as connection:
                    _begin(connection, method, url, self._own_headers() | dict(headers or {}))
                    with _Channel(connection).response(body) as response:
                        if not 300 <= response.status < 400:
                            if not 200 <= response.status < 300:
                                self._raise(response)
                            yield response
                            return
                        location = response.headers.get("Location", "")
                if body is not None:
                    raise _MovedError(location)
                url = self._followed(url, location)
            raise OSError(_ENDLESS)

    def _own_headers(self) -> dict[str, str]:
        return {
            "Authorization": f"LOW {self._access}:{self._secret}",
            "User-Agent": f"amicrawl/{__version__}",
            "Connection": "close",
        }

    def _followed(self, url: str, location: str) -> str:
        """Return where a redirect leads to; OSError where the keys must not go there."""
        try:
            parts = urlsplit(target := urljoin(url, location))
        except ValueError:
            parts = urlsplit(target := "")
        is_its_own = parts[:2] == self._own or _ITS_OWN.fullmatch(f"{parts.scheme}://{parts.netloc}")
        if not (location and is_its_own and _PRINTABLE.fullmatch(target)):
            host = parts.netloc.rpartition("@")[2][:100]
            raise OSError(f"the Internet Archive redirects to what is not an address of it ({host!a})")
        return target

    def _connection(self, url: str) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.netloc, timeout=SILENCE)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(parts.netloc, timeout=SILENCE, context=context)

    def _raise(self, response: http.client.HTTPResponse) -> None:
        """Raise what a response other than a success means."""
        text = response.read(_LARGEST_REASON).decode("utf-8", "replace")
        words = [
            found[1] for tag in ("Code", "Message") if (found := re.search(f"<{tag}>([^<]*)", text))
        ]
        reason = " ".join(": ".join(words).split())
        for key in (self._secret, self._access):
            reason = reason.replace(key, "***")
        said = f"the Internet Archive responds {response.status}" + (reason and f" ({reason[:300]!a})")
        if response.status in _BUSY:
            raise BusyError(said, after=_seconds(response.headers.get("Retry-After", "")))
        if response.status == http.HTTPStatus.NOT_FOUND:
            raise FileNotFoundError(said)
        raise OSError(said)


class _MovedError(OSError):
    """A file is to be sent to another address."""

    def __init__(self, location: str) -> None:
        super().__init__("it is to be sent elsewhere")
        self.location = location


class _Counted:
    """The blocks of a file, which are *most* bytes together."""

    def __init__(self, blocks: Iterable[bytes], most: int) -> None:
        self._blocks, self._most = blocks, most
        self.size = 0
        """Bytes that were handed out."""

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self.size += len(block)
            if self.size > self._most:
                break
            yield block
        if self.size != self._most:
            raise OSError(f"it has {self.size} bytes or more, not {self._most}")


class _Channel:
    """The connection of a request, whose response may come before all of the request was sent."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._socket = connection.sock
        self._reader = self._socket.makefile("rb")

    def response(self, body: _Counted | None) -> http.client.HTTPResponse:
        """Send *body* once that is welcome, and until it is refused; return the response."""
        if body is not None:
            try:
                self._send(body)
            except (BrokenPipeError, ConnectionResetError):
                if not self._is_heard(0.0):
                    raise
            self._socket.settimeout(ACCEPTING)
        # What http.client makes of a socket is a reader; of one that has been read from, this one.
        response = http.client.HTTPResponse(_Heard(self._reader), method=None)  # type: ignore[arg-type]
        try:
            response.begin()
        except BaseException:
            response.close()
            raise
        return response

    def _send(self, body: _Counted) -> None:
        # It may wait for the body without a word.
        if self._is_heard(_GOING_AHEAD) and not self._goes_ahead():
            return
        for block in body:
            if self._is_heard(0.0):
                return
            self._connection.send(block)

    def _goes_ahead(self) -> bool:
        if not re.match(rb"HTTP/1\.[01] 100", self._reader.peek(12)):
            return False
        while self._reader.readline(8192).strip():
            pass
        return True

    def _is_heard(self, seconds: float) -> bool:
        """Tell whether the other side says something within *seconds*."""
        until = time.monotonic() + seconds
        for _ in range(5):
            # A reader that has run into a time limit is of no use any more; one that need not wait is.
            self._socket.settimeout(0.0)
            try:
                if self._reader.peek(1):
                    return True
            except ssl.SSLWantReadError:
                pass
            finally:
                self._socket.settimeout(SILENCE)
            left = max(until - time.monotonic(), 0.0)
            if not select.select([self._socket], [], [], left)[0]:
                return False
        return False


class _Heard:
    """A socket of which only the reader is left."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def makefile(self, _: str) -> Any:
        """Return the reader."""
        return self._reader


def _begin(
    connection: http.client.HTTPConnection, method: str, url: str, headers: Mapping[str, str]
) -> None:
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()


def _seconds(text: str) -> float | None:
    return min(float(text), _LONGEST_PAUSE) if text.isascii() and text.isdigit() else None


@contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except http.client.HTTPException as error:
        # Only its kind: it may quote what was sent.
        raise OSError(f"the Internet Archive was not understood ({type(error).__name__})") from None


def _endpoints(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the addresses of S3's dialect and of the site."""
    given = environment.get(_ENDPOINT, "").rstrip("/")
    if not given:
        return _S3, _SITE
    try:
        parts = urlsplit(given)
        is_sound = (
            bool(parts.hostname) and parts.port != 0 and given == f"{parts.scheme}://{parts.netloc}"
        )
    except ValueError:
        is_sound = False
    # Without TLS, each machine on the way could read the keys.
    is_safe = is_sound and (
        parts.scheme == "https"
        or (parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost"})
    )
    if not is_safe or "@" in parts.netloc:
        raise UsageError(
            f"{_ENDPOINT} must be https://host[:port], or http://127.0.0.1[:port]. Remove it, to upload "
            "to the Internet Archive itself."
        )
    return given, given


def _keys(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the two keys, from the variables or the file of the program `ia`."""
    keys = [environment.get("IA_ACCESS_KEY_ID", ""), environment.get("IA_SECRET_ACCESS_KEY", "")]
    source = "IA_ACCESS_KEY_ID and IA_SECRET_ACCESS_KEY"
    path = None if any(keys) else _ini(environment)
    if path is not None:
        source = str(path)
        found = configparser.RawConfigParser()
        try:
            with path.open(encoding="utf-8") as file:
                found.read_string(file.read(_LARGEST_INI))
            keys = [found.get("s3", name, fallback="") for name in ("access", "secret")]
        except (OSError, ValueError, configparser.Error):
            # Its text may hold a key.
            raise UsageError(f"{path} cannot be read. Run `ia configure` again.") from None
    if not any(keys):
        raise UsageError(
            "An item of the Internet Archive needs the keys of an account. Set IA_ACCESS_KEY_ID and "
            "IA_SECRET_ACCESS_KEY (https://archive.org/account/s3.php), or run `ia configure`."
        )
    if not all(map(_KEY.fullmatch, keys)):
        raise UsageError(f"{source} must hold two keys, without spaces. Correct them.")
    return keys[0], keys[1]


def _ini(environment: Mapping[str, str]) -> Path | None:
    if given := environment.get("IA_CONFIG_FILE"):
        return Path(given)
    home = Path(environment.get("HOME", "/"))
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    places = (settings / "internetarchive" / "ia.ini", settings / "ia.ini", home / ".ia")
    return next(filter(_is_file, places), None)


def _is_file(path: Path) -> bool:
    # The directory above it may be another user's.
    with suppress(OSError):
        return path.is_file()
    return False
