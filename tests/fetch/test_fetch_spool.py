"""Bodies in memory and on disk."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.capture import Spool
from amicrawl.errors import OutputError
from amicrawl.fetch.response import ResponseReader

if TYPE_CHECKING:
    from amicrawl.capture import Body


def content(body: Body) -> bytes:
    return b"".join(body.blocks())


@given(
    blocks=st.lists(st.binary(max_size=40), max_size=8), above=st.integers(min_value=0, max_value=120)
)
def test_a_body_reads_back_as_received_again_and_again(
    tmp_path: Path, blocks: list[bytes], above: int
) -> None:
    reader = ResponseReader(
        "GET", max_header=1 << 16, max_body=1 << 20, spool_above=above, spool_dir=tmp_path
    )
    for block in (b"HTTP/1.1 200 OK\r\n\r\n", *blocks):
        reader.feed(block)
    whole, body = b"".join(blocks), reader.body()
    assert (len(body), content(body), content(body)) == (len(whole), whole, whole)
    assert isinstance(body, Spool) is (len(whole) > above)
    body.close()


def test_a_body_on_disk_has_no_name_there(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write(b"x" * 11)
    assert list(tmp_path.iterdir()) == []
    spool.close()


def test_a_body_can_be_read_while_it_grows(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write(b"hello")
    reading = spool.blocks()
    assert next(reading) == b"hello"
    spool.write(b" world")
    assert b"".join(reading) == b" world"
    spool.close()


def test_a_body_can_be_read_in_many_threads_at_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    whole = os.urandom(1_000_000)
    spool.write(whole)
    found: list[bool] = []
    threads = [threading.Thread(target=lambda: found.append(content(spool) == whole)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8
    spool.close()


def test_a_closed_body_cannot_be_read(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write(b"hello")
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    spool.close()
    spool.close()
    assert len(list(Path("/proc/self/fd").iterdir())) < descriptors
    with pytest.raises(ValueError, match="closed"):
        content(spool)


def test_a_directory_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "missing")
    with pytest.raises(OutputError, match=r"missing: .*Make room there, then run"):
        spool.write(b"5")
    assert len(spool) == 0
    spool.close()
