"""Certificates, TLS versions and bind addresses are as the project has them."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING

import pytest
import trustme
from archive_reading import rows
from fetch.serving import always
from fetch.test_fetch_tls import context, secured
from guests.guest_runs import both, run
from loopback import page
from odd_responses import LoopbackServer, read_request

if TYPE_CHECKING:
    import socket
    from pathlib import Path

SAID = page(b"said", "Content-Type: text/plain")


def nothing(_: bytes) -> bytes:
    raise AssertionError("this server is not the one to contact")


def test_a_certificate_of_no_known_authority_is_taken_and_noted(tmp_path: Path) -> None:
    with LoopbackServer(secured(context(trustme.CA()), always(SAID))) as server:
        url = server.url.replace("http:", "https:") + "/a"
        _, archived = both("single_request.py", nothing, tmp_path, arguments={"url": url})
    assert archived.items[0]["said"] == "said"
    assert archived.items[0]["certificate"] is True
    (row,) = rows(archived.archive)
    assert json.loads(row["meta_json"])["tls_fault"] == "unable to get issuer cert locally"


@pytest.mark.parametrize(
    "settings", [{"DOWNLOAD_VERIFY_CERTIFICATES": "1"}, {"DOWNLOAD_TLS_MIN_VERSION": "TLSv1.3"}]
)
def test_what_the_project_refuses_is_refused(tmp_path: Path, settings: dict[str, str]) -> None:
    tls = context(trustme.CA(), version=ssl.TLSVersion.TLSv1_2)
    with LoopbackServer(secured(tls, always(SAID))) as server:
        url = server.url.replace("http:", "https:") + "/a"
        settings = {"RETRY_TIMES": "0", **settings}
        _, archived = both(
            "single_request.py", nothing, tmp_path, arguments={"url": url}, settings=settings
        )
    assert archived.items[0].keys() == {"missed"}
    assert [row["error"] for row in rows(archived.archive)] != [""]


@pytest.mark.parametrize("given_by", ["setting", "meta"])
def test_requests_come_from_the_address_that_the_project_names(tmp_path: Path, given_by: str) -> None:
    peers = []

    def serve(channel: socket.socket) -> None:
        peers.append(channel.getpeername()[0])
        read_request(channel)
        channel.sendall(SAID)

    with LoopbackServer(serve) as server:
        arguments = {"url": f"{server.url}/a"}
        settings = {"DOWNLOAD_BIND_ADDRESS": "127.0.0.9"} if given_by == "setting" else {}
        if given_by == "meta":
            arguments["meta"] = json.dumps({"bindaddress": "127.0.0.9"})
        both("single_request.py", nothing, tmp_path, arguments=arguments, settings=settings)
    assert peers == ["127.0.0.9"] * 2


def test_a_context_factory_is_refused_before_the_first_request(tmp_path: Path) -> None:
    settings = {"DOWNLOADER_CLIENTCONTEXTFACTORY": "mine.Factory"}
    ran = run("single_request.py", nothing, tmp_path, has_line=True, settings=settings)
    assert "DOWNLOADER_CLIENTCONTEXTFACTORY is 'mine.Factory'" in ran.log
    assert (ran.returncode, ran.requested, ran.items) == (1, [], [])
