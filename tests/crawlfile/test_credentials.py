"""Who is told a password, and who is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amicrawl.config import CrawlConfig
from amicrawl.crawl.credentials import read_credentials, redaction_note
from amicrawl.errors import AmicrawlError, InputError, UsageError
from amicrawl.fetch.request import without_values
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from pathlib import Path

VALUE = b"Basic YW5uOnB3"


def told(tmp_path: Path, url: str, **override: Any) -> bool:
    """Tell whether a request for *url* carries the password for a.example."""
    (tmp_path / "auth").write_text("ann:pw\n")
    (tmp_path / "auth").chmod(0o600)
    config = CrawlConfig(host_overrides={"a.example": {"auth": "file:auth", **override}})
    target = fetchable(url)
    assert not isinstance(target, Refused)
    fields = read_credentials(config, base=tmp_path).fields_for(target)
    assert fields in ([], [(b"Authorization", VALUE)])
    return bool(fields)


@pytest.mark.parametrize(
    ("url", "override", "is_told"),
    [
        ("https://a.example/x", {}, True),
        ("https://A.EXAMPLE./", {}, True),
        ("https://a.example:443/", {}, True),
        ("https://a.example:8443/", {}, False),
        ("https://a.example:8443/", {"auth_port": 8443}, True),
        ("https://a.example/", {"auth_port": 8443}, False),
        ("http://a.example/", {}, False),
        ("http://a.example/", {"allow_plain": True}, True),
        ("http://a.example:443/", {"allow_plain": True}, False),
        ("https://www.a.example/", {}, False),
        ("https://example/", {}, False),
        ("https://a.example@b.example/", {}, False),
        ("https://a.example.b.example/", {}, False),
    ],
)
def test_a_password_goes_to_its_host_alone(
    tmp_path: Path, url: str, override: dict[str, Any], *, is_told: bool
) -> None:
    assert told(tmp_path, url, **override) == is_told


@pytest.mark.parametrize(
    "host", ["A.Example", "a.example.", "b\N{LATIN SMALL LETTER U WITH DIAERESIS}.example"]
)
def test_a_password_is_for_a_host_however_its_name_is_written(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("AMICRAWL_TEST_AUTH", "ann:pw")
    config = CrawlConfig(host_overrides={host: {"auth": "env:AMICRAWL_TEST_AUTH"}})
    target = fetchable(f"https://{host}/")
    assert not isinstance(target, Refused)
    assert read_credentials(config).fields_for(target) == [(b"Authorization", VALUE)]


@pytest.mark.parametrize(
    "override", [{"allow_plain": "false"}, {"auth_port": "x"}, {"auth_port": 0}, {"auth_port": True}]
)
def test_where_a_password_goes_is_never_guessed(tmp_path: Path, override: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=rf"has {next(iter(override))} = .* for a\.example: it must be"):
        told(tmp_path, "http://a.example/", **override)


@pytest.mark.parametrize("override", [{"allow_plain": True}, {"auth_port": 8443, "auth": ""}])
def test_how_a_password_is_sent_without_one_is_refused(override: dict[str, Any]) -> None:
    config = CrawlConfig(host_overrides={"a.example": {"delay": 5, **override}})
    with pytest.raises(UsageError, match=rf"has {next(iter(override))} for a\.example, .* no auth"):
        read_credentials(config)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"proxy": "env:AMICRAWL_TEST_UNSET"}, "AMICRAWL_PROXY"),
        ({"cookies": "file:none"}, "AMICRAWL_COOKIES"),
        ({"host_overrides": {"a.example": {"auth": "env:AMICRAWL_TEST_UNSET"}}}, "auth of a.example in"),
    ],
)
def test_a_reference_that_leads_nowhere_is_said_with_its_setting(
    settings: dict[str, Any], name: str
) -> None:
    with pytest.raises(InputError, match=f"^{name}"):
        read_credentials(CrawlConfig(**settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"proxy": "http://ann:geheim@proxy:1"},
        {"proxy": "env:AMICRAWL_TEST_UNSET"},
        {"cookies": "sid=geheim"},
        {"host_overrides": {"a.example": {"auth": "ann:geheim"}}},
        {"host_overrides": {"a.example": {"auth": "file:one-word"}}},
        {"proxy": "file:one-word"},
        {"cookies": "file:one-word"},
    ],
)
def test_what_cannot_be_used_is_said_without_the_secret(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    (tmp_path / "one-word").write_text("geheim")
    (tmp_path / "one-word").chmod(0o600)
    with pytest.raises(AmicrawlError) as caught:
        read_credentials(CrawlConfig(**settings), base=tmp_path)
    assert "geheim" not in str(caught.value)


def test_a_crawl_without_secrets_says_nothing_of_them() -> None:
    assert redaction_note(CrawlConfig()) == {}
    assert redaction_note(CrawlConfig(cookies="env:A")) == {
        "redacted": "values of Cookie fields in request records"
    }


SENT = b"GET / HTTP/1.1\r\nHost: a\r\nX-Room: secret\r\nx-door: secret\r\nX: y\r\n\r\nX-Room: body"


@pytest.mark.parametrize("cut", range(len(SENT) + 1))
def test_hidden_values_are_gone_wherever_sending_stopped(cut: int) -> None:
    hidden = frozenset({b"x-room", b"x-door"})
    shown = without_values(SENT[:cut], hidden)
    assert b"secret"[:1] + b"ecret" not in shown
    assert b": s" not in shown
    assert without_values(SENT[:cut], frozenset()) == SENT[:cut]
    if cut == len(SENT):
        assert shown == SENT.replace(b"secret", b"redacted")


SECRET = (
    *("Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-API-KEY", "apikey", "Api-Key"),
    *("X-Auth-Token", "PRIVATE-TOKEN", "X-Amz-Security-Token", "X-Goog-Api-Key", "X-CSRF-Token"),
    *("X-Session", "Ocp-Apim-Subscription-Key", "X-Vault-Token", "Cf-Access-Client-Secret", "X-JWT"),
)
PLAIN = (
    *("Host", "User-Agent", "Accept", "Accept-Encoding", "Referer", "If-None-Match", "Keep-Alive"),
    *("X-Requested-With", "Range", "Content-Type", "X-Monkey", "X-Tokenizer", "X-Author", "Sec-Ch-Ua"),
)


@pytest.mark.parametrize("name", SECRET)
def test_a_header_whose_name_says_that_it_is_secret_is_archived_without_its_value(name: str) -> None:
    sent = f"GET /key:token HTTP/1.1\r\nHost: a\r\n{name}: s3cr3t\r\n\r\n{name}: body".encode()
    assert without_values(sent, frozenset()) == sent.replace(b"s3cr3t", b"redacted")


@pytest.mark.parametrize("name", PLAIN)
def test_any_other_header_is_archived_as_it_was_sent(name: str) -> None:
    sent = f"GET /?key:token HTTP/1.1\r\nHost: a\r\n{name}: v: key: x\r\n\r\n".encode()
    assert without_values(sent, frozenset()) == sent
