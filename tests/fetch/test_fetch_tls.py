"""TLS: what is trusted, what is recorded, and how a secured connection ends."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
import tempfile
import threading
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fetch.serving import always, content, respond, silence, until
from odd_responses import FIVE, OK, LoopbackServer, read_request
from OpenSSL import SSL

from amicrawl.capture import Failure, Truncation
from amicrawl.config import TlsPolicy
from amicrawl.errors import UsageError
from amicrawl.fetch import Wire, WireRequest
from amicrawl.fetch.connection import Connection
from amicrawl.fetch.failures import TlsError
from amicrawl.fetch.tls import TlsClient, TlsSettings

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from fetch.serving import Run

    from amicrawl.capture import Capture

PAST = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def context(
    authority: trustme.CA, *names: str, version: ssl.TLSVersion | None = None, expired: bool = False
) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if version is not None:
        made.minimum_version = made.maximum_version = version
    certificate = authority.issue_cert(*(names or ("127.0.0.1",)), not_after=PAST if expired else None)
    certificate.configure_cert(made)
    return made


def issued(authority: trustme.CA, names: list[str] | x509.UnrecognizedExtension) -> ssl.SSLContext:
    """Return the context of a server with a certificate for *names*, be they fit for one or not."""
    key = ec.generate_private_key(ec.SECP256R1())
    if isinstance(names, list):
        alternatives: x509.ExtensionType = x509.SubjectAlternativeName(
            [
                x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
                for name in names
            ]
        )
    else:
        alternatives = names
    signer = serialization.load_pem_private_key(authority.private_key_pem.bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "www.example.org")]))
        .issuer_name(x509.load_pem_x509_certificate(authority.cert_pem.bytes()).subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(alternatives, critical=False)
        .sign(signer, hashes.SHA256())
    )
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        file.write(certificate.public_bytes(serialization.Encoding.PEM))
        file.flush()
        made.load_cert_chain(file.name)
    return made


def secured(
    tls: ssl.SSLContext, serve: Callable[[socket.socket], None], *, orderly: bool = True
) -> Callable[[socket.socket], None]:
    """Serve over TLS; *orderly* tells whether the end is announced, as TLS wants it."""

    def shake_hands(connection: socket.socket) -> None:
        with tls.wrap_socket(connection, server_side=True, suppress_ragged_eofs=False) as channel:
            serve(channel)
            if orderly:
                channel.unwrap()

    return shake_hands


@pytest.fixture
def fetch_from(run: Run, make_wire: Callable[..., Wire], ca_file: Path) -> Callable[..., Capture]:
    """Fetch once over TLS from a server that serves as told."""

    def fetch(
        serve: Callable[[socket.socket], None], *, host: str = "127.0.0.1", **wire: object
    ) -> Capture:
        async def once(port: int) -> Capture:
            resolve = {"resolve": lambda _: ["127.0.0.1"]}
            async with make_wire(wire={"ca_file": ca_file, **resolve, **wire}) as made:
                return await made.fetch(WireRequest(url=f"https://{host}:{port}/"))

        with LoopbackServer(serve) as server:
            return run(once(server.port))

    return fetch


@pytest.mark.parametrize(
    ("version", "named"), [(ssl.TLSVersion.TLSv1_2, "tls/1.2"), (ssl.TLSVersion.TLSv1_3, "tls/1.3")]
)
def test_a_trusted_server_is_captured_with_what_was_negotiated(
    fetch_from: Callable[..., Capture], authority: trustme.CA, version: ssl.TLSVersion, named: str
) -> None:
    seen: list[tuple[str, str, int] | None] = []

    def serve(connection: socket.socket) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        seen.append(connection.cipher())
        always(OK + FIVE)(connection)

    capture = fetch_from(secured(context(authority, version=version), serve))
    assert (capture.failure, content(capture)) == (None, b"hello")
    assert capture.tls is not None
    assert seen[0] is not None
    assert (capture.tls.version, capture.tls.cipher, capture.tls.verified) == (named, seen[0][0], True)
    assert capture.ip_address == "127.0.0.1"


def test_the_name_requested_is_what_is_verified_and_sent_along(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    requested: list[str | None] = []
    tls = context(authority, "example.org")
    tls.sni_callback = lambda _channel, name, _context: requested.append(name)
    capture = fetch_from(secured(tls, always(OK + FIVE)), host="example.org")
    assert (capture.failure, content(capture), requested) == (None, b"hello", ["example.org"])


@pytest.mark.parametrize(
    ("names", "host", "is_for"),
    [
        (["*.example.org"], "www.example.org", True),
        (["*.Example.ORG"], "WWW.example.org", True),
        (["example.net", "www.example.org"], "www.example.org.", True),
        (["*.example.org"], "example.org", False),
        (["*.example.org"], "a.www.example.org", False),
        (["*.example.org"], "xn--mnchen-3ya.example.org", False),
        (["w*.example.org"], "www.example.org", False),
        (["*.org"], "example.org", False),
        (["www.example.net"], "www.example.org", False),
        (["127.0.0.1"], "www.example.org", False),
        (["127.0.0.1"], "127.0.0.1", True),
        (["127.0.0.2", "www.example.org"], "127.0.0.1", False),
    ],
)
def test_a_certificate_is_for_the_names_in_it_and_a_wildcard_for_one_label(
    run_once: Run, make_wire: Callable[..., Wire], authority: trustme.CA, ca_file: Path,
    names: list[str], host: str, is_for: bool,
) -> None:  # fmt: skip
    certificate = issued(authority, names)

    async def fetch(port: int) -> Capture:
        async with make_wire(wire={"ca_file": ca_file, "resolve": lambda _: ["127.0.0.1"]}) as wire:
            return await wire.fetch(WireRequest(url=f"https://{host}:{port}/"))

    with LoopbackServer(secured(certificate, always(OK + FIVE))) as server:
        capture = run_once(fetch(server.port))
    assert capture.failure is (None if is_for else Failure.TLS_CERTIFICATE), capture.failure_detail
    capture.body.close()


def test_a_certificate_whose_names_cannot_be_read_is_for_no_host(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    # An X.400 address among the names, which OpenSSL reads and `cryptography` does not.
    names = x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, b"\x30\x04\xa3\x02\x30\x00")
    capture = fetch_from(secured(issued(authority, names), always(OK + FIVE)))
    assert capture.failure is Failure.TLS_CERTIFICATE
    assert "not for this host" in capture.failure_detail


@pytest.fixture(params=["unknown authority", "other name", "expired"])
def untrusted(request: pytest.FixtureRequest, authority: trustme.CA) -> ssl.SSLContext:
    match request.param:
        case "unknown authority":
            return context(trustme.CA(), "127.0.0.1")
        case "other name":
            return context(authority, "other.example")
        case _:
            return context(authority, "127.0.0.1", expired=True)


def test_an_untrusted_server_is_not_contacted(
    fetch_from: Callable[..., Capture], untrusted: ssl.SSLContext
) -> None:
    requests: list[bytes] = []
    capture = fetch_from(secured(untrusted, lambda channel: requests.append(read_request(channel))))
    assert (capture.failure, capture.status, capture.request) == (Failure.TLS_CERTIFICATE, 0, b"")
    assert capture.failure_detail
    assert not any(requests)


def test_an_untrusted_server_is_archived_under_a_policy_that_records(
    fetch_from: Callable[..., Capture], untrusted: ssl.SSLContext
) -> None:
    capture = fetch_from(secured(untrusted, always(OK + FIVE)), tls=TlsPolicy.RECORD)
    assert (capture.failure, content(capture)) == (None, b"hello")
    assert capture.tls is not None
    assert not capture.tls.verified
    assert capture.tls.version == "tls/1.3"


def test_what_a_certificate_lacks_is_said_by_name(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    faults = {
        "unable to get issuer cert locally": context(trustme.CA(), "127.0.0.1"),
        "it is not for this host": context(authority, "other.example"),
        "cert has expired": context(authority, "127.0.0.1", expired=True),
    }
    for fault, tls in faults.items():
        recorded = fetch_from(secured(tls, always(OK + FIVE)), tls=TlsPolicy.RECORD)
        assert recorded.tls is not None
        assert (recorded.tls.fault, content(recorded)) == (fault, b"hello")
        refused = fetch_from(secured(tls, always(OK + FIVE)))
        assert refused.failure_detail == f"The certificate: {fault}."


def test_a_trusted_server_is_recorded_as_such(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    capture = fetch_from(secured(context(authority), always(OK + FIVE)), tls=TlsPolicy.RECORD)
    assert capture.tls is not None
    assert capture.tls.verified
    capture.body.close()


def test_a_connection_that_was_not_verified_never_serves_a_request_that_requires_it(
    run: Run, make_wire: Callable[..., Wire], ca_file: Path
) -> None:
    async def fetch(url: str) -> list[Capture]:
        async with make_wire(wire={"ca_file": ca_file}) as wire:
            policies = [TlsPolicy.RECORD, TlsPolicy.RECORD, TlsPolicy.VERIFY]
            return [await wire.fetch(WireRequest(url=url, tls=policy)) for policy in policies]

    with LoopbackServer(secured(context(trustme.CA()), always(OK + FIVE))) as server:
        captures = run(fetch(server.url.replace("http:", "https:")))
    assert [capture.failure for capture in captures] == [None, None, Failure.TLS_CERTIFICATE]
    # One handshake serves the first two; the third shakes hands for itself, and resumes no session.
    assert server.connections == 2
    for capture in captures:
        capture.body.close()


def test_a_secured_connection_is_kept(
    run: Run, make_wire: Callable[..., Wire], ca_file: Path, authority: trustme.CA
) -> None:
    page = OK + b"Content-Length: 300000\r\n\r\n" + bytes(300_000)

    async def fetch(url: str) -> list[Capture]:
        async with make_wire(wire={"ca_file": ca_file}) as wire:
            return [await wire.fetch(WireRequest(url=url)) for _ in range(3)]

    with LoopbackServer(secured(context(authority), always(page))) as server:
        captures = run(fetch(server.url.replace("http:", "https:")))
    assert [len(content(capture)) for capture in captures] == [300_000] * 3
    assert server.connections == 1
    assert all(capture.tls and capture.tls.verified for capture in captures)


@pytest.mark.parametrize("line", [b"X: one\r\n two\r\n", b"X: \0\r\n", b"no colon\r\n"])
def test_odd_heads_are_kept_to_the_byte_over_tls_too(
    fetch_from: Callable[..., Capture], authority: trustme.CA, line: bytes
) -> None:
    sent = OK + line + FIVE + b"surplus"
    capture = fetch_from(secured(context(authority), respond(sent)))
    assert capture.head + content(capture) == sent


@pytest.mark.parametrize(
    ("sent", "orderly", "truncated"),
    [
        (OK + b"\r\nhello", True, None),
        (OK + b"\r\nhello", False, Truncation.DISCONNECT),
        (OK + b"Connection: close\r\n" + FIVE, False, None),
        (OK + b"Content-Length: 50\r\n\r\nhello", True, Truncation.DISCONNECT),
    ],
)
def test_an_end_that_tls_does_not_vouch_for_is_a_disconnect(
    fetch_from: Callable[..., Capture],
    authority: trustme.CA,
    sent: bytes,
    orderly: bool,
    truncated: Truncation | None,
) -> None:
    capture = fetch_from(secured(context(authority), respond(sent), orderly=orderly))
    assert (capture.truncated, capture.failure, content(capture)) == (truncated, None, b"hello")


def test_the_end_of_a_connection_is_announced_to_the_server(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    last: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        respond(OK + FIVE)(connection)
        last.append(connection.recv(1))

    fetch_from(secured(context(authority), serve))
    assert last == [b""]


def test_a_server_that_speaks_no_tls_fails_the_handshake(fetch_from: Callable[..., Capture]) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(OK + FIVE)

    capture = fetch_from(serve)
    assert (capture.failure, capture.tls) == (Failure.TLS_HANDSHAKE, None)


def test_a_server_that_hangs_up_in_the_handshake_fails_it(fetch_from: Callable[..., Capture]) -> None:
    assert fetch_from(lambda connection: connection.recv(10) and None).failure is Failure.TLS_HANDSHAKE


def test_a_missing_file_of_certificates_is_named(
    run_once: Run, make_wire: Callable[..., Wire], tmp_path: Path
) -> None:
    async def fetch() -> None:
        async with make_wire(wire={"ca_file": tmp_path / "missing.pem"}) as wire:
            with pytest.raises(UsageError, match=r"missing\.pem"):
                await wire.fetch(WireRequest(url="https://127.0.0.1:1/"))

    run_once(fetch())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_resumed_and_what_its_handshake_showed_holds(
    run: Run, make_wire: Callable[..., Wire], version: ssl.TLSVersion
) -> None:
    reused: list[bool | None] = []

    def serve(connection: socket.socket) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        reused.append(connection.session_reused)
        always(OK + FIVE)(connection)

    async def fetch(url: str) -> list[Capture]:
        async with make_wire(wire={"tls": TlsPolicy.RECORD}) as wire:
            closing = [(b"Connection", b"close")]
            return [await wire.fetch(WireRequest(url=url, fields=closing)) for _ in range(3)]

    with LoopbackServer(secured(context(trustme.CA(), version=version), serve)) as server:
        captures = run(fetch(server.url.replace("http:", "https:")))
    assert [content(capture) for capture in captures] == [b"hello"] * 3
    assert reused == [False, True, True]
    assert {capture.tls.fault for capture in captures if capture.tls} == {
        "unable to get issuer cert locally"
    }
    assert len({capture.tls.certificate for capture in captures if capture.tls}) == 1
    assert captures[2].tls is not None
    assert captures[2].tls.certificate
    assert len({(tls.version, tls.cipher, tls.verified) for each in captures if (tls := each.tls)}) == 1
    assert captures[2].tls.version == f"tls/1.{2 if version is ssl.TLSVersion.TLSv1_2 else 3}"


def test_a_server_that_resumes_no_session_is_judged_by_the_certificate_that_it_shows_now(
    run: Run, make_wire: Callable[..., Wire], authority: trustme.CA, ca_file: Path
) -> None:
    contexts = [context(authority), context(trustme.CA())]

    def serve(connection: socket.socket) -> None:
        secured(contexts.pop(0), always(OK + FIVE))(connection)

    async def fetch(url: str) -> list[Capture]:
        async with make_wire(wire={"tls": TlsPolicy.RECORD, "ca_file": ca_file}) as wire:
            closing = [(b"Connection", b"close")]
            return [await wire.fetch(WireRequest(url=url, fields=closing)) for _ in range(2)]

    with LoopbackServer(serve) as server:
        captures = run(fetch(server.url.replace("http:", "https:")))
    assert [content(capture) for capture in captures] == [b"hello"] * 2
    assert [tls.verified for each in captures if (tls := each.tls)] == [True, False]
    assert len({tls.certificate for each in captures if (tls := each.tls)}) == 2


def test_http_1_1_is_the_protocol_that_is_offered(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    """A server that also speaks HTTP/2 must not choose it."""
    chosen: list[str | None] = []

    def serve(connection: socket.socket) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        chosen.append(connection.selected_alpn_protocol())
        always(OK + FIVE)(connection)

    tls = context(authority)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    fetch_from(secured(tls, serve)).body.close()
    assert chosen == ["http/1.1"]


class ByHand:
    """A server's end of TLS 1.2 on *connection*, of which each byte is sent when a test wants it."""

    def __init__(self, connection: socket.socket, authority: trustme.CA) -> None:
        tls = SSL.Context(SSL.TLS_SERVER_METHOD)
        tls.set_max_proto_version(SSL.TLS1_2_VERSION)
        authority.issue_cert("127.0.0.1").configure_cert(tls)
        self._connection = connection
        self.channel = SSL.Connection(tls, None)
        self.channel.set_accept_state()

    def due(self) -> bytes:
        """Return the bytes that are to be sent."""
        with suppress(SSL.WantReadError):
            return self.channel.bio_read(1 << 16)
        return b""

    def turn(self) -> bytes:
        """Send what is due, take what comes, and return the data in it."""
        self._connection.sendall(self.due())
        if not (came := self._connection.recv(1 << 16)):
            raise ConnectionResetError
        return self.take(came)

    def take(self, came: bytes) -> bytes:
        """Return the data in what *came*."""
        self.channel.bio_write(came)
        with suppress(SSL.WantReadError, SSL.ZeroReturnError):
            return self.channel.recv(1 << 16)
        return b""


def test_a_server_that_shakes_hands_again_before_it_responds_is_captured(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    """Servers of TLS 1.2 do, where only some of their pages want a certificate of the client."""

    def serve(connection: socket.socket) -> None:
        server = ByHand(connection, authority)
        channel = server.channel
        while not server.turn():
            pass
        channel.renegotiate()
        channel.do_handshake()
        while channel.renegotiate_pending():
            server.turn()
        assert channel.total_renegotiations() == 1
        channel.sendall(OK + FIVE)
        server.turn()

    capture = fetch_from(serve)
    assert (capture.failure, content(capture)) == (None, b"hello")


def test_a_request_waits_for_the_handshake_that_a_server_began_on_a_kept_connection(
    run: Run, make_wire: Callable[..., Wire], authority: trustme.CA, ca_file: Path
) -> None:
    began, departed = threading.Event(), threading.Event()
    requests: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        server = ByHand(connection, authority)
        while not (request := server.turn()):
            pass
        requests.append(request)
        server.channel.sendall(OK + FIVE)
        connection.sendall(server.due())
        server.channel.renegotiate()
        server.channel.do_handshake()
        connection.sendall(server.due())
        came = connection.recv(1 << 16)
        began.set()
        departed.wait(60)
        request = server.take(came)
        while not request:
            request = server.turn()
        requests.append(request)
        server.channel.sendall(OK + FIVE)
        server.turn()

    async def fetch(url: str) -> list[Capture]:
        async with make_wire(wire={"ca_file": ca_file}) as wire:
            first = await wire.fetch(WireRequest(url=url))
            await until(began.is_set)
            return [first, await wire.fetch(WireRequest(url=url), departs=departed.set)]

    with LoopbackServer(serve) as server:
        captures = run(fetch(server.url.replace("http:", "https:")))
        assert server.connections == 1
    assert [(each.failure, content(each)) for each in captures] == [(None, b"hello")] * 2
    assert [each.request for each in captures] == requests


@pytest.mark.parametrize(
    ("sent", "truncated"),
    [(OK + FIVE, None), (OK + b"Content-Length: 50\r\n\r\nhello", Truncation.DISCONNECT)],
)
@pytest.mark.parametrize("behind", [b"\x17\x03\x03\0\x20" + bytes(32), b"HTTP/1.1 400 Bad\r\n\r\n"])
def test_what_came_before_tls_broke_is_kept_however_it_came(
    fetch_from: Callable[..., Capture],
    authority: trustme.CA,
    sent: bytes,
    truncated: Truncation | None,
    behind: bytes,
) -> None:
    def serve(connection: socket.socket) -> None:
        server = ByHand(connection, authority)
        while not server.turn():
            pass
        server.channel.sendall(sent)
        connection.sendall(server.due() + behind)
        silence(connection)

    capture = fetch_from(serve)
    assert (capture.failure, capture.truncated, content(capture)) == (None, truncated, b"hello")


def test_a_connection_that_ended_before_the_handshake_fails_it_at_once(run: Run) -> None:
    async def shake_hands(port: int) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
        await until(lambda: not connection.open)
        layer = TlsClient(ca_file=None, settings=TlsSettings()).layer("a", port, TlsPolicy.VERIFY)
        async with asyncio.timeout(60):
            await connection.start_tls(layer)

    with LoopbackServer(lambda _: None) as server, pytest.raises(TlsError, match="was closed"):
        run(shake_hands(server.port))


def test_a_session_without_trust_is_not_resumed_where_trust_is_requested(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    async def fetch(url: str) -> list[Capture]:
        async with make_wire() as wire:
            closing = [(b"Connection", b"close")]
            policies = [TlsPolicy.RECORD, TlsPolicy.VERIFY]
            return [
                await wire.fetch(WireRequest(url=url, fields=closing, tls=policy)) for policy in policies
            ]

    with LoopbackServer(secured(context(trustme.CA()), always(OK + FIVE))) as server:
        captures = run(fetch(server.url.replace("http:", "https:")))
    assert [capture.failure for capture in captures] == [None, Failure.TLS_CERTIFICATE]
    captures[0].body.close()


def test_versions_and_ciphers_are_those_that_are_set(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    settings = TlsSettings(maximum="TLSv1.2", ciphers="ECDHE-ECDSA-AES128-GCM-SHA256")
    capture = fetch_from(secured(context(authority), always(OK + FIVE)), tls_settings=settings)
    assert capture.tls is not None
    assert (capture.tls.version, capture.tls.cipher) == ("tls/1.2", "ECDHE-ECDSA-AES128-GCM-SHA256")
    capture.body.close()
    old = context(authority, version=ssl.TLSVersion.TLSv1_2)
    refused = fetch_from(secured(old, always(OK + FIVE)), tls_settings=TlsSettings(minimum="TLSv1.3"))
    assert refused.failure is Failure.TLS_HANDSHAKE


def test_a_server_without_an_order_of_its_own_takes_the_suite_that_browsers_offer_first(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    made = context(authority, version=ssl.TLSVersion.TLSv1_3)
    made.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    capture = fetch_from(secured(made, always(OK + FIVE)))
    assert capture.tls is not None
    assert capture.tls.cipher == "TLS_AES_128_GCM_SHA256"
    capture.body.close()


def test_session_keys_are_written_where_a_file_is_named_for_them(
    fetch_from: Callable[..., Capture], authority: trustme.CA, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    secured_server = secured(context(authority), always(OK + FIVE))
    capture = fetch_from(secured_server, tls_settings=TlsSettings(key_log=keys))
    capture.body.close()
    lines = keys.read_text().splitlines()
    assert "CLIENT_TRAFFIC_SECRET_0" in {line.split()[0] for line in lines}
    assert {len(line.split()) for line in lines} == {3}


@pytest.mark.parametrize("settings", [TlsSettings(minimum="SSLv3"), TlsSettings(ciphers="no such")])
def test_a_tls_setting_that_openssl_does_not_have_is_refused(
    run_once: Run, make_wire: Callable[..., Wire], settings: TlsSettings
) -> None:
    async def fetch(url: str) -> None:
        async with make_wire(wire={"tls_settings": settings}) as wire:
            with pytest.raises(UsageError):
                await wire.fetch(WireRequest(url=url))

    with LoopbackServer(silence) as server:
        run_once(fetch(server.url.replace("http:", "https:")))


def test_a_server_that_wants_a_certificate_of_the_client_refuses_the_handshake(
    fetch_from: Callable[..., Capture], authority: trustme.CA
) -> None:
    """Under TLS 1.3 it says so after the handshake of the client, which has sent its request."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        tls = context(authority, version=version)
        tls.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(tls)

        def serve(connection: socket.socket, tls: ssl.SSLContext = tls) -> None:
            with suppress(ssl.SSLError):
                secured(tls, silence)(connection)
            # What came behind the handshake is read, or the system would take the alert back.
            while connection.recv(65536):
                pass

        capture = fetch_from(serve)
        assert (capture.failure, capture.status) == (Failure.TLS_HANDSHAKE, 0), capture.failure_detail
