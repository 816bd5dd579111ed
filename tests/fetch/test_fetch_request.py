"""The bytes of a request, and what can be none."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.capture import Failure
from amicrawl.config import TlsPolicy
from amicrawl.errors import UsageError
from amicrawl.fetch import WireRequest
from amicrawl.fetch.failures import NotConnectedError
from amicrawl.fetch.proxy import ProxyKind, proxy_of
from amicrawl.fetch.request import Message, Route, compose

URL = "http://example.org/a?b=c"


def message(request: WireRequest) -> Message:
    return compose(request, policy=TlsPolicy.VERIFY)


def test_fields_go_out_in_the_order_and_case_they_were_given() -> None:
    fields = [
        (b"user-AGENT", b"x"),
        (b"X-A", b"1"),
        (b"HOST", b"other.example"),
        (b"x-a", b"2"),
        (b"Empty", b""),
    ]
    assert message(WireRequest(url=URL, fields=fields)).data == (
        b"GET /a?b=c HTTP/1.1\r\n"
        b"user-AGENT: x\r\nX-A: 1\r\nHOST: other.example\r\nx-a: 2\r\nEmpty: \r\n\r\n"
    )


def test_a_missing_host_goes_in_front_and_a_missing_length_to_the_end() -> None:
    request = WireRequest(url=URL, method="POST", fields=[(b"A", b"b")], body=b"x=y")
    assert message(request).data == (
        b"POST /a?b=c HTTP/1.1\r\nHost: example.org\r\nA: b\r\nContent-Length: 3\r\n\r\nx=y"
    )


def test_a_length_or_coding_of_the_callers_is_left_alone() -> None:
    for field in [(b"content-length", b"99"), (b"Transfer-Encoding", b"chunked")]:
        data = message(WireRequest(url=URL, method="PUT", fields=[field], body=b"abc")).data
        assert data.lower().count(b"content-length") == (field[0] == b"content-length")
        assert data.endswith(b"\r\n\r\nabc")


def test_a_post_without_a_body_says_so_and_a_get_does_not() -> None:
    assert b"Content-Length: 0\r\n" in message(WireRequest(url=URL, method="POST")).data
    assert b"Content-Length" not in message(WireRequest(url=URL)).data


@pytest.mark.parametrize(
    ("url", "target", "host"),
    [
        ("http://example.org", b"/", b"example.org"),
        ("http://example.org?q", b"/?q", b"example.org"),
        ("http://example.org#f", b"/", b"example.org"),
        ("http://example.org/a/../b//c/./%7e%2f?x#f#g", b"/a/../b//c/./%7e%2f?x", b"example.org"),
        ('http://example.org/{|}^`"<>\\', b'/{|}^`"<>\\', b"example.org"),
        ("HTTP://Example.ORG:8080/", b"/", b"Example.ORG:8080"),
        ("https://user:secret@example.org/", b"/", b"example.org"),
        ("http://[::1]:80/", b"/", b"[::1]:80"),
    ],
)
def test_a_url_is_requested_as_it_is_written(url: str, target: bytes, host: bytes) -> None:
    assert message(WireRequest(url=url)).data == b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, host)


def test_the_wire_url_is_requested_where_there_is_one() -> None:
    request = WireRequest(
        url="http://b\u00fccher.example/\u00e4", wire_url="http://xn--bcher-kva.example/%C3%A4"
    )
    assert b"GET /%C3%A4 " in message(request).data


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://:80/",
        "http://example.org:http/",
        "http://example.org:999999/",
        "http://[::1/",
        "http://::1/",
        "http://user@/",
        "http://example.org/a b",
        "http://example.org/\u00e4",
        "http://example.org/\r\nX-Forged: 1",
        "http://example.org/\x00",
        # A pattern for letters in any case takes these for "s" and "k", unless it is for ASCII alone.
        "http\u017f://example.org/",
        "http://\u017f@example.org/",
        "http://example.org/\u017f",
        "http://example.org/?\u212a",
        "http://example.org/#\u212a",
        "http://example.org\\path",
    ],
)
def test_a_url_that_cannot_be_requested_says_why(url: str) -> None:
    with pytest.raises(NotConnectedError, match=r"\.$") as raised:
        compose(WireRequest(url=url), policy=TlsPolicy.VERIFY)
    assert raised.value.failure is Failure.UNFETCHABLE_URL


BREAKS = st.sampled_from([b"\r", b"\n", b"\r\n", b"\0", b"\r\nX-Forged: 1"])


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.org/a b", "The URL has a character that must be percent-encoded."),
        ("ftp://example.org/", "The URL is not an http or https URL with a host."),
        ("http://example.org:http/", "The URL has no host, or its port is not a number."),
        ("http://example.org:65616/", "Its port is greater than 65535."),
    ],
)
def test_the_reason_why_a_url_cannot_be_requested_is_its_own(url: str, reason: str) -> None:
    with pytest.raises(NotConnectedError) as raised:
        message(WireRequest(url=url))
    assert str(raised.value) == reason


@given(
    before=st.binary(max_size=9), line_break=BREAKS, after=st.binary(max_size=9), in_name=st.booleans()
)
def test_no_line_break_or_nul_in_a_field_gets_onto_the_wire(
    before: bytes, line_break: bytes, after: bytes, in_name: bool
) -> None:
    odd = before + line_break + after
    field = (odd, b"value") if in_name else (b"Name", odd)
    with pytest.raises(UsageError, match="line break"):
        compose(WireRequest(url=URL, fields=[(b"A", b"b"), field]), policy=TlsPolicy.VERIFY)


TOKEN = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=12).map(str.encode)
VALUE = st.binary(max_size=30).filter(lambda value: not {*value} & {0, 10, 13})


@given(fields=st.lists(st.tuples(TOKEN, VALUE), max_size=8), body=st.binary(max_size=30))
def test_a_message_has_a_line_for_each_field_and_then_the_body(
    fields: list[tuple[bytes, bytes]], body: bytes
) -> None:
    data = message(WireRequest(url=URL, method="PUT", fields=fields, body=body)).data
    head, _, sent_body = data.partition(b"\r\n\r\n")
    lines = [line.split(b": ", 1) for line in head.split(b"\r\n")[1:]]
    assert sent_body == body
    given_lines = [[name, value] for name, value in fields]
    start = 0 if any(name.lower() == b"host" for name, _ in fields) else 1
    assert lines[start : start + len(fields)] == given_lines


@pytest.mark.parametrize("method", ["", "GET ", "GE\r\nT", "GET /x HTTP/1.1\r\nA:", "g\u00e9t"])
def test_a_method_that_is_no_token_is_refused(method: str) -> None:
    with pytest.raises(UsageError, match="not an HTTP method"):
        compose(WireRequest(url=URL, method=method), policy=TlsPolicy.VERIFY)


def test_a_field_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match="no name"):
        compose(WireRequest(url=URL, fields=[(b"", b"x")]), policy=TlsPolicy.VERIFY)


@pytest.mark.parametrize(
    ("fields", "keep"),
    [([], True), ([(b"Connection", b"keep-alive")], True), ([(b"connection", b"TE, Close")], False)],
)
def test_a_request_to_close_is_kept_to(fields: list[tuple[bytes, bytes]], keep: bool) -> None:
    assert message(WireRequest(url=URL, fields=fields)).keep is keep


def test_only_what_may_be_requested_twice_is_repeatable() -> None:
    responses = {
        m: message(WireRequest(url=URL, method=m)).repeatable
        for m in ("GET", "HEAD", "PUT", "POST", "X")
    }
    assert responses == {"GET": True, "HEAD": True, "PUT": True, "POST": False, "X": False}


def test_a_route_tells_connections_apart_that_must_not_be_shared() -> None:
    def route(url: str, **changes: str) -> Route:
        return message(WireRequest(url=url, **changes)).route  # type: ignore[arg-type]

    assert route("http://example.org/a") == route("HTTP://EXAMPLE.org/b?c")
    different = [
        route("http://example.org/"),
        route("https://example.org/"),
        route("http://example.org:8080/"),
        route("http://example.com/"),
        route("http://example.org/", proxy="http://proxy.example/"),
        route("http://example.org/", tls=TlsPolicy.RECORD),
        route("http://example.org/", bind="127.0.0.2"),
    ]
    assert len({*different}) == len(different)


@pytest.mark.parametrize(
    ("authority", "host_and_port"),
    [
        ("example.org", ("example.org", 443)),
        ("example.org:8443", ("example.org", 8443)),
        ("[::1]", ("::1", 443)),
        ("[::1]:8443", ("::1", 8443)),
        ("example.org:", ("example.org", 443)),
    ],
)
def test_a_route_knows_host_and_port(authority: str, host_and_port: tuple[str, int]) -> None:
    assert Route("https", authority, "", TlsPolicy.VERIFY).host_and_port() == host_and_port


def test_a_route_without_tls_leads_to_port_80() -> None:
    assert message(WireRequest(url=URL)).route.host_and_port() == ("example.org", 80)


def test_a_policy_of_the_request_is_followed_in_place_of_the_wires() -> None:
    assert message(WireRequest(url=URL)).route.policy is TlsPolicy.VERIFY
    assert message(WireRequest(url=URL, tls=TlsPolicy.RECORD)).route.policy is TlsPolicy.RECORD


def test_what_is_recorded_is_what_was_sent() -> None:
    plain = message(WireRequest(url=URL, fields=[(b"X-Mine", b"mine")]))
    for sent in (0, 10, len(plain.data) - 1, len(plain.data)):
        assert plain.recorded(sent, frozenset()) == plain.data[:sent]


def test_values_that_are_hidden_or_secret_by_name_are_not_recorded() -> None:
    fields = [(b"X-Mine", b"mine"), (b"X-Session-Token", b"secret")]
    made = message(WireRequest(url=URL, method="POST", fields=fields, body=b"Cookie: a\r\n"))
    shown = made.data.replace(b": secret", b": redacted")
    assert made.recorded(len(made.data), frozenset()) == shown
    assert made.recorded(len(made.data), frozenset({b"x-mine"})) == shown.replace(
        b": mine", b": redacted"
    )
    plain = message(WireRequest(url=URL, fields=fields[:1]))
    hidden = plain.recorded(len(plain.data), frozenset({b"x-mine"}))
    assert hidden == plain.data.replace(b": mine", b": redacted")


def test_what_the_proxy_alone_sees_is_not_recorded_however_little_was_sent() -> None:
    line = b"Proxy-Authorization: Basic dXNlcjpwdw==\r\n"
    proxied = WireRequest(url=URL, method="POST", body=line, proxy="http://user:pw@proxy.example:1")
    data = message(proxied).data
    at = data.index(line)
    assert message(proxied).recorded(len(data), frozenset()) == data[:at] + data[at + len(line) :]
    for sent in (at, at + 1, at + len(line)):
        assert message(proxied).recorded(sent, frozenset()) == data[:at]


@pytest.mark.parametrize(
    ("scheme", "proxy", "absolute"),
    [
        ("http", "http://proxy.example:3128", True),
        ("http", "HTTPS://proxy.example/", True),
        ("https", "http://proxy.example:3128", False),
        ("http", "http://user:secret@proxy.example:3128", True),
        ("https", "http://user:secret@proxy.example:3128", False),
        ("http", "proxy.example:3128", True),
        ("http", "socks5://proxy.example", False),
        ("https", "socks5h://user:secret@proxy.example:1080/", False),
    ],
)
def test_only_a_plain_proxy_is_sent_a_plain_request(scheme: str, proxy: str, absolute: bool) -> None:
    assert proxy_of(proxy).takes_plain(scheme) is absolute
    data = message(WireRequest(url=f"{scheme}://example.org/a", proxy=proxy)).data
    assert data.startswith(b"GET http://example.org/a HTTP" if absolute else b"GET /a HTTP")


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("given_by", ["url", "field"])
def test_what_authorizes_at_a_proxy_is_for_the_proxy_alone(scheme: str, given_by: str) -> None:
    secret = b"Basic dXNlcjpwYTpzcw=="
    in_url = given_by == "url"
    composed = message(
        WireRequest(
            url=f"{scheme}://example.org/a",
            proxy="http://user:pa%3Ass@proxy.example:3128" if in_url else "proxy.example:3128",
            fields=[] if in_url else [(b"proxy-authorization", secret)],
        )
    )
    line = b"Proxy-Authorization: " + secret + b"\r\n"
    assert composed.data.count(line) == (1 if scheme == "http" else 0)
    assert composed.data.count(b"uthorization") == composed.data.count(line)
    for sent in range(len(composed.data) + 1):
        assert b"Basic" not in composed.recorded(sent, frozenset())
    assert composed.recorded(len(composed.data), frozenset()) == composed.data.replace(line, b"")
    known = composed.route.proxy_authorization or proxy_of(composed.route.proxy).authorization
    assert known == secret


def test_what_authorizes_at_a_proxy_is_not_sent_where_there_is_none() -> None:
    fields = [(b"Proxy-Authorization", b"Basic eA=="), (b"Accept", b"*/*")]
    assert b"Basic" not in message(WireRequest(url=URL, fields=fields)).data


@pytest.mark.parametrize(
    "proxy",
    [
        "proxy.example:no",
        "proxy.example",
        "user:secret@proxy.example",
        "ftp://proxy.example",
        "http://",
        "file:///x",
        "http://a/b",
        f"socks5://me:{256 * 'x'}@proxy.example",
        f"socks5h://{128 * '%C3%A4'}@proxy.example",
        "socks4a://me%00other.example@proxy.example",
    ],
)
def test_a_proxy_that_cannot_be_followed_is_the_callers_fault(proxy: str) -> None:
    with pytest.raises(UsageError, match="proxy"):
        compose(WireRequest(url=URL, proxy=proxy), policy=TlsPolicy.VERIFY)


@pytest.mark.parametrize(
    ("proxy", "kind", "host_and_port"),
    [
        ("http://proxy.example", ProxyKind.HTTP, ("proxy.example", 80)),
        ("https://proxy.example/", ProxyKind.HTTP, ("proxy.example", 443)),
        ("http://user:secret@proxy.example:3128", ProxyKind.HTTP, ("proxy.example", 3128)),
        ("proxy.example:3128", ProxyKind.HTTP, ("proxy.example", 3128)),
        ("SOCKS5h://[::1]:9050", ProxyKind.SOCKS_BY_NAME, ("::1", 9050)),
        ("socks4a://proxy.example", ProxyKind.SOCKS_BY_NAME, ("proxy.example", 1080)),
        ("socks5://proxy.example", ProxyKind.SOCKS_BY_ADDRESS, ("proxy.example", 1080)),
        ("socks4://proxy.example", ProxyKind.SOCKS_BY_ADDRESS, ("proxy.example", 1080)),
    ],
)
def test_a_proxy_is_read_from_its_url(
    proxy: str, kind: ProxyKind, host_and_port: tuple[str, int]
) -> None:
    assert (proxy_of(proxy).kind, proxy_of(proxy).host_and_port) == (kind, host_and_port)


def test_a_proxy_at_a_port_that_none_can_have_is_refused_before_the_crawl() -> None:
    assert proxy_of("http://proxy.example:65535").host_and_port == ("proxy.example", 65535)
    with pytest.raises(UsageError, match=r"The port of the proxy is 65536\. Ports end at 65535\."):
        proxy_of("http://proxy.example:65536")
