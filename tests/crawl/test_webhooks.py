"""Webhooks: who is told that a crawl has ended, when, and what if the notice does not arrive."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pytest
import warm_processes
from loopback import PROJECT, RawServer, command, crawl, environment, page, write_lines

from amicrawl.crawl.watching.webhooks import deliver, notice, receiver, signature
from amicrawl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

KEY = b"between us"


class Call(NamedTuple):
    """One request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Listener:
    """Takes calls, and responds with the next of *statuses*, the last of them for ever."""

    def __init__(self, *statuses: int, on_call: Callable[[], None] = lambda: None) -> None:
        self.calls: list[Call] = []
        left = list(statuses or (204,))
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                on_call()
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.calls.append(Call(self.path, dict(self.headers), body))
                status = left.pop(0) if len(left) > 1 else left[0]
                self.send_response(status, "\x1b[31mowned")
                if status == 302:
                    self.send_header("Location", outer.url)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def send(url: str, *, key: bytes = b"", waits: Sequence[float] = (0, 0, 0), patience: float = 20) -> str:
    to = receiver(url)
    return deliver(to, b'{"a":1}\n', delivery="d-1", key=key, waits=waits, patience=patience)


def test_a_notice_is_signed_as_its_receiver_can_check() -> None:
    with Listener() as listener:
        assert send(f"{listener.url}/hook?a=b", key=KEY) == ""
    (call,) = listener.calls
    assert call.path == "/hook?a=b"
    assert call.headers["Content-Type"] == "application/json"
    expected = "sha256=" + hmac.new(KEY, call.body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(call.headers["X-Amicrawl-Signature"], expected)


def test_the_signature_is_pinned() -> None:
    """RFC 4231, test case 2."""
    mac = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert signature(b"what do ya want for nothing?", b"Jefe") == f"sha256={mac}"


def test_the_check_that_the_manual_shows_accepts_ours_and_nothing_else() -> None:
    manual = (PROJECT / "docs" / "watching.md").read_text()
    scope: dict[str, Any] = {}
    exec(manual.partition("```python\n")[2].partition("```")[0], scope)
    is_genuine = scope["is_genuine"]
    assert is_genuine(b"{}", signature(b"{}", KEY), KEY)
    assert not is_genuine(b"{} ", signature(b"{}", KEY), KEY)
    assert not is_genuine(b"{}", signature(b"{}", b"another"), KEY)


def test_without_a_key_nothing_is_signed() -> None:
    with Listener() as listener:
        send(listener.url)
    assert "X-Amicrawl-Signature" not in listener.calls[0].headers


def test_a_busy_receiver_is_tried_again_with_the_same_delivery() -> None:
    with Listener(408, 425, 429, 200) as listener:
        assert send(listener.url) == ""
    assert [call.headers["X-Amicrawl-Delivery"] for call in listener.calls] == ["d-1"] * 4


def test_a_receiver_that_stays_busy_is_tried_four_times() -> None:
    with Listener(500) as listener:
        assert send(listener.url) == "it responded with 500"
    assert len(listener.calls) == 4


@pytest.mark.parametrize("status", [301, 302, 404, 401])
def test_a_refusal_and_a_redirect_are_final(status: int) -> None:
    with Listener(status) as listener:
        assert send(listener.url) == f"it responded with {status}"
    assert len(listener.calls) == 1


def test_a_receiver_that_is_not_there_or_never_responds_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "timed out" in send(f"http://127.0.0.1:{port}/", patience=0.3)
    assert "refused" in send(f"http://127.0.0.1:{port}/")


def test_what_is_no_response_at_all_is_not_repeated_in_the_log() -> None:
    with RawServer(lambda _: b"\x1b[2J owned\r\n\r\n") as server:
        trouble = send(f"{server.url}/", waits=())
    assert re.fullmatch(r"BadStatusLine", trouble)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/",
        "http:///path",
        "http://user:word@a.example/",
        "a.example",
        "http://[::1",
        "http://é/",
    ],
)
def test_what_cannot_be_called_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="AMICRAWL_WEBHOOKS") as refused:
        receiver(url)
    assert url not in str(refused.value)


def test_a_receiver_is_told_in_the_log_without_its_path() -> None:
    assert (
        str(receiver("https://hooks.example:8443/services/s3cret?k=v")) == "https://hooks.example:8443"
    )


def test_every_webhook_is_told_once_the_files_are_sealed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found: list[tuple[list[str], str]] = []

    def look() -> None:
        state = json.loads((out / "crawl.json").read_text())["state"]
        found.append(([path.name for path in out.glob("*.open")], state))

    key = tmp_path / "key"
    key.write_bytes(KEY + b"\n")
    key.chmod(0o600)
    with (
        RawServer(lambda _: page(b"ok")) as server,
        Listener(on_call=look) as friend,
        Listener(302) as mover,
    ):
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(3)])
        settings = {
            "AMICRAWL_WEBHOOKS": f"env:HOOK {mover.url}/s3cret-path",
            "AMICRAWL_WEBHOOK_SECRET": f"file:{key}",
        }
        done = warm_processes.run(
            command(seeds, out, settings=settings),
            cwd=PROJECT,
            env={**environment(), "HOOK": f"{friend.url}/s3cret-hook"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == ExitCode.DONE, done.stderr
    assert found == [([], "finished")], "everything was whole when the call came"
    (call,) = friend.calls
    assert call.headers["X-Amicrawl-Signature"] == signature(call.body, KEY)
    told = json.loads(call.body)
    assert (told["event"], told["finish_reason"]) == ("crawl-ended", "finished")
    assert (told["exit_code"], told["exit"], told["fault"]) == (0, "DONE", None)
    assert (told["directory"], told["run_id"]) == (str(out), "")
    assert (told["counts"]["ok"], told["urls_waiting"]) == (3, 0)
    crawl_json = json.loads((out / "crawl.json").read_text())
    listed = {entry["name"]: entry["sha256"] for entry in crawl_json["files"]}
    assert {entry["name"]: entry["sha256"] for entry in told["files"]} == listed
    assert told["files_sealed"] == len(listed) == 2
    assert told["finished"] >= told["started"]

    assert len(mover.calls) == 1
    assert f"The notice of the end did not reach the webhook at {mover.url}" in done.stderr
    assert "it responded with 302" in done.stderr
    everything = done.stderr + (out / "crawl.json").read_text()
    assert KEY.decode() not in everything
    assert "s3cret-hook" not in everything
    assert "s3cret-path" not in done.stderr


def test_names_that_are_not_utf8_are_recorded_and_the_end_is_notified(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / os.fsdecode(b"s\xff.txt"), [server.url])
        done = crawl(seeds, tmp_path / "out")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "s?.txt" in (tmp_path / "out" / "crawl.json").read_text()
    said = json.loads(notice(crawl={"directory": os.fsdecode(b"/out\xff")}, counts={}, sealed=[]))
    assert said["directory"] == "/out?"
    done = crawl(seeds, tmp_path / os.fsdecode(b"out\xff"))
    assert done.returncode == ExitCode.OUTPUT
    assert "its name is not UTF-8" in done.stderr


def test_a_crawl_that_could_not_begin_is_told_of_with_its_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with Listener() as listener:
        seeds = write_lines(tmp_path / "s.txt", ["http://127.0.0.1:9/"])
        done = crawl(seeds, tmp_path / "file" / "out", settings={"AMICRAWL_WEBHOOKS": listener.url})
    assert done.returncode == ExitCode.OUTPUT
    (call,) = listener.calls
    told = json.loads(call.body)
    assert (told["exit_code"], told["exit"]) == (4, "OUTPUT")
    assert "cannot be created" in told["fault"]
    assert told["files"] == []


@pytest.mark.parametrize("host", ["hooks..example", f"{'a' * 64}.example"])
def test_a_host_that_no_name_server_can_be_given_is_a_reason_like_any_other(host: str) -> None:
    assert deliver(receiver(f"http://{host}/"), b"{}", delivery="d-1", waits=()) == "UnicodeError"
