"""Content codings that are bombs or lies: a callback gets a bounded page, or the bytes as they came."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from typing import TYPE_CHECKING

import brotli
import pytest
import zstandard
from hostile.scripts_of_servers import gzip_bomb
from hostile.watched_crawls import MIB
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from amicrawl.crawl.middlewares import TolerantDecodingMiddleware

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS = b"<p>Some words, many of them the same words.</p>" * 50


def _zlib_bomb(mebibytes: int) -> bytes:
    packer = zlib.compressobj(9)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block + block[2:] * (mebibytes - 1) + packer.flush()


def _brotli_bomb(mebibytes: int) -> bytes:
    packer = brotli.Compressor(quality=5)
    return b"".join([*(packer.process(bytes(MIB)) for _ in range(mebibytes)), packer.finish()])


def _zstd_bomb(mebibytes: int) -> bytes:
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join([*(packer.compress(bytes(MIB)) for _ in range(mebibytes)), packer.flush()])


BOMBS: dict[str, Callable[[int], bytes]] = {
    "gzip": gzip_bomb,
    "deflate": _zlib_bomb,
    "br": _brotli_bomb,
    "zstd": _zstd_bomb,
}


def _nested(times: int, body: bytes = _WORDS) -> bytes:
    for _ in range(times):
        body = gzip.compress(body, 6, mtime=0)
    return body


@pytest.fixture(scope="module")
def middleware() -> TolerantDecodingMiddleware:
    return TolerantDecodingMiddleware.from_crawler(get_crawler(Spider))


def _decode(middleware: TolerantDecodingMiddleware, coding: str, body: bytes) -> Response:
    url = "http://127.66.0.1/"
    response = Response(url, body=body, headers={"Content-Encoding": coding})
    responded = middleware.process_response(Request(url), response)
    assert isinstance(responded, Response)
    return responded


@pytest.mark.parametrize("coding", BOMBS)
def test_a_bomb_is_handed_on_as_it_came_and_costs_little_memory(
    middleware: TolerantDecodingMiddleware, coding: str
) -> None:
    bomb = BOMBS[coding](300)
    tracemalloc.start()
    try:
        response = _decode(middleware, coding, bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (response.body, response.flags) == (bomb, ["undecodable"])
    assert peak < 128 * MIB, peak / MIB


@pytest.mark.parametrize("coding", BOMBS)
def test_what_is_not_in_its_coding_is_handed_on_as_it_came(
    middleware: TolerantDecodingMiddleware, coding: str
) -> None:
    response = _decode(middleware, coding, _WORDS)
    assert (response.body, response.flags) == (_WORDS, ["undecodable"])


def test_a_coding_whose_name_is_no_text_costs_no_page(middleware: TolerantDecodingMiddleware) -> None:
    response = Response("http://127.66.0.1/", body=_WORDS, headers={"Content-Encoding": b"\xff\xfe"})
    responded = middleware.process_response(Request(response.url), response)
    assert isinstance(responded, Response)
    assert (responded.body, responded.flags) == (_WORDS, ["undecodable"])


def test_two_codings_are_undone_and_forty_two_are_not(middleware: TolerantDecodingMiddleware) -> None:
    assert _decode(middleware, "gzip, gzip", _nested(2)).body == _WORDS
    many = _nested(42)
    response = _decode(middleware, ", ".join(["gzip"] * 42), many)
    assert (response.body, response.flags) == (many, ["undecodable"])


def test_a_bomb_inside_of_another_coding_is_handed_on_as_it_came(
    middleware: TolerantDecodingMiddleware,
) -> None:
    bomb = gzip.compress(gzip_bomb(3000), mtime=0)
    assert _decode(middleware, "gzip, gzip", bomb).body == bomb


def test_a_page_that_packs_well_is_decoded(middleware: TolerantDecodingMiddleware) -> None:
    page = b"<td>0</td>" * MIB
    assert _decode(middleware, "gzip", gzip.compress(page, mtime=0)).body == page
