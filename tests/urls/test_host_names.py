"""Host names: UTS #46 with Unicode 15.0, its label rules, and names that are merely looked up."""

from __future__ import annotations

from functools import partial
from unicodedata import normalize

import idna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.urls import Reason, Refused
from amicrawl.urls.host import canonical_host, is_loopback, lookup_name, obey_bidi_rule

RIGHT_TO_LEFT = "אבא١٢12a-é\u0301\u05b0"
ARABIC_AND_JOINERS = "بلاaब्\u200c\u200dन\u064b"


@pytest.mark.parametrize(
    ("name", "ascii_name"),
    [
        ("straße.de", "xn--strae-oqa.de"),
        ("STRAẞE.de", "xn--strae-oqa.de"),
        ("ΟΔΟΣ.gr", "xn--pxavbq.gr"),
        ("οδος.gr", "xn--pxavbm.gr"),
        ("İ.com", "i.com"),
        ("ａ．ｂ。c", "a.b.c"),
        ("so\xadft", "soft"),
        ("א1.b", "xn--1-zhc.b"),
        ("क्\u200dष", "xn--11b2ezcw70k"),
        ("\u0628\u200c\u0628", "xn--ngba799q"),
        ("\u0628\U0001e94b\u200c\u0628", "xn--ngba799qy713b"),
        ("א\U00010efd", "xn--4db4886k"),
        ("א\U0001f6dcא", "xn--4dba54829a"),
        ("xn--fiqs8s", "xn--fiqs8s"),
        ("xn--abc-", "abc"),
        ("\U00031350.x", "xn--8o8n.x"),
        ("a" * 5000, "a" * 5000),
    ],
)
def test_a_name_is_mapped_and_encoded(name: str, ascii_name: str) -> None:
    assert canonical_host(name) == ascii_name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a_b", Reason.HOST_CHARACTER),
        ("a\u2260b", Reason.HOST_CHARACTER),
        ("a\u2024b", Reason.HOST_CHARACTER),
        ("\ufffd", Reason.HOST_CHARACTER),
        ("-a", Reason.HYPHEN),
        ("a-.b", Reason.HYPHEN),
        ("ab--c", Reason.HYPHEN),
        ("é--x", Reason.HYPHEN),
        ("\u0301a", Reason.LEADING_MARK),
        ("xn--lsa", Reason.LEADING_MARK),
        ("a\u200db", Reason.JOINER),
        ("नी\u200cकम", Reason.JOINER),
        ("\u0628\u200c", Reason.JOINER),
        ("\u0628\u200c\ua872", Reason.JOINER),
        ("א\U0001f6dc", Reason.BIDI),
        ("אa", Reason.BIDI),
        ("אב.1a", Reason.BIDI),
        ("א1٢", Reason.BIDI),
        ("xn--4dbc.1a", Reason.BIDI),
        ("xn--a", Reason.PUNYCODE),
        ("xn---a", Reason.PUNYCODE),
        ("xn--mnchen-3yA9", Reason.PUNYCODE),
        ("xn--mnchen-3ya" + "9" * 2000, Reason.LONG_NAME),
        ("é" * 2000, Reason.LONG_NAME),
        ("", Reason.NO_HOST),
        (".", Reason.NO_HOST),
    ],
)
def test_a_name_that_breaks_a_rule_is_refused(name: str, reason: Reason) -> None:
    assert canonical_host(name) == Refused(reason)


@pytest.mark.parametrize("newer", ["\u1c89", "\ua7cb", "\U0001e5d0", "\U0001ccd6", "\U0002ebf0"])
def test_a_character_newer_than_unicode_15_is_refused_for_keys_but_looked_up(newer: str) -> None:
    """A key must not depend on which Unicode the installed packages know."""
    assert canonical_host(f"a{newer}b") == Refused(Reason.HOST_CHARACTER)
    looked_up = lookup_name(f"a{newer}b")
    assert isinstance(looked_up, str) == _installed_idna_knows(newer)


def _installed_idna_knows(character: str) -> bool:
    try:
        idna.uts46_remap(character)
    except idna.IDNAError:
        return False
    return True


def test_hyphens_are_counted_in_octets() -> None:
    assert canonical_host("aé--b") == "xn--a--b-bpa"
    assert canonical_host("a-é--b") == "xn--a---b-csa"


@given(labels=st.lists(st.text(RIGHT_TO_LEFT, min_size=1, max_size=6), min_size=1, max_size=3))
def test_the_bidi_rule_is_that_of_rfc_5893(labels: list[str]) -> None:
    def keeps(label: str) -> bool:
        try:
            return bool(idna.check_bidi(label, check_ltr=True))
        except idna.IDNABidiError:
            return False

    assert obey_bidi_rule(labels) == all(map(keeps, labels))


@given(label=st.text(ARABIC_AND_JOINERS, min_size=1, max_size=7).map(partial(normalize, "NFC")))
def test_joiners_that_rfc_5892_allows_are_never_refused(label: str) -> None:
    allowed = all(
        idna.valid_contextj(label, place)
        for place, letter in enumerate(label)
        if letter in "\u200c\u200d"
    )
    refused = canonical_host(label)
    assert not (allowed and refused == Refused(Reason.JOINER))


@given(name=st.text(max_size=30))
def test_a_converted_name_is_ascii_and_converts_to_itself(name: str) -> None:
    converted = canonical_host(name)
    if isinstance(converted, str):
        assert converted.isascii()
        assert converted == converted.lower()
        if converted and not converted.endswith("."):
            assert canonical_host(converted) == converted


@pytest.mark.parametrize(
    ("written", "looked_up"),
    [
        ("My_Host.Example.COM.", "My_Host.Example.COM."),
        ("r3---sn-abc.example", "r3---sn-abc.example"),
        ("-a-.b", "-a-.b"),
        ("Bü_cher.DE", "xn--b_cher-3ya.de"),
        ("xn--a", "xn--a"),
        ("１２７.0.0.1", "127.0.0.1"),
    ],
)
def test_a_name_is_looked_up_as_written_but_in_ascii(written: str, looked_up: str) -> None:
    assert lookup_name(written) == looked_up


@pytest.mark.parametrize(
    "written", ["a b", "a\r\nb", "a/b", "a%", "a:b", "a@b", "é/", "a\x00", "a,b", "é⁄\u2100"]
)
def test_a_name_with_other_characters_is_not_looked_up(written: str) -> None:
    assert lookup_name(written) == Refused(Reason.HOST_CHARACTER)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST"])
def test_a_machine_by_its_own_names_is_reached_from_nowhere_else(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "localhost.example", ""])
def test_any_other_host_may_be_reached_from_elsewhere(host: str) -> None:
    assert not is_loopback(host)
