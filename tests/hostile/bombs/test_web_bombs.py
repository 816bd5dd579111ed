"""A crawl that meets all bombs of a kind ends by itself, within the bounds that reading them has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hostile.bombs.test_bomb_yard import complaint
from hostile.bombs.web_bombs import CSS, HTML, WEB
from hostile.scripts_of_servers import page
from loopback import QUICK, RawServer

if TYPE_CHECKING:
    from pathlib import Path

    from hostile.bombs.confined import Confinement

pytestmark = pytest.mark.timeout(600)

SETTINGS = {**QUICK, "AMICRAWL_TIMEOUT": "20", "AMICRAWL_PER_HOST": "2"}
PLACES = {"HTML": "/{}", "HTTP": "/{}", "CSS": "/{}", "robots.txt": "/robots.txt"}


@pytest.mark.parametrize("format_", WEB)
def test_a_crawl_pays_little_for_what_servers_send(
    format_: str, tmp_path: Path, confined: Confinement
) -> None:
    bombs = {name: make() for name, make in WEB[format_].items()}
    assert max(map(len, bombs.values())) < 9 * 1024**2
    met = set()

    def respond(head: bytes) -> bytes:
        path = head.split(b" ", 2)[1].decode().partition("?")[0]
        number = int(head.lower().partition(b"host: 127.0.0.")[2].partition(b":")[0])
        name = sorted(bombs)[number - 1]
        if path == PLACES[format_].format(name):
            met.add(name)
            return bombs[name]
        if path == f"/{name}.html":
            return page(b'<link rel=stylesheet href="/%s">' % name.encode(), HTML)
        return page(b"", CSS if format_ == "CSS" else HTML)

    with RawServer(respond) as server:
        ending = ".html" if format_ == "CSS" else ""
        urls = [
            f"http://127.0.0.{number}:{server.port}/{name}{ending}"
            for number, name in enumerate(sorted(bombs), 1)
        ]
        robots = {"AMICRAWL_ROBOTS": "obey"} if format_ == "robots.txt" else {}
        settings = [f"-s{name}={value}" for name, value in {**SETTINGS, **robots}.items()]
        ended = confined.run(["crawl", *urls, "--depth", "0", "-o", "out", *settings], where=tmp_path)
    assert complaint("crawl", ended) == ""
    assert met == bombs.keys(), ended.errors[-2000:]
