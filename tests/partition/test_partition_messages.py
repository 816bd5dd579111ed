"""What a partition and its carrier say: every message survives its line, and nothing else is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier import Source
from amicrawl.partition.batch import PartitionLink, batches_of, encoded_link, links_in
from amicrawl.partition.messages import Again, Arrived, Batch, End, PartitionMessage, Pause, Standing
from amicrawl.seed import Seed


@pytest.mark.parametrize(
    "message",
    [Again(3), Pause(), End("limit-pages"), Standing(idle=True, quiet=True, facts={"rows": 5})],
)
def test_a_message_survives_its_line(message: PartitionMessage) -> None:
    line = message.line()
    assert line.isascii()
    assert line.index(b"\n") == len(line) - 1
    assert PartitionMessage.of(line) == message


def test_a_batch_survives_its_line_whatever_octets_it_has() -> None:
    links = [encoded_link(PartitionLink(Seed(f"http://a.example/{n}"), Source.LINK)) for n in range(50)]
    [(content, count)] = batches_of(links)
    there = PartitionMessage.of(Batch(2, 7, content).line())
    assert there == Batch(2, 7, content)
    assert count == 50
    assert [link.seed.url for link in links_in(content)[0]] == [
        f"http://a.example/{n}" for n in range(50)
    ]


def test_names_of_batches_come_back_as_pairs_and_numbers_as_they_were() -> None:
    heard = PartitionMessage.of(Standing(idle=False, kept=((1, 5), (2, 6))).line())
    assert isinstance(heard, Standing)
    assert [(sender, number) for sender, number in heard.kept] == [(1, 5), (2, 6)]
    arrived = PartitionMessage.of(Arrived((5, 6)).line())
    assert isinstance(arrived, Arrived)
    assert list(arrived.numbers) == [5, 6]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"End"',
        b"{}",
        b'{"is":"Stop"}',
        b'{"is":"End"}',
        b'{"is":["End"],"reason":""}',
        b'{"is":"Again","partition":1,"more":2}',
        b"\xff\xfe",
        b'{"is":"Pause"',
    ],
)
def test_what_is_no_message_is_said_to_be_none(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        PartitionMessage.of(line)


@given(st.lists(st.integers(1, 200_000), max_size=700))
def test_batches_keep_order_and_bounds_and_leave_no_link_out(sizes: list[int]) -> None:
    urls = [f"http://a.example/{number}?" + "x" * min(size, 60_000) for number, size in enumerate(sizes)]
    links = [encoded_link(PartitionLink(Seed(url), Source.LINK)) for url in urls]
    found: list[str] = []
    for batch, count in batches_of(links):
        opened, faults = links_in(batch)
        assert (len(opened), faults) == (count, [])
        assert count <= 500
        assert count == 1 or sum(len(link.seed.url) for link in opened) <= 256 << 10
        found += [link.seed.url for link in opened]
    assert found == urls
