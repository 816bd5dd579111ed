"""Which addresses may be dialled."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.fetch import Guard
from amicrawl.fetch.guard import literal

REFUSED = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "this network",
    "10.0.0.1": "private",
    "100.64.0.1": "shared",
    "100.100.100.200": "metadata",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "168.63.129.16": "metadata",
    "169.254.0.1": "link-local",
    "169.254.169.254": "metadata",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.1": "protocol assignment",
    "192.0.0.192": "metadata",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4",
    "192.168.1.1": "private",
    "198.18.0.1": "benchmarking",
    "198.19.255.255": "benchmarking",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::7f00:1": "IPv4-compatible",
    "::8.8.8.8": "IPv4-compatible",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:10.0.0.1": "private",
    "::ffff:169.254.169.254": "metadata",
    "::ffff:0:8.8.8.8": "outside of global unicast",
    "64:ff9b::127.0.0.1": "loopback",
    "64:ff9b::10.1.2.3": "private",
    "64:ff9b::169.254.169.254": "metadata",
    "64:ff9b:1::8.8.8.8": "local NAT64",
    "100::1": "discard",
    "2001::1": "Teredo",
    "2001:0:7f00:1::": "Teredo",
    "2001:2::1": "benchmarking",
    "2001:10::1": "ORCHID",
    "2001:db8::1": "documentation",
    "2002:7f00:1::1": "6to4",
    "2002:808:808::1": "6to4",
    "3fff::1": "documentation",
    "4000::1": "outside of global unicast",
    "5f00::1": "segment routing",
    "fc00::1": "unique local",
    "fd00:ec2::254": "metadata",
    "fd12:3456::1": "unique local",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "::1%lo": "loopback",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "0x7f.1": "no address",
    "localhost": "no address",
    "1.1.1.1\0": "no address",
    "": "no address",
}

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "11.0.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.255.255",
    "172.32.0.1",
    "192.0.1.1",
    "198.17.255.255",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001::1",
]


@pytest.mark.parametrize(("address", "reason"), REFUSED.items())
def test_an_address_outside_of_the_public_internet_is_refused_with_a_reason(
    address: str, reason: str
) -> None:
    refusal = Guard().refusal(address)
    assert refusal is not None
    assert reason in refusal


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_dialled(address: str) -> None:
    assert Guard().refusal(address) is None


@pytest.mark.parametrize(
    ("network", "address"),
    [
        ("127.0.0.0/8", "127.0.0.1"),
        ("127.0.0.1/32", "::ffff:127.0.0.1"),
        ("10.0.0.0/8", "64:ff9b::10.0.0.1"),
        ("169.254.169.254/32", "169.254.169.254"),
        ("fd00::/8", "fd00:ec2::254"),
        ("::1/128", "::1%lo"),
        ("2002::/16", "2002:7f00:1::1"),
        ("::/0", "::"),
    ],
)
def test_an_allowed_network_may_be_dialled(network: str, address: str) -> None:
    assert Guard([ip_network(network)]).refusal(address) is None


def test_allowing_one_network_opens_no_other() -> None:
    guard = Guard([ip_network("10.1.0.0/16"), ip_network("::1/128")])
    assert guard.refusal("10.1.2.3") is None
    assert [guard.refusal(address) is None for address in ("10.2.0.1", "127.0.0.1", "::2")] == [
        False
    ] * 3


@given(number=st.integers(min_value=0, max_value=2**32 - 1))
def test_an_ipv4_address_is_judged_alike_in_every_form_that_reaches_it(number: int) -> None:
    guard = Guard()
    plain = guard.refusal(IPv4Address(number))
    assert guard.refusal(str(IPv4Address(number))) == plain
    assert guard.refusal(IPv6Address((0xFFFF << 32) + number)) == plain
    assert guard.refusal(IPv6Address((0x64FF9B << 96) + number)) == plain


@given(number=st.integers(min_value=0, max_value=2**128 - 1))
def test_nothing_that_python_calls_private_or_reserved_gets_through(number: int) -> None:
    address = IPv6Address(number)
    if Guard().refusal(address) is None and address.ipv4_mapped is None:
        assert address.is_global
        assert not address.is_multicast


@given(number=st.integers(min_value=0, max_value=2**32 - 1))
def test_an_ipv4_address_that_python_calls_global_may_be_dialled_or_is_on_the_list(number: int) -> None:
    address = IPv4Address(number)
    refusal = Guard().refusal(address)
    if refusal is None:
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
        ("[fe80::1%25eth0]", "fe80::1"),
        ("example.org", None),
        ("0x7f.1.example.org", None),
        ("1.1.1.1\0", None),
        ("a:b", None),
        ("", None),
    ],
)
def test_a_host_that_spells_an_address_is_recognised(host: str, address: str | None) -> None:
    spelt = literal(host)
    assert (spelt and IPv6Address(spelt) if address and ":" in address else spelt) == (
        IPv6Address(address) if address and ":" in address else address
    )
