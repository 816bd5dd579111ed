"""The second opinion on a name: DNS messages, and name servers on loopback that say what they are to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fetch.name_server import (
    ADDRESS,
    ALIAS,
    NameServer,
    cannot_say,
    is_preceded_by_forgeries,
    knows,
    knows_no_address,
    knows_not,
    knows_only_ipv6,
    reply_to,
    says_nothing,
)
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.errors import UsageError
from amicrawl.fetch.dns import AAAA, NO_ERROR, NO_SUCH_NAME, A, Reply, question, read_reply
from amicrawl.fetch.second_opinion import Existence, SecondOpinion, servers_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def asked_of(name: str = "www.example.org", kind: int = A, number: int = 7) -> bytes:
    asked = question(name, kind=kind, number=number)
    assert asked is not None
    return asked


def test_the_bytes_of_a_question_are_those_of_rfc_1035() -> None:
    assert asked_of() == bytes.fromhex(
        "0007 0100 0001 0000 0000 0000 03 777777 07 6578616d706c65 03 6f7267 00 0001 0001"
    )
    assert asked_of("Www.example.org.", AAAA)[-4:] == b"\x00\x1c\x00\x01"


@pytest.mark.parametrize("name", ["", ".", "a..b", "a" * 64, "ü.example", "a." * 127 + "b", "-" * 300])
def test_what_is_no_dns_name_has_no_question(name: str) -> None:
    assert question(name, kind=A, number=0) is None


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        (reply_to(asked_of(), records=ADDRESS, count=1), Reply(NO_ERROR, has_address=True)),
        (reply_to(asked_of(), records=ALIAS + ADDRESS, count=2), Reply(NO_ERROR, has_address=True)),
        (reply_to(asked_of(), records=ALIAS, count=1), Reply(NO_ERROR, has_address=False)),
        (reply_to(asked_of()), Reply(NO_ERROR, has_address=False)),
        (reply_to(asked_of(), code=NO_SUCH_NAME), Reply(NO_SUCH_NAME, has_address=False)),
        (reply_to(asked_of("WWW.Example.ORG")), Reply(NO_ERROR, has_address=False)),
        (reply_to(asked_of(), count=60_000), Reply(NO_ERROR, has_address=True)),
        (reply_to(asked_of(number=8)), None),
        (reply_to(asked_of("www.example.com")), None),
        (reply_to(asked_of(kind=AAAA)), None),
        (asked_of(), None),
        (reply_to(asked_of(), count=1), None),
        (reply_to(asked_of(), records=ADDRESS[:-1], count=1), None),
        (reply_to(asked_of(), records=b"\x3f" + ADDRESS, count=1), None),
        (b"", None),
    ],
)
def test_a_reply_is_read_or_is_none(message: bytes, reply: Reply | None) -> None:
    assert read_reply(message, asked_of()) == reply


@given(st.binary(max_size=80), st.integers(0, 200))
def test_no_bytes_are_too_odd_for_a_reader(noise: bytes, at: int) -> None:
    whole = reply_to(asked_of(), records=ALIAS + ADDRESS, count=3)
    for message in (noise, whole[:at] + noise + whole[at + len(noise) :]):
        assert isinstance(read_reply(message, asked_of()), Reply | None)


@pytest.mark.parametrize(
    ("answers", "existence"),
    [
        ([knows], Existence.THERE),
        ([knows_only_ipv6], Existence.THERE),
        ([knows_not], Existence.MISSING),
        ([knows_no_address], Existence.MISSING),
        ([cannot_say], Existence.UNKNOWN),
        ([says_nothing], Existence.UNKNOWN),
        ([is_preceded_by_forgeries], Existence.THERE),
        ([knows_not, knows], Existence.THERE),
        ([knows_not, says_nothing], Existence.MISSING),
        ([cannot_say, knows_not], Existence.MISSING),
        ([], Existence.MISSING),
    ],
)
def test_what_name_servers_say_of_a_name(
    answers: list[Callable[[bytes], list[bytes]]], existence: Existence
) -> None:
    servers = [NameServer(answer) for answer in answers]
    for server in servers:
        server.__enter__()
    try:
        # One that says nothing is waited for.
        patience = 0.4 if says_nothing in answers else 20.0
        opinion = SecondOpinion([server.server for server in servers], patience=patience)
        assert opinion("gone.example.org") is existence
    finally:
        for server in servers:
            server.__exit__()


def test_a_server_that_is_not_there_says_nothing() -> None:
    with NameServer(knows) as gone:
        pass
    assert SecondOpinion([gone.server], patience=0.2)("a.example.org") is Existence.UNKNOWN


def test_names_that_no_server_can_know_are_not_asked_for() -> None:
    with NameServer(knows) as server:
        opinion = SecondOpinion([server.server])
        for name in ("here.invalid", "a..b", "hidden.onion.", "a" * 64):
            assert opinion(name) is Existence.MISSING
        assert server.questions == []


def test_servers_are_read_from_the_setting_or_from_the_system(tmp_path: Path) -> None:
    names = ("192.0.2.53", "192.0.2.53:5353", "2001:db8::53", "[2001:db8::53]:5353")
    assert servers_of(names) == [
        ("192.0.2.53", 53),
        ("192.0.2.53", 5353),
        ("2001:db8::53", 53),
        ("2001:db8::53", 5353),
    ]
    conf = tmp_path / "resolv.conf"
    assert servers_of((), resolv_conf=conf) == []
    conf.write_text("# by hand\nsearch example.org\nnameserver 192.0.2.1\nnameserver\nnameserver ::1\n")
    assert servers_of((), resolv_conf=conf) == [("192.0.2.1", 53), ("::1", 53)]


@pytest.mark.parametrize(
    "name", ["ns.example.org", "192.0.2.53:0", "192.0.2.53:x", "", "192.0.2.53:99999"]
)
def test_a_server_that_is_no_address_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="AMICRAWL_DNS_SERVERS"):
        servers_of((name,))
