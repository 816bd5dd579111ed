"""The fields of an operator: with each request of the browser, or refused in a sentence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from archive_reading import records
from browser.browsing_site import crawl_pages, needs_chromium, path_of, response
from loopback import RawServer

from amicrawl.browser.fields import OwnFields
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

AGENT = "own/1 (+https://example.org/)"
SAY = b"fetch('/said/' + %b + '?' + encodeURIComponent([navigator.userAgent, navigator.languages]));"
PAGE = b"""<title>t</title><img src=/picture.png><iframe src=/frame></iframe><script>
  new Worker("/worker.js"); new SharedWorker("/shared.js");
  navigator.serviceWorker.register("/service.js");
  %b</script>"""
SCRIPTS = {f"/{name}.js": SAY % repr(name).encode() for name in ("worker", "shared", "service")}


def site(head: bytes) -> bytes:
    path = path_of(head)
    if path in SCRIPTS:
        return response(SCRIPTS[path], "text/javascript")
    if path in {"/", "/frame"}:
        return response(
            PAGE % (SAY % b"'page'") if path == "/" else b"<script>fetch('/framed')</script>"
        )
    return response(b"", "text/plain", status="404 None")


def fields_of(head: bytes) -> dict[str, list[str]]:
    """Return the values of each field of a request, by its name in lower case."""
    found: dict[str, list[str]] = {}
    for line in head.decode().split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.lower(), []).append(value.strip())
    return found


def as_setting(fields: Mapping[str, str | None]) -> dict[str, str]:
    return {"DEFAULT_REQUEST_HEADERS": json.dumps(fields)}


@needs_chromium
def test_each_request_of_the_browser_has_the_fields_of_the_operator(tmp_path: Path) -> None:
    own = {"user-agent": AGENT, "Accept-Language": "is, de;q=0.5", "X-Own": "1", "Accept": "text/odd"}
    settings = {**as_setting(own), "AMICRAWL_ROBOTS": "obey"}
    with RawServer(site) as server:
        done = crawl_pages(f"{server.url}/", tmp_path, settings)
        requested = {path_of(head): fields_of(head) for head in server.requests}
    assert done.returncode == 0, done.stderr
    robots = requested.pop("/robots.txt")
    assert (robots["user-agent"], robots["accept"]) == ([AGENT], ["text/odd"])
    made_by = {path.partition("?")[0] for path in requested}
    assert {"/", "/frame", "/framed", "/picture.png", "/favicon.ico", *SCRIPTS} <= made_by
    assert {f"/said/{each}" for each in ("page", "worker", "shared", "service")} <= made_by
    for path, fields in requested.items():
        (agent,) = fields["user-agent"]
        assert agent.startswith("Mozilla/5.0 (X11"), path
        assert agent.endswith(f" {AGENT}"), path
        assert "Headless" not in agent
        assert (fields["accept-language"], fields["x-own"]) == (["is, de;q=0.5"], ["1"])
        # Replay tools cannot undo it.
        assert "zstd" not in fields["accept-encoding"][0]
    # An image is requested as Chromium requests images.
    assert requested["/picture.png"]["accept"][0].startswith("image/")
    (said,) = [path for path in requested if path.startswith("/said/page")]
    assert said.endswith("own%2F1%20(%2Bhttps%3A%2F%2Fexample.org%2F)%2Cis")


@needs_chromium
def test_cookies_of_the_operator_go_beside_those_that_the_page_was_given(tmp_path: Path) -> None:
    script = b"<script>fetch('/first').then(() => fetch('/second'))</script>"
    given = {"/": "seen=1; Path=/", "/first": "session=newer; Path=/"}

    def signed_in(head: bytes) -> bytes:
        path = path_of(head)
        fields = [f"Set-Cookie: {given[path]}"] if path in given else []
        return response(script if path == "/" else b"", "text/html", *fields)

    jar = tmp_path / "jar.txt"
    jar.write_text(
        "# Netscape HTTP Cookie File\n"
        "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tsecret\n"
        "127.0.0.1\tFALSE\t/\tFALSE\t0\tother\thidden\n"
    )
    jar.chmod(0o600)
    with RawServer(signed_in) as server:
        done = crawl_pages(f"{server.url}/", tmp_path / "out", {"AMICRAWL_COOKIES": f"file:{jar}"})
        sent = {path_of(head): fields_of(head).get("cookie") for head in server.requests}
    assert done.returncode == 0, done.stderr
    assert sent["/"] == ["session=secret; other=hidden"]
    assert sent["/first"] == ["seen=1; session=secret; other=hidden"]
    # What the server has given since is newer.
    assert sent["/second"] == ["seen=1; session=newer; other=hidden"]
    archived = b"".join(each.content_stream().read() for each in records(tmp_path / "out"))
    assert b"hidden" not in archived


@needs_chromium
def test_a_browser_that_no_page_would_be_opened_in_is_refused(tmp_path: Path) -> None:
    with RawServer(site) as server:
        done = crawl_pages(f"{server.url}/", tmp_path, {"AMICRAWL_DIRECT": "never"})
        assert server.requests == []
    assert done.returncode == 2
    assert "AMICRAWL_BROWSER opens no page" in done.stderr
    assert "AMICRAWL_DIRECT is never" in done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Sec-Fetch-Mode", "Leave it out"),
        ("referer", "Leave it out"),
        ("If-None-Match", "Leave it out"),
        ("Cookie", "AMICRAWL_COOKIES"),
    ],
)
def test_a_field_that_cannot_be_the_same_for_all_requests_is_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"{name}.*{said}"):
        OwnFields.of({name: "x"}, user_agent="amicrawl")


def test_a_request_for_a_part_is_not_coded() -> None:
    own = OwnFields.of({"Accept-Encoding": "gzip"}, user_agent="amicrawl")
    part = [(b"Range", b"bytes=0-1"), (b"Accept-Encoding", b"identity"), (b"User-Agent", b"y")]
    assert own.as_sent(part, user_agent="y") == part


def test_a_field_without_a_value_is_not_sent() -> None:
    own = OwnFields.of({"Accept-Language": None, "accept-encoding": "identity"}, user_agent="amicrawl")
    fields = [(b"Accept-Language", b"en"), (b"Accept-Encoding", b"gzip, zstd"), (b"User-Agent", b"x")]
    sent = [(b"Accept-Encoding", b"identity"), (b"User-Agent", b"y")]
    assert own.as_sent(fields, user_agent="y") == sent


@pytest.mark.parametrize(
    ("value", "language"),
    [("is, de;q=0.5", "is"), ("de-CH;q=1", "de-CH"), ("*", ""), ("", ""), ("no such", ""), (None, "")],
)
def test_scripts_are_told_the_language_that_is_named_first(value: str | None, language: str) -> None:
    assert OwnFields.of({"Accept-Language": value}, user_agent="amicrawl").language == language
